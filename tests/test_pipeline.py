"""Pipeline arithmetic, against the published formulas."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwmodels.layout import Layout
from hwmodels.layout_table import table_of
from sim.pipeline import bubble_time, stages


def first_middle_last(layers, micro_batches=1000, **fields):
    table = table_of([Layout(**fields)])
    return stages(layers, table, np.full(1, float(micro_batches)))


def test_even_stages():
    first, middle, last = first_middle_last(96, pipeline_parallel=8)
    assert [s.layers[0] for s in (first, middle, last)] == [12, 12, 12]
    assert (first.first[0], first.last[0], last.first[0], last.last[0]) == (True, False, False, True)
    assert middle.exists[0] and not first_middle_last(96, pipeline_parallel=2)[1].exists[0]


def test_one_stage_is_first_and_last_at_once():
    first, _, last = first_middle_last(96)
    assert first.first[0] and first.last[0] and last.first[0] and last.last[0]
    assert first.layers[0] == last.layers[0] == 96


def test_ends_get_fewer_layers_where_they_do_not_divide():
    # 126 layers in 16 x 8 slots: one slot each is left to embedding and head.
    first, middle, last = first_middle_last(126, pipeline_parallel=16, virtual_stages=8)
    assert [s.layers[0] for s in (first, middle, last)] == [7, 8, 7]
    # 31 layers on 4 stages: the last one is short.
    assert [s.layers[0] for s in first_middle_last(31, pipeline_parallel=4)] == [8, 8, 7]


def test_in_flight_micro_batches():
    # 1F1B, Narayanan et al. 2021: pp on the first stage, one on the last.
    assert [s.in_flight[0] for s in first_middle_last(96, pipeline_parallel=8)] == [8, 7, 1]
    # Never more than there are.
    assert first_middle_last(96, micro_batches=3, pipeline_parallel=8)[0].in_flight[0] == 3


@given(pp=st.integers(2, 64), vp=st.integers(2, 12))
def test_interleaving_holds_what_korthikanti_says(pp, vp):
    first = first_middle_last(pp * vp, pipeline_parallel=pp, virtual_stages=vp)[0]
    assert first.in_flight[0] == pytest.approx(pp * (1 + (pp - 1) / (pp * vp)))


@given(pp=st.integers(1, 64), vp=st.integers(1, 12), stage=st.floats(0.1, 10))
def test_bubble_of_equal_stages(pp, vp, stage):
    idle = bubble_time(np.array([stage]), np.array([stage * pp]), np.array([vp]))
    assert idle[0] == pytest.approx((pp - 1) / vp * stage, abs=1e-9)
