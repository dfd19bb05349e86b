"""Bytes that one device holds at its peak, by kind, as columns over layouts, for a given pipeline stage.

Source: Korthikanti et al. 2022 (arXiv 2205.05198), section 4 (activations, in-flight micro-batches); Rajbhandari et al.
2020 (arXiv 1910.02054), section 3 (states and their sharding).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from hwmodels.experts import expert_activations
from hwmodels.job import TrainingJob
from hwmodels.layer import item_bytes, local_kv_width, local_tokens, sharded_tokens
from hwmodels.layout import RECOMPUTE
from hwmodels.layout_table import Bools, Floats, LayoutTable, distinct
from hwmodels.model import ModelSpec
from hwmodels.parameters import embedding_parameters, final_norm_parameters, head_parameters, layers_parameters
from hwmodels.roofline import Numbers

STATS_BYTES = 4
"""Bytes per query and head that fused attention keeps for its backward pass (one fp32 log-sum-exp)."""
LOGIT_BYTES = 8
"""Bytes per logit at the peak of the loss: the 16-bit logit, its fp32 softmax, and the 16-bit gradient."""


def stage_parameters(job: TrainingJob, table: LayoutTable, layers: Floats, first: Bools, last: Bools) -> Floats:
    """Parameters on one rank of a stage with `layers` layers; embedding on the first stage, norm and head on the last.

    Matrices are split over tp, norms are on every tp rank. A tied head has its own copy where first and last differ.
    Routed experts are not among them. Layers of several kinds count as so many average ones.
    """
    model, tp = job.model, table.tensor_parallel
    layer = average_layer(model)
    copy = np.where(first, 0, model.vocab * model.hidden) if model.tied_embeddings else 0
    head = head_parameters(model) + copy
    per_layer = (layer.attention + layer.mlp) / tp + layer.norm
    ends = np.where(first, embedding_parameters(model) / tp, 0) + np.where(
        last, head / tp + final_norm_parameters(model), 0
    )
    parameters: Floats = layers * per_layer + ends
    return parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class AverageLayer:
    """Parameters of an average layer, as in `LayerParameters`."""

    attention: float
    mlp: float
    norm: float
    experts: float


def average_layer(model: ModelSpec) -> AverageLayer:
    """The mean over all layers of the model."""
    kinds = layers_parameters(model)

    def mean(name: str) -> float:
        return sum(count * float(getattr(each, name)) for count, each in kinds) / model.layers

    return AverageLayer(attention=mean("attention"), mlp=mean("mlp"), norm=mean("norm"), experts=mean("experts"))


def stage_experts(job: TrainingJob, table: LayoutTable, layers: Floats) -> Floats:
    """Parameters of the routed experts on one rank of a stage: split over ep, and each over etp."""
    return layers * average_layer(job.model).experts / (table.expert_parallel * table.expert_tensor_parallel)


def expert_replicas(table: LayoutTable) -> Floats:
    """Ranks that hold the same experts: tp x cp x dp / (ep x etp)."""
    ranks = table.tensor_parallel * table.context_parallel * table.data_parallel
    return np.maximum(ranks / (table.expert_parallel * table.expert_tensor_parallel), 1.0)


def expert_shards(table: LayoutTable) -> Floats:
    """Ranks over which ZeRO splits an expert: the part of its replicas that the shard group is of dp x cp."""
    share = table.shard_group / (table.data_parallel * table.context_parallel)
    return np.maximum(expert_replicas(table) * share, 1.0)


def stage_memory(
    job: TrainingJob, table: LayoutTable, layers: Floats, first: Bools, last: Bools, in_flight: Floats
) -> Mapping[str, Floats]:
    """Bytes by kind of one rank of a stage with `layers` layers and the activations of `in_flight` micro-batches."""
    parameters = stage_parameters(job, table, layers, first, last)
    states = _states(job, table, parameters, table.shard_group)
    if job.model.experts:
        experts = _states(job, table, stage_experts(job, table, layers), expert_shards(table))
        states = {name: held + experts[name] for name, held in states.items()}
    return {
        **states,
        "activations": _activations(job, table, layers, first, in_flight),
        "logits": np.where(last, _logits(job, table), 0.0),
        "buffers": _buffers(job, table, layers),
        "reserve": np.full(len(table), job.stack.memory_reserve),
    }


def optimizer_bytes(job: TrainingJob) -> int:
    """Bytes of AdamW state per parameter: two fp32 moments, and an fp32 master weight under 16-bit precision."""
    return 8 if job.precision == "fp32" else 12


def gradient_bytes(job: TrainingJob) -> int:
    """Bytes per parameter of the gradient buffer."""
    return 4 if job.precision == "fp32" else job.stack.gradient_bytes


def _states(job: TrainingJob, table: LayoutTable, parameters: Floats, shards: Numbers) -> dict[str, Floats]:
    def sharded_from(stage: int) -> Floats:
        return np.where(table.zero_stage >= stage, shards, 1)

    return {
        "weights": parameters * item_bytes(job.precision) / sharded_from(3),
        "gradients": parameters * gradient_bytes(job) / sharded_from(2),
        "optimizer": parameters * optimizer_bytes(job) / sharded_from(1),
    }


def layer_activation_bytes(job: TrainingJob, table: LayoutTable, recompute: str) -> Floats:
    """Bytes that one layer keeps for the backward pass of one micro-batch under the given recomputation."""
    item, model, tp = item_bytes(job.precision), job.model, table.tensor_parallel
    tokens, sharded = local_tokens(job, table), sharded_tokens(job, table)
    if recompute == "full":
        return item * sharded * model.hidden
    # Two norm inputs, and the inputs of the attention and MLP blocks; a one-byte dropout mask after each block.
    hidden = sharded * model.hidden * (4 * item + (2 if job.stack.dropout else 0))
    width = model.ffn_hidden * (1 - model.expert_share) + model.shared_hidden * model.expert_share
    inner = width / tp * item * (3 if model.gated_mlp else 2)
    held = hidden + tokens * (_projected(job, table) * item + inner) + _score_bytes(job, table, recompute)
    if model.experts:
        held = held + expert_activations(job, table, item) * model.expert_share
    return held


def _projected(job: TrainingJob, table: LayoutTable) -> Floats:
    """Elements of a token that attention keeps: queries, keys, values, output, and latent vectors where it has some."""
    model, tp = job.model, table.tensor_parallel
    if not model.kv_latent:
        return 2 * model.query_width / tp + 2 * local_kv_width(job, table)
    return 2 * (model.query_width + model.value_width) / tp + model.query_latent + model.kv_latent + model.rope_head_dim


def _score_bytes(job: TrainingJob, table: LayoutTable, recompute: str) -> Floats:
    heads = local_tokens(job, table) * job.model.heads / table.tensor_parallel
    if job.stack.attention == "fused":
        return heads * STATS_BYTES
    if recompute == "selective":
        return np.zeros(len(table))
    # Softmax output, dropout output and its one-byte mask.
    per_score = 2 * item_bytes(job.precision) + 1 if job.stack.dropout else item_bytes(job.precision)
    return heads * job.sequence_length * per_score


_ACTIVATION_COLUMNS = (
    "tensor_parallel", "context_parallel", "micro_batch_size", "sequence_parallel", "recompute", "expert_parallel",
    "expert_tensor_parallel",
)  # fmt: skip
"""What the activations of a layer depend on."""


def _activations(job: TrainingJob, table: LayoutTable, layers: Floats, first: Bools, in_flight: Floats) -> Floats:
    kinds = distinct(table, _ACTIVATION_COLUMNS)
    one = table.take(kinds.first)
    everything = layer_activation_bytes(job, one, "none")
    kept = np.choose(one.recompute, [everything, *(layer_activation_bytes(job, one, mode) for mode in RECOMPUTE[1:])])
    mask = sharded_tokens(job, one) * job.model.hidden * (1 if job.stack.dropout else 0)
    # While a layer's backward pass runs, what it recomputes is held once.
    working = kinds.spread(everything - kept)
    held = kinds.spread(kept) * layers
    if job.stack.dropout:
        held = held + np.where(first, kinds.spread(mask), 0)
    return held * in_flight + working


def _logits(job: TrainingJob, table: LayoutTable) -> Floats:
    tokens, sharded = local_tokens(job, table), sharded_tokens(job, table)
    ends = 2 * item_bytes(job.precision) * sharded * job.model.hidden
    return ends + LOGIT_BYTES * tokens * job.model.vocab / table.tensor_parallel


def _buffers(job: TrainingJob, table: LayoutTable, layers: Floats) -> Floats:
    """Gathered weights and unreduced gradients of the layers in use: two under ZeRO-3, all under ZeRO-2's weights."""
    layer = average_layer(job.model)
    per_layer = (layer.attention + layer.mlp) / table.tensor_parallel + layer.norm
    per_layer = per_layer + layer.experts / (table.expert_parallel * table.expert_tensor_parallel)
    gathered = 2 * per_layer * item_bytes(job.precision)
    unreduced = 2 * per_layer * gradient_bytes(job)
    return np.where(table.zero_stage == 3, gathered, 0) + np.where(table.zero_stage >= 2, unreduced, 0)
