"""Tensor parallelism: matrices split over ranks, with or without the hidden state split along the sequence.

A block's first matrices are split by output (column-parallel), its last by input (row-parallel); the vocabulary of
embedding and head is split too, and the loss is computed on the split logits.
Source: Shoeybi et al. 2019 (arXiv 1909.08053), section 3; Korthikanti et al. 2022 (arXiv 2205.05198), section 4.2.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor

from hwmodels.model import ModelSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorParallel:
    """This rank's part: `rank` of `size` in `group`, which is None where there is no one to share with."""

    rank: int = 0
    size: int = 1
    group: dist.ProcessGroup | None = None
    sequence_parallel: bool = False

    @property
    def sequence_parts(self) -> int:
        """In how many parts the hidden state is split along the sequence outside matrices."""
        return self.size if self.sequence_parallel else 1

    def share(self, total: int) -> range:
        """This rank's part of `total` rows: parts differ by one row at most."""
        return range(total * self.rank // self.size, total * (self.rank + 1) // self.size)

    def kv_heads(self, spec: ModelSpec) -> range:
        """The key-value heads that this rank computes; with fewer heads than ranks several ranks compute the same."""
        if spec.kv_heads >= self.size:
            return self.share(spec.kv_heads)
        own = self.rank * spec.kv_heads // self.size
        return range(own, own + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """How a parameter lies over the tensor-parallel ranks.

    `dim` is the split dimension of `full` length, or None where every rank holds the whole parameter. `partial` says
    that each rank's gradient is one summand of a whole parameter's gradient.
    """

    dim: int | None = None
    full: int = 0
    partial: bool = False


_BY_OUTPUT = ("query", "key", "value", "gate", "up")
_BY_INPUT = ("output", "down")
_ON_OWN_HEADS = ("query_norm", "key_norm")


def split_of(spec: ModelSpec, parallel: TensorParallel, name: str) -> Split:
    """How the parameter called `name` is split."""
    module, _, kind = name.rpartition(".")
    leaf = module.rpartition(".")[2]
    if parallel.size == 1:
        return Split()
    if leaf in ("key", "value") and spec.kv_heads < parallel.size:
        return Split(partial=True)
    widths = {"query": spec.query_width, "output": spec.query_width, "key": spec.kv_width, "value": spec.kv_width}
    if leaf in _BY_OUTPUT:
        return Split(dim=0, full=widths.get(leaf, spec.ffn_hidden))
    if leaf in _BY_INPUT and kind == "weight":
        return Split(dim=1, full=widths.get(leaf, spec.ffn_hidden))
    if name in ("embedding.weight", "head.weight"):
        return Split(dim=0, full=spec.vocab)
    # Query and key norms see this rank's heads only, the others see this rank's part of the sequence.
    return Split(partial=parallel.sequence_parallel or leaf in _ON_OWN_HEADS)


def project(
    x: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor | None], parallel: TensorParallel
) -> list[Tensor]:
    """`x` times each of the column-parallel `weights`, plus its bias.

    `x` is [batch, sequence / sequence_parts, in], a result [batch, sequence, out of this rank].
    """
    if parallel.size == 1:
        return [F.linear(x, weight, bias) for weight, bias in zip(weights, biases, strict=True)]
    outputs = _ColumnLinear.apply(x, parallel, *weights)
    return [y if bias is None else y + bias for y, bias in zip(outputs, biases, strict=True)]


def reduce(x: Tensor, parallel: TensorParallel) -> Tensor:
    """The sum over ranks of the row-parallel results `x`: [batch, sequence, hidden], or this rank's part of it."""
    return x if parallel.size == 1 else _RowReduce.apply(x, parallel)


def embed(tokens: Tensor, table: Tensor, vocab: int, parallel: TensorParallel) -> Tensor:
    """Rows of the vocabulary-parallel `table` for `tokens`: [batch, sequence / sequence_parts, hidden]."""
    if parallel.size == 1:
        return F.embedding(tokens, table)
    own = parallel.share(vocab)
    local = tokens - own.start
    foreign = (local < 0) | (local >= len(own))
    rows = F.embedding(local.masked_fill(foreign, 0), table).masked_fill(foreign.unsqueeze(-1), 0.0)
    return reduce(rows, parallel)


def cross_entropy(logits: Tensor, targets: Tensor, vocab: int, parallel: TensorParallel) -> Tensor:
    """Mean cross entropy of logits [batch, sequence, vocabulary of this rank] against token ids; at least in fp32."""
    wide = logits.flatten(0, 1).to(torch.promote_types(logits.dtype, torch.float32))
    if parallel.size == 1:
        return F.cross_entropy(wide, targets.flatten())
    return _VocabularyCrossEntropy.apply(wide, targets.flatten(), parallel.share(vocab), parallel.group)


class _ColumnLinear(torch.autograd.Function):
    """Several column-parallel matrices of one input.

    Only the rank's part of the input is kept for the backward pass, which gathers it again, beside the product that
    needs no input; the reduction of the input's gradient runs beside the weights' gradients.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, parallel: TensorParallel, *weights: Tensor) -> tuple[Tensor, ...]:
        ctx.save_for_backward(x, *weights)
        ctx.parallel = parallel
        whole = _gather(x, parallel)[0]
        return tuple(F.linear(whole, weight) for weight in weights)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        x, *weights = ctx.saved_tensors
        whole, gathered = _gather(x, ctx.parallel, wait=False)
        grad_input = grads[0] @ weights[0]
        for grad, weight in zip(grads[1:], weights[1:], strict=True):
            grad_input += grad @ weight
        if gathered is not None:
            gathered.wait()
            whole = _join(whole, ctx.parallel)
        grad_input, reduced = _sum(grad_input, ctx.parallel, wait=False)
        rows = whole.flatten(0, 1)
        grad_weights = [grad.flatten(0, 1).t() @ rows for grad in grads]
        reduced.wait()
        return grad_input, None, *grad_weights


class _RowReduce(torch.autograd.Function):
    """The sum of row-parallel results."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, parallel: TensorParallel) -> Tensor:
        ctx.parallel = parallel
        if not parallel.sequence_parallel:
            ctx.mark_dirty(x)
        return _sum(x, parallel)[0]

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return _gather(grad, ctx.parallel)[0], None


class _VocabularyCrossEntropy(torch.autograd.Function):
    """Mean cross entropy over a split vocabulary; ranks exchange three numbers per token."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, targets: Tensor, own: range, group: dist.ProcessGroup) -> Tensor:
        peak = logits.max(dim=-1).values
        dist.all_reduce(peak, dist.ReduceOp.MAX, group=group)
        shifted = logits - peak.unsqueeze(-1)
        local = targets - own.start
        foreign = (local < 0) | (local >= len(own))
        local = local.masked_fill(foreign, 0).unsqueeze(-1)
        target = shifted.gather(-1, local).squeeze(-1).masked_fill(foreign, 0.0)
        softmax = shifted.exp_()
        sums = torch.stack((softmax.sum(dim=-1), target))
        dist.all_reduce(sums, group=group)
        softmax.div_(sums[0].unsqueeze(-1))
        ctx.save_for_backward(softmax, local, foreign)
        return (sums[0].log() - sums[1]).mean()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        softmax, local, foreign = ctx.saved_tensors
        hit = (~foreign).to(softmax.dtype).unsqueeze(-1)
        logits = softmax.scatter_add(-1, local, -hit)
        return logits.mul_(grad / logits.shape[0]), None, None, None


def _gather(x: Tensor, parallel: TensorParallel, wait: bool = True) -> tuple[Tensor, dist.Work | None]:
    """The whole sequence from its parts; `x` itself without sequence parallelism.

    Without `wait` the result is [parts x batch, part of the sequence, hidden], for `_join` once the work is done.
    """
    if not parallel.sequence_parallel:
        return x, None
    parts = x.new_empty(parallel.size * x.shape[0], *x.shape[1:])
    work = dist.all_gather_single(parts, x.contiguous(), group=parallel.group, async_op=not wait)
    return (_join(parts, parallel), None) if wait else (parts, work)


def _join(parts: Tensor, parallel: TensorParallel) -> Tensor:
    return parts.unflatten(0, (parallel.size, -1)).transpose(0, 1).flatten(1, 2)


def _sum(x: Tensor, parallel: TensorParallel, wait: bool = True) -> tuple[Tensor, Any]:
    """The sum of `x` over ranks: in place, or this rank's part of the sequence under sequence parallelism."""
    if not parallel.sequence_parallel:
        return x, dist.all_reduce(x, group=parallel.group, async_op=not wait)
    parts = x.unflatten(1, (parallel.size, -1)).transpose(0, 1).flatten(0, 1)
    own = parts.new_empty(x.shape[0], x.shape[1] // parallel.size, x.shape[2])
    return own, dist.reduce_scatter_single(own, parts, group=parallel.group, async_op=not wait)
