"""What to train: a model, a batch, a number of tokens, a precision and the software that runs it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from hwmodels.errors import Fault, positive_faults, refuse
from hwmodels.machine import Precision
from hwmodels.model import ModelSpec
from hwmodels.stack import Stack
from hwmodels.units import Count, Seconds, Usd

Optimizer = Literal["adamw"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingJob:
    """One training run. `global_batch_size` is sequences per optimizer step; `tokens` 0 means not stated.

    `deadline` and `budget` are 0 where there is none.
    """

    model: ModelSpec
    global_batch_size: int
    sequence_length: int
    tokens: Count = 0.0
    precision: Precision = "bf16"
    optimizer: Optimizer = "adamw"
    stack: Stack
    deadline: Seconds = 0.0
    budget: Usd = 0.0

    def __post_init__(self) -> None:
        refuse(self._faults())

    def _faults(self) -> Iterator[Fault]:
        yield from positive_faults(self, "global_batch_size", "sequence_length")
        limit = self.model.learned_positions
        if limit and self.sequence_length > limit:
            yield Fault(
                path="sequence_length",
                found=str(self.sequence_length),
                legal=f"at most {limit}, the length of the position table of {self.model.name}",
                nearest=str(limit),
            )

    @property
    def tokens_per_step(self) -> int:
        """Tokens per optimizer step: global_batch_size x sequence_length."""
        return self.global_batch_size * self.sequence_length

    @property
    def steps(self) -> float:
        """Optimizer steps that the token budget takes; 0 where no budget is stated."""
        return self.tokens / self.tokens_per_step
