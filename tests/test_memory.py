"""Memory by stage, against computations by hand."""

from dataclasses import replace

import numpy as np
import pytest

from hwmodels.layout import Layout
from hwmodels.layout_table import table_of
from hwmodels.memory import stage_parameters
from hwmodels.parameters import parameter_count
from sim.estimate import estimate_layout
from tests.worlds import GPT3, LLAMA3_70B, ROUND_STACK, round_cluster, round_job


def memory_of(layout, model, nodes, **job):
    return estimate_layout(round_job(model, **job), round_cluster(nodes=nodes), layout).memory


def test_gpt3_on_tp8_pp8():
    layout = Layout(
        tensor_parallel=8, pipeline_parallel=8, sequence_parallel=True, micro_batch_size=1, recompute="selective"
    )
    job = replace(
        round_job(GPT3, global_batch_size=64, sequence_length=2048),
        stack=replace(ROUND_STACK, attention="unfused", dropout=True),
    )
    memory = estimate_layout(job, round_cluster(nodes=8), layout).memory
    h, v, s = 12288, 51200, 2048
    # First stage: 12 layers of 12 h^2 + 13 h (norms are not split), and both tables.
    per_layer = (12 * h * h + 7 * h) / 8
    held = 12 * per_layer + (v + 2048) * h / 8
    assert memory["weights"] == pytest.approx(2 * held, rel=1e-3)
    assert memory["gradients"] == pytest.approx(4 * held, rel=1e-3)
    assert memory["optimizer"] == pytest.approx(12 * held, rel=1e-3)
    # Korthikanti et al. 2022, table 2: 34 s b h / t per layer under sequence parallelism and selective recomputation;
    # eight micro-batches in flight; a dropout mask of the embedding each; one layer's scores, 5 a s^2 / t, at work.
    activations = 8 * (12 * 34 * s * h / 8 + s * h / 8) + 5 * 96 * s * s / 8
    assert memory["activations"] == pytest.approx(activations, rel=1e-6)
    assert memory["logits"] == 0
    assert sum(memory.values()) == pytest.approx(18 * held + activations + 1e9, rel=1e-3)


def test_llama3_70b_under_zero3():
    layout = Layout(data_parallel=64, zero_stage=3, shard_group=64, recompute="full")
    memory = memory_of(layout, LLAMA3_70B, nodes=8, global_batch_size=64, sequence_length=8192)
    parameters = 70_553_706_496
    assert memory["weights"] == pytest.approx(2 * parameters / 64)
    assert memory["gradients"] == pytest.approx(4 * parameters / 64)
    assert memory["optimizer"] == pytest.approx(12 * parameters / 64)
    # 80 layer inputs of 8192 x 8192 x 2 bytes, and one layer at work: q, k, v, attention output, four hidden vectors,
    # gate, up and their product, and a 4-byte statistic per head.
    tokens, h = 8192, 8192
    at_work = tokens * (2 * (4 * h + 2 * 8192 + 2 * 1024 + 3 * 28672) + 64 * 4)
    assert memory["activations"] == pytest.approx(79 * tokens * h * 2 + at_work)
    assert memory["logits"] == pytest.approx(2 * 2 * tokens * h + 8 * tokens * 128256)
    layer = 8192 * (8192 + 2 * 1024) + 8192 * 8192 + 3 * 8192 * 28672 + 2 * 8192
    assert memory["buffers"] == pytest.approx(2 * layer * 2 + 2 * layer * 4)


@pytest.mark.parametrize(("stage", "divided"), [(1, {"optimizer"}), (2, {"optimizer", "gradients"})])
def test_zero_divides_what_it_says(stage, divided):
    plain = memory_of(Layout(data_parallel=16), LLAMA3_70B, nodes=2)
    sharded = memory_of(Layout(data_parallel=16, zero_stage=stage, shard_group=8), LLAMA3_70B, nodes=2)
    for kind in ("weights", "gradients", "optimizer"):
        assert sharded[kind] == pytest.approx(plain[kind] / (8 if kind in divided else 1))


def test_shares_of_all_stages_make_up_the_model():
    table = table_of([Layout(pipeline_parallel=4)])
    yes, no = np.array([True]), np.array([False])
    twenty = np.array([20.0])
    job = round_job(LLAMA3_70B)
    parts = [
        stage_parameters(job, table, twenty, first, last) for first, last in ((yes, no), (no, no), (no, no), (no, yes))
    ]
    assert sum(parts)[0] == parameter_count(LLAMA3_70B)
