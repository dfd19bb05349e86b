"""Seconds of one transformer layer, of the embedding and of the output head, on one device for one micro-batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from hwmodels.experts import expert_width, grouped_time, routed_tokens, router_time
from hwmodels.job import TrainingJob
from hwmodels.layout_table import Floats, LayoutTable
from hwmodels.machine import Device, Precision
from hwmodels.roofline import Numbers, matmul_rate, matmul_time, streaming_time

_Direction = Callable[[Device, float, int, Numbers, Numbers, Numbers], Floats]

UNFUSED_SCORE_PASSES = 6.5
"""Times that unfused attention moves the score matrix through memory in the forward pass: written by QK^T, read and
written by softmax, read and written by dropout with a one-byte mask, read by the product with V."""
LOSS_BYTES = 12
"""Bytes moved per logit in each direction of the loss: 16-bit logit cast to fp32, then one read and one write."""
FP8_CAST_PASSES = 2.5
"""Bytes moved per element of a matmul operand to quantize it: read two, write one for each of its two uses, of which
the second is fused in half of the kernels (estimate)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Seconds of compute, as columns: matmuls, core attention, and kernels that only move memory."""

    matmul: Floats
    attention: Floats
    memory_bound: Floats

    def __add__(self, other: Work) -> Work:
        return Work(
            matmul=self.matmul + other.matmul,
            attention=self.attention + other.attention,
            memory_bound=self.memory_bound + other.memory_bound,
        )

    def times(self, factor: Numbers) -> Work:
        """This work `factor` times."""
        return Work(
            matmul=self.matmul * factor,
            attention=self.attention * factor,
            memory_bound=self.memory_bound * factor,
        )

    @property
    def total(self) -> Floats:
        """Seconds, all kinds together."""
        return self.matmul + self.attention + self.memory_bound


def item_bytes(precision: Precision) -> int:
    """Bytes of one activation or weight element in memory; fp8 layers keep activations and weights in bf16."""
    return 4 if precision == "fp32" else 2


def storage_precision(precision: Precision) -> Precision:
    """The precision of what is not a linear layer: fp8 jobs run attention and the output head in bf16."""
    return "bf16" if precision == "fp8" else precision


def local_tokens(job: TrainingJob, table: LayoutTable) -> Floats:
    """Tokens of one micro-batch on one context-parallel rank: micro batch x sequence / cp."""
    return table.micro_batch_size * job.sequence_length / table.context_parallel


def sharded_tokens(job: TrainingJob, table: LayoutTable) -> Floats:
    """Tokens that norms and residuals see on one rank: sequence parallelism splits them over tp too."""
    return local_tokens(job, table) / np.where(table.sequence_parallel == 1, table.tensor_parallel, 1)


def attention_span(job: TrainingJob) -> float:
    """Average number of keys that a query attends to, over the layers with and without a sliding window."""
    length, window = job.sequence_length, job.model.sliding_window or job.sequence_length
    full = (length + 1) / 2
    if window >= length:
        return full
    share = job.model.full_layers / job.model.layers
    return share * full + (1 - share) * (window - window * (window - 1) / (2 * length))


def local_kv_width(job: TrainingJob, table: LayoutTable) -> Floats:
    """Columns of the key projection on one rank; heads are replicated where tp exceeds their number."""
    return np.maximum(job.model.kv_heads / table.tensor_parallel, 1.0) * job.model.head_dim


def layer_forward(job: TrainingJob, device: Device, table: LayoutTable) -> Work:
    """One layer's forward pass."""
    return Work(
        matmul=_linears(job, device, table, _forward_time),
        attention=_attention(job, device, table, backward=False),
        memory_bound=_elementwise(job, device, table),
    )


def layer_backward(job: TrainingJob, device: Device, table: LayoutTable) -> Work:
    """One layer's backward pass, without recomputation: two matmuls for each of the forward pass."""
    return Work(
        matmul=_linears(job, device, table, _backward_time),
        attention=_attention(job, device, table, backward=True),
        memory_bound=_elementwise(job, device, table) * 2,
    )


def head_forward(job: TrainingJob, device: Device, table: LayoutTable) -> Work:
    """Logits and loss of the last stage: a matmul to the local vocabulary, then softmax over it in fp32."""
    return Work(
        matmul=_head(job, device, table, _forward_time),
        attention=_zero(table),
        memory_bound=_loss(job, device, table),
    )


def head_backward(job: TrainingJob, device: Device, table: LayoutTable) -> Work:
    """Backward pass of logits and loss."""
    return Work(
        matmul=_head(job, device, table, _backward_time),
        attention=_zero(table),
        memory_bound=_loss(job, device, table),
    )


def embedding_pass(job: TrainingJob, device: Device, table: LayoutTable) -> Work:
    """Embedding lookup of the first stage, one direction: the hidden vectors are read and written once."""
    moved = 2 * item_bytes(job.precision) * local_tokens(job, table) * job.model.hidden
    return Work(matmul=_zero(table), attention=_zero(table), memory_bound=streaming_time(device, moved))


def optimizer_time(device: Device, parameters: Numbers, gradient_bytes: int) -> Floats:
    """Seconds of an AdamW step on `parameters` per device, bound by memory.

    Reads gradient, fp32 master weight and two moments; writes the latter three and the 16-bit weight; one more read of
    the gradient for its norm.
    """
    return streaming_time(device, np.asarray(parameters) * (2 * gradient_bytes + 12 + 12 + 2))


def _zero(table: LayoutTable) -> Floats:
    return np.zeros(len(table))


def _linears(job: TrainingJob, device: Device, table: LayoutTable, direction: _Direction) -> Floats:
    """Projections of attention, and the MLP of an average layer: plain, or shared and routed experts."""
    model, tokens = job.model, local_tokens(job, table)
    rate = matmul_rate(device, job.precision) * job.stack.matmul_efficiency
    item, sparse = item_bytes(job.precision), job.model.expert_share

    def together(shapes: Sequence[tuple[Numbers, Numbers]]) -> Floats:
        return sum((direction(device, rate, item, tokens, n, k) for n, k in shapes), _zero(table))

    seconds = together(_projections(job, table))
    if sparse < 1:
        seconds = seconds + together(_mlp(job, table, model.ffn_hidden)) * (1 - sparse)
    if sparse and model.shared_hidden:
        seconds = seconds + together(_mlp(job, table, model.shared_hidden)) * sparse
    if sparse:
        seconds = seconds + grouped_time(job, device, table, rate, item, direction) * sparse
    return seconds


def _projections(job: TrainingJob, table: LayoutTable) -> Sequence[tuple[Numbers, Numbers]]:
    """Columns and rows of the matrices of attention on one rank; those to latent vectors are not split over tp."""
    model, tp = job.model, table.tensor_parallel
    query, value = model.query_width / tp, model.value_width / tp
    if not model.kv_latent:
        return (query + 2 * local_kv_width(job, table), model.hidden), (model.hidden, query)
    nope = model.heads * (model.head_dim - model.rope_head_dim) / tp
    queries = ((model.query_latent, model.hidden), (query, model.query_latent))
    return (
        *(queries if model.query_latent else ((query, model.hidden),)),
        (model.kv_latent + model.rope_head_dim, model.hidden),
        (nope + value, model.kv_latent),
        (model.hidden, value),
    )


def _mlp(job: TrainingJob, table: LayoutTable, width: int) -> Sequence[tuple[Numbers, Numbers]]:
    local = width / table.tensor_parallel
    return (2 * local if job.model.gated_mlp else local, job.model.hidden), (job.model.hidden, local)


def _head(job: TrainingJob, device: Device, table: LayoutTable, direction: _Direction) -> Floats:
    precision = storage_precision(job.precision)
    rate = matmul_rate(device, precision) * job.stack.matmul_efficiency
    vocab = job.model.vocab / table.tensor_parallel
    return direction(device, rate, item_bytes(precision), local_tokens(job, table), vocab, job.model.hidden)


def _forward_time(device: Device, rate: float, item: int, m: Numbers, n: Numbers, k: Numbers) -> Floats:
    return matmul_time(device, rate, item, m, n, k)


def _backward_time(device: Device, rate: float, item: int, m: Numbers, n: Numbers, k: Numbers) -> Floats:
    return matmul_time(device, rate, item, m, k, n) + matmul_time(device, rate, item, k, n, m)


def _attention(job: TrainingJob, device: Device, table: LayoutTable, *, backward: bool) -> Floats:
    precision = storage_precision(job.precision)
    rate = matmul_rate(device, precision) * job.stack.attention_efficiency
    # Scores span the width of queries, their weighted sum that of values.
    width = (job.model.query_width + job.model.value_width) / 2 / table.tensor_parallel
    tokens = local_tokens(job, table)
    if job.stack.attention == "fused":
        # The fused backward pass recomputes the scores: five matmuls against two (FlashAttention-2, section 3.1).
        return 4.0 * tokens * attention_span(job) * width / rate * (2.5 if backward else 1.0)
    scores = tokens * job.sequence_length * job.model.heads / table.tensor_parallel
    moved = scores * item_bytes(precision) * UNFUSED_SCORE_PASSES
    compute = 4.0 * tokens * job.sequence_length * width / rate
    return (compute + streaming_time(device, moved)) * (2.0 if backward else 1.0)


def _elementwise(job: TrainingJob, device: Device, table: LayoutTable) -> Floats:
    item, model = item_bytes(job.precision), job.model
    hidden = sharded_tokens(job, table) * model.hidden * job.stack.elementwise_passes
    width = model.ffn_hidden * (1 - model.expert_share) + model.shared_hidden * model.expert_share
    inner = local_tokens(job, table) * width / table.tensor_parallel * (3 if model.gated_mlp else 2)
    moved = item * (hidden + inner)
    if job.precision == "fp8":
        operands = (
            sharded_tokens(job, table) * 2 * model.hidden
            + local_tokens(job, table) * (model.query_width + width) / table.tensor_parallel
        )
        moved = moved + operands * FP8_CAST_PASSES
    seconds = streaming_time(device, moved)
    if model.experts:
        inner = routed_tokens(job, table) * expert_width(job, table) * (3 if model.gated_mlp else 2) * item
        routing = router_time(job, device, table, sharded_tokens(job, table)) + streaming_time(device, inner)
        seconds = seconds + routing * model.expert_share
    return seconds


def _loss(job: TrainingJob, device: Device, table: LayoutTable) -> Floats:
    logits = local_tokens(job, table) * job.model.vocab / table.tensor_parallel
    return streaming_time(device, logits * LOSS_BYTES)
