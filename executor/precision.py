"""Which type holds what: parameters during compute, and the copy that the optimizer updates."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from hwmodels.machine import Precision


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """`compute` is the type of parameters and activations, `master` of the optimizer's parameters, of its moments and
    of gradients while they are summed and reduced.

    Source: Micikevicius et al. 2018 (arXiv 1710.03740), section 3.1 (master weights).
    """

    compute: torch.dtype
    master: torch.dtype


FP32 = Policy(compute=torch.float32, master=torch.float32)
BF16 = Policy(compute=torch.bfloat16, master=torch.float32)


def policy_of(precision: Precision) -> Policy:
    """The policy of a job's precision. Raises `KeyError` for one that `executor.preflight` refuses."""
    return {"fp32": FP32, "bf16": BF16}[precision]  # type: ignore[index]
