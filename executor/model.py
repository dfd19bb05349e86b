"""One stage of a decoder-only transformer: the embedding, some layers, the head, as far as the stage holds them.

Parameters have the same names in every layout ("layers.3.attention.query.weight" is that of layer 3 wherever it runs).
Source: Vaswani et al. 2017 (arXiv 1706.03762); Su et al. 2021 (arXiv 2104.09864), rotary positions; Ainslie et al. 2023
(arXiv 2305.13245), grouped queries; Shazeer 2020 (arXiv 2002.05202), gated MLP.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from executor.tensor_parallel import TensorParallel, embed, project, reduce
from hwmodels.model import Activation, ModelSpec

_ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    "silu": F.silu,
    # The approximation that GPT-2 and its descendants are trained with.
    "gelu": partial(F.gelu, approximate="tanh"),
    "relu": F.relu,
    "relu2": lambda x: F.relu(x).square(),
}


class Attention(nn.Module):
    """Causal self-attention with grouped queries; this rank's heads."""

    def __init__(self, spec: ModelSpec, parallel: TensorParallel) -> None:
        super().__init__()
        self.parallel, self.head_dim, self.window = parallel, spec.head_dim, spec.sliding_window
        queries = len(parallel.share(spec.heads)) * spec.head_dim
        own = parallel.kv_heads(spec)
        # Ranks that share a key-value head all hold all of them, and compute their own.
        stored = len(own) if spec.kv_heads >= parallel.size else spec.kv_heads
        first = 0 if spec.kv_heads >= parallel.size else own.start
        self.kv_rows = slice(first * spec.head_dim, (first + len(own)) * spec.head_dim)
        self.query = nn.Linear(spec.hidden, queries, bias=spec.qkv_bias)
        self.key = nn.Linear(spec.hidden, stored * spec.head_dim, bias=spec.qkv_bias)
        self.value = nn.Linear(spec.hidden, stored * spec.head_dim, bias=spec.qkv_bias)
        self.output = nn.Linear(queries, spec.hidden, bias=spec.attention_output_bias)
        self.query_norm = _norm(spec, spec.head_dim) if spec.qk_norm else nn.Identity()
        self.key_norm = _norm(spec, spec.head_dim) if spec.qk_norm else nn.Identity()
        self.core: Callable[[Tensor, Tensor, Tensor, int], Tensor] = core_attention

    def forward(self, x: Tensor, rotation: Tensor | None) -> Tensor:
        rows = self.kv_rows
        weights = (self.query.weight, self.key.weight[rows], self.value.weight[rows])
        biases = (self.query.bias, _rows(self.key.bias, rows), _rows(self.value.bias, rows))
        query, key, value = (y.unflatten(-1, (-1, self.head_dim)) for y in project(x, weights, biases, self.parallel))
        query, key = self.query_norm(query), self.key_norm(key)
        if rotation is not None:
            query, key = rotate(query, rotation), rotate(key, rotation)
        mixed = self.core(query.transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2), self.window)
        return _row_linear(mixed.transpose(1, 2).flatten(2), self.output, self.parallel)


class MLP(nn.Module):
    """The feed-forward block, gated or plain; this rank's columns."""

    def __init__(self, spec: ModelSpec, parallel: TensorParallel) -> None:
        super().__init__()
        self.parallel, self.activation = parallel, _ACTIVATIONS[spec.activation]
        width = len(parallel.share(spec.ffn_hidden))
        self.gate = nn.Linear(spec.hidden, width, bias=spec.mlp_bias) if spec.gated_mlp else None
        self.up = nn.Linear(spec.hidden, width, bias=spec.mlp_bias)
        self.down = nn.Linear(width, spec.hidden, bias=spec.mlp_bias)

    def forward(self, x: Tensor) -> Tensor:
        linears = [self.up] if self.gate is None else [self.gate, self.up]
        inner = project(x, [y.weight for y in linears], [y.bias for y in linears], self.parallel)
        active = self.activation(inner[0])
        return _row_linear(active if self.gate is None else active * inner[1], self.down, self.parallel)


class Layer(nn.Module):
    """Attention and MLP, each behind a norm and beside a residual."""

    def __init__(self, spec: ModelSpec, parallel: TensorParallel) -> None:
        super().__init__()
        self.attention_norm = _norm(spec, spec.hidden)
        self.attention = Attention(spec, parallel)
        self.mlp_norm = _norm(spec, spec.hidden)
        self.mlp = MLP(spec, parallel)

    def forward(self, x: Tensor, rotation: Tensor | None) -> Tensor:
        x = x + self.attention(self.attention_norm(x), rotation)
        return x + self.mlp(self.mlp_norm(x))


class Embedding(nn.Module):
    """Rows for tokens, and for positions where they are learned; this rank's part of the vocabulary."""

    def __init__(self, spec: ModelSpec, parallel: TensorParallel) -> None:
        super().__init__()
        self.parallel, self.vocab = parallel, spec.vocab
        self.weight = nn.Parameter(torch.empty(len(parallel.share(spec.vocab)), spec.hidden))
        learned = spec.learned_positions > 0
        self.positions = nn.Parameter(torch.empty(spec.learned_positions, spec.hidden)) if learned else None

    def forward(self, tokens: Tensor) -> Tensor:
        x = embed(tokens, self.weight, self.vocab, self.parallel)
        if self.positions is None:
            return x
        start = self.parallel.rank * x.shape[1] if self.parallel.sequence_parallel else 0
        return x + self.positions[start : start + x.shape[1]]


class Head(nn.Module):
    """The last norm and the product with the vocabulary; its matrix is `table` where embeddings are tied."""

    def __init__(self, spec: ModelSpec, parallel: TensorParallel, *, own_matrix: bool) -> None:
        super().__init__()
        self.parallel = parallel
        self.norm = _norm(spec, spec.hidden)
        rows = len(parallel.share(spec.vocab))
        self.weight = nn.Parameter(torch.empty(rows, spec.hidden)) if own_matrix else None

    def forward(self, x: Tensor, table: Tensor | None) -> Tensor:
        matrix = table if self.weight is None else self.weight
        return project(self.norm(x), [matrix], [None], self.parallel)[0]


class Stage(nn.Module):
    """Layers `layers` of the model; the `first` stage embeds tokens, the `last` one ends in logits.

    Input: token ids [batch, sequence] on the first stage, else the hidden state. Output: this rank's logits
    [batch, sequence, vocabulary of this rank] on the last stage, else the hidden state, which is
    [batch, sequence / sequence_parts, hidden].
    """

    def __init__(
        self, spec: ModelSpec, parallel: TensorParallel, layers: Iterable[int], *, first: bool, last: bool
    ) -> None:
        super().__init__()
        self.spec, self.parallel = spec, parallel
        self.shares_table = spec.tied_embeddings and first and last
        self.embedding = Embedding(spec, parallel) if first else None
        self.layers = nn.ModuleDict({str(index): Layer(spec, parallel) for index in layers})
        self.head = Head(spec, parallel, own_matrix=not self.shares_table) if last else None

    def forward(self, x: Tensor) -> Tensor:
        if self.embedding is not None:
            x = self.embedding(x)
        length = x.shape[1] * self.parallel.sequence_parts
        rotation = None if self.spec.learned_positions else rotary_table(self.spec, length, x)
        for layer in self.layers.values():
            x = layer(x, rotation)
        if self.head is None:
            return x
        return self.head(x, self.embedding.weight if self.shares_table else None)


def global_name(spec: ModelSpec, name: str) -> str:
    """The name of a stage's parameter in the whole model: a tied head is the embedding."""
    return "embedding.weight" if spec.tied_embeddings and name == "head.weight" else name


def core_attention(query: Tensor, key: Tensor, value: Tensor, window: int) -> Tensor:
    """Causal attention of [batch, heads, sequence, head_dim], over the last `window` tokens if that is not 0."""
    groups = query.shape[1] // key.shape[1]
    if window == 0 or window >= query.shape[2]:
        return F.scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=groups > 1)
    length = query.shape[2]
    near = torch.ones(length, length, dtype=torch.bool, device=query.device).tril().triu(1 - window)
    # Kernels that take a mask do not all take grouped heads.
    key, value = (x.repeat_interleave(groups, dim=1) for x in (key, value))
    return F.scaled_dot_product_attention(query, key, value, attn_mask=near)


def rotary_table(spec: ModelSpec, length: int, like: Tensor) -> Tensor:
    """Cosines and sines of all positions: [2, length, 1, head_dim], of the type and device of `like`."""
    exponents = torch.arange(0, spec.head_dim, 2, dtype=torch.float32, device=like.device) / spec.head_dim
    positions = torch.arange(length, dtype=torch.float32, device=like.device)
    angles = torch.outer(positions, spec.rope_theta**-exponents).repeat(1, 2)
    return torch.stack((angles.cos(), angles.sin())).unsqueeze(2).to(like.dtype)


def rotate(x: Tensor, rotation: Tensor) -> Tensor:
    """`x` [batch, sequence, heads, head_dim] with each pair (i, i + head_dim / 2) rotated by its position's angle."""
    left, right = x.chunk(2, dim=-1)
    return x * rotation[0] + torch.cat((-right, left), dim=-1) * rotation[1]


def _norm(spec: ModelSpec, width: int) -> nn.Module:
    kind = nn.RMSNorm if spec.norm == "rmsnorm" else nn.LayerNorm
    return kind(width, eps=spec.norm_eps)


def _rows(tensor: Tensor | None, rows: slice) -> Tensor | None:
    return None if tensor is None else tensor[rows]


def _row_linear(x: Tensor, linear: nn.Linear, parallel: TensorParallel) -> Tensor:
    """`x` times a row-parallel matrix, summed over ranks; the bias is added once, to the sum."""
    y = reduce(F.linear(x, linear.weight), parallel)
    return y if linear.bias is None else y + linear.bias
