"""One priced layout as text: the step, where its time goes, where its memory goes."""

from __future__ import annotations

from hwmodels.job import TrainingJob
from hwmodels.machine import Cluster
from hwmodels.units import show
from planner.assumptions import Assumption
from planner.candidate import Candidate
from planner.cost import rent_of, run_seconds
from planner.explain import TIME_LABELS
from planner.layout_text import show_layout
from planner.tables import facts, percent, table
from sim.step import StepEstimate

MEMORY_LABELS = {
    "weights": "weights",
    "gradients": "gradients",
    "optimizer": "optimizer states",
    "activations": "activations",
    "logits": "logits and loss",
    "buffers": "communication buffers",
    "reserve": "framework and libraries",
}


def breakdown(candidate: Candidate, job: TrainingJob, cluster: Cluster, price: Assumption | None) -> str:
    """The layout, its step and run, and two tables: seconds and bytes by kind."""
    estimate = candidate.estimate
    return "\n\n".join(
        [
            facts(_head(candidate, job, cluster, price)),
            _times(estimate),
            _memory(estimate),
        ]
    )


def _head(candidate: Candidate, job: TrainingJob, cluster: Cluster, price: Assumption | None) -> list[tuple[str, str]]:
    estimate = candidate.estimate
    micro_batches = candidate.layout.num_micro_batches(job.global_batch_size)
    rate = estimate.model_flop / estimate.step_time / estimate.devices
    found = [
        ("job", f"{job.model.name} on {cluster.name} ({cluster.devices} x {cluster.device.name}), {job.stack.name}"),
        ("layout", f"{show_layout(candidate.layout)}, {micro_batches} micro-batches"),
        ("step", f"{show(estimate.step_time, 's', 4)}, {estimate.tokens_per_second:,.0f} tokens/s"),
        ("rate", f"{rate / 1e12:.1f} TFLOP/s per device, MFU {percent(estimate.mfu)}, HFU {percent(estimate.hfu)}"),
    ]
    seconds = run_seconds(job, estimate.step_time)
    if seconds:
        rent = "" if price is None else f", rent {show(rent_of(seconds, cluster.devices, price.value), 'USD', 4)}"
        found.append(("run", f"{show(job.tokens, 'count')} tokens in {show(seconds, 's')}{rent}"))
    fits = "fits" if estimate.fits else "DOES NOT FIT"
    found.append(("memory", f"{show(estimate.memory_total, 'B')} of {show(estimate.capacity, 'B')}: {fits}"))
    return [*found, ("estimates", f"{estimate.estimates} of the values used are not published but judged")]


def _times(estimate: StepEstimate) -> str:
    lines = [
        [TIME_LABELS[kind], show(seconds, "s", 4), percent(seconds / estimate.step_time)]
        for kind, seconds in sorted(estimate.breakdown.items(), key=lambda item: -item[1])
        if seconds > 0
    ]
    return table(["where the time goes", "", ""], [*lines, ["step", show(estimate.step_time, "s", 4), "100.0%"]])


def _memory(estimate: StepEstimate) -> str:
    total = estimate.memory_total
    lines = [
        [MEMORY_LABELS[kind], show(size, "B"), percent(size / estimate.capacity)]
        for kind, size in sorted(estimate.memory.items(), key=lambda item: -item[1])
        if size > 0
    ]
    return table(
        ["where the memory goes (fullest device)", "", f"of {show(estimate.capacity, 'B')}"],
        [*lines, ["total", show(total, "B"), percent(total / estimate.capacity)]],
    )
