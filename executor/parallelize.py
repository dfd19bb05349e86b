"""From a layout to a program: the one place that fixes the order in which techniques are applied."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from executor.data_parallel import BUCKET_ELEMENTS, DataParallel, ReplicatedWeights
from executor.fully_sharded import ShardedWeights
from executor.mesh import Groups
from executor.model import Stage
from executor.optimizer import MAX_NORM, Update
from executor.pipeline import Chunk, build_schedule, chunks_of
from executor.precision import Policy
from executor.recompute import apply_recompute
from executor.tensor_parallel import cross_entropy
from hwmodels.job import TrainingJob


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What one rank runs: its stages, their states, the schedule (None without a pipeline) and the update."""

    job: TrainingJob
    groups: Groups
    stages: list[Stage]
    states: list[DataParallel]
    schedule: Any
    update: Update
    micro_batches: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StepResult:
    """Mean loss over all tokens of the step, and the norm of its gradient before clipping; scalars."""

    loss: Tensor
    gradient_norm: Tensor


def parallelize(
    job: TrainingJob,
    groups: Groups,
    policy: Policy,
    *,
    seed: int,
    learning_rate: float,
    max_norm: float = MAX_NORM,
    bucket_elements: int = BUCKET_ELEMENTS,
) -> Program:
    """The program of this rank.

    Order: matrices are split over tp as stages of the pipeline are built, without memory; then recomputation replaces
    functions; then data parallelism takes over the parameters and gives them memory; the schedule sees the result.
    """
    layout = groups.layout
    chunks = chunks_of(job.model.layers, layout, groups.rank("pp"))
    stages = [_build_stage(job, groups, chunk) for chunk in chunks]
    for stage in stages:
        apply_recompute(stage, layout.recompute)
    states = [_distribute(stage, groups, policy, seed, bucket_elements) for stage in stages]
    micro_batches = layout.num_micro_batches(job.global_batch_size)
    schedule = None
    if layout.pipeline_parallel > 1:
        parts = [
            (chunk, stage, state.before_backward) for chunk, stage, state in zip(chunks, stages, states, strict=True)
        ]
        schedule = build_schedule(job, groups, policy, parts, partial(_loss, job, groups, micro_batches))
    update = Update(states, groups, learning_rate, max_norm)
    return Program(
        job=job,
        groups=groups,
        stages=stages,
        states=states,
        schedule=schedule,
        update=update,
        micro_batches=micro_batches,
    )


def run_step(program: Program, tokens: Tensor, targets: Tensor) -> StepResult:
    """One optimizer step on this data-parallel rank's `tokens` and `targets`: [sequences, sequence length] each."""
    if program.schedule is None:
        loss = _accumulate(program, tokens, targets)
    else:
        loss = _run_pipeline(program, tokens, targets)
    norm = program.update.step()
    return StepResult(loss=_mean_over_ranks(program, loss), gradient_norm=norm)


def _build_stage(job: TrainingJob, groups: Groups, chunk: Chunk) -> Stage:
    with torch.device("meta"):
        return Stage(job.model, groups.tensor_parallel, chunk.layers, first=chunk.first, last=chunk.last)


def _distribute(stage: Stage, groups: Groups, policy: Policy, seed: int, bucket_elements: int) -> DataParallel:
    if groups.layout.zero_stage >= 2:
        return ShardedWeights(stage, groups, policy, seed)
    return ReplicatedWeights(stage, groups, policy, seed, bucket_elements)


def _loss(job: TrainingJob, groups: Groups, micro_batches: int, logits: Tensor, targets: Tensor) -> Tensor:
    """One micro-batch's share of the mean loss of this data-parallel rank."""
    return cross_entropy(logits, targets, job.model.vocab, groups.tensor_parallel) / micro_batches


def _accumulate(program: Program, tokens: Tensor, targets: Tensor) -> Tensor:
    stage, states = program.stages[0], program.states[0]
    total = torch.zeros((), device=tokens.device)
    pairs = list(zip(tokens.chunk(program.micro_batches), targets.chunk(program.micro_batches), strict=True))
    for index, (inputs, wanted) in enumerate(pairs):
        loss = _loss(program.job, program.groups, program.micro_batches, stage(inputs), wanted)
        states.before_backward(index == len(pairs) - 1)
        loss.backward()
        total = total + loss.detach()
    return total


def _run_pipeline(program: Program, tokens: Tensor, targets: Tensor) -> Tensor:
    groups, losses = program.groups, []
    inputs = (tokens,) if groups.rank("pp") == 0 else ()
    if groups.rank("pp") != groups.size("pp") - 1:
        program.schedule.step(*inputs, return_outputs=False)
        return torch.zeros((), device=tokens.device)
    program.schedule.step(*inputs, target=targets, losses=losses, return_outputs=False)
    return torch.stack([loss.detach() for loss in losses]).sum()


def _mean_over_ranks(program: Program, loss: Tensor) -> Tensor:
    """The mean over data-parallel ranks; only last stages have a loss, and all their tensor-parallel ranks the same."""
    layout = program.groups.layout
    total = loss.double() / (layout.data_parallel * layout.tensor_parallel)
    dist.all_reduce(total)
    return total
