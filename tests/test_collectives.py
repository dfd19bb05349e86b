"""Collectives over groups inside and across scale-up domains."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwmodels.collectives import all_gather_time, all_reduce_time, group, reduce_scatter_time, send_time
from tests.worlds import round_cluster


def ints(*values):
    return np.array(values, dtype=np.int64)


def test_group_inside_a_domain():
    over = group(round_cluster(), ints(8), ints(1))
    assert (over.inner, over.outer, over.bandwidth) == (8, 1, 200e9)
    # 7/8 of 800 MB at 200 GB/s, and 7 steps of 1 us.
    assert all_gather_time(over, 800e6) == pytest.approx(3.5e-3 + 7e-6)
    assert all_reduce_time(over, 800e6) == pytest.approx(7e-3 + 14e-6)


def test_group_across_two_nodes_uses_all_its_cards():
    over = group(round_cluster(), ints(16), ints(1))
    # 8 members a node, 8 x 25 GB/s of cards, as fast as the links inside.
    assert (over.inner, over.outer, over.bandwidth) == (8, 2, 200e9)
    assert reduce_scatter_time(over, 1.6e9) == pytest.approx(7.5e-3 + 7e-6 + 10e-6)


def test_strided_group_has_one_member_a_node():
    over = group(round_cluster(), ints(2), ints(8))
    assert (over.inner, over.outer, over.bandwidth) == (1, 2, 25e9)
    assert all_reduce_time(over, 1e9) == pytest.approx(2 * 0.5 * 1e9 / 25e9 + 2 * 10e-6)


def test_group_of_one_is_free():
    over = group(round_cluster(), ints(1), ints(4))
    assert all_gather_time(over, 1e9) == 0 and all_reduce_time(over, 1e9) == 0


def test_sends_cross_the_network_only_where_the_pipeline_leaves_the_domain():
    cluster = round_cluster(nodes=2)
    inside, outside = send_time(cluster, ints(2, 2), ints(4, 8), 1e9)
    assert inside == pytest.approx(1e9 / 200e9 + 1e-6)
    assert outside == pytest.approx(1e9 / 25e9 + 10e-6)
    assert send_time(cluster, ints(1), ints(16), 1e9) == 0


@given(
    size=st.sampled_from([1, 2, 4, 8, 16, 32]),
    stride=st.sampled_from([1, 2, 4, 8]),
    nbytes=st.floats(1, 1e11),
    slow=st.floats(1e9, 1e11),
    factor=st.floats(1, 10),
)
def test_more_bandwidth_is_never_slower(size, stride, nbytes, slow, factor):
    def seconds(bandwidth):
        over = group(round_cluster(nodes=32, link_bandwidth=bandwidth), ints(size), ints(stride))
        return all_reduce_time(over, nbytes)[0], all_gather_time(over, nbytes)[0]

    assert all(fast <= slower for fast, slower in zip(seconds(slow * factor), seconds(slow), strict=True))


@given(size=st.integers(1, 64), stride=st.sampled_from([1, 2, 4, 8, 16]), nbytes=st.floats(0, 1e11))
def test_all_reduce_moves_what_reduce_scatter_and_all_gather_move(size, stride, nbytes):
    over = group(round_cluster(nodes=8), ints(size), ints(stride))
    two = reduce_scatter_time(over, nbytes) + all_gather_time(over, nbytes)
    assert all_reduce_time(over, nbytes) <= two * (1 + 1e-12)
