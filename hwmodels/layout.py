"""How ranks are arranged: degrees, one axis order, rank <-> coordinates, and the groups of each axis."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Literal

from hwmodels.errors import Fault, positive_faults, refuse, unknown_name

Axis = Literal["pp", "dp", "cp", "tp"]
AXES: tuple[Axis, ...] = ("pp", "dp", "cp", "tp")
"""Mesh axes, outermost first: neighbouring ranks differ in `tp`."""

Recompute = Literal["none", "selective", "full"]
RECOMPUTE: tuple[Recompute, ...] = ("none", "selective", "full")
Schedule = Literal["1f1b", "interleaved_1f1b"]
SCHEDULES: tuple[Schedule, ...] = ("1f1b", "interleaved_1f1b")
Offload = Literal["none"]
OFFLOADS: tuple[Offload, ...] = ("none",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Degrees and switches of one way to run a job.

    `zero_stage`: 0 replicates all states, 1 shards the optimizer's, 2 also gradients, 3 also parameters, over groups of
    `shard_group` ranks of dp x cp (1 where nothing is sharded). `virtual_stages` is model chunks per pipeline rank.
    `selective` recompute is of core attention. `overlap` hides communication where the software stack can.
    """

    tensor_parallel: int = 1
    pipeline_parallel: int = 1
    virtual_stages: int = 1
    data_parallel: int = 1
    context_parallel: int = 1
    expert_parallel: int = 1
    expert_tensor_parallel: int = 1
    sequence_parallel: bool = False
    zero_stage: int = 0
    shard_group: int = 1
    micro_batch_size: int = 1
    recompute: Recompute = "none"
    schedule: Schedule = "1f1b"
    offload: Offload = "none"
    overlap: bool = True

    def __post_init__(self) -> None:
        refuse(self._faults())

    def _faults(self) -> Iterator[Fault]:
        yield from positive_faults(
            self, "tensor_parallel", "pipeline_parallel", "virtual_stages", "data_parallel", "context_parallel",
            "expert_parallel", "expert_tensor_parallel", "shard_group", "micro_batch_size",
        )  # fmt: skip
        if self.zero_stage not in range(4):
            nearest = str(min(max(self.zero_stage, 0), 3))
            yield Fault(path="zero_stage", found=str(self.zero_stage), legal="0, 1, 2 or 3", nearest=nearest)
        for field, legal in (("recompute", RECOMPUTE), ("schedule", SCHEDULES), ("offload", OFFLOADS)):
            if getattr(self, field) not in legal:
                yield unknown_name(field, getattr(self, field), legal)

    @property
    def world_size(self) -> int:
        """Number of ranks: tp x pp x dp x cp."""
        return prod(self.degrees)

    @property
    def degrees(self) -> tuple[int, ...]:
        """Degree of each axis, in the order of `AXES`."""
        return (self.pipeline_parallel, self.data_parallel, self.context_parallel, self.tensor_parallel)

    def degree(self, axis: Axis) -> int:
        """Number of ranks in each group of `axis`."""
        return self.degrees[AXES.index(axis)]

    def stride(self, axis: Axis) -> int:
        """Distance in ranks between neighbours on `axis`: the product of all inner degrees."""
        return prod(self.degrees[AXES.index(axis) + 1 :])

    def coordinates(self, rank: int) -> dict[Axis, int]:
        """Position of `rank` on each axis. Raises `IndexError` outside 0 .. world_size - 1."""
        if not 0 <= rank < self.world_size:
            raise IndexError(f"rank {rank} outside 0 .. {self.world_size - 1}")
        return {axis: rank // self.stride(axis) % self.degree(axis) for axis in AXES}

    def rank(self, coordinates: dict[Axis, int]) -> int:
        """The rank at `coordinates`; the inverse of `coordinates`."""
        return sum(self.stride(axis) * coordinates[axis] for axis in AXES)

    def groups(self, axis: Axis) -> list[list[int]]:
        """The groups of `axis`: lists of ranks that differ only in that axis. They partition all ranks."""
        degree, stride = self.degree(axis), self.stride(axis)
        starts = (r for r in range(self.world_size) if r // stride % degree == 0)
        return [[start + i * stride for i in range(degree)] for start in starts]

    def num_micro_batches(self, global_batch_size: int) -> int:
        """Micro-batches per data-parallel rank and step: global batch / (micro batch x dp), rounded down."""
        return global_batch_size // (self.micro_batch_size * self.data_parallel)
