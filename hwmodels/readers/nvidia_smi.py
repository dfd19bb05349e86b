"""`nvidia-smi topo -m`: how the devices and network cards of one node are linked.

Source: NVIDIA, nvidia-smi documentation, topo (legend: X, NV#, PIX, PXB, PHB, NODE, SYS).
"""

from __future__ import annotations

import re

from hwmodels.readers.damage import damaged
from hwmodels.readers.findings import Findings, PoolFinding

NAME = "nvidia-smi topo -m"
_CODE = re.compile(r"X|NV\d+|PIX|PXB|PHB|NODE|SYS|PIX\d*|N/A")
_NEAR = ("PIX", "PXB")
"""Behind the same PCIe switch."""
_COLUMN = re.compile(r"GPU\d+|NIC\d+|mlx5_\d+|\w+_\d+")


def matches(text: str) -> bool:
    """Whether `text` is such a matrix."""
    return bool(re.search(r"^\s*(\x1b\[\d*m)?\s*GPU0\s+(GPU1|CPU Affinity|NIC0|mlx5_0)", text, re.MULTILINE))


def read(text: str) -> Findings:
    """Devices, those that NVLink joins, and the cards that share a PCIe switch with a device.

    Without any NVLink it is not said whether there is none, since `topo -mp` leaves it out. Raises `SpecError`.
    """
    plain = re.sub(r"\x1b\[\d*m", "", text)
    lines = plain.splitlines()
    start = next(i for i, line in enumerate(lines) if re.match(r"\s*GPU0\s", line))
    columns = _columns(lines[start])
    devices = [name for name in columns if name.startswith("GPU")]
    rows = {name: _row(lines, name, columns, start) for name in devices}
    joined = [_joined(rows[name], devices) for name in devices]
    near = [card for card in columns if card not in devices and any(rows[d][card] in _NEAR for d in devices)]
    domain = min(joined) if max(joined) > 1 else None
    pool = PoolFinding(devices=len(devices), domain=domain, nics=len(near) or None)
    return Findings(pools=(pool,))


def _columns(header: str) -> list[str]:
    names = header.split("CPU Affinity", maxsplit=1)[0].split()
    known = [name for name in names if _COLUMN.fullmatch(name)]
    if known != names:
        odd = next(name for name in names if name not in known)
        raise damaged(NAME, f"column {odd!r}", "columns GPU0, GPU1, ..., NIC0, ...")
    return names


def _row(lines: list[str], name: str, columns: list[str], start: int) -> dict[str, str]:
    for number, line in enumerate(lines[start + 1 :], start + 2):
        if re.match(rf"\s*{name}\s", line):
            cells = line.split()[1 : len(columns) + 1]
            if len(cells) < len(columns) or not all(_CODE.fullmatch(cell) for cell in cells):
                raise damaged(NAME, f"{len(cells)} cells: {' '.join(cells)}", f"{len(columns)} links of {name}", number)
            return dict(zip(columns, cells, strict=True))
    raise damaged(NAME, f"no row of {name}", "a row for each device")


def _joined(row: dict[str, str], devices: list[str]) -> int:
    return sum(row[other] == "X" or row[other].startswith("NV") for other in devices)
