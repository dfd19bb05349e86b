"""Layouts as text: what is filled in, every fault at once, and that a written layout is read back."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given

from hwmodels.errors import Fault, SpecError
from hwmodels.layout import Layout
from planner.layout_text import KEYS, layout_argument, layout_columns, parse_layout, show_layout
from tests.strategies import layouts, short_texts
from tests.worlds import ROUND_STACK, round_job

JOB = round_job(global_batch_size=64)


def parsed(text: str, devices: int = 16) -> Layout:
    return parse_layout(text, JOB, devices)[0]


def faults_of(text: str, devices: int = 16) -> dict[str, Fault]:
    with pytest.raises(SpecError) as caught:
        parse_layout(text, JOB, devices)
    return {fault.path: fault for fault in caught.value.faults}


def test_what_is_not_written_is_filled_in() -> None:
    assert parsed("tp=4,pp=2,cp=1") == Layout(
        tensor_parallel=4, pipeline_parallel=2, data_parallel=2, sequence_parallel=True, zero_stage=1, shard_group=2
    )
    assert parsed("") == Layout(data_parallel=16, zero_stage=1, shard_group=16)
    assert parsed("", devices=1) == Layout()
    assert parsed("pp=16,vp=2") == Layout(pipeline_parallel=16, virtual_stages=2, schedule="interleaved_1f1b")
    assert parsed("tp=2,cp=2,zero=3").shard_group == 8
    assert parsed("tp=2,zero=3,shard=4").shard_group == 4


def test_what_is_written_is_kept() -> None:
    assert parsed("tp=8,sp=false").sequence_parallel is False
    assert parsed("zero=0") == Layout(data_parallel=16)
    assert parsed("shard=1") == Layout(data_parallel=16)
    assert parsed("pp=2,vp=2,schedule=1f1b").schedule == "1f1b"
    assert parsed("mbs=4, recompute=selective ,overlap=False") == Layout(
        data_parallel=16, zero_stage=1, shard_group=16, micro_batch_size=4, recompute="selective", overlap=False
    )


def test_zero_is_off_where_the_stack_does_not_combine_it_with_a_pipeline() -> None:
    job = replace(JOB, stack=replace(ROUND_STACK, zero_with_pipeline=0))
    assert parse_layout("pp=2", job, 16)[0].zero_stage == 0
    assert parse_layout("pp=1", job, 16)[0].zero_stage == 1
    assert parse_layout("pp=2,zero=1", job, 16)[0].zero_stage == 1


def test_batch_and_precision_override_the_job() -> None:
    layout, job = parse_layout("tp=8,gbs=32,precision=fp16", JOB, 16)
    assert job == replace(JOB, global_batch_size=32, precision="fp16")
    assert layout == parsed("tp=8")
    assert parse_layout("tp=8", JOB, 16)[1] == JOB


def test_all_faults_at_once() -> None:
    faults = faults_of("tp=0,pp=two,vp=-1,zero=4,sp=maybe,recompute=selectiv,precision=bf61,ppp=1,mbs=1,mbs=2,junk")
    legal = "a whole number, 1 or more"
    assert faults["layout.tp"] == Fault(path="layout.tp", found="0", legal=legal, nearest="1")
    assert faults["layout.pp"] == Fault(path="layout.pp", found="'two'", legal=legal)
    assert faults["layout.vp"].nearest == "1"
    assert faults["layout.zero"] == Fault(path="layout.zero", found="4", legal="0, 1, 2 or 3", nearest="3")
    assert faults["layout.sp"].legal == "true or false"
    assert faults["layout.recompute"].nearest == "selective"
    assert faults["layout.precision"].nearest == "bf16"
    assert faults["layout.ppp"].nearest == "pp"
    assert faults["layout.mbs"] == Fault(path="layout.mbs", found="mbs=1, mbs=2", legal="mbs once")
    assert faults["layout"].found == "'junk'"
    assert len(faults) == 10


@pytest.mark.parametrize("text", ["tp8", "tp 8", "tp:8"])
def test_a_missing_equals_sign_is_pointed_out(text: str) -> None:
    assert faults_of(text)["layout"].nearest == "tp=8"


def test_a_field_name_leads_to_its_key() -> None:
    assert faults_of("virtual_stages=2")["layout.virtual_stages"].nearest == "vp"
    assert faults_of("expert_tensor_parallel=2")["layout.expert_tensor_parallel"].nearest == "etp"


def test_degrees_must_multiply_to_the_devices() -> None:
    assert faults_of("tp=4,pp=2,dp=4") == {
        "layout.dp": Fault(
            path="layout.dp", found="tp x pp x dp x cp = 32", legal="16 devices", nearest="dp=2"
        )
    }  # fmt: skip
    assert faults_of("tp=3,dp=2") == {
        "layout": Fault(
            path="layout", found="tp x pp x cp = 3", legal="a divisor of 16 devices", nearest="tp x pp x cp = 2"
        )
    }
    assert set(faults_of("tp=32")) == {"layout"}


def test_the_product_is_not_blamed_where_a_degree_is_illegible() -> None:
    assert set(faults_of("tp=x,pp=3")) == {"layout.tp"}


@pytest.mark.parametrize("value", ["9" * 18, "9" * 40, "1e3", "1.0", "٣", "0x8", "--1", "-"])
def test_numbers_that_are_too_large_or_none_are_refused(value: str) -> None:
    assert set(faults_of(f"mbs={value},shard={value}")) == {"layout.mbs", "layout.shard"}


def test_columns_are_complete_and_in_order() -> None:
    assert layout_columns(parsed("tp=8"), JOB) == {
        "tp": 8, "pp": 1, "vp": 1, "cp": 1, "ep": 1, "etp": 1, "dp": 2, "sp": True, "zero": 1, "shard": 2, "mbs": 1,
        "gbs": 64, "recompute": "none", "schedule": "1f1b", "offload": "none", "overlap": True, "precision": "bf16",
    }  # fmt: skip
    assert tuple(layout_columns(parsed("tp=8"), JOB)) == KEYS


def test_shown_for_tables() -> None:
    assert show_layout(Layout()) == "tp1 pp1 dp1 mbs1"
    assert show_layout(parsed("tp=8,recompute=selective")) == "tp8 pp1 dp2 zero1 sp mbs1 recompute=selective"
    assert show_layout(parsed("pp=2,vp=4,cp=2,zero=3,shard=4,mbs=2")) == "tp1 pp2 vp4 cp2 dp4 zero3 shard4 mbs2"
    assert show_layout(parsed("pp=2,vp=4,schedule=1f1b,overlap=false,zero=0")) == (
        "tp1 pp2 vp4 dp8 mbs1 schedule=1f1b overlap=false"
    )


@given(layout=layouts())
def test_a_written_layout_is_read_back(layout: Layout) -> None:
    assert parse_layout(layout_argument(layout, JOB), JOB, layout.world_size) == (layout, JOB)


@given(text=short_texts())
def test_any_text_is_a_layout_of_all_devices_or_a_spec_error(text: str) -> None:
    try:
        layout, _ = parse_layout(text, JOB, 16)
    except SpecError as error:
        assert all(fault.path.startswith("layout") for fault in error.faults)
    else:
        assert layout.world_size == 16


@given(one=layouts(), other=layouts())
def test_layouts_that_look_alike_in_a_table_are_alike(one: Layout, other: Layout) -> None:
    assert (show_layout(one) == show_layout(other)) == (one == other)
