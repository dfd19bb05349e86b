"""Model FLOPs: what the mathematics of one step needs, whatever the layout recomputes or pads."""

from __future__ import annotations

from hwmodels.job import TrainingJob
from hwmodels.model import ModelSpec


def forward_flop_per_token(job: TrainingJob) -> float:
    """FLOP of one token's forward pass: 2 per matmul weight, attention over the whole sequence, and the output head.

    2 x layers x (q, k, v, o and MLP weights) + 4 x layers x sequence x query width + 2 x hidden x vocab. Attention is
    counted in full, without the causal half. Of the experts, only those that a token takes count. Source: Narayanan et
    al. 2021 (arXiv 2104.04473), appendix; Chowdhery et al. 2022 (arXiv 2204.02311), appendix B.
    """
    model = job.model
    linear = 2.0 * (model.layers * attention_weights(model) + _mlp_weights(model))
    return linear + _core_attention(job) + 2.0 * model.hidden * model.vocab


def attention_weights(model: ModelSpec) -> int:
    """Weights of the projections of one layer that a token is multiplied with."""
    if not model.kv_latent:
        return model.hidden * (model.query_width + 2 * model.kv_width) + model.query_width * model.hidden
    nope = model.head_dim - model.rope_head_dim
    query = (model.query_latent or model.hidden) * model.query_width + model.hidden * model.query_latent
    down = model.hidden * (model.kv_latent + model.rope_head_dim)
    up = model.kv_latent * model.heads * (nope + model.value_head_dim)
    return query + down + up + model.value_width * model.hidden


def _mlp_weights(model: ModelSpec) -> int:
    """Weights of the MLPs of all layers that a token is multiplied with, routers included."""
    matrices = 3 if model.gated_mlp else 2
    sparse = model.expert_layers
    width = model.experts_per_token * model.expert_hidden + model.shared_hidden
    dense = (model.layers - sparse) * matrices * model.hidden * model.ffn_hidden
    return dense + sparse * model.hidden * (matrices * width + model.experts)


def _core_attention(job: TrainingJob) -> float:
    """FLOP of one token's scores and weighted sums in all layers: 2 x span x (query width + value width) each."""
    model = job.model
    span = min(job.sequence_length, model.sliding_window or job.sequence_length)
    keys = (model.layers - model.full_layers) * span + model.full_layers * job.sequence_length
    return 2.0 * keys * (model.query_width + model.value_width)


def model_flop(job: TrainingJob) -> float:
    """FLOP of one optimizer step over all devices: 3 x forward x tokens per step."""
    return 3.0 * forward_flop_per_token(job) * job.tokens_per_step


def recompute_flop_share(job: TrainingJob) -> dict[str, float]:
    """Extra FLOPs of each kind of recomputation, as a fraction of the model FLOPs."""
    model = job.model
    layers = forward_flop_per_token(job) - 2.0 * model.hidden * model.vocab
    total = 3.0 * forward_flop_per_token(job)
    return {"none": 0.0, "selective": _core_attention(job) / total, "full": layers / total}
