"""Exact parameter counts of a model, whole and by part."""

from __future__ import annotations

from dataclasses import dataclass

from hwmodels.model import ModelSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerParameters:
    """Parameters of one transformer layer, weights and biases.

    `attention` and `mlp` are the linear layers, which tensor parallelism splits; `norm` is held by every rank.
    """

    attention: int
    mlp: int
    norm: int

    @property
    def total(self) -> int:
        """Parameters of the layer."""
        return self.attention + self.mlp + self.norm


def layer_parameters(model: ModelSpec) -> LayerParameters:
    """Parameters of one layer, with h = hidden, q = query width, k = key width, f = MLP width.

    attention: h (q + 2 k) + q h, biases q + 2 k and h. mlp: 2 h f, or 3 h f where gated, with a bias per output.
    norm: one before attention and one before the MLP; query and key norms span one head each.
    """
    inner = 2 * model.ffn_hidden if model.gated_mlp else model.ffn_hidden
    projected = model.query_width + 2 * model.kv_width
    attention = model.hidden * (projected + model.query_width)
    attention += projected * model.qkv_bias + model.hidden * model.attention_output_bias
    mlp = model.hidden * (inner + model.ffn_hidden) + (inner + model.hidden) * model.mlp_bias
    norm = 2 * _norm_parameters(model, model.hidden) + 2 * _norm_parameters(model, model.head_dim) * model.qk_norm
    return LayerParameters(attention=attention, mlp=mlp, norm=norm)


def embedding_parameters(model: ModelSpec) -> int:
    """Parameters of the token table, and of the position table where positions are learned."""
    return (model.vocab + model.learned_positions) * model.hidden


def head_parameters(model: ModelSpec) -> int:
    """Parameters of the output head; 0 where it is tied to the token table."""
    return 0 if model.tied_embeddings else model.vocab * model.hidden


def final_norm_parameters(model: ModelSpec) -> int:
    """Parameters of the norm before the output head."""
    return _norm_parameters(model, model.hidden)


def parameter_count(model: ModelSpec) -> int:
    """All parameters of the model; a tied head is counted once."""
    layers = model.layers * layer_parameters(model).total
    return embedding_parameters(model) + layers + final_norm_parameters(model) + head_parameters(model)


def _norm_parameters(model: ModelSpec, width: int) -> int:
    """A gain per element, and for layer norm an offset."""
    return width * (2 if model.norm == "layernorm" else 1)
