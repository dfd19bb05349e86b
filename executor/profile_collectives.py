"""`torchrun -m executor.profile_collectives OUT.json`: how long collectives and pairs of ranks take here.

Every figure is the slowest rank's; times are medians after a warm-up. Source: NVIDIA, nccl-tests doc/PERFORMANCE.md.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from executor.__main__ import leave
from executor.mesh import local_device, start_processes
from planner.plan import write_atomically

WARM_UP = 2
ITEM = 4
"""Bytes of an element: fp32."""
SECONDS = 0.5
"""Time that one size of one collective is repeated for, at least three times."""


def main() -> None:
    """Measure, and write JSON on rank 0."""
    parser = argparse.ArgumentParser(prog="torchrun -m executor.profile_collectives")
    parser.add_argument("out", type=Path)
    parser.add_argument("--min-bytes", type=int, default=1024)
    parser.add_argument("--max-bytes", type=int, default=64 * 1024**2)
    options = parser.parse_args()
    device = local_device()
    start_processes(device)
    sizes = list(_sizes(options.min_bytes, options.max_bytes))
    found = {
        "ranks": dist.get_world_size(),
        "nodes": int(os.environ.get("GROUP_WORLD_SIZE", "1")),
        "backend": dist.get_backend(),
        "software": f"torch {torch.__version__} on {platform.machine()}",
        "collectives": list(_collectives(sizes, device)),
        "pairs": list(_pairs(max(options.min_bytes, min(options.max_bytes, 4 * 1024**2)), device)),
    }
    if dist.get_rank() == 0:
        write_atomically(options.out, json.dumps(found))
    leave(0)


def _sizes(least: int, most: int) -> Iterator[int]:
    size = least
    while size <= most:
        yield size
        size *= 4


def _collectives(sizes: list[int], device: torch.device) -> Iterator[dict[str, Any]]:
    world = dist.get_world_size()
    for nbytes in sizes:
        elements = max(nbytes // ITEM // world, 1) * world
        whole, part = torch.ones(elements, device=device), torch.ones(elements // world, device=device)
        other = torch.empty_like(whole)
        calls: dict[str, Callable[[], object]] = {
            "all_reduce": lambda whole=whole: dist.all_reduce(whole),
            "all_gather": lambda other=other, part=part: dist.all_gather_single(other, part),
            "reduce_scatter": lambda other=other, part=part: dist.reduce_scatter_single(part, other),
            "all_to_all": lambda other=other, whole=whole: dist.all_to_all_single(other, whole),
            "broadcast": lambda whole=whole: dist.broadcast(whole, 0),
        }
        for name, call in calls.items():
            whole.fill_(1.0)
            times = _times(call, device)
            yield {"collective": name, "bytes": elements * ITEM, **_summary(times)}


def _pairs(nbytes: int, device: torch.device) -> Iterator[dict[str, Any]]:
    """Both directions at once between neighbours, and between ranks half the world apart."""
    world, rank = dist.get_world_size(), dist.get_rank()
    distances = sorted({1, world // 2} - {0}) if world > 1 else []
    for first, second in dict.fromkeys((r, (r + d) % world) for d in distances for r in range(world)):
        buffer, other = torch.ones(nbytes // ITEM, device=device), torch.empty(nbytes // ITEM, device=device)
        partner = {first: second, second: first}.get(rank)
        times = _times(lambda b=buffer, o=other, p=partner: _exchange(b, o, p), device)
        yield {"ranks": [first, second], "bytes": nbytes, **_summary(times)}


def _exchange(buffer: Tensor, other: Tensor, partner: int | None) -> None:
    if partner is None:
        return
    work = [dist.P2POp(dist.isend, buffer, partner), dist.P2POp(dist.irecv, other, partner)]
    for request in dist.batch_isend_irecv(work):
        request.wait()


def _times(call: Callable[[], object], device: torch.device) -> list[float]:
    """Seconds of each repetition on the slowest rank; all ranks repeat equally often."""
    for _ in range(WARM_UP):
        call()
    first = _slowest([_timed(call, device)], device)[0]
    repeats = max(3, min(50, int(SECONDS / max(first, 1e-6))))
    return _slowest([_timed(call, device) for _ in range(repeats)], device)


def _timed(call: Callable[[], object], device: torch.device) -> float:
    dist.barrier()
    started = time.perf_counter()
    call()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter() - started


def _slowest(times: list[float], device: torch.device) -> list[float]:
    tensor = torch.tensor(times, dtype=torch.float64, device=device)
    dist.all_reduce(tensor, dist.ReduceOp.MAX)
    return tensor.tolist()


def _summary(times: list[float]) -> dict[str, float]:
    ordered = sorted(times)
    return {"seconds": median(times), "slow_seconds": ordered[int(0.9 * (len(ordered) - 1))]}


if __name__ == "__main__":
    main()
