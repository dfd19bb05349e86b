"""Measured training points: one row of a measurement file, as what was run and, apart from it, what was measured."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from hwmodels.errors import Fault, SpecError
from planner.csv_rows import Reader, column_faults, one_of, positive, read_cells, read_table, switch, whole, word

MemoryUnit = Literal["GB", "GiB"]
BYTES: dict[MemoryUnit, float] = {"GB": 1e9, "GiB": 2.0**30}
ONE_LAYER_CHUNKS = "max"
"""Start of a text in column `vp` that stands for as many virtual stages as leave one layer in each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """What was run, as the source states it; None where it does not. Fields are named as the columns of the file."""

    id: str
    stack: str
    source: str = ""
    task: str = "pretrain"
    model: str = ""
    device: str = ""
    fabric: str = ""
    precision: str | None = None
    recompute: str | None = None
    schedule: str | None = None
    notes: str = ""
    year: int | None = None
    n_layers: int | None = None
    hidden: int | None = None
    ffn_hidden: int | None = None
    n_heads: int | None = None
    n_kv_heads: int | None = None
    head_dim: int | None = None
    vocab: int | None = None
    seq_len: int | None = None
    n_experts: int | None = None
    topk: int | None = None
    moe_ffn_hidden: int | None = None
    n_devices: int | None = None
    devices_per_node: int | None = None
    gbs: int | None = None
    mbs: int | None = None
    tp: int | None = None
    pp: int | None = None
    vp: int | None = None
    cp: int | None = None
    ep: int | None = None
    etp: int | None = None
    dp: int | None = None
    sequence_parallel: bool | None = None
    zero: int | None = None
    shard_group: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What was measured, in the units of the file; None where nothing was. `outcome` is blank for a run that ended."""

    step_time_s: float | None = None
    tokens_per_s_per_device: float | None = None
    peak_memory_gb: float | None = None
    memory_unit: MemoryUnit | None = None
    outcome: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One row. A prediction takes `configuration` alone, so that it cannot see what it is compared with."""

    configuration: Configuration
    measured: Measured


_TEXTS = ("id", "stack", "source", "task", "model", "device", "fabric", "precision", "recompute", "schedule", "notes")
_COUNTS = (
    "year", "n_layers", "hidden", "ffn_hidden", "n_heads", "n_kv_heads", "head_dim", "vocab", "seq_len", "n_experts",
    "topk", "moe_ffn_hidden", "n_devices", "devices_per_node", "gbs", "mbs", "tp", "pp", "cp", "ep", "etp", "dp",
    "shard_group",
)  # fmt: skip
_READERS: dict[str, Reader] = {
    **dict.fromkeys(_TEXTS, word),
    **dict.fromkeys(_COUNTS, whole(1)),
    "vp": lambda text: text if text.startswith(ONE_LAYER_CHUNKS) else whole(1)(text),
    "zero": whole(0, 3),
    "sequence_parallel": switch,
    **dict.fromkeys(("step_time_s", "tokens_per_s_per_device", "peak_memory_gb"), positive),
    "memory_unit": one_of(*BYTES),
    "outcome": word,
}
_UNREAD = ("model_tflops_per_device", "mfu", "check")
"""Columns that are legal and not used: sources count FLOP in different ways, and `check` is the compiler's."""
COLUMNS: tuple[str, ...] = (*_READERS, *_UNREAD)
REQUIRED: tuple[str, ...] = ("id", "stack", "model", "device", "n_devices", "seq_len", "gbs")
_MEASURED = tuple(field.name for field in fields(Measured))


def read_measurements(path: Path) -> tuple[Measurement, ...]:
    """The rows of the measurement file at `path`.

    Raises `SpecError` with all faults: missing, unknown and repeated columns, and cells that are not legal, each with
    its line and column.
    """
    table = read_table(path)
    faults = [*table.faults, *column_faults(table, COLUMNS, REQUIRED)]
    rows = []
    for line, cells in table.rows:
        values, illegal = read_cells(line, cells, _READERS)
        faults.extend(illegal or _blank_faults(line, values))
        rows.append(values)
    if faults:
        raise SpecError(faults, str(path))
    return tuple(_measurement(values) for values in rows)


def shipped(name: str = "training") -> Path:
    """The path of a table that comes with this software: training, small_runs, layout_sweep, small_models_memory,
    heterogeneous or collectives."""
    return Path(str(files("hwmodels") / "data" / "measurements" / f"{name}.csv"))


def step_time(measurement: Measurement) -> float | None:
    """Measured seconds of a step: as stated, or global batch x sequence length / (tokens/s per device x devices)."""
    row, measured = measurement.configuration, measurement.measured
    rate = measured.tokens_per_s_per_device
    if measured.step_time_s is not None:
        return measured.step_time_s
    if rate is None or row.gbs is None or row.seq_len is None or row.n_devices is None:
        return None
    return row.gbs * row.seq_len / (rate * row.n_devices)


def _blank_faults(line: int, values: dict[str, object]) -> Iterator[Fault]:
    for column in ("id", "stack"):
        if column not in values:
            yield Fault(path=f"line {line}, {column}", found="nothing", legal="a name")


def _measurement(values: dict[str, Any]) -> Measurement:
    if isinstance(values.get("vp"), str):
        layers, stages = values.get("n_layers"), values.get("pp")
        values["vp"] = math.ceil(layers / stages) if layers and stages else None
    measured = {name: values.pop(name) for name in _MEASURED if name in values}
    return Measurement(configuration=Configuration(**values), measured=Measured(**measured))
