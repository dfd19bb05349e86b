"""The layouts that a search considers, as columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np

from hwmodels.divisors import divisors
from hwmodels.errors import Fault, refuse
from hwmodels.job import TrainingJob
from hwmodels.layout import RECOMPUTE, SCHEDULES, Recompute
from hwmodels.layout_table import Bools, Ints, LayoutTable, table_from_columns
from hwmodels.machine import Cluster

Objective = Literal["step_time", "cost", "energy", "time_to_train"]
Columns = dict[str, Ints]
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSpec:
    """What may vary. An empty tuple leaves an axis free; otherwise it takes only the values listed.

    On a fixed cluster every objective grows with the step time, so all of them order layouts alike.
    """

    tensor_parallel: tuple[int, ...] = ()
    pipeline_parallel: tuple[int, ...] = ()
    virtual_stages: tuple[int, ...] = ()
    data_parallel: tuple[int, ...] = ()
    context_parallel: tuple[int, ...] = ()
    expert_parallel: tuple[int, ...] = ()
    expert_tensor_parallel: tuple[int, ...] = ()
    zero_stage: tuple[int, ...] = ()
    shard_group: tuple[int, ...] = ()
    micro_batch_size: tuple[int, ...] = ()
    sequence_parallel: tuple[bool, ...] = ()
    recompute: tuple[Recompute, ...] = ()
    objective: Objective = "step_time"

    def __post_init__(self) -> None:
        refuse(self._faults())

    def _faults(self) -> Iterator[Fault]:
        for field in (
            "tensor_parallel", "pipeline_parallel", "virtual_stages", "data_parallel", "context_parallel",
            "expert_parallel", "expert_tensor_parallel", "shard_group", "micro_batch_size",
        ):  # fmt: skip
            for position, value in enumerate(getattr(self, field)):
                if value < 1:
                    yield Fault(path=f"{field}[{position}]", found=str(value), legal="1 or more", nearest="1")
        for position, stage in enumerate(self.zero_stage):
            if stage not in range(4):
                nearest = str(min(max(stage, 0), 3))
                yield Fault(path=f"zero_stage[{position}]", found=str(stage), legal="0, 1, 2 or 3", nearest=nearest)


def layouts(job: TrainingJob, cluster: Cluster, spec: SearchSpec) -> LayoutTable:
    """Every layout of the space of `spec` that uses all devices and whose batch divides; other rules are not applied.

    Tensor parallelism stays inside a scale-up domain unless `spec` lists its degrees.
    """
    columns = _degrees(job, cluster, spec)
    columns = _cross(columns, "micro_batch_size", _or(spec.micro_batch_size, divisors(job.global_batch_size)))
    columns = _keep(columns, job.global_batch_size % (columns["micro_batch_size"] * columns["data_parallel"]) == 0)
    columns = _cross(columns, "virtual_stages", _or(spec.virtual_stages, divisors(job.model.layers)))
    columns = _keep(columns, _chunks_fit(job, columns))
    columns["schedule"] = np.where(columns["virtual_stages"] > 1, SCHEDULES.index("interleaved_1f1b"), 0)
    columns = _cross(columns, "zero_stage", _or(spec.zero_stage, (0, 1, 2, 3)))
    columns = _cross(columns, "shard_group", _or(spec.shard_group, divisors(cluster.devices)))
    columns = _keep(columns, _shards_fit(columns))
    columns = _cross(columns, "expert_parallel", _or(spec.expert_parallel, divisors(max(job.model.experts, 1))))
    columns = _cross(columns, "expert_tensor_parallel", _or(spec.expert_tensor_parallel, (1,)))
    columns = _keep(columns, _experts_fit(columns))
    columns = _cross(columns, "sequence_parallel", _or(spec.sequence_parallel, (False, True)))
    columns = _keep(columns, _sequence_parallel_fits(columns, spec))
    modes = _or(spec.recompute, RECOMPUTE)
    return table_from_columns(_cross(columns, "recompute", [RECOMPUTE.index(mode) for mode in modes]))


def _degrees(job: TrainingJob, cluster: Cluster, spec: SearchSpec) -> Columns:
    free = divisors(cluster.devices)
    inside = [tp for tp in free if tp <= cluster.domain]
    columns = {"tensor_parallel": np.array(_or(spec.tensor_parallel, inside), dtype=np.int64)}
    columns = _cross(columns, "pipeline_parallel", _or(spec.pipeline_parallel, free))
    columns = _cross(
        columns, "context_parallel", _or(spec.context_parallel, free if job.stack.context_parallel else [1])
    )
    used = columns["tensor_parallel"] * columns["pipeline_parallel"] * columns["context_parallel"]
    columns = _keep({**columns, "data_parallel": cluster.devices // used}, cluster.devices % used == 0)
    return _keep(columns, np.isin(columns["data_parallel"], _or(spec.data_parallel, free)))


def _chunks_fit(job: TrainingJob, columns: Columns) -> Bools:
    """Even stages; several chunks per rank only in a pipeline, and with a whole number of rounds of micro-batches."""
    pp, vp = columns["pipeline_parallel"], columns["virtual_stages"]
    count = job.global_batch_size // (columns["micro_batch_size"] * columns["data_parallel"])
    fits: Bools = (job.model.layers % (pp * vp) == 0) & ((vp == 1) | ((pp > 1) & (count % pp == 0)))
    return fits


def _shards_fit(columns: Columns) -> Bools:
    """No ZeRO without sharding and no sharding without ZeRO."""
    replicas = columns["data_parallel"] * columns["context_parallel"]
    group = columns["shard_group"]
    fits: Bools = np.where(columns["zero_stage"] == 0, group == 1, (group > 1) & (replicas % group == 0))
    return fits


def _experts_fit(columns: Columns) -> Bools:
    """Experts spread over ranks of their own pipeline stage."""
    ranks = columns["tensor_parallel"] * columns["context_parallel"] * columns["data_parallel"]
    fits: Bools = ranks % (columns["expert_parallel"] * columns["expert_tensor_parallel"]) == 0
    return fits


def _sequence_parallel_fits(columns: Columns, spec: SearchSpec) -> Bools:
    """Sequence parallelism wherever tp > 1, unless `spec` lists it: it moves the same bytes and holds fewer."""
    several = columns["tensor_parallel"] > 1
    chosen = columns["sequence_parallel"] == 1
    fits: Bools = ~chosen | several if spec.sequence_parallel else chosen == several
    return fits


def _or(restricted: Sequence[T], free: Sequence[T]) -> Sequence[T]:
    return restricted or free


def _cross(columns: Columns, name: str, values: Sequence[int]) -> Columns:
    """Every row with every value of one more column."""
    array = np.array(values, dtype=np.int64)
    length = len(next(iter(columns.values())))
    repeated = {key: np.repeat(column, len(array)) for key, column in columns.items()}
    return {**repeated, name: np.tile(array, length)}


def _keep(columns: Columns, mask: Bools) -> Columns:
    return {name: column[mask] for name, column in columns.items()}
