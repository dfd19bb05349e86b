"""Why this layout: where its time and memory go, and what other ways of arranging the ranks would cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hwmodels.job import TrainingJob
from hwmodels.machine import Cluster
from hwmodels.units import show
from planner.candidate import Candidate
from planner.layout_text import show_layout
from planner.search import SearchResult, search
from planner.space import SearchSpec
from sim.step import StepEstimate

COMPUTE = ("matmul", "attention", "memory_bound", "recompute", "host", "optimizer")
"""Parts of a step that are work of the device itself."""
TIME_LABELS: Mapping[str, str] = {
    "matmul": "matrix multiplications",
    "attention": "attention",
    "memory_bound": "norms, activations, embedding",
    "recompute": "recomputation",
    "host": "waiting for the host",
    "tp_comm": "tensor-parallel communication",
    "cp_comm": "context-parallel communication",
    "ep_comm": "expert-parallel communication",
    "dp_comm": "data-parallel communication",
    "pp_comm": "pipeline sends",
    "bubble": "pipeline bubble",
    "optimizer": "optimizer",
}
_NOTABLE = 0.005
"""Share of a step below which a difference is not worth a word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """Another way to arrange the ranks: its best layout; None where no layout of that kind is legal."""

    name: str
    best: Candidate | None


def reasons(best: Candidate, others: tuple[Candidate, ...]) -> list[str]:
    """Why `best` is first, in sentences: what its step is made of, its memory, and what the next ones lose."""
    estimate = best.estimate
    compute = sum(estimate.breakdown[kind] for kind in COMPUTE) / estimate.step_time
    lost = sorted(
        ((estimate.breakdown[kind], kind) for kind in estimate.breakdown if kind not in COMPUTE), reverse=True
    )
    parts = [
        f"{TIME_LABELS[kind]} {seconds / estimate.step_time:.1%}"
        for seconds, kind in lost
        if seconds >= 5e-4 * estimate.step_time
    ]
    idle = f"; not hidden behind it: {', '.join(parts)}" if parts else ""
    used = estimate.memory_total / estimate.capacity
    return [
        f"The devices work {compute:.1%} of the step{idle}.",
        f"The fullest device holds {show(estimate.memory_total, 'B')} of {show(estimate.capacity, 'B')} ({used:.0%}).",
        *(f"{show_layout(other.layout)} {difference(best.estimate, other.estimate)}." for other in others[:1]),
    ]


def difference(base: StepEstimate, other: StepEstimate) -> str:
    """How `other` compares with `base`, in words: the whole step, and the terms that make the difference."""
    change = other.step_time / base.step_time - 1
    if abs(change) < 5e-5:
        return "takes as long"
    terms = {kind: other.breakdown[kind] - base.breakdown[kind] for kind in base.breakdown}
    notable = sorted(
        (
            kind
            for kind in terms
            if abs(terms[kind]) >= max(_NOTABLE * base.step_time, 0.1 * abs(change) * base.step_time)
        ),
        key=lambda kind: -abs(terms[kind]),
    )
    listed = ", ".join(f"{TIME_LABELS[kind]} {_signed(terms[kind])}" for kind in notable[:4])
    speed = f"is {abs(change):.1%} {'slower' if change > 0 else 'faster'}"
    return f"{speed}: {listed}" if listed else speed


def _signed(seconds: float) -> str:
    return f"{'+' if seconds >= 0 else '-'}{show(abs(seconds), 's')}"


def alternatives(job: TrainingJob, cluster: Cluster) -> tuple[Alternative, ...]:
    """The best layout of each usual way to arrange the ranks, in the field's words. Raises as `search` does."""
    inside = cluster.domain
    kinds: dict[str, dict[str, Any]] = {
        "DDP": {"tensor_parallel": (1,), "pipeline_parallel": (1,), "context_parallel": (1,), "zero_stage": (0,)},
        "ZeRO-1, data parallel only": {
            "tensor_parallel": (1,), "pipeline_parallel": (1,), "context_parallel": (1,), "zero_stage": (1,),
        },
        "FSDP (ZeRO-3)": {
            "tensor_parallel": (1,), "pipeline_parallel": (1,), "context_parallel": (1,), "zero_stage": (3,),
        },
        f"FSDP x tensor parallel {inside}": {
            "tensor_parallel": (inside,), "pipeline_parallel": (1,), "zero_stage": (3,),
        },
        "no pipeline": {"pipeline_parallel": (1,)},
        "no tensor parallelism": {"tensor_parallel": (1,)},
        f"tensor parallel {inside} and pipeline": {"tensor_parallel": (inside,)},
    }  # fmt: skip
    return tuple(
        Alternative(name=name, best=_best(search(job, cluster, SearchSpec(**pins), top=1)))
        for name, pins in kinds.items()
    )


def _best(result: SearchResult) -> Candidate | None:
    return next(iter(result.candidates or result.nearest_misses), None)


def why_not(job: TrainingJob, cluster: Cluster, pins: Mapping[str, Any]) -> SearchResult:
    """The search restricted to `pins`, fields of `SearchSpec` with one value each."""
    values: dict[str, Any] = {field: (value,) for field, value in pins.items()}
    return search(job, cluster, SearchSpec(**values), top=1)
