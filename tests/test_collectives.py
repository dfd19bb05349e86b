"""Collectives over groups inside and across scale-up domains."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwmodels.catalog import cluster_of
from hwmodels.collectives import (
    all_gather_time,
    all_reduce_time,
    all_to_all_time,
    broadcast_time,
    exchange_time,
    group,
    reduce_scatter_time,
    reduce_time,
    send_time,
)
from planner.collective_measurements import validate_collectives
from planner.measurements import shipped
from tests.worlds import round_cluster


def ints(*values):
    return np.array(values, dtype=np.int64)


def test_group_inside_a_domain():
    over = group(round_cluster(), ints(8), ints(1))
    assert (over.inner, over.outer, over.ring) == (8, 1, 200e9)
    # 7/8 of 800 MB at 200 GB/s, and 7 steps of 1 us.
    assert all_gather_time(over, 800e6) == pytest.approx(3.5e-3 + 7e-6)
    assert all_reduce_time(over, 800e6) == pytest.approx(7e-3 + 14e-6)


def test_group_across_two_nodes_uses_all_its_cards():
    over = group(round_cluster(), ints(16), ints(1))
    # 8 members a node, 8 x 25 GB/s of cards, as fast as the links inside.
    assert (over.inner, over.outer, over.ring, over.cards) == (8, 2, 200e9, 200e9)
    # 15/16 of 1.6 GB at 200 GB/s; of the 15 steps of the ring one crosses the network.
    assert reduce_scatter_time(over, 1.6e9) == pytest.approx(7.5e-3 + 14e-6 + 10e-6)


def test_strided_group_has_one_member_a_node():
    over = group(round_cluster(), ints(2), ints(8))
    assert (over.inner, over.outer, over.ring) == (1, 2, 25e9)
    assert all_reduce_time(over, 1e9) == pytest.approx(2 * 0.5 * 1e9 / 25e9 + 2 * 10e-6)


def test_trees_beat_rings_for_short_messages_over_many_nodes():
    over = group(round_cluster(nodes=64), ints(64), ints(8))
    # A ring takes 2 x 63 steps, trees 2 x 6; a tree's node has two others below it, so half the bandwidth.
    assert all_reduce_time(over, 1e3) == pytest.approx(12 * 10e-6 + 1e3 / 12.5e9)
    assert all_reduce_time(over, 1e10) == pytest.approx(126 * 10e-6 + 2 * 63 / 64 * 1e10 / 25e9)


H100 = cluster_of("dgx-h100 x 8")
"""LL: 6.6 us + 0.6 us a step, at most 141 GB/s; Simple: 8.4 us + 3.4 us a step, 360 GB/s; switches: 303.75 GB/s."""


def test_short_messages_take_the_protocol_with_the_least_latency():
    over = group(H100, ints(8), ints(1))
    assert all_reduce_time(over, 1e3) == pytest.approx(6.6e-6 + 14 * 0.6e-6 + 1.75 * 1e3 / 141e9)
    assert all_gather_time(over, 1e3) == pytest.approx(6.6e-6 + 7 * 0.6e-6 + 0.875 * 1e3 / 141e9)


def test_trees_reach_less_of_their_bandwidth_at_middling_sizes():
    over = group(H100, ints(8), ints(8))
    # LL over one card a node: 6.6 us, 3 levels up and down of 5 + 1.3 us, half of 20.4 GB/s; 60% of it at 64 KiB.
    assert all_reduce_time(over, 2.0**16) == pytest.approx(6.6e-6 + 6 * 6.3e-6 + 2**16 / (0.6 * 10.2e9))
    assert all_reduce_time(over, 2.0**9) == pytest.approx(6.6e-6 + 6 * 6.3e-6 + 2**9 / 10.2e9)


def test_long_messages_are_added_up_in_the_switch():
    over = group(H100, ints(8), ints(1))
    # Each device sends and receives 9/8 of the message at 67.5% of 450 GB/s; 25 us and 6.5 us a device.
    assert all_reduce_time(over, 4e9) == pytest.approx(25e-6 + 8 * 6.5e-6 + 4e9 * 9 / 8 / 303.75e9)
    assert all_gather_time(over, 4e9) == pytest.approx(8.4e-6 + 7 * 3.4e-6 + 0.875 * 4e9 / 360e9)


def test_switches_that_add_up_in_the_network_carry_each_byte_once():
    sharp = replace(H100, fabric=replace(H100.fabric, in_network_reduction=True))
    slow, fast = (all_reduce_time(group(cluster, ints(8), ints(8)), 4e9)[0] for cluster in (H100, sharp))
    # One card of 47 GB/s a node: 7/4 of the message over a ring, once over the tree of switches.
    assert slow == pytest.approx(1.75 * 4e9 / 47e9, rel=0.02)
    assert fast == pytest.approx(4e9 / 47e9, rel=0.02)
    # Over all cards the switches inside the nodes bind: (1 + 1/8) of the message each way at 303.75 GB/s.
    assert all_reduce_time(group(sharp, ints(64), ints(1)), 4e10) == pytest.approx(4e10 * 9 / 8 / 303.75e9, rel=0.02)


def test_all_to_all_is_bound_by_the_card_across_nodes():
    over = group(H100, ints(64), ints(1))
    # 56 of 64 parts leave the node over the device's own card; the rest goes inside at the same time.
    assert all_to_all_time(over, 6.4e9) == pytest.approx(5.6e9 / 47e9, rel=1e-3)
    inside = group(H100, ints(8), ints(1))
    assert all_to_all_time(inside, 8e9) == pytest.approx(8.4e-6 + 7 * 3.4e-6 + 7e9 / 360e9)


def test_broadcast_passes_the_message_along_once():
    assert broadcast_time(group(round_cluster(), ints(8), ints(1)), 2e9) == pytest.approx(2e9 / 200e9 + 7e-6)

    assert reduce_time(group(round_cluster(), ints(8), ints(1)), 2e9) == pytest.approx(2e9 / 200e9 + 7e-6)


def test_exchange_is_bound_by_the_card_that_leaves_the_node():
    inside, across = (group(round_cluster(), ints(size), ints(1)) for size in (8, 16))
    assert exchange_time(inside, 1e9) == pytest.approx(1e9 / 200e9 + 1e-6)
    assert exchange_time(across, 1e9) == pytest.approx(1e9 / 25e9 + 10e-6)
    assert exchange_time(group(round_cluster(), ints(1), ints(1)), 1e9) == 0


def test_rank_placement_matters():
    inside, across = all_reduce_time(group(H100, ints(8, 8), ints(1, 8)), 1e9)
    assert across > 4 * inside


def test_published_collectives_are_predicted():
    rows = [r for r in validate_collectives(shipped("collectives")).rows if r.predicted_time_s and r.measured_time_s]
    errors = [(row.key[2], abs(row.predicted_time_s / row.measured_time_s - 1)) for row in rows]
    long, short = [e for size, e in errors if size >= 16e6], [e for size, e in errors if size < 16e6]
    assert len(long) >= 250 and len(short) >= 190
    assert np.median(long) <= 0.05 and np.median(short) <= 0.22


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
