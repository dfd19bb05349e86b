"""Seconds of communication that compute does not hide, by mesh axis."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hwmodels.collectives import (
    Group,
    all_gather_time,
    all_reduce_time,
    all_to_all_time,
    group,
    reduce_scatter_time,
    send_time,
)
from hwmodels.experts import dispatched_bytes
from hwmodels.job import TrainingJob
from hwmodels.layer import item_bytes, local_kv_width, local_tokens
from hwmodels.layout_table import Floats, LayoutTable, distinct
from hwmodels.machine import Cluster
from hwmodels.memory import expert_replicas, expert_shards, gradient_bytes


def tensor_parallel_time(job: TrainingJob, cluster: Cluster, table: LayoutTable) -> Floats:
    """Exposed seconds of one layer in one direction: an all-reduce of the hidden state each for attention and MLP.

    Under sequence parallelism each becomes an all-gather and a reduce-scatter, which move the same bytes.
    """
    size = table.tensor_parallel
    over = group(cluster, size, np.ones_like(size))
    nbytes = item_bytes(job.precision) * local_tokens(job, table) * job.model.hidden
    split = all_gather_time(over, nbytes) + reduce_scatter_time(over, nbytes)
    seconds = 2 * np.where(table.sequence_parallel == 1, split, all_reduce_time(over, nbytes))
    exposed: Floats = seconds * (1 - job.stack.tp_overlap * table.overlap)
    return exposed


def context_parallel_time(job: TrainingJob, cluster: Cluster, table: LayoutTable, attention: Floats) -> Floats:
    """Exposed seconds of one layer's forward pass: the other ranks' keys and values, gathered beside attention."""
    size = table.context_parallel
    over = group(cluster, size, table.tensor_parallel)
    nbytes = 2 * item_bytes(job.precision) * local_tokens(job, table) * local_kv_width(job, table) * size
    return np.maximum(all_gather_time(over, nbytes) - attention * table.overlap, 0.0)


def expert_parallel_time(job: TrainingJob, cluster: Cluster, table: LayoutTable) -> Floats:
    """Exposed seconds of an average layer in one direction: all-to-alls that send tokens to their experts and back.

    With etp > 1 the ranks that share an expert also gather its tokens, and reduce their results.
    """
    if not job.model.experts:
        return np.zeros(len(table))
    item = item_bytes(job.precision)
    nbytes = dispatched_bytes(job, table, item)
    over = group(cluster, table.expert_parallel, table.expert_tensor_parallel)
    inside = group(cluster, table.expert_tensor_parallel, np.ones_like(table.expert_parallel))
    whole = nbytes * table.expert_tensor_parallel
    seconds = 2 * all_to_all_time(over, nbytes) + all_gather_time(inside, whole) + reduce_scatter_time(inside, whole)
    exposed: Floats = seconds * job.model.expert_share * (1 - job.stack.ep_overlap * table.overlap)
    return exposed


def pipeline_time(job: TrainingJob, cluster: Cluster, table: LayoutTable, micro_batches: Floats) -> Floats:
    """Exposed seconds per step of handing hidden states to the next stage and their gradients back.

    Every micro-batch crosses each of a rank's vp stages once in each direction; the first also crosses all pp stages.
    """
    kinds = distinct(table, _HOP_COLUMNS)
    hop = kinds.spread(hop_time(job, cluster, table.take(kinds.first)))
    hidden = (table.virtual_stages > 1) & (table.overlap == 1) & job.stack.pp_overlap
    crossings = np.where(hidden, 0.0, micro_batches * table.virtual_stages) + table.pipeline_parallel - 1
    return 2 * hop * crossings


_HOP_COLUMNS = (
    "tensor_parallel", "pipeline_parallel", "data_parallel", "context_parallel", "micro_batch_size",
    "sequence_parallel",
)  # fmt: skip
"""What a hop between stages depends on."""


def hop_time(job: TrainingJob, cluster: Cluster, table: LayoutTable) -> Floats:
    """Seconds to hand one micro-batch's hidden state to the next stage.

    Where it is replicated over tp, the ranks may each send a part, which the receivers gather.
    Source: Narayanan et al. 2021 (arXiv 2104.04473), section 4.1.
    """
    size, tp = table.pipeline_parallel, table.tensor_parallel
    stride = table.data_parallel * table.context_parallel * tp
    whole = item_bytes(job.precision) * local_tokens(job, table) * job.model.hidden
    split = (table.sequence_parallel == 1) | job.stack.scatter_gather
    gather = all_gather_time(group(cluster, tp, np.ones_like(tp)), whole)
    sent = send_time(cluster, size, stride, whole / np.where(split, tp, 1))
    return np.where(size > 1, sent + np.where(split & (table.sequence_parallel == 0), gather, 0.0), 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What one rank of the fullest stage holds: parameters without and of routed experts, and layers."""

    parameters: Floats
    experts: Floats
    layers: Floats


def data_parallel_time(
    job: TrainingJob,
    cluster: Cluster,
    table: LayoutTable,
    held: Held,
    micro_batches: Floats,
    forward: Floats,
    backward: Floats,
) -> Floats:
    """Exposed seconds per step of gradient reduction and weight gathering on a rank that has `held`.

    `forward` and `backward` are seconds of one micro-batch. ZeRO-0 all-reduces once; ZeRO-1 reduce-scatters and gathers
    once; ZeRO-2 reduce-scatters every micro-batch; ZeRO-3 also gathers for every forward and backward pass. One
    layer's share can never be hidden: the first gather and the last reduction have nothing to run beside.
    """
    kinds = distinct(table, _REDUCTION_COLUMNS)
    one = _reductions(job, cluster, table.take(kinds.first), held.parameters[kinds.first], held.experts[kinds.first])
    stage, once = table.zero_stage, np.ones_like(micro_batches)
    passes = np.where(stage == 3, micro_batches, once), np.where(stage >= 2, micro_batches, once)
    in_forward = kinds.spread(one.forward) * passes[0]
    in_backward = kinds.spread(one.backward) * passes[1] + kinds.spread(one.once)
    overlap = job.stack.dp_overlap * table.overlap
    return _exposed(in_forward, passes[0] * forward * overlap, held.layers) + _exposed(
        in_backward, passes[1] * backward * overlap, held.layers
    )


_REDUCTION_COLUMNS = (
    "tensor_parallel", "pipeline_parallel", "virtual_stages", "data_parallel", "context_parallel", "zero_stage",
    "shard_group", "expert_parallel", "expert_tensor_parallel",
)  # fmt: skip
"""What the collectives of gradients and weights depend on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reductions:
    """Seconds of the collectives of one forward pass, of one backward pass, and of those that a step has once."""

    forward: Floats
    backward: Floats
    once: Floats


def _reductions(
    job: TrainingJob, cluster: Cluster, table: LayoutTable, parameters: Floats, experts: Floats
) -> _Reductions:
    """Experts are reduced over the ranks that hold the same ones, after or beside everything else."""
    shard, replicas = _shard_groups(cluster, table)
    found = _of_group(job, table, parameters, shard, replicas, _data_group(cluster, table))
    if not job.model.experts:
        return found
    own = np.rint(expert_replicas(table)).astype(np.int64)
    shards = np.rint(expert_shards(table)).astype(np.int64)
    stride = table.expert_parallel * table.expert_tensor_parallel
    spread = _of_group(
        job, table, experts, group(cluster, shards, stride),
        group(cluster, -(-own // shards), stride * shards), group(cluster, own, stride),
    )  # fmt: skip
    return _Reductions(
        forward=found.forward + spread.forward,
        backward=found.backward + spread.backward,
        once=found.once + spread.once,
    )


def _of_group(
    job: TrainingJob, table: LayoutTable, parameters: Floats, shard: Group, replicas: Group, everyone: Group
) -> _Reductions:
    stage = table.zero_stage
    gradients, weights = parameters * gradient_bytes(job), parameters * item_bytes(job.precision)
    gather = all_gather_time(shard, weights)
    reduce = reduce_scatter_time(shard, gradients)
    whole = all_reduce_time(everyone, gradients)
    across = all_reduce_time(replicas, gradients / shard.size)
    return _Reductions(
        forward=np.where(stage >= 1, gather, 0.0),
        backward=np.where(stage == 0, whole, reduce + np.where(stage == 3, gather, 0.0)),
        once=np.where(stage >= 1, across, 0.0),
    )


def _exposed(seconds: Floats, hidden: Floats, layers: Floats) -> Floats:
    return np.maximum(seconds - hidden, seconds / np.maximum(layers, 1))


def _data_group(cluster: Cluster, table: LayoutTable) -> Group:
    return group(cluster, table.data_parallel * table.context_parallel, table.tensor_parallel)


def _shard_groups(cluster: Cluster, table: LayoutTable) -> tuple[Group, Group]:
    """The groups that share one copy of the states, and the groups that hold the same part of it."""
    replicas = -(-table.data_parallel * table.context_parallel // table.shard_group)
    shard = group(cluster, table.shard_group, table.tensor_parallel)
    return shard, group(cluster, replicas, table.tensor_parallel * table.shard_group)


def tied_embedding_time(job: TrainingJob, cluster: Cluster, table: LayoutTable) -> Floats:
    """Seconds per step to add up the gradients of a tied embedding on the first and the last stage."""
    if not job.model.tied_embeddings:
        return np.zeros(len(table))
    pp = table.pipeline_parallel
    inner = table.data_parallel * table.context_parallel * table.tensor_parallel
    pair = group(cluster, np.minimum(pp, 2), inner * np.maximum(pp - 1, 1))
    nbytes = job.model.vocab * job.model.hidden / table.tensor_parallel * gradient_bytes(job)
    return all_reduce_time(pair, nbytes)
