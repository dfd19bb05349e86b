"""The device of this process, and the groups of ranks on each axis of a layout."""

from __future__ import annotations

import os
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

from executor.tensor_parallel import TensorParallel
from hwmodels.layout import Layout

MESH_AXES = ("pp", "replicate", "shard", "cp", "tp")
"""Axes of the mesh, outermost first: those of `hwmodels.layout.AXES`, with dp as replicate x shard."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups:
    """This rank's place in the layout. `tie` joins the first and last rank of its pipeline, None on other ranks."""

    layout: Layout
    device: torch.device
    mesh: DeviceMesh
    tie: dist.ProcessGroup | None

    def rank(self, axis: str) -> int:
        """Position on one axis of `MESH_AXES`, or on dp."""
        if axis == "dp":
            return self.rank("replicate") * self.mesh["shard"].size() + self.rank("shard")
        return self.mesh.get_local_rank(axis)

    def size(self, axis: str) -> int:
        """Number of ranks on one axis of `MESH_AXES`."""
        return self.mesh[axis].size()

    def group(self, axis: str) -> dist.ProcessGroup:
        """The ranks that differ from this one in `axis` only."""
        return self.mesh.get_group(axis)

    @property
    def tensor_parallel(self) -> TensorParallel:
        """This rank's part of every matrix."""
        size = self.size("tp")
        return TensorParallel(
            rank=self.rank("tp"),
            size=size,
            group=self.group("tp") if size > 1 else None,
            sequence_parallel=self.layout.sequence_parallel and size > 1,
        )


def local_device() -> torch.device:
    """The accelerator of this process, or the CPU where there is none."""
    if not torch.cuda.is_available():
        return torch.device("cpu")
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
    torch.cuda.set_device(device)
    return device


def start_processes(device: torch.device) -> None:
    """Join the other ranks that torchrun has started: by NCCL between accelerators, by Gloo between CPUs."""
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")


def build_groups(layout: Layout, device: torch.device, tied: bool) -> Groups:
    """The groups of `layout`, built on all ranks together. Rank arithmetic is that of `Layout.coordinates`."""
    shard = layout.shard_group
    degrees = (layout.pipeline_parallel, layout.data_parallel // shard, shard, 1, layout.tensor_parallel)
    mesh = init_device_mesh(device.type, degrees, mesh_dim_names=MESH_AXES)
    return Groups(layout=layout, device=device, mesh=mesh, tie=_tie_group(layout) if tied else None)


def _tie_group(layout: Layout) -> dist.ProcessGroup | None:
    """The group of the first and last stage that hold the same embedding; every rank takes part in making all."""
    if layout.pipeline_parallel == 1:
        return None
    own = None
    for ranks in layout.groups("pp"):
        ends = [ranks[0], ranks[-1]]
        group = dist.new_group(ends)
        own = group if dist.get_rank() in ends else own
    return own
