"""Measured collectives, in the columns that nccl-tests tables have, against the model of collectives."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from hwmodels import catalog
from hwmodels.collectives import group
from hwmodels.errors import SpecError
from hwmodels.machine import Cluster
from planner.collective_profile import PREDICT, bus_factor
from planner.csv_rows import Reader, column_faults, read_cells, read_table, whole, word
from planner.ledger import Ledger
from planner.measured_cluster import measured_cluster
from planner.measurements import Configuration
from planner.validation import Errors, errors_of

_TEXTS = (
    "table_id", "record_type", "collective", "gpu", "scaleup", "scaleout_fabric", "library_version", "algo_note",
    "dtype", "time_us", "algbw_GBps", "busbw_GBps", "inplace_time_us", "inplace_busbw_GBps", "quality_flag",
    "source_title", "source_url_or_path", "note",
)  # fmt: skip
_READERS: dict[str, Reader] = {
    **dict.fromkeys(_TEXTS, word),
    **dict.fromkeys(("n_gpus", "n_nodes", "gpus_per_node"), whole(1)),
    "size_bytes": whole(1, 2**62),
}
LONG = 16e6
"""Bytes from which a message counts as long."""
LAUNCH = 5e-6
"""Seconds in which a process that drives several devices starts a collective on one of them (estimate: a kernel launch,
4 to 6 us). Source: susun-blog.com, pegainfer (3): From Launch Overhead to CUDA Graph."""
REQUIRED = ("table_id", "collective", "gpu", "n_gpus", "size_bytes")
"""Columns by which such a file is recognized."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveResult:
    """One measured collective: `key` is its table, collective and size in bytes; times in seconds, None for none."""

    key: tuple[str, str, int | None]
    status: str
    reason: str | None = None
    device: str = ""
    measured_time_s: float | None = None
    predicted_time_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BySize:
    """Errors of messages of `LONG` bytes and more, and of shorter ones."""

    long: Errors
    short: Errors


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveReport:
    """All rows; errors over all of them, by collective, and by device and collective; skipped rows by reason."""

    rows: tuple[CollectiveResult, ...]
    time: Errors
    by_size: BySize
    by_collective: dict[str, BySize]
    by_device: dict[str, BySize]
    skipped: dict[str, int]


def is_collective_table(columns: tuple[str, ...]) -> bool:
    """Whether a file with these `columns` holds measured collectives."""
    return set(REQUIRED) <= set(columns)


def validate_collectives(path: Path) -> CollectiveReport:
    """Predict every row of the file at `path`. Raises `SpecError` with all faults of the file."""
    table = read_table(path)
    faults = [*table.faults, *column_faults(table, tuple(_READERS), REQUIRED)]
    rows = []
    for line, cells in table.rows:
        values, illegal = read_cells(line, cells, _READERS)
        faults.extend(illegal)
        rows.append(values)
    if faults:
        raise SpecError(faults, str(path))
    results = tuple(_result(values) for values in rows)
    return CollectiveReport(
        rows=results,
        time=_errors(results),
        by_size=_by_size(results),
        by_collective={name: _by_size([r for r in results if r.key[1] == name]) for name in PREDICT},
        by_device=_by_device(results),
        skipped=dict(Counter(r.reason for r in results if r.reason).most_common()),
    )


def _by_device(rows: Sequence[CollectiveResult]) -> dict[str, BySize]:
    """Errors by device and collective, for those that have any."""
    kinds = sorted({(row.device, row.key[1]) for row in rows if row.predicted_time_s and row.measured_time_s})
    return {f"{device} {name}": _by_size([r for r in rows if (r.device, r.key[1]) == (device, name)])
            for device, name in kinds}  # fmt: skip


def _by_size(rows: Sequence[CollectiveResult]) -> BySize:
    return BySize(
        long=_errors([row for row in rows if (row.key[2] or 0) >= LONG]),
        short=_errors([row for row in rows if (row.key[2] or 0) < LONG]),
    )


def _errors(rows: Sequence[CollectiveResult]) -> Errors:
    return errors_of([(row.predicted_time_s, row.measured_time_s) for row in rows])


def _result(row: dict[str, Any]) -> CollectiveResult:
    key = (row.get("table_id", ""), row.get("collective", ""), row.get("size_bytes"))
    predicted = _predicted(row)
    if isinstance(predicted, str):
        return CollectiveResult(key=key, status="skipped", reason=predicted, measured_time_s=_measured(row))
    device = _device(row) or ""
    return CollectiveResult(
        key=key, status="ok", device=device, measured_time_s=_measured(row), predicted_time_s=predicted
    )


def _device(row: dict[str, Any]) -> str | None:
    """The device of a row; where its name leaves that open, its scale-up network tells the socket."""
    name, scaleup = row.get("gpu", ""), row.get("scaleup", "")
    socket = "SXM" if "NVLink" in scaleup else "PCIe" if scaleup.startswith("PCI") else ""
    return device_of(name) or device_of(f"{name} {socket}")


def _predicted(row: dict[str, Any]) -> float | str:
    """Seconds of the collective among all devices of the row, or why it cannot be priced."""
    predict = PREDICT.get(row.get("collective", ""))
    size, ranks = row.get("size_bytes"), row.get("n_gpus")
    if predict is None:
        return f"collective {row.get('collective', '')} is not priced"
    if not size or not ranks:
        return "the size or the number of devices is not stated"
    cluster = _cluster(row, ranks)
    if isinstance(cluster, str):
        return cluster
    over = group(cluster, np.array([ranks]), np.array([1]))
    return max(float(predict(over, np.array([float(size)]))[0]), _launch(row))


def _launch(row: dict[str, Any]) -> float:
    """Seconds to start the collective where the row states that one process drives several devices (`-g 8`)."""
    stated = re.search(r"(?:^|\s)-g (\d+)", f"{row.get('algo_note', '')} {row.get('note', '')}")
    return LAUNCH * int(stated[1]) if stated and int(stated[1]) > 1 else 0.0


def _cluster(row: dict[str, Any], ranks: int) -> Cluster | str:
    device = _device(row)
    if device is None:
        return f"device {row.get('gpu', '')!r} is not in the catalog"
    per_node = row.get("gpus_per_node") or (-(-ranks // row["n_nodes"]) if row.get("n_nodes") else None)
    ledger = Ledger(row=Configuration(
        id=row.get("table_id", ""), stack="", device=device, n_devices=ranks, devices_per_node=per_node,
        fabric=row.get("scaleout_fabric", ""),
    ))  # fmt: skip
    cluster = measured_cluster(ledger)
    if cluster is None:
        return ledger.reasons[0]
    if "NVL72" in row.get("scaleup", "") + row.get("gpu", ""):
        node = cluster.node
        pool = replace(cluster.pools[0], node=replace(node, domain=max(node.domain, 72)))
        return replace(cluster, pools=(pool,))
    return cluster


def device_of(text: str) -> str | None:
    """The device of the catalog that `text` names: the one that shares most words with it, all of its own among them.

    "H100-80GB SXM (DGX H100)" is h100-sxm where the catalog has no h100-sxm-80gb. Where no memory is named, any device
    of that name will do: its links are the same.
    """
    words = _words(text)
    fitting = [name for name in catalog.devices() if _words(name) <= words]
    alike = [name for name in catalog.devices() if {w for w in _words(name) if not w.endswith("gb")} <= words]
    return max(fitting, key=len, default=None) or max(alike, key=lambda name: len(_words(name)), default=None)


def _words(text: str) -> set[str]:
    """Words in small letters; the generation of a socket (SXM2, SXM5) is not part of a device's name."""
    return set(re.findall(r"[a-z0-9]+", re.sub(r"sxm\d", "sxm", text.lower())))


def _measured(row: dict[str, Any]) -> float | None:
    """Measured seconds: as stated in us, or from the bus bandwidth that is stated in GB/s."""
    if stated := _number(row.get("time_us", "")):
        return stated * 1e-6
    bandwidth, size, ranks = _number(row.get("busbw_GBps", "")), row.get("size_bytes"), row.get("n_gpus")
    name = row.get("collective", "")
    if not (bandwidth and size and ranks and name in PREDICT):
        return None
    return float(bus_factor(name, ranks) * size / (bandwidth * 1e9))


def _number(text: str) -> float | None:
    """The number that `text` is, None for a range or other text."""
    return float(text) if re.fullmatch(r"\d+(\.\d+)?", text) else None
