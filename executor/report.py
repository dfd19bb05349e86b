"""What a run prints: each step beside the plan, and at the end what was measured against what was predicted."""

from __future__ import annotations

from typing import Any

from executor.measurement import RunRecord, StepRecord
from hwmodels.layout import AXES
from hwmodels.units import show
from planner.plan import Plan

LINES = 50
"""Steps that are printed at most, evenly spread."""


def header(plan: Plan, steps: int, windows: int) -> str:
    """What is trained, on what, and what the columns of the step lines are."""
    job, layout = plan.job, plan.layout
    degrees = ", ".join(f"{axis} {layout.degree(axis)}" for axis in AXES)
    lines = [
        f"{job.model.name} on {plan.cluster.name}: {degrees}, zero {layout.zero_stage}, mbs {layout.micro_batch_size},"
        f" {job.precision}",
        f"{steps} steps of {job.global_batch_size} x {job.sequence_length} tokens, from {windows:,} sequences",
        "",
        f"{'step':>9}  {'loss':>8}  {'norm':>8}  {'time':>9}  {'tokens/s':>11}  {'memory':>8}",
        _line("planned", "", "", plan.estimate.step_time, plan.estimate.tokens_per_second, plan.estimate.memory_total),
    ]
    return "\n".join(lines)


def step_line(plan: Plan, steps: int, step: int, record: StepRecord, memory: float) -> str | None:
    """The line of one step; None for one that is left out to keep the list short."""
    if step % max(1, -(-steps // LINES)) and step != steps - 1:
        return None
    rate = plan.job.tokens_per_step / record.seconds
    name = f"{step + 1}/{steps}"
    return _line(name, f"{record.loss:.4f}", f"{record.gradient_norm:.3f}", record.seconds, rate, memory)


def _line(name: str, loss: str, norm: str, seconds: float, rate: float, memory: float) -> str:
    return f"{name:>9}  {loss:>8}  {norm:>8}  {show(seconds, 's'):>9}  {rate:>11,.0f}  {show(memory, 'B'):>8}"


def comparison(plan: Plan, record: RunRecord) -> dict[str, Any]:
    """Measured and predicted figures of the run, by name: step time in s, tokens per s, memory in bytes."""
    estimate = plan.estimate
    return {
        "steps": len(record.steps),
        "warm_up_steps": record.warm_up,
        "first_loss": record.steps[0].loss,
        "last_loss": record.steps[-1].loss,
        "measured": {
            "step_time_s": record.step_time,
            "tokens_per_s": plan.job.tokens_per_step / record.step_time,
            "memory_bytes": record.peak_memory,
        },
        "predicted": {
            "step_time_s": estimate.step_time,
            "tokens_per_s": estimate.tokens_per_second,
            "memory_bytes": estimate.memory_total,
        },
        "software": record.software,
    }


def summary(plan: Plan, record: RunRecord) -> str:
    """The end of a run: measured beside predicted, with the error of the prediction."""
    found = comparison(plan, record)
    measured, predicted = found["measured"], found["predicted"]
    lines = [
        "",
        f"loss {found['first_loss']:.4f} -> {found['last_loss']:.4f} in {found['steps']} steps; step time: median after"
        f" {found['warm_up_steps']} warm-up steps",
        f"{'':12}{'measured':>12}{'predicted':>12}{'error':>9}",
    ]
    shown = {
        "step time": ("step_time_s", lambda value: show(value, "s")),
        "tokens/s": ("tokens_per_s", lambda value: f"{value:,.0f}"),
        "memory": ("memory_bytes", lambda value: show(value, "B")),
    }
    for name, (key, text) in shown.items():
        error = predicted[key] / measured[key] - 1
        lines.append(f"{name:12}{text(measured[key]):>12}{text(predicted[key]):>12}{error:>+9.1%}")
    return "\n".join(lines)
