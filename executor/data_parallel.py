"""Data parallelism: what the ranks that see different data share, and how a gradient becomes that of all of them.

Two forms: replicated weights whose optimizer states may be split (ZeRO 0 and 1, here), and weights that are split too
(ZeRO 2 and 3, in `fully_sharded`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor, nn

from executor.initialize import local_weights
from executor.mesh import Groups
from executor.model import Stage, global_name
from executor.precision import Policy
from executor.tensor_parallel import split_of

BUCKET_ELEMENTS = 40_000_000
"""Parameters that are reduced together. Source: Megatron-LM, distributed_data_parallel_config.py."""
ALIGNMENT = 64
"""Parameters start at multiples of this many elements in a bucket, so that matrix kernels can load whole vectors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharing:
    """Who else holds a parameter. `copies` ranks hold the same values; with `partial`, gradients of the tensor-parallel
    ranks are summands; with `tied`, those of the first and last stage are."""

    copies: int
    partial: bool
    tied: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """What this rank updates of one or several parameters: the optimizer's tensor, and how it is shared."""

    master: nn.Parameter
    sharing: Sharing


class DataParallel(ABC):
    """The states of one stage. Per step: `before_backward` for each micro-batch, `finish`, update, `publish`."""

    @property
    @abstractmethod
    def pieces(self) -> list[Piece]:
        """What this rank updates."""

    @abstractmethod
    def before_backward(self, last: bool) -> None:
        """Call before the backward pass of each micro-batch; `last` for the last one of a step."""

    @abstractmethod
    def gradient(self, piece: Piece) -> Tensor:
        """This rank's part of the gradient of `piece`, after `finish`; to be changed in place."""

    @abstractmethod
    def finish(self) -> None:
        """Wait until gradients are the mean over all data-parallel ranks."""

    @abstractmethod
    def publish(self) -> None:
        """Bring the updated masters into the weights of all ranks, and clear gradients."""


def sharing_of(stage: Stage, name: str, groups: Groups) -> Sharing:
    """Who else holds the parameter called `name`, apart from data-parallel ranks that split it."""
    split = split_of(stage.spec, stage.parallel, name)
    tied = groups.size("pp") > 1 and stage.spec.tied_embeddings and global_name(stage.spec, name) == "embedding.weight"
    copies = groups.size("replicate") * (stage.parallel.size if split.dim is None else 1) * (2 if tied else 1)
    return Sharing(copies=copies, partial=split.partial, tied=tied)


class ReplicatedWeights(DataParallel):
    """ZeRO 0 and 1: every rank holds all weights and sums gradients into flat buckets, in the master type.

    The buckets are reduced while the last backward pass still runs. Under ZeRO 1 a rank gets, and updates, only its
    part of each bucket, and gathers the others' parts afterwards; ZeRO 0 is the case of a shard group of one rank.
    Source: Rajbhandari et al. 2020 (arXiv 1910.02054), section 5.1; Li et al. 2020 (arXiv 2006.15704), section 3.2.
    """

    def __init__(
        self, stage: Stage, groups: Groups, policy: Policy, seed: int, bucket_elements: int = BUCKET_ELEMENTS
    ) -> None:
        stage.to(policy.compute).to_empty(device=groups.device)
        by_sharing: dict[Sharing, list[tuple[str, nn.Parameter]]] = {}
        # Gradients become complete from the last parameter to the first.
        for name, parameter in reversed(list(stage.named_parameters())):
            by_sharing.setdefault(sharing_of(stage, name, groups), []).append((name, parameter))
        self._buckets = [
            _Bucket(members, sharing, groups, policy)
            for sharing, named in by_sharing.items()
            for members in _chunks(named, bucket_elements)
        ]
        for bucket in self._buckets:
            bucket.fill(lambda name, shape: local_weights(stage, name, shape, seed, policy, groups.device))

    @property
    def pieces(self) -> list[Piece]:
        return [bucket.piece for bucket in self._buckets]

    def gradient(self, piece: Piece) -> Tensor:
        return piece.master.grad

    def before_backward(self, last: bool) -> None:
        for bucket in self._buckets:
            bucket.expect(last)

    def finish(self) -> None:
        for bucket in self._buckets:
            bucket.launch()
        for bucket in self._buckets:
            bucket.wait()

    def publish(self) -> None:
        for bucket in self._buckets:
            bucket.publish()
        for bucket in self._buckets:
            bucket.published()


class _Bucket:
    """Parameters that lie in one flat tensor, with their gradients in another. Each shard rank owns an equal part."""

    def __init__(self, named: list[tuple[str, nn.Parameter]], sharing: Sharing, groups: Groups, policy: Policy) -> None:
        self._groups, self._policy = groups, policy
        shards, rank = groups.size("shard"), groups.rank("shard")
        length = sum(_padded(parameter.numel()) for _, parameter in named)
        length = -(-length // shards) * shards
        part = slice(rank * length // shards, (rank + 1) * length // shards)
        self._weights = torch.zeros(length, dtype=policy.compute, device=groups.device)
        self._grads = torch.zeros(length, dtype=policy.master, device=groups.device)
        self._own_weights, self._own_grads = self._weights[part], self._grads[part]
        # With one type for both, the master is a part of the weights themselves.
        self._same = policy.compute == policy.master
        own = self._own_weights if self._same else torch.zeros_like(self._own_grads)
        self.piece = Piece(master=nn.Parameter(own), sharing=sharing)
        self.piece.master.grad = self._own_grads
        self._named = named
        self._place(named)
        self._count = len(named)
        self._missing, self._launched = 0, False
        self._work: list[dist.Work] = []

    def _place(self, named: list[tuple[str, nn.Parameter]]) -> None:
        start = 0
        for _, parameter in named:
            end = start + parameter.numel()
            parameter.data = self._weights[start:end].view_as(parameter)
            parameter.register_post_accumulate_grad_hook(
                _adder(self._grads[start:end].view_as(parameter), self._arrived)
            )
            start += _padded(parameter.numel())

    def fill(self, weights: Callable[[str, torch.Size], Tensor]) -> None:
        for name, parameter in self._named:
            parameter.data.copy_(weights(name, parameter.shape))
        self.piece.master.data.copy_(self._own_weights)

    def expect(self, last: bool) -> None:
        self._missing = self._count if last else 0
        self._launched = False

    def _arrived(self) -> None:
        self._missing -= 1
        if self._missing == 0 and self._groups.layout.overlap:
            self.launch()

    def launch(self) -> None:
        if self._launched:
            return
        self._launched = True
        self._grads.div_(self._groups.size("replicate") * self._groups.size("shard"))
        if self._groups.size("shard") > 1:
            group = self._groups.group("shard")
            self._work.append(dist.reduce_scatter_single(self._own_grads, self._grads, group=group, async_op=True))
        elif self._groups.size("replicate") > 1:
            group = self._groups.group("replicate")
            self._work.append(dist.all_reduce(self._own_grads, group=group, async_op=True))

    def wait(self) -> None:
        self._wait()
        if self._groups.size("shard") > 1 and self._groups.size("replicate") > 1:
            dist.all_reduce(self._own_grads, group=self._groups.group("replicate"))

    def _wait(self) -> None:
        while self._work:
            self._work.pop().wait()

    def publish(self) -> None:
        if not self._same:
            self._own_weights.copy_(self.piece.master.data)
        if self._groups.size("shard") > 1:
            group = self._groups.group("shard")
            self._work.append(dist.all_gather_single(self._weights, self._own_weights, group=group, async_op=True))
        self._grads.zero_()

    def published(self) -> None:
        self._wait()


def _adder(total: Tensor, arrived: Callable[[], None]) -> Callable[[Tensor], None]:
    def add(parameter: Tensor) -> None:
        total.add_(parameter.grad)
        parameter.grad = None
        arrived()

    return add


def _padded(elements: int) -> int:
    return -(-elements // ALIGNMENT) * ALIGNMENT


def _chunks(named: list[tuple[str, nn.Parameter]], limit: int) -> Iterable[list[tuple[str, nn.Parameter]]]:
    """Runs of parameters with at most `limit` elements each, or one parameter where that alone is larger."""
    chunk: list[tuple[str, nn.Parameter]] = []
    for name, parameter in named:
        if chunk and sum(p.numel() for _, p in chunk) + parameter.numel() > limit:
            yield chunk
            chunk = []
        chunk.append((name, parameter))
    if chunk:
        yield chunk
