"""The closed-form estimate of one training step, over columns of layouts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hwmodels.flops import model_flop, recompute_flop_share
from hwmodels.job import TrainingJob
from hwmodels.layer import (
    Work,
    embedding_pass,
    head_backward,
    head_forward,
    layer_backward,
    layer_forward,
    optimizer_time,
)
from hwmodels.layout import RECOMPUTE, Layout
from hwmodels.layout_table import Floats, LayoutTable, distinct, table_of
from hwmodels.machine import Cluster
from hwmodels.memory import expert_shards, gradient_bytes, stage_experts, stage_memory, stage_parameters
from sim.communication import (
    Held,
    context_parallel_time,
    data_parallel_time,
    expert_parallel_time,
    pipeline_time,
    tensor_parallel_time,
    tied_embedding_time,
)
from sim.pipeline import Stage, bubble_time, stages
from sim.step import MEMORY_KINDS, TIME_KINDS, StepEstimate

Columns = Mapping[str, Floats]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTable:
    """Estimates as columns, one entry per layout: seconds, seconds by kind, bytes by kind, and utilizations."""

    step_time: Floats
    breakdown: Columns
    memory: Columns
    memory_total: Floats
    mfu: Floats
    hfu: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class _LayerTime:
    """Seconds of one layer and micro-batch in both directions, by kind, and of the forward and backward pass alone.

    `head` and `embedding` are seconds by kind of the ends of the model, in both directions.
    """

    parts: Columns
    forward: Floats
    backward: Floats
    head: Columns
    embedding: Columns


_LAYER_COLUMNS = (
    "tensor_parallel", "context_parallel", "micro_batch_size", "sequence_parallel", "recompute", "overlap",
    "expert_parallel", "expert_tensor_parallel",
)  # fmt: skip
"""What the time of a layer depends on. A space of millions of layouts has a few hundred combinations of it."""


def estimate(job: TrainingJob, cluster: Cluster, table: LayoutTable) -> StepTable:
    """Time and memory of one optimizer step for every layout of `table`, whether it fits or not."""
    micro_batches = np.maximum(job.global_batch_size / (table.micro_batch_size * table.data_parallel), 1.0)
    kinds = stages(job.model.layers, table, micro_batches)
    breakdown = _breakdown(job, cluster, table, micro_batches, kinds)
    step_time = sum(breakdown.values(), np.zeros(len(table)))
    memory = _fullest(job, table, kinds)
    peak = cluster.device.peak(job.precision) * table.world_size
    mfu = model_flop(job) / (step_time * peak)
    shares = recompute_flop_share(job)
    return StepTable(
        step_time=step_time,
        breakdown=breakdown,
        memory=memory,
        memory_total=sum(memory.values(), np.zeros(len(table))),
        mfu=mfu,
        hfu=mfu * (1 + np.choose(table.recompute, [np.full(len(table), shares[mode]) for mode in RECOMPUTE])),
    )


def estimate_layout(job: TrainingJob, cluster: Cluster, layout: Layout) -> StepEstimate:
    """The estimate of one layout: the estimate of a table with one row."""
    return row_estimate(job, cluster, table_of([layout]), estimate(job, cluster, table_of([layout])), 0)


def row_estimate(job: TrainingJob, cluster: Cluster, table: LayoutTable, found: StepTable, row: int) -> StepEstimate:
    """One row of `found` as a record."""
    step_time = float(found.step_time[row])
    return StepEstimate(
        step_time=step_time,
        tokens_per_second=job.tokens_per_step / step_time,
        devices=int(table.world_size[row]),
        model_flop=model_flop(job),
        mfu=float(found.mfu[row]),
        hfu=float(found.hfu[row]),
        breakdown={kind: float(found.breakdown[kind][row]) for kind in TIME_KINDS},
        memory={kind: float(found.memory[kind][row]) for kind in MEMORY_KINDS},
        capacity=cluster.device.memory,
        estimates=len(cluster.estimates) + len(job.stack.estimates),
    )


def _breakdown(
    job: TrainingJob,
    cluster: Cluster,
    table: LayoutTable,
    micro_batches: Floats,
    kinds: tuple[Stage, Stage, Stage],
) -> dict[str, Floats]:
    layer = _layer_time(job, cluster, table)
    per_stage = [_stage_parts(layer, stage) for stage in kinds]
    totals = np.stack([np.where(s.exists, _total(parts), 0.0) for s, parts in zip(kinds, per_stage, strict=True)])
    slowest = np.argmax(totals, axis=0)
    parts = {name: _pick(slowest, [stage[name] for stage in per_stage]) for name in per_stage[0]}
    everything = job.model.layers * _total(layer.parts) + _ends(totals, kinds, layer, table)
    layers = _pick(slowest, [stage.layers for stage in kinds])
    parameters = np.max([_parameters(job, table, stage) for stage in kinds], axis=0)
    experts = np.max([stage_experts(job, table, stage.layers) for stage in kinds], axis=0)
    sharded = np.where(table.zero_stage >= 1, table.shard_group, 1)
    updated = parameters / sharded + experts / np.where(table.zero_stage >= 1, expert_shards(table), 1)
    return {
        **{name: seconds * micro_batches for name, seconds in parts.items()},
        "dp_comm": data_parallel_time(
            job,
            cluster,
            table,
            Held(parameters=parameters, experts=experts, layers=layers),
            micro_batches,
            layers * layer.forward,
            layers * layer.backward,
        ),
        "pp_comm": pipeline_time(job, cluster, table, micro_batches) + tied_embedding_time(job, cluster, table),
        "bubble": bubble_time(np.max(totals, axis=0), everything, table.virtual_stages),
        "optimizer": optimizer_time(cluster.device, updated, gradient_bytes(job)),
    }


def _layer_time(job: TrainingJob, cluster: Cluster, table: LayoutTable) -> _LayerTime:
    kinds = distinct(table, _LAYER_COLUMNS)
    found = _distinct_layer_time(job, cluster, table.take(kinds.first))

    def spread(columns: Columns) -> dict[str, Floats]:
        return {name: kinds.spread(values) for name, values in columns.items()}

    return _LayerTime(
        parts=spread(found.parts),
        forward=kinds.spread(found.forward),
        backward=kinds.spread(found.backward),
        head=spread(found.head),
        embedding=spread(found.embedding),
    )


def _distinct_layer_time(job: TrainingJob, cluster: Cluster, table: LayoutTable) -> _LayerTime:
    forward, backward = layer_forward(job, cluster.device, table), layer_backward(job, cluster.device, table)
    none = np.zeros(len(table))
    repeated = np.choose(table.recompute, [none, forward.attention, forward.total])
    tp_one_way = tensor_parallel_time(job, cluster, table)
    ep_one_way = expert_parallel_time(job, cluster, table)
    tp_passes = np.where(table.recompute == RECOMPUTE.index("full"), 3, 2)
    cp_forward = context_parallel_time(job, cluster, table, forward.attention)
    cp_backward = 2 * context_parallel_time(job, cluster, table, backward.attention / 2)
    work = forward + backward
    device_time = work.total + repeated + tp_passes * (tp_one_way + ep_one_way) + cp_forward + cp_backward
    host = job.stack.host_overhead * (1 + repeated / work.total)
    parts = {
        "matmul": work.matmul,
        "attention": work.attention,
        "memory_bound": work.memory_bound,
        "recompute": repeated,
        # The host runs ahead of the device; only where it is the slower one does it show.
        "host": np.hypot(device_time, host) - device_time,
        "tp_comm": tp_passes * tp_one_way,
        "cp_comm": cp_forward + cp_backward,
        "ep_comm": tp_passes * ep_one_way,
    }
    return _LayerTime(
        parts=parts,
        forward=forward.total + tp_one_way + ep_one_way + cp_forward,
        backward=backward.total + repeated + (tp_passes - 1) * (tp_one_way + ep_one_way) + cp_backward,
        head=_kinds(head_forward(job, cluster.device, table) + head_backward(job, cluster.device, table)),
        embedding=_kinds(embedding_pass(job, cluster.device, table).times(2)),
    )


def _kinds(work: Work) -> dict[str, Floats]:
    return {"matmul": work.matmul, "attention": work.attention, "memory_bound": work.memory_bound}


def _stage_parts(layer: _LayerTime, stage: Stage) -> dict[str, Floats]:
    """Seconds of one micro-batch on `stage`, by kind: its layers, and embedding or head where it has them."""
    parts = {name: seconds * stage.layers for name, seconds in layer.parts.items()}
    for name in layer.head:
        parts[name] = parts[name] + layer.head[name] * stage.last + layer.embedding[name] * stage.first
    return parts


def _ends(totals: Floats, kinds: tuple[Stage, Stage, Stage], layer: _LayerTime, table: LayoutTable) -> Floats:
    """Seconds of embedding and head over the whole pipeline."""
    first = totals[0] - kinds[0].layers * _total(layer.parts)
    last = totals[2] - kinds[2].layers * _total(layer.parts)
    ends: Floats = first + np.where(table.pipeline_parallel > 1, last, 0.0)
    return ends


def _fullest(job: TrainingJob, table: LayoutTable, kinds: tuple[Stage, Stage, Stage]) -> dict[str, Floats]:
    """Bytes by kind of the fullest stage."""
    held = [stage_memory(job, table, s.layers, s.first, s.last, s.in_flight) for s in kinds]
    totals = np.stack([np.where(s.exists, _total(bytes_), 0.0) for s, bytes_ in zip(kinds, held, strict=True)])
    fullest = np.argmax(totals, axis=0)
    return {kind: _pick(fullest, [stage[kind] for stage in held]) for kind in MEMORY_KINDS}


def _parameters(job: TrainingJob, table: LayoutTable, stage: Stage) -> Floats:
    return np.where(stage.exists, stage_parameters(job, table, stage.layers, stage.first, stage.last), 0.0)


def _pick(which: NDArray[np.intp], choices: list[Floats]) -> Floats:
    picked: Floats = np.choose(which, choices)
    return picked


def _total(parts: Columns) -> Floats:
    return sum(parts.values(), np.zeros(()))
