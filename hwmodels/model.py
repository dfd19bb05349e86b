"""What is trained: the architecture of a decoder-only transformer, and its exact parameter counts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from hwmodels.divisors import nearest_divisor
from hwmodels.errors import Fault, positive_faults, refuse

Norm = Literal["rmsnorm", "layernorm", "none"]
Activation = Literal["silu", "gelu", "relu", "relu2"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpec:
    """A decoder-only transformer.

    `ffn_hidden` is the width inside the MLP; `gated_mlp` means gate, up and down matrices (three instead of two).
    `learned_positions` is the length of a learned position table, 0 for rotary positions. `sliding_window` is the
    attention span in tokens, 0 for full causal attention; `full_layers` layers have none.

    `layer_norms` is norms of a layer besides those of queries and keys, which span a head or, where `qk_norm_wide`, all
    of them. Norms without parameters are `none`; `norm_bias` is the offset of layer norms. `embedding_norm` is a norm
    after the embedding, `head_bias` a bias of the output head.

    Mixture of experts: `experts` routed ones of width `expert_hidden`, of which each token takes `experts_per_token`;
    shared experts of width `shared_hidden` together; the first `dense_layers` layers have a plain MLP instead.

    Multi-head latent attention (`kv_latent` above 0): keys and values come from a latent vector of that width, queries
    from one of width `query_latent` (0: straight from the hidden state). Of the `head_dim` elements of a query head,
    `rope_head_dim` carry positions, which all heads of a key share; values have `value_head_dim` elements.
    """

    name: str
    layers: int
    hidden: int
    ffn_hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int
    gated_mlp: bool = True
    activation: Activation = "silu"
    norm: Norm = "rmsnorm"
    qkv_bias: bool = False
    attention_output_bias: bool = False
    mlp_bias: bool = False
    qk_norm: bool = False
    tied_embeddings: bool = False
    learned_positions: int = 0
    sliding_window: int = 0
    experts: int = 0
    experts_per_token: int = 0
    expert_hidden: int = 0
    shared_hidden: int = 0
    shared_gate: bool = False
    layer_norms: int = 2
    norm_bias: bool = True
    qk_norm_wide: bool = False
    embedding_norm: bool = False
    head_bias: bool = False
    full_layers: int = 0
    dense_layers: int = 0
    query_latent: int = 0
    kv_latent: int = 0
    rope_head_dim: int = 0
    value_head_dim: int = 0
    norm_eps: float = 1e-5
    rope_theta: float = 10000.0

    def __post_init__(self) -> None:
        refuse(self._faults())

    def _faults(self) -> Iterator[Fault]:
        yield from positive_faults(
            self, "layers", "hidden", "ffn_hidden", "heads", "kv_heads", "head_dim", "vocab", "norm_eps", "rope_theta"
        )
        if self.heads > 0 and self.kv_heads > 0 and self.heads % self.kv_heads:
            yield Fault(
                path="kv_heads",
                found=str(self.kv_heads),
                legal=f"a divisor of heads={self.heads}",
                nearest=str(nearest_divisor(self.heads, self.kv_heads)),
            )
        for field in (
            "learned_positions", "sliding_window", "full_layers", "layer_norms", "experts", "experts_per_token",
            "expert_hidden", "shared_hidden", "dense_layers", "query_latent", "kv_latent", "rope_head_dim",
            "value_head_dim",
        ):  # fmt: skip
            if getattr(self, field) < 0:
                yield Fault(path=field, found=str(getattr(self, field)), legal="0 or more", nearest="0")
        yield from self._expert_faults()
        if self.kv_latent:
            yield from positive_faults(self, "rope_head_dim", "value_head_dim")

    def _expert_faults(self) -> Iterator[Fault]:
        if not self.experts:
            return
        yield from positive_faults(self, "experts_per_token", "expert_hidden")
        if self.experts_per_token > self.experts:
            legal = f"at most experts={self.experts}"
            yield Fault(path="experts_per_token", found=str(self.experts_per_token), legal=legal,
                        nearest=str(self.experts))  # fmt: skip
        if self.dense_layers > self.layers:
            legal = f"at most layers={self.layers}"
            yield Fault(path="dense_layers", found=str(self.dense_layers), legal=legal, nearest=str(self.layers))

    @property
    def query_width(self) -> int:
        """Columns of the query projection: heads x head_dim."""
        return self.heads * self.head_dim

    @property
    def value_width(self) -> int:
        """Columns of the values of all query heads: heads x (value_head_dim or head_dim)."""
        return self.heads * (self.value_head_dim or self.head_dim)

    @property
    def expert_layers(self) -> int:
        """Layers with routed experts."""
        return self.layers - self.dense_layers if self.experts else 0

    @property
    def expert_share(self) -> float:
        """Part of the layers that has routed experts."""
        return self.expert_layers / self.layers

    @property
    def kv_width(self) -> int:
        """Columns of the key projection, and of the value projection: kv_heads x head_dim."""
        return self.kv_heads * self.head_dim
