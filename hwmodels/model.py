"""What is trained: the architecture of a decoder-only transformer, and its exact parameter counts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from hwmodels.divisors import nearest_divisor
from hwmodels.errors import Fault, positive_faults, refuse

Norm = Literal["rmsnorm", "layernorm"]
Activation = Literal["silu", "gelu", "relu", "relu2"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpec:
    """A dense decoder-only transformer.

    `ffn_hidden` is the width inside the MLP; `gated_mlp` means gate, up and down matrices (three instead of two).
    `learned_positions` is the length of a learned position table, 0 for rotary positions. `sliding_window` is the
    attention span in tokens, 0 for full causal attention.
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
        for field in ("learned_positions", "sliding_window"):
            if getattr(self, field) < 0:
                yield Fault(path=field, found=str(getattr(self, field)), legal="0 or more", nearest="0")

    @property
    def query_width(self) -> int:
        """Columns of the query projection: heads x head_dim."""
        return self.heads * self.head_dim

    @property
    def kv_width(self) -> int:
        """Columns of the key projection, and of the value projection: kv_heads x head_dim."""
        return self.kv_heads * self.head_dim
