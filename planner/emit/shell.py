"""What the launch scripts share: quoting, and comments that say what is launched."""

from __future__ import annotations

import re
import shlex

from hwmodels.units import show
from planner.layout_text import show_layout
from planner.plan import Plan

PLAN_FILE = "plan.yaml"
EXECUTOR = "executor"
"""Module that trains a plan."""
PORT = 29500
"""Rendezvous port. Source: torch.distributed.run, default of --rdzv-endpoint."""


def word(value: object) -> str:
    """`value` as one word of a shell command."""
    return shlex.quote(str(value))


def comment(text: str) -> str:
    """`text` as one comment line; a line break would end the comment."""
    return "# " + re.sub(r"\s+", " ", text)


def plain_name(text: str) -> str:
    """`text` with only the characters that every launcher takes in names."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", text).strip("-.") or "meshwright"


def description(plan: Plan) -> list[str]:
    """Comment lines: what runs where, and what is expected of it."""
    estimate = plan.estimate
    memory = f"{show(estimate.memory_total, 'B')} of {show(estimate.capacity, 'B')}"
    return [
        comment(f"{plan.job.model.name} on {plan.cluster.name}: {show_layout(plan.layout)}"),
        comment(f"Expected: {show(estimate.step_time, 's', 4)} a step, MFU {estimate.mfu:.1%}, {memory} per device."),
    ]
