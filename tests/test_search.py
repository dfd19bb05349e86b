"""The search: exact on small spaces, and what it may never do."""

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwmodels.divisors import divisors
from hwmodels.errors import SpecError
from hwmodels.layout import Layout
from planner.constraints import RULES
from planner.search import score, search
from planner.space import SearchSpec, layouts
from tests.worlds import GPT3, LLAMA3_70B, SMALL, round_cluster, round_job


def brute_force(job, cluster):
    """The best feasible layout by plain loops over every combination, each priced on its own."""
    world, batch = cluster.devices, job.global_batch_size
    best = None
    for tp, pp, cp in product(divisors(world), repeat=3):
        if world % (tp * pp * cp) or tp > cluster.domain:
            continue
        dp = world // (tp * pp * cp)
        shards = [(0, 1)] + [(z, g) for z in (1, 2, 3) for g in divisors(dp * cp) if g > 1]
        for mbs, vp, (zero, shard), recompute in product(
            divisors(batch), divisors(job.model.layers), shards, ("none", "selective", "full")
        ):
            layout = Layout(
                tensor_parallel=tp, pipeline_parallel=pp, context_parallel=cp, data_parallel=dp, micro_batch_size=mbs,
                virtual_stages=vp, schedule="interleaved_1f1b" if vp > 1 else "1f1b", zero_stage=zero,
                shard_group=shard, sequence_parallel=tp > 1, recompute=recompute,
            )  # fmt: skip
            found = score(job, cluster, layout)
            if not found.violations and (best is None or found.estimate.step_time < best.estimate.step_time):
                best = found
    return best


@settings(max_examples=5, deadline=None)
@given(
    devices=st.sampled_from([1, 2, 4, 6]),
    layers=st.sampled_from([2, 3, 4]),
    hidden=st.sampled_from([1024, 8192]),
    batch=st.sampled_from([2, 4, 6]),
)
def test_search_equals_brute_force(devices, layers, hidden, batch):
    model = replace(SMALL, layers=layers, hidden=hidden, ffn_hidden=4 * hidden)
    job, cluster = round_job(model, global_batch_size=batch), round_cluster(nodes=1, devices=devices)
    result, expected = search(job, cluster, SearchSpec(), top=1), brute_force(job, cluster)
    if expected is None:
        assert result.candidates == () and result.nearest_misses
    else:
        assert result.candidates[0].estimate.step_time == expected.estimate.step_time


def test_nothing_feasible_exceeds_the_memory():
    result = search(round_job(LLAMA3_70B), round_cluster(nodes=8), SearchSpec(), top=100_000)
    assert 0 < result.feasible == len(result.candidates) < result.evaluated
    for candidate in result.candidates[:: len(result.candidates) // 50]:
        assert candidate.violations == () and candidate.estimate.memory_total <= 80e9
    steps = [candidate.estimate.step_time for candidate in result.candidates]
    assert steps == sorted(steps)


def test_tensor_parallelism_stays_in_its_domain_unless_forced():
    job, cluster = round_job(LLAMA3_70B), round_cluster(nodes=8)
    assert layouts(job, cluster, SearchSpec()).tensor_parallel.max() == 8
    forced = search(job, cluster, SearchSpec(tensor_parallel=(16,)), top=1)
    free = search(job, cluster, SearchSpec(), top=1)
    assert forced.candidates[0].layout.tensor_parallel == 16
    assert forced.candidates[0].estimate.step_time > free.candidates[0].estimate.step_time


def test_pinned_axes_stay_pinned():
    spec = SearchSpec(pipeline_parallel=(4,), recompute=("full",), zero_stage=(1,), micro_batch_size=(1, 2))
    for candidate in search(round_job(LLAMA3_70B), round_cluster(nodes=8), spec, top=10).candidates:
        layout = candidate.layout
        assert (layout.pipeline_parallel, layout.recompute, layout.zero_stage) == (4, "full", 1)
        assert layout.micro_batch_size in (1, 2)


def test_what_does_not_fit_is_missed_with_a_reason():
    result = search(round_job(GPT3, sequence_length=2048), round_cluster(nodes=1), SearchSpec())
    assert result.candidates == () and result.feasible == 0
    assert "memory" in {violation.rule for miss in result.nearest_misses for violation in miss.violations}


def test_a_precision_that_the_device_lacks_is_refused():
    with pytest.raises(SpecError, match=r"training\.precision: found fp8; legal: bf16, fp16"):
        search(replace(round_job(), precision="fp8"), round_cluster(), SearchSpec())


BROKEN = [
    (dict(data_parallel=5), "devices", None),
    (dict(tensor_parallel=16), "heads", "tp=8"),
    (dict(tensor_parallel=3), "kv_heads", "tp=2"),
    (dict(pipeline_parallel=16), "layers", "pp x vp=8"),
    (dict(micro_batch_size=3, data_parallel=16), "batch", "gbs=48"),
    (dict(context_parallel=3), "sequence", "parts of a sequence=4"),
    (dict(sequence_parallel=True), "sequence_parallel", "sp=false"),
    (dict(virtual_stages=2), "schedule", "schedule=1f1b,vp=1"),
    (dict(shard_group=2), "shard", "shard=1"),
    (dict(zero_stage=1, shard_group=5, data_parallel=16), "shard", "shard=4"),
    (dict(expert_parallel=2), "experts", "ep=1,etp=1"),
    (
        dict(pipeline_parallel=4, virtual_stages=2, schedule="interleaved_1f1b", micro_batch_size=32, data_parallel=1),
        "interleaving",
        "4 micro-batches, or vp=1",
    ),
]


@pytest.mark.parametrize(("fields", "rule", "nearest"), BROKEN)
def test_each_rule_names_the_nearest_legal_value(fields, rule, nearest):
    found = {v.rule: v for v in score(round_job(), round_cluster(), Layout(**fields)).violations}
    assert rule in found
    if nearest is not None:
        assert found[rule].nearest == nearest


def test_rules_of_the_software_stack():
    job = round_job()
    old = replace(job, stack=replace(job.stack, context_parallel=False, zero_with_pipeline=1))
    layout = Layout(context_parallel=2, pipeline_parallel=2, data_parallel=4, zero_stage=2, shard_group=8)
    found = {v.rule: v.nearest for v in score(old, round_cluster(), layout).violations}
    assert found == {"stack": "cp=1", "zero_with_pipeline": "zero=1, or pp=1"}


SPARSE = replace(SMALL, experts=8, experts_per_token=2, expert_hidden=1024)
BROKEN_EXPERTS = [
    (dict(expert_parallel=3, data_parallel=3), "experts", "ep=2"),
    (dict(expert_parallel=8, data_parallel=4), "expert_ranks", "ep x etp=4"),
    (dict(expert_tensor_parallel=2, tensor_parallel=4), "expert_tensor", "etp=1"),
]


@pytest.mark.parametrize(("fields", "rule", "nearest"), BROKEN_EXPERTS)
def test_each_rule_of_experts_names_the_nearest_legal_value(fields, rule, nearest):
    found = {v.rule: v for v in score(round_job(SPARSE), round_cluster(), Layout(**fields)).violations}
    assert found[rule].nearest == nearest


def test_a_sparse_model_spreads_its_experts():
    result = search(round_job(SPARSE), round_cluster(), SearchSpec(), top=50)
    assert {each.layout.expert_parallel for each in result.candidates} > {1}
    assert all(each.layout.expert_parallel in (1, 2, 4, 8) for each in result.candidates)


def test_every_rule_has_a_layout_that_breaks_it():
    named = {rule for _, rule, _ in (*BROKEN, *BROKEN_EXPERTS)} | {"stack", "zero_with_pipeline", "ffn"}
    assert len(named) == len(RULES)
