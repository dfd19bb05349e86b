"""What has to hold before processes join: everything is checked at once, without loading PyTorch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from executor.data import VOCAB, data_faults
from executor.measurement import output_faults
from hwmodels.errors import Fault
from hwmodels.layout import Layout
from hwmodels.model import ModelSpec
from planner.plan import Plan

PRECISIONS = ("fp32", "bf16")


def preflight(plan: Plan, data: Sequence[Path], out: Path | None, processes: int | None) -> Iterator[Fault]:
    """The faults of training `plan` on the files `data`; `processes` are those that were started, None before that."""
    yield from _world_faults(plan.layout, processes)
    yield from _job_faults(plan)
    yield from _layout_faults(plan.layout)
    yield from data_faults(data, plan.job.sequence_length)
    if out is not None:
        yield from output_faults(out)


def _world_faults(layout: Layout, processes: int | None) -> Iterator[Fault]:
    if processes is not None and processes != layout.world_size:
        legal = f"{layout.world_size}, the ranks of the plan"
        yield Fault(path="processes", found=str(processes), legal=legal, nearest=str(layout.world_size))


def _job_faults(plan: Plan) -> Iterator[Fault]:
    job = plan.job
    if job.precision not in PRECISIONS:
        legal = f"{' or '.join(PRECISIONS)} to run; plan again with training.precision: bf16"
        yield Fault(path="job.precision", found=job.precision, legal=legal, nearest="bf16")
    if job.model.vocab < VOCAB:
        legal = f"at least {VOCAB}: tokens are bytes"
        yield Fault(path="job.model.vocab", found=str(job.model.vocab), legal=legal, nearest=str(VOCAB))
    if job.model.experts or job.model.kv_latent:
        found = "routed experts" if job.model.experts else "latent attention"
        yield Fault(path="job.model", found=found, legal="a dense model with ordinary attention to run")
    yield from _model_faults(job.model)
    share = plan.layout.micro_batch_size * plan.layout.data_parallel
    if job.global_batch_size % share:
        legal = f"a multiple of mbs x dp = {share}"
        yield Fault(path="job.global_batch_size", found=str(job.global_batch_size), legal=legal)
    chunks = plan.layout.pipeline_parallel * plan.layout.virtual_stages
    if job.model.layers % chunks:
        legal = f"a multiple of pp x vp = {chunks}"
        yield Fault(path="job.model.layers", found=str(job.model.layers), legal=legal)


_PLAIN = {
    "layer_norms": 2, "norm_bias": True, "qk_norm_wide": False, "embedding_norm": False, "head_bias": False,
    "full_layers": 0,
}  # fmt: skip
"""Features of models and the value of each that the executor's own transformer has."""


def _model_faults(model: ModelSpec) -> Iterator[Fault]:
    for field, plain in _PLAIN.items():
        if getattr(model, field) != plain:
            yield Fault(path=f"job.model.{field}", found=str(getattr(model, field)), legal=f"{plain} to run")
    if model.norm == "none":
        yield Fault(path="job.model.norm", found="none", legal="rmsnorm or layernorm to run")


def _layout_faults(layout: Layout) -> Iterator[Fault]:
    for field in ("context_parallel", "expert_parallel", "expert_tensor_parallel"):
        if getattr(layout, field) > 1:
            yield Fault(path=f"layout.{field}", found=str(getattr(layout, field)), legal="1 to run", nearest="1")
    if layout.zero_stage and layout.data_parallel % layout.shard_group:
        legal = f"a divisor of data_parallel={layout.data_parallel} to run"
        yield Fault(path="layout.shard_group", found=str(layout.shard_group), legal=legal)
