"""ZeRO 2 and 3: weights, gradients and optimizer states split over the shard group, by PyTorch's `fully_shard`.

Gradients are reduced after every micro-batch, so that no rank keeps those of others. ZeRO 2 gathers weights once per
step and keeps them until its last backward pass; ZeRO 3 gathers them for every pass of every micro-batch.
Source: Rajbhandari et al. 2020 (arXiv 1910.02054), section 5; Zhao et al. 2023 (arXiv 2304.11277), section 3.
"""

from __future__ import annotations

from torch import Tensor
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor

from executor.data_parallel import DataParallel, Piece, sharing_of
from executor.initialize import local_weights
from executor.mesh import Groups
from executor.model import Stage
from executor.precision import Policy


class ShardedWeights(DataParallel):
    """Weights are gathered layer by layer where they are used."""

    def __init__(self, stage: Stage, groups: Groups, policy: Policy, seed: int) -> None:
        self._stage = _shard(stage, groups, policy)
        self._keeps_weights = groups.layout.zero_stage == 2
        self._pieces = []
        stage.to_empty(device=groups.device)
        for name, parameter in stage.named_parameters():
            weights = local_weights(stage, name, parameter.shape, seed, policy, groups.device)
            own = distribute_tensor(weights, parameter.device_mesh, parameter.placements, src_data_rank=None)
            parameter.data.to_local().copy_(own.to_local())
            self._pieces.append(Piece(master=parameter, sharing=sharing_of(stage, name, groups)))

    @property
    def pieces(self) -> list[Piece]:
        return self._pieces

    def gradient(self, piece: Piece) -> Tensor:
        grad = piece.master.grad
        assert isinstance(grad, DTensor), "fully_shard leaves every parameter a sharded gradient"  # noqa: S101
        return grad.to_local()

    def before_backward(self, last: bool) -> None:
        self._stage.set_requires_all_reduce(last)
        self._stage.set_reshard_after_backward(last or not self._keeps_weights)

    def finish(self) -> None:
        """Nothing to wait for: the backward pass ends with its reductions."""

    def publish(self) -> None:
        for piece in self._pieces:
            piece.master.grad = None


def _shard(stage: Stage, groups: Groups, policy: Policy) -> FSDPModule:
    compute = None if policy.compute == policy.master else policy.compute
    options = {
        "mesh": groups.mesh["replicate", "shard"] if groups.size("replicate") > 1 else groups.mesh["shard"],
        "mp_policy": MixedPrecisionPolicy(param_dtype=compute, reduce_dtype=policy.master if compute else None),
    }
    stage.to(policy.master)
    frees = groups.layout.zero_stage == 3
    for layer in stage.layers.values():
        fully_shard(layer, reshard_after_forward=frees, **options)
    # A table that embedding and head share is gathered for the whole pass, with the root.
    if stage.embedding is not None and not stage.shares_table:
        fully_shard(stage.embedding, reshard_after_forward=frees, **options)
    if stage.head is not None and not stage.shares_table:
        # Its backward pass follows at once.
        fully_shard(stage.head, reshard_after_forward=False, **options)
    return fully_shard(stage, reshard_after_forward=False, **options)
