"""Routed experts: which tokens a rank works on, the grouped matmuls of its experts, and moving tokens to them.

Routing is taken as balanced: each expert gets tokens x experts_per_token / experts.
Source: Lepikhin et al. 2020 (arXiv 2006.16668), expert parallelism; Megatron-LM, megatron/core/transformer/moe.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hwmodels.job import TrainingJob
from hwmodels.layout_table import Floats, LayoutTable
from hwmodels.machine import Device
from hwmodels.roofline import TILE, Numbers, streaming_time

Direction = Callable[[Device, float, int, Numbers, Numbers, Numbers], Floats]
PERMUTE_PASSES = 4
"""Reads and writes of each routed copy of a token in a forward pass: sorted by expert, and brought back."""


def routed_tokens(job: TrainingJob, table: LayoutTable) -> Floats:
    """Copies of tokens that the experts of one rank take in a micro-batch: tokens x experts per token x etp / tp."""
    tokens = table.micro_batch_size * job.sequence_length / table.context_parallel
    return tokens * job.model.experts_per_token * table.expert_tensor_parallel / table.tensor_parallel


def expert_width(job: TrainingJob, table: LayoutTable) -> Floats:
    """Columns of one expert on one rank."""
    return job.model.expert_hidden / table.expert_tensor_parallel


def grouped_time(
    job: TrainingJob, device: Device, table: LayoutTable, rate: float, item: int, direction: Direction
) -> Floats:
    """Seconds of the matmuls of one rank's experts, run as one group: each expert fills whole tiles of its own."""
    held = job.model.experts / table.expert_parallel
    each = routed_tokens(job, table) / held
    rows = held * (each if device.kind == "cpu" else np.ceil(each / TILE) * TILE)
    width, hidden = expert_width(job, table), job.model.hidden
    up = 2 * width if job.model.gated_mlp else width
    seconds = np.zeros(len(table))
    for n, k in ((up, hidden), (hidden, width)):
        weights = streaming_time(device, item * held * n * k)
        seconds = seconds + np.maximum(direction(device, rate, item, rows, n, k), weights)
    return seconds


def router_time(job: TrainingJob, device: Device, table: LayoutTable, tokens: Floats) -> Floats:
    """Seconds of one direction of the router and of moving tokens to their experts and back within the device."""
    item = 4 if job.precision == "fp32" else 2
    copies = routed_tokens(job, table) * job.model.hidden * PERMUTE_PASSES
    scores = tokens * job.model.experts * 4 * 3
    return streaming_time(device, item * copies + scores)


def expert_activations(job: TrainingJob, table: LayoutTable, item: int) -> Floats:
    """Bytes that the experts of one layer keep: their input, what goes into and comes out of the activation."""
    inner = expert_width(job, table) * (3 if job.model.gated_mlp else 2)
    return routed_tokens(job, table) * (job.model.hidden + inner) * item


def dispatched_bytes(job: TrainingJob, table: LayoutTable, item: int) -> Floats:
    """Bytes of the routed copies of one rank's own tokens, which an all-to-all spreads over ep ranks."""
    return routed_tokens(job, table) / table.expert_tensor_parallel * job.model.hidden * item
