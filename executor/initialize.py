"""Initial weights that depend on the seed and a parameter's name only, so that every layout starts alike."""

from __future__ import annotations

import hashlib
from math import sqrt

import torch
from torch import Tensor

from executor.model import Stage, global_name
from executor.precision import Policy
from executor.tensor_parallel import Split, split_of
from hwmodels.model import ModelSpec

STANDARD_DEVIATION = 0.02
"""Source: Radford et al. 2018, GPT, section 4.1."""


def local_weights(
    stage: Stage, name: str, local_shape: torch.Size, seed: int, policy: Policy, device: torch.device
) -> Tensor:
    """This tensor-parallel rank's part of parameter `name` of `stage`, in the master type.

    Values are rounded to the compute type first, so that a master copy made from either is the same.
    """
    spec, parallel = stage.spec, stage.parallel
    split = split_of(spec, parallel, name)
    shape = list(local_shape)
    if split.dim is not None:
        shape[split.dim] = split.full
    full = _draw(spec, global_name(spec, name), shape, seed, policy, device)
    return _own_part(full, split, parallel.share(split.full)).to(policy.compute).to(policy.master)


def _own_part(full: Tensor, split: Split, own: range) -> Tensor:
    return full if split.dim is None else full.narrow(split.dim, own.start, len(own))


def _draw(spec: ModelSpec, name: str, shape: list[int], seed: int, policy: Policy, device: torch.device) -> Tensor:
    """Norm gains 1, biases 0, matrices normal; those that end a residual branch divided by sqrt(2 layers).

    Source: Radford et al. 2019, GPT-2, section 2.3.
    """
    module, _, kind = name.rpartition(".")
    if kind == "bias":
        return torch.zeros(shape, dtype=policy.master, device=device)
    if module.endswith("norm"):
        return torch.ones(shape, dtype=policy.master, device=device)
    digest = hashlib.sha256(f"{seed}/{name}".encode()).digest()
    generator = torch.Generator(device).manual_seed(int.from_bytes(digest[:8]) >> 1)
    ends_branch = module.endswith((".output", ".down"))
    deviation = STANDARD_DEVIATION / sqrt(2 * spec.layers) if ends_branch else STANDARD_DEVIATION
    return torch.empty(shape, dtype=policy.master, device=device).normal_(0.0, deviation, generator=generator)
