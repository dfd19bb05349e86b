"""The update: gradients made whole, clipped by their global norm, and AdamW.

Source: Loshchilov and Hutter 2019 (arXiv 1711.05101); Pascanu et al. 2013 (arXiv 1211.5063), algorithm 1 (clipping).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn.utils import get_total_norm

from executor.data_parallel import DataParallel
from executor.mesh import Groups

MAX_NORM = 1.0
BETAS = (0.9, 0.95)
WEIGHT_DECAY = 0.1
"""Clipping, betas and decay. Source: Touvron et al. 2023 (arXiv 2302.13971), section 2.3."""


class Update:
    """AdamW over the pieces that this rank owns."""

    def __init__(self, states: Sequence[DataParallel], groups: Groups, learning_rate: float, max_norm: float) -> None:
        self._states, self._groups, self._max_norm = states, groups, max_norm
        masters = [piece.master for state in states for piece in state.pieces]
        self._adamw = torch.optim.AdamW(masters, lr=learning_rate, betas=BETAS, weight_decay=WEIGHT_DECAY, fused=True)

    def step(self) -> Tensor:
        """Update all weights from the gradients of this step. Returns their global norm before clipping."""
        for state in self._states:
            state.finish()
        self._add_partial_sums()
        norm = self._global_norm()
        scale = (self._max_norm / (norm + 1e-6)).clamp(max=1.0)
        for grads in self._gradients_by_copies().values():
            for grad in grads:
                grad.mul_(scale)
        self._adamw.step()
        for state in self._states:
            state.publish()
        return norm

    def _add_partial_sums(self) -> None:
        for state in self._states:
            for piece in state.pieces:
                if piece.sharing.partial:
                    dist.all_reduce(state.gradient(piece), group=self._groups.group("tp"))
                if piece.sharing.tied:
                    dist.all_reduce(state.gradient(piece), group=self._groups.tie)

    def _global_norm(self) -> Tensor:
        """The norm over all parameters of the model, each counted once."""
        square = torch.zeros((), dtype=torch.float64, device=self._groups.device)
        for copies, grads in self._gradients_by_copies().items():
            square += get_total_norm(grads).double().square() / copies
        dist.all_reduce(square)
        return square.sqrt()

    def _gradients_by_copies(self) -> dict[int, list[Tensor]]:
        grads = defaultdict(list)
        for state in self._states:
            for piece in state.pieces:
                grads[piece.sharing.copies].append(state.gradient(piece))
        return grads
