"""The training loop: steps of the program on this rank's share of the data, each measured."""

from __future__ import annotations

import math
import platform
import resource
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
import torch.distributed as dist

from executor.data import ByteWindows, batch_of, open_windows, step_windows
from executor.measurement import RunRecord, StepRecord
from executor.mesh import build_groups, local_device, start_processes
from executor.parallelize import Program, parallelize, run_step
from executor.precision import policy_of
from planner.plan import Plan

Report = Callable[[int, StepRecord, float], None]
"""Called on rank 0 after each step with its number, its record and the peak memory in bytes so far."""


class LossError(Exception):
    """The loss is not a number any more; training cannot go on."""


def train(plan: Plan, data: Sequence[Path], steps: int, seed: int, learning_rate: float, report: Report) -> RunRecord:
    """Train `plan` for `steps` steps in the processes that torchrun has started. Raises `LossError`.

    Every layout takes the same windows in the same order from the same initial weights.
    """
    device = local_device()
    start_processes(device)
    groups = build_groups(plan.layout, device, plan.job.model.tied_embeddings)
    program = parallelize(plan.job, groups, policy_of(plan.job.precision), seed=seed, learning_rate=learning_rate)
    windows = open_windows(data, plan.job.sequence_length)
    records, memory = [], 0.0
    for step in range(steps):
        record = _measured_step(program, windows, step, seed)
        memory = _peak_memory(device)
        records.append(record)
        if dist.get_rank() == 0:
            report(step, record, memory)
        if not math.isfinite(record.loss):
            raise LossError(f"the loss of step {step + 1} is {record.loss}; a lower --learning-rate may help")
    return RunRecord(steps=tuple(records), peak_memory=memory, software=_software(device))


def _measured_step(program: Program, windows: ByteWindows, step: int, seed: int) -> StepRecord:
    job, groups = program.job, program.groups
    numbers = step_windows(len(windows), job.global_batch_size, step, seed)
    share = job.global_batch_size // program.groups.layout.data_parallel
    own = numbers[groups.rank("dp") * share : (groups.rank("dp") + 1) * share]
    text = torch.from_numpy(batch_of(windows, own)).to(groups.device)
    started = time.perf_counter()
    result = run_step(program, text[:, :-1], text[:, 1:])
    # Reading the loss waits for the device; it is a sum over all ranks, so that they end together.
    loss, norm = result.loss.item(), result.gradient_norm.item()
    return StepRecord(seconds=time.perf_counter() - started, loss=loss, gradient_norm=norm)


def _peak_memory(device: torch.device) -> float:
    """Peak bytes of the fullest rank: allocated on an accelerator, resident of the process on a CPU."""
    if device.type == "cuda":
        own = torch.cuda.max_memory_allocated(device)
    else:
        # Source: getrusage(2): kilobytes on Linux, bytes on macOS.
        unit = 1 if sys.platform == "darwin" else 1024
        own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    most = torch.tensor(float(own), dtype=torch.float64, device=device)
    dist.all_reduce(most, dist.ReduceOp.MAX)
    return most.item()


def _software(device: torch.device) -> str:
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine()
    return f"torch {torch.__version__} on {name}"
