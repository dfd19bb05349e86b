"""Pipeline parallelism: layers split into stages over ranks, micro-batches in flight between them.

Source: Narayanan et al. 2021 (arXiv 2104.04473), section 2.2 (1F1B and interleaved 1F1B).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe, ScheduleInterleaved1F1B

from executor.mesh import Groups
from executor.model import Stage
from executor.precision import Policy
from executor.tensor_parallel import TensorParallel
from hwmodels.job import TrainingJob
from hwmodels.layout import Layout

Loss = Callable[[Tensor, Tensor], Tensor]
BeforeBackward = Callable[[bool], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """The layers of one stage of a pipeline, and whether it holds the embedding or the head."""

    index: int
    layers: range
    first: bool
    last: bool


def chunks_of(layers: int, layout: Layout, pipeline_rank: int) -> list[Chunk]:
    """The stages of one pipeline rank: number rank, rank + pp, ... of pp x vp stages of equally many layers."""
    count = layout.pipeline_parallel * layout.virtual_stages
    size = layers // count
    return [
        Chunk(index=i, layers=range(i * size, (i + 1) * size), first=i == 0, last=i == count - 1)
        for i in range(pipeline_rank, count, layout.pipeline_parallel)
    ]


def build_schedule(
    job: TrainingJob,
    groups: Groups,
    policy: Policy,
    stages: Sequence[tuple[Chunk, Stage, BeforeBackward]],
    loss: Loss,
) -> Any:
    """The schedule of this rank's stages: its `step` runs all micro-batches of one step, forward and backward.

    1F1B with fewer micro-batches than stages never alternates: it is all forward, then all backward (GPipe).
    """
    layout = groups.layout
    count = layout.num_micro_batches(job.global_batch_size)
    built = [_pipeline_stage(job, groups, policy, *stage) for stage in stages]
    # The loss is already divided by the number of micro-batches.
    options: dict[str, Any] = {"n_microbatches": count, "loss_fn": loss, "scale_grads": False}
    if layout.virtual_stages > 1:
        return ScheduleInterleaved1F1B(built, **options)
    return (Schedule1F1B if count >= layout.pipeline_parallel else ScheduleGPipe)(built[0], **options)


class _Plain(nn.Module):
    """A stage as an ordinary module. The schedule would otherwise gather and reduce sharded weights by itself, once per
    step, which keeps whole gradients on every rank."""

    def __init__(self, stage: Stage) -> None:
        super().__init__()
        self.stage = stage

    def forward(self, x: Tensor) -> Tensor:
        return self.stage(x)


class _AnnouncingStage(PipelineStage):
    """A pipeline stage that tells its data parallelism when a backward pass begins."""

    before_backward: BeforeBackward

    def backward_one_chunk(
        self, bwd_chunk_id: int, loss: Any = None, full_backward: bool = True, last_backward: bool = False
    ) -> None:
        self.before_backward(last_backward)
        super().backward_one_chunk(bwd_chunk_id, loss, full_backward, last_backward)


def _pipeline_stage(
    job: TrainingJob, groups: Groups, policy: Policy, chunk: Chunk, stage: Stage, before_backward: BeforeBackward
) -> PipelineStage:
    layout = groups.layout
    parallel = groups.tensor_parallel
    built = _AnnouncingStage(
        _Plain(stage),
        chunk.index,
        layout.pipeline_parallel * layout.virtual_stages,
        groups.device,
        input_args=_input(job, layout, parallel, policy, chunk),
        output_args=_output(job, layout, parallel, policy, chunk),
        group=groups.group("pp"),
    )
    built.before_backward = before_backward
    return built


def _hidden(job: TrainingJob, layout: Layout, parallel: TensorParallel, policy: Policy) -> Tensor:
    shape = (layout.micro_batch_size, job.sequence_length // parallel.sequence_parts, job.model.hidden)
    return torch.empty(shape, dtype=policy.compute, device="meta", requires_grad=True)


def _input(job: TrainingJob, layout: Layout, parallel: TensorParallel, policy: Policy, chunk: Chunk) -> Tensor:
    if not chunk.first:
        return _hidden(job, layout, parallel, policy)
    return torch.empty((layout.micro_batch_size, job.sequence_length), dtype=torch.long, device="meta")


def _output(job: TrainingJob, layout: Layout, parallel: TensorParallel, policy: Policy, chunk: Chunk) -> Tensor:
    if not chunk.last:
        return _hidden(job, layout, parallel, policy)
    shape = (layout.micro_batch_size, job.sequence_length, len(parallel.share(job.model.vocab)))
    return torch.empty(shape, dtype=policy.compute, device="meta", requires_grad=True)
