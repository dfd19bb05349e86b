"""The closed-form step estimate: hand-computed terms, and properties that hold for any layout."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwmodels.flops import forward_flop_per_token, model_flop
from hwmodels.layer import layer_backward, layer_forward
from hwmodels.layout import Layout
from hwmodels.layout_table import table_of
from planner.constraints import keeping
from planner.space import SearchSpec, layouts
from sim.estimate import estimate, estimate_layout
from sim.step import MEMORY_KINDS, TIME_KINDS
from tests.worlds import GPT3, ROUND_DEVICE, SMALL, round_cluster, round_job

JOB = round_job()
CLUSTER = round_cluster(nodes=2)
SPACE = layouts(JOB, CLUSTER, SearchSpec())
LEGAL = SPACE.take(keeping(JOB, CLUSTER, SPACE))
rows = st.integers(0, len(LEGAL) - 1)


def test_model_flop_of_gpt3_is_the_published_formula():
    # Narayanan et al. 2021: 72 B s l h^2 (1 + s / 6h + V / 12 l h), without recomputation.
    job = round_job(GPT3, global_batch_size=64, sequence_length=2048)
    h, s, layers, v = 12288, 2048, 96, 51200
    published = 72 * 64 * s * layers * h * h * (1 + s / (6 * h) + v / (12 * layers * h))
    assert model_flop(job) == pytest.approx(published)


def test_one_device_is_a_sum_by_hand():
    job = round_job(global_batch_size=1, sequence_length=1280)
    found = estimate_layout(job, round_cluster(nodes=1, devices=1), Layout())
    tokens = 1280
    weights = 8 * (1024 * 2048 + 1024 * 1024 + 3 * 1024 * 4096) + 1024 * 8192
    assert found.breakdown["matmul"] >= 3 * 2 * tokens * weights / 100e12
    # Two matmuls forward, five backward, over (s + 1) / 2 keys, at half the matmul rate.
    assert found.breakdown["attention"] == pytest.approx(8 * 3.5 * 4 * tokens * 640.5 * 1024 / 50e12)
    parameters = 8 * (1024 * 2048 + 1024 * 1024 + 3 * 1024 * 4096 + 2 * 1024) + 2 * 1024 * 8192 + 1024
    assert found.breakdown["optimizer"] == pytest.approx(parameters * 34 / 1e12)
    assert found.breakdown["bubble"] == 0
    assert all(found.breakdown[kind] == 0 for kind in TIME_KINDS if kind.endswith("_comm"))


@given(row=rows)
def test_breakdowns_sum_up(row):
    found = estimate_layout(JOB, CLUSTER, LEGAL.row(row))
    assert set(found.breakdown) == set(TIME_KINDS) and set(found.memory) == set(MEMORY_KINDS)
    assert sum(found.breakdown.values()) == pytest.approx(found.step_time, rel=1e-12)
    assert min(found.breakdown.values()) >= 0 and min(found.memory.values()) >= 0
    assert 0 < found.mfu < 1 and found.hfu >= found.mfu


@settings(deadline=None)
@given(some=st.lists(rows, min_size=1, max_size=20))
def test_a_row_is_priced_alike_alone_and_in_a_table(some):
    table = LEGAL.take(np.array(some))
    together = estimate(JOB, CLUSTER, table)
    for position in range(len(some)):
        alone = estimate_layout(JOB, CLUSTER, table.row(position))
        assert together.step_time[position] == alone.step_time
        assert together.memory_total[position] == pytest.approx(alone.memory_total, rel=1e-15)


@settings(deadline=None)
@given(factor=st.floats(1, 8))
def test_more_of_anything_is_never_slower(factor):
    base = estimate(JOB, CLUSTER, LEGAL).step_time
    pool = CLUSTER.pools[0]
    device = replace(
        ROUND_DEVICE, peak_bf16=ROUND_DEVICE.peak_bf16 * factor, memory_bandwidth=ROUND_DEVICE.memory_bandwidth * factor
    )
    faster_device = replace(CLUSTER, pools=(replace(pool, node=replace(pool.node, device=device)),))
    links = replace(pool.node, scaleup_bandwidth=pool.node.scaleup_bandwidth * factor, nic_bandwidth=25e9 * factor)
    faster_links = replace(
        CLUSTER, pools=(replace(pool, node=links),), fabric=replace(CLUSTER.fabric, link_bandwidth=25e9 * factor)
    )
    for better in (faster_device, faster_links):
        assert (estimate(JOB, better, LEGAL).step_time <= base * (1 + 1e-12)).all()


def test_step_lies_between_compute_alone_and_everything_in_turn():
    found = estimate(JOB, CLUSTER, LEGAL)
    compute = sum(found.breakdown[kind] for kind in ("matmul", "attention", "memory_bound", "recompute"))
    assert (found.step_time >= compute).all()
    work = layer_forward(JOB, ROUND_DEVICE, LEGAL) + layer_backward(JOB, ROUND_DEVICE, LEGAL)
    assert (work.total > 0).all()


@given(tp=st.sampled_from([1, 2, 4, 8]), mbs=st.sampled_from([1, 2, 4]))
def test_matmul_flop_do_not_depend_on_the_layout(tp, mbs):
    # On a device without tiles, matmul seconds x ranks x rate is the model's FLOP, however the layer is cut.
    device = replace(ROUND_DEVICE, kind="cpu", memory_bandwidth=1e18)
    table = table_of([Layout(tensor_parallel=tp, data_parallel=16 // tp, micro_batch_size=mbs)])
    job = round_job(replace(SMALL, kv_heads=8))
    one = layer_forward(job, device, table).matmul[0] * 100e12 * tp * (64 / mbs) * SMALL.layers
    dense = forward_flop_per_token(job) - SMALL.layers * 4 * 1024 * 1024 - 2 * 1024 * 8192
    assert one == pytest.approx(dense * job.tokens_per_step)


def test_interleaving_shrinks_the_bubble_by_its_factor():
    plain = Layout(pipeline_parallel=4, data_parallel=4)
    woven = replace(plain, virtual_stages=2, schedule="interleaved_1f1b")
    bubble, smaller = (estimate_layout(JOB, CLUSTER, layout).breakdown["bubble"] for layout in (plain, woven))
    assert smaller == pytest.approx(bubble / 2)


def test_communication_is_hidden_only_where_it_may_be():
    layout = Layout(data_parallel=16)
    hidden, exposed = (
        estimate_layout(JOB, CLUSTER, replace(layout, overlap=overlap)).breakdown["dp_comm"]
        for overlap in (True, False)
    )
    assert 0 < hidden < exposed
