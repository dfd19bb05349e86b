"""The answer to "how long is one optimizer step, and what does it hold in memory"."""

from __future__ import annotations

from dataclasses import dataclass

from hwmodels.units import Bytes, Flop, Fraction, Seconds

TIME_KINDS: tuple[str, ...] = (
    "matmul", "attention", "memory_bound", "recompute", "host", "tp_comm", "cp_comm", "ep_comm", "dp_comm", "pp_comm",
    "bubble", "optimizer",
)  # fmt: skip
"""Parts of a step, in seconds; they sum to the step time. Communication is what compute does not hide."""

MEMORY_KINDS: tuple[str, ...] = (
    "weights",
    "gradients",
    "optimizer",
    "activations",
    "logits",
    "buffers",
    "reserve",
)
"""Parts of a device's memory in bytes, at the fullest pipeline stage; they sum to the total."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepEstimate:
    """One optimizer step of one layout.

    `model_flop` counts 3 x forward for the whole step and all devices; `mfu` is model_flop over peak, `hfu` also counts
    recomputation. `breakdown` has the keys `TIME_KINDS`, `memory` has the keys `MEMORY_KINDS`. `estimates` counts the
    inputs that rest on an estimate.
    """

    step_time: Seconds
    tokens_per_second: float
    devices: int
    model_flop: Flop
    mfu: Fraction
    hfu: Fraction
    breakdown: dict[str, Seconds]
    memory: dict[str, Bytes]
    capacity: Bytes
    estimates: int
    source: str = "analytic"

    @property
    def memory_total(self) -> float:
        """Bytes that the fullest device holds at its peak."""
        return sum(self.memory.values())

    @property
    def fits(self) -> bool:
        """Whether the peak is within the device's memory."""
        return self.memory_total <= self.capacity
