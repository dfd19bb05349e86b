"""The software generation that runs a job: what it fuses, what it overlaps, and what it costs the host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hwmodels.units import Bytes, Fraction, Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """Documented efficiencies of one software generation, shared by every model, layout and device.

    `attention`: unfused kernels write the score matrix to memory, fused ones (FlashAttention) do not.
    `dropout`: whether layers keep dropout masks.
    `attention_efficiency`: fused attention, as a fraction of the device's best matmul rate.
    `matmul_efficiency`: large linear layers inside a training step, as a fraction of the device's best matmul rate.
    `elementwise_passes`: reads and writes of one token's hidden vector per layer by norms, dropout and residuals.
    `tp_overlap`: fraction of the tensor-parallel communication hidden behind compute. `dp_overlap`: fraction of the
    compute of a pass that data-parallel communication can run beside. `pp_overlap`: whether interleaved pipeline sends
    run beside compute. `scatter_gather`: whether tp ranks each send a part of a replicated hidden state onward.
    `ep_overlap`: fraction of the expert all-to-all hidden behind compute.
    `gradient_bytes`: bytes per parameter of the gradient buffer. `host_overhead`: host time per layer and micro-batch.
    `context_parallel`: whether the software has it. `zero_with_pipeline`: highest ZeRO stage that it runs with pp > 1.
    `memory_reserve`: bytes that the framework, its libraries and the communicator hold on every device.
    """

    name: str
    attention: Literal["unfused", "fused"]
    dropout: bool
    attention_efficiency: Fraction
    matmul_efficiency: Fraction
    elementwise_passes: float
    tp_overlap: Fraction
    dp_overlap: Fraction
    pp_overlap: bool
    scatter_gather: bool
    gradient_bytes: int
    host_overhead: Seconds
    context_parallel: bool
    zero_with_pipeline: int
    memory_reserve: Bytes
    ep_overlap: Fraction = 0.0
    estimates: tuple[str, ...] = ()
