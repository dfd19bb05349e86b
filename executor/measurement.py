"""What was measured, as one row of a measurement file that `plan validate` reads."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from hwmodels.errors import Fault, SpecError
from hwmodels.loading import read_text
from planner.plan import Plan, write_atomically

STACK = "meshwright"
"""The software that ran: this executor, whatever stack the plan was priced for."""
COLUMNS = (
    "id", "source", "year", "stack", "task", "model", "n_layers", "hidden", "ffn_hidden", "n_heads", "n_kv_heads",
    "head_dim", "vocab", "seq_len", "device", "n_devices", "devices_per_node", "precision", "gbs", "mbs", "tp", "pp",
    "vp", "cp", "dp", "sequence_parallel", "zero", "shard_group", "recompute", "schedule", "step_time_s",
    "tokens_per_s_per_device", "peak_memory_gb", "memory_unit", "notes",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord:
    """One measured step: seconds, mean loss over its tokens, gradient norm before clipping."""

    seconds: float
    loss: float
    gradient_norm: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """A finished run: its steps, and the peak memory in bytes of the fullest rank."""

    steps: tuple[StepRecord, ...]
    peak_memory: float
    software: str

    @property
    def warm_up(self) -> int:
        """First steps that are left out of the step time: they compile, allocate and fill caches."""
        return min(3, len(self.steps) // 2)

    @property
    def step_time(self) -> float:
        """Median seconds of a step after the warm-up."""
        return median(step.seconds for step in self.steps[self.warm_up :])


def output_faults(path: Path) -> Iterator[Fault]:
    """The fault of a path that cannot take another row: no such folder, or a file of other columns."""
    if not path.parent.is_dir():
        yield Fault(path="--out", found=f"{path}: no such folder", legal="a file in a folder that exists")
    elif path.exists():
        try:
            header = read_text(path).splitlines()[:1]
        except SpecError as error:
            yield from error.faults
            return
        if header != [",".join(COLUMNS)]:
            yield Fault(
                path="--out", found=f"{path}: a file of other columns", legal="a new file, or a measurement file"
            )


def append_measurement(path: Path, plan: Plan, record: RunRecord) -> None:
    """Add one row to the measurement file at `path`, which is made if there is none."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    if not path.exists():
        writer.writeheader()
    writer.writerow(row_of(plan, record))
    before = read_text(path) if path.exists() else ""
    write_atomically(path, before + text.getvalue())


def row_of(plan: Plan, record: RunRecord) -> dict[str, object]:
    """The row of a run: what was run, then what was measured."""
    now = datetime.now(UTC)
    model, layout, job = plan.job.model, plan.layout, plan.job
    return {
        "id": f"{model.name}-{now:%Y%m%dT%H%M%S}", "source": "measured by plan run", "year": now.year, "stack": STACK,
        "task": "pretrain", "model": model.name, "n_layers": model.layers, "hidden": model.hidden,
        "ffn_hidden": model.ffn_hidden, "n_heads": model.heads, "n_kv_heads": model.kv_heads,
        "head_dim": model.head_dim, "vocab": model.vocab, "seq_len": job.sequence_length,
        "device": plan.cluster.device.name, "n_devices": layout.world_size,
        "devices_per_node": plan.cluster.node.devices, "precision": job.precision, "gbs": job.global_batch_size,
        "mbs": layout.micro_batch_size, "tp": layout.tensor_parallel, "pp": layout.pipeline_parallel,
        "vp": layout.virtual_stages, "cp": layout.context_parallel, "dp": layout.data_parallel,
        "sequence_parallel": str(layout.sequence_parallel).lower(), "zero": layout.zero_stage,
        "shard_group": layout.shard_group, "recompute": layout.recompute, "schedule": layout.schedule,
        "step_time_s": f"{record.step_time:.6g}",
        "tokens_per_s_per_device": f"{job.tokens_per_step / record.step_time / layout.world_size:.6g}",
        "peak_memory_gb": f"{record.peak_memory / 1e9:.6g}", "memory_unit": "GB", "notes": record.software,
    }  # fmt: skip
