"""Exact parameter counts of a model, whole and by part."""

from __future__ import annotations

from dataclasses import dataclass

from hwmodels.model import ModelSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerParameters:
    """Parameters of one transformer layer, weights and biases.

    `attention` and `mlp` are linear layers that tensor parallelism splits, `experts` those that expert parallelism
    spreads; `norm` (norms, routers and the projections to latent vectors) is held by every rank.
    """

    attention: int
    mlp: int
    norm: int
    experts: int = 0

    @property
    def total(self) -> int:
        """Parameters of the layer."""
        return self.attention + self.mlp + self.norm + self.experts


def layer_parameters(model: ModelSpec, *, with_experts: bool | None = None) -> LayerParameters:
    """Parameters of one layer, by default of the kind that the model has most of: with experts if it has any.

    With h = hidden, q = query width, k = key width, f = MLP width. attention: h (q + 2 k) + q h, biases q + 2 k and h.
    mlp: 2 h f, or 3 h f where gated, with a bias per output. norm: one before attention and one before the MLP; query
    and key norms span one head each. Experts: E x (2 or 3) h e, shared ones likewise, a router of h E.
    """
    sparse = bool(model.experts) if with_experts is None else with_experts
    width = model.shared_hidden if sparse else model.ffn_hidden
    attention, latent = _latent_attention(model) if model.kv_latent else _attention(model)
    norm = model.layer_norms * _norm_parameters(model, model.hidden) + _query_norms(model)
    router = (model.experts * model.hidden + model.hidden * model.shared_gate) * sparse
    return LayerParameters(
        attention=attention,
        mlp=_mlp(model, width) if width else 0,
        norm=norm + latent + router,
        experts=model.experts * _mlp(model, model.expert_hidden) * sparse,
    )


def layers_parameters(model: ModelSpec) -> tuple[tuple[int, LayerParameters], ...]:
    """The kinds of layers of the model: how many there are, and the parameters of each."""
    sparse = model.expert_layers
    kinds = ((model.layers - sparse, False), (sparse, True))
    return tuple((count, layer_parameters(model, with_experts=has)) for count, has in kinds if count)


def embedding_parameters(model: ModelSpec) -> int:
    """Parameters of the token table, of the position table where positions are learned, and of a norm after them."""
    norm = _norm_parameters(model, model.hidden) * model.embedding_norm
    return (model.vocab + model.learned_positions) * model.hidden + norm


def head_parameters(model: ModelSpec) -> int:
    """Parameters of the output head; without its matrix where that is tied to the token table."""
    matrix = 0 if model.tied_embeddings else model.vocab * model.hidden
    return matrix + model.vocab * model.head_bias


def final_norm_parameters(model: ModelSpec) -> int:
    """Parameters of the norm before the output head."""
    return _norm_parameters(model, model.hidden)


def parameter_count(model: ModelSpec) -> int:
    """All parameters of the model; a tied head is counted once."""
    layers = sum(count * each.total for count, each in layers_parameters(model))
    return embedding_parameters(model) + layers + final_norm_parameters(model) + head_parameters(model)


def _attention(model: ModelSpec) -> tuple[int, int]:
    """Split and replicated parameters of attention with queries, keys and values from the hidden state."""
    projected = model.query_width + 2 * model.kv_width
    split = model.hidden * (projected + model.query_width)
    return split + projected * model.qkv_bias + model.hidden * model.attention_output_bias, 0


def _latent_attention(model: ModelSpec) -> tuple[int, int]:
    """Split and replicated parameters of latent attention. Source: DeepSeek-AI 2024 (arXiv 2405.04434), section 2.1."""
    h, nope = model.hidden, model.head_dim - model.rope_head_dim
    up = model.kv_latent * model.heads * (nope + model.value_head_dim) + model.value_width * h
    up += (model.query_latent or h) * model.query_width + h * model.attention_output_bias
    down = h * (model.kv_latent + model.rope_head_dim) + model.kv_latent
    down += (model.kv_latent + model.rope_head_dim) * model.qkv_bias
    if model.query_latent:
        down += h * model.query_latent + model.query_latent + model.query_latent * model.qkv_bias
    return up, down


def _mlp(model: ModelSpec, width: int) -> int:
    inner = 2 * width if model.gated_mlp else width
    return model.hidden * (inner + width) + (inner + model.hidden) * model.mlp_bias


def _norm_parameters(model: ModelSpec, width: int) -> int:
    """A gain per element, and for layer norm an offset; nothing for norms without parameters."""
    if model.norm == "none":
        return 0
    return width * (2 if model.norm == "layernorm" and model.norm_bias else 1)


def _query_norms(model: ModelSpec) -> int:
    """Norms of queries and keys, each over one head or over all."""
    if not model.qk_norm:
        return 0
    if model.qk_norm_wide:
        return _norm_parameters(model, model.query_width) + _norm_parameters(model, model.kv_width)
    return 2 * _norm_parameters(model, model.head_dim)
