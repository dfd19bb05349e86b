"""Recomputation: activations that the backward pass computes again instead of keeping them.

Source: Chen et al. 2016 (arXiv 1604.06174); Korthikanti et al. 2022 (arXiv 2205.05198), section 5 (selective).
"""

from __future__ import annotations

from functools import partial

from torch.utils.checkpoint import checkpoint

from executor.model import Stage
from hwmodels.layout import Recompute


def apply_recompute(stage: Stage, mode: Recompute) -> None:
    """Make `stage` keep nothing inside core attention (`selective`) or inside layers (`full`).

    Functions are replaced, not modules, so that parameters keep their names. Nothing random runs inside them.
    """
    for layer in stage.layers.values():
        if mode == "selective":
            layer.attention.core = _again(layer.attention.core)
        elif mode == "full":
            layer.forward = _again(layer.forward)


def _again(function):  # type: ignore[no-untyped-def]
    return partial(checkpoint, function, use_reentrant=False, preserve_rng_state=False)
