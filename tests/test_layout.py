"""Ranks, coordinates, groups and columns of a layout."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwmodels.errors import SpecError
from hwmodels.layout import AXES, Layout
from hwmodels.layout_table import FIELDS, table_from_columns, table_of
from tests.strategies import layouts


@given(layout=layouts(), axis=st.sampled_from(AXES))
def test_groups_partition_the_ranks(layout, axis):
    groups = layout.groups(axis)
    assert sorted(rank for group in groups for rank in group) == list(range(layout.world_size))
    assert {len(group) for group in groups} == {layout.degree(axis)}
    for group in groups[:3]:
        others = [{k: v for k, v in layout.coordinates(rank).items() if k != axis} for rank in group]
        assert all(other == others[0] for other in others)


@given(layout=layouts(), data=st.data())
def test_coordinates_invert(layout, data):
    rank = data.draw(st.integers(0, layout.world_size - 1))
    assert layout.rank(layout.coordinates(rank)) == rank


def test_neighbours_differ_in_tensor_parallel_rank():
    layout = Layout(tensor_parallel=2, data_parallel=3, pipeline_parallel=4)
    assert layout.coordinates(23) == {"pp": 3, "dp": 2, "cp": 0, "tp": 1}
    assert layout.groups("tp")[0] == [0, 1]
    assert layout.groups("dp")[0] == [0, 2, 4]
    assert layout.groups("pp")[0] == [0, 6, 12, 18]


@pytest.mark.parametrize("rank", [-1, 24])
def test_ranks_outside_the_world(rank):
    with pytest.raises(IndexError):
        Layout(data_parallel=24).coordinates(rank)


@given(some=st.lists(layouts(), min_size=1, max_size=5))
def test_columns_hold_the_layouts(some):
    table = table_of(some)
    assert [table.row(i) for i in range(len(table))] == some
    assert [int(n) for n in table.world_size] == [layout.world_size for layout in some]


def test_columns_that_are_not_given_take_the_default():
    table = table_from_columns({"tensor_parallel": table_of([Layout(tensor_parallel=4)]).tensor_parallel})
    assert table.row(0) == Layout(tensor_parallel=4)
    assert len(FIELDS) == 15


def test_all_faults_of_a_layout_at_once():
    with pytest.raises(SpecError) as caught:
        Layout(tensor_parallel=0, micro_batch_size=-1, zero_stage=7, recompute="fulll")
    paths = {fault.path: fault.nearest for fault in caught.value.faults}
    assert paths == {"tensor_parallel": "1", "micro_batch_size": "1", "zero_stage": "3", "recompute": "full"}
