"""Output of nccl-tests and rccl-tests: times of one collective by message size.

Source: NVIDIA, nccl-tests (columns size, count, type, redop, root, time, algbw, busbw, #wrong).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from hwmodels.readers.damage import damaged

NAME = "nccl-tests"
COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "alltoall", "broadcast", "sendrecv")
_CALLED = {"alltoall": "all_to_all"}
_ROW = re.compile(r"^\s*(\d+)\s+(\d+)\s+(\w+)\s+(\S+)\s+(-?\d+)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)\s+\S+")
_RANK = re.compile(r"^#\s+Rank\s+\d+.*?\bon\s+(\S+)\s+device")


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """One run: collective (None where the log does not name it), ranks, hosts, and (bytes, seconds) of each size."""

    collective: str | None
    ranks: int
    hosts: int
    rows: tuple[tuple[int, float], ...]


def read(text: str) -> Log:
    """The run in `text`. Raises `SpecError` where there are no rows, or no ranks."""
    hosts = [match[1] for line in text.splitlines() if (match := _RANK.match(line))]
    rows = [
        (int(match[1]), float(match[6]) * 1e-6)
        for line in text.splitlines()
        if (match := _ROW.match(line)) and int(match[1]) > 0 and float(match[6]) > 0
    ]
    if not rows:
        raise damaged(NAME, "no row of size, count, type, redop, root, time", "the whole output of a run")
    if not hosts:
        raise damaged(NAME, "no line '# Rank N ... on HOST device M'", "the whole output of a run")
    named = next((name for name in COLLECTIVES if re.search(rf"\b{name}_perf\b", text)), None)
    collective = None if named is None else _CALLED.get(named, named)
    return Log(collective=collective, ranks=len(hosts), hosts=len(set(hosts)), rows=tuple(rows))
