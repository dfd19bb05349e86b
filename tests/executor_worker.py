"""Run under torchrun: every layout of one world size in sequence, compared with the same training on one process.

Writes JSON: name of the case -> largest difference of losses, norms, gradients and parameters over steps and ranks.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor

from executor.data_parallel import ReplicatedWeights
from executor.initialize import local_weights
from executor.mesh import build_groups
from executor.model import Stage, global_name
from executor.optimizer import BETAS, WEIGHT_DECAY
from executor.parallelize import Program, parallelize, run_step
from executor.precision import Policy
from executor.tensor_parallel import TensorParallel, split_of
from hwmodels.job import TrainingJob
from tests.executor_cases import CASES, Case

FP64 = Policy(compute=torch.float64, master=torch.float64)
SEED, RATE, STEPS = 7, 1e-2, 3
MAX_NORM = 0.05
"""Below the norm of every step, so that clipping always acts."""


class Reference:
    """The unsharded model, trained by plain PyTorch."""

    def __init__(self, job: TrainingJob) -> None:
        alone = TensorParallel()
        self.job = job
        self.stage = Stage(job.model, alone, range(job.model.layers), first=True, last=True).double()
        for name, parameter in self.stage.named_parameters():
            weights = local_weights(self.stage, name, parameter.shape, SEED, FP64, torch.device("cpu"))
            parameter.data.copy_(weights)
        self.adamw = torch.optim.AdamW(self.stage.parameters(), lr=RATE, betas=BETAS, weight_decay=WEIGHT_DECAY)

    def step(self, tokens: Tensor, targets: Tensor) -> tuple[float, float, dict[str, Tensor]]:
        """Loss, norm before clipping, and clipped gradients by name."""
        self.adamw.zero_grad()
        logits = self.stage(tokens)
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(self.stage.parameters(), MAX_NORM)
        grads = {name: parameter.grad.clone() for name, parameter in self.stage.named_parameters()}
        self.adamw.step()
        return loss.item(), norm.item(), grads

    def parameters(self) -> dict[str, Tensor]:
        return {name: parameter.detach() for name, parameter in self.stage.named_parameters()}


def batch(job: TrainingJob, step: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(step)
    shape = (job.global_batch_size, job.sequence_length + 1)
    text = torch.randint(job.model.vocab, shape, generator=generator)
    return text[:, :-1], text[:, 1:]


def gradients_of(program: Program) -> dict[str, Tensor]:
    """The clipped gradient of every parameter of this rank, joined over the shard group."""
    found = {}
    for stage, state in zip(program.stages, program.states, strict=True):
        if not isinstance(state, ReplicatedWeights):
            found |= {name: parameter.grad.full_tensor().clone() for name, parameter in stage.named_parameters()}
            continue
        for bucket in state._buckets:
            whole = torch.empty_like(bucket._weights)
            dist.all_gather_single(whole, bucket.piece.master.grad, group=program.groups.group("shard"))
            for name, parameter in bucket._named:
                start = parameter.storage_offset()
                found[name] = whole[start : start + parameter.numel()].view_as(parameter).clone()
    return found


def parameters_of(program: Program) -> dict[str, Tensor]:
    found = {}
    for stage in program.stages:
        for name, parameter in stage.named_parameters():
            tensor = parameter.detach()
            found[name] = tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor
    return found


def largest_difference(program: Program, mine: dict[str, Tensor], reference: dict[str, Tensor]) -> float:
    """Over this rank's part of every parameter; absolute."""
    spec, parallel = program.job.model, program.groups.tensor_parallel
    worst = 0.0
    for name, tensor in mine.items():
        whole = reference[global_name(spec, name)]
        split = split_of(spec, parallel, name)
        own = parallel.share(split.full)
        part = whole if split.dim is None else whole.narrow(split.dim, own.start, len(own))
        assert tensor.shape == part.shape, (name, tensor.shape, part.shape)
        worst = max(worst, (tensor - part).abs().max().item())
    return worst


def run_case(case: Case, references: dict[str, list]) -> dict[str, float]:
    layout, job = case.layout, case.job
    groups = build_groups(layout, torch.device("cpu"), job.model.tied_embeddings)
    policy = FP64
    program = parallelize(
        job, groups, policy, seed=SEED, learning_rate=RATE, max_norm=MAX_NORM, bucket_elements=case.bucket_elements
    )
    caught: dict[str, Tensor] = {}
    program.update._adamw.register_step_pre_hook(lambda *_: caught.update(gradients_of(program)))
    reference = Reference(job)
    share = job.global_batch_size // layout.data_parallel
    rows = slice(groups.rank("dp") * share, (groups.rank("dp") + 1) * share)
    errors = {"loss": 0.0, "norm": 0.0, "gradients": 0.0, "parameters": 0.0, "smallest_norm": 1e9}
    names = set()
    for step in range(STEPS):
        tokens, targets = batch(job, step)
        loss, norm, grads = reference.step(tokens, targets)
        result = run_step(program, tokens[rows], targets[rows])
        names |= set(caught)
        here = {
            "loss": abs(result.loss.item() - loss),
            "norm": abs(result.gradient_norm.item() - norm) / norm,
            "gradients": largest_difference(program, caught, grads),
            "parameters": largest_difference(program, parameters_of(program), reference.parameters()),
        }
        errors = errors | {key: max(errors[key], value) for key, value in here.items()}
        errors["smallest_norm"] = min(errors["smallest_norm"], norm)
    present = [name for stage in program.stages for name, _ in stage.named_parameters()]
    assert sorted(names) == sorted(present)
    return errors


def main() -> None:
    out = Path(sys.argv[1])
    only = sys.argv[2:]
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    results = {}
    for case in CASES:
        if case.layout.world_size != world or (only and case.name not in only):
            continue
        errors = run_case(case, {})
        everyone: list[dict[str, float]] = [{}] * world
        dist.all_gather_object(everyone, errors)
        results[case.name] = {key: (min if key == "smallest_norm" else max)(e[key] for e in everyone) for key in errors}
        if rank == 0:
            print(case.name, results[case.name], flush=True)
    if rank == 0:
        out.write_text(json.dumps(results))
    dist.barrier()
    dist.destroy_process_group()
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
