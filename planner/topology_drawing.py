"""A picture of a cluster: one node in detail, a few nodes with their switches, or many as groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any

from hwmodels.machine import Cluster, Node
from hwmodels.switches import SwitchPlan, switch_plan
from hwmodels.units import show

FORMATS = (".svg", ".png")
_COLORS = {"gpu": "#76b900", "nvswitch": "#3a6f0b", "pcie": "#b8b8b8", "numa": "#888888", "nic": "#e08a1e",
           "leaf": "#3b78b5", "spine": "#1f4e79", "core": "#14324d", "node": "#f4f4f2"}  # fmt: skip
_FEW = 16
"""Nodes that are drawn one by one."""
_GROUPS = 8
"""Groups of nodes that are drawn at most; the last one stands for all that follow."""


def draw(cluster: Cluster, out: Path) -> None:
    """Draw `cluster` into the file `out`, SVG or PNG by its ending."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib.figure import Figure

    with mpl.rc_context({"svg.hashsalt": "meshwright", "font.size": 9}):
        figure = Figure(figsize=(12, 6.5))
        axes = figure.add_axes((0.01, 0.01, 0.98, 0.92))
        axes.set_axis_off()
        figure.suptitle(_title(cluster), x=0.02, ha="left", fontsize=12)
        canvas = _Canvas(axes=axes)
        if cluster.nodes == 1:
            _draw_node(canvas, cluster.node)
        elif cluster.nodes <= _FEW:
            _draw_few(canvas, cluster)
        else:
            _draw_groups(canvas, cluster)
        axes.set_xlim(0, 100)
        axes.set_ylim(0, _height(cluster))
        metadata = {"Date": None} if out.suffix == ".svg" else {"Software": None}
        figure.savefig(out, dpi=110, metadata=metadata)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Canvas:
    """Axes of 100 x 60 units, with boxes and lines."""

    axes: Any

    def box(self, kind: str, x: float, y: float, width: float, height: float, text: str = "", size: float = 8) -> None:
        from matplotlib.patches import FancyBboxPatch

        looks: dict[str, Any] = {"facecolor": _COLORS[kind], "edgecolor": "#444444", "linewidth": 0.6}
        looks["zorder"] = 0 if kind == "node" else 2
        shape = "round,pad=0,rounding_size=0.4"
        self.axes.add_patch(FancyBboxPatch((x, y), width, height, boxstyle=shape, **looks))
        color = "black" if kind in ("node", "gpu", "pcie", "nic") else "white"
        self.axes.text(
            x + width / 2, y + height / 2, text, ha="center", va="center", fontsize=size, color=color, zorder=3
        )

    def line(self, start: tuple[float, float], end: tuple[float, float], width: float = 0.8) -> None:
        self.axes.plot([start[0], end[0]], [start[1], end[1]], color="#777777", linewidth=width, zorder=1)

    def text(self, x: float, y: float, text: str, size: float = 9, align: str = "center") -> None:
        ground = {"facecolor": "white", "edgecolor": "none", "pad": 1.5, "alpha": 0.9}
        self.axes.text(x, y, text, ha=align, va="center", fontsize=size, color="#222222", zorder=3, bbox=ground)


def _height(cluster: Cluster) -> float:
    """Units from the nodes at the bottom to the highest switches."""
    plan = switch_plan(cluster)
    return 60 if cluster.nodes == 1 or plan.cores else 46 if plan.spines else 34


def _title(cluster: Cluster) -> str:
    kinds = ", ".join(f"{pool.count} x {pool.node.name}" for pool in cluster.pools)
    return f"{cluster.name}: {kinds}, {cluster.devices} devices"


def _rate(value: float) -> str:
    """A network rate in Gb/s, as cards and ports are called by."""
    return f"{value * 8 / 1e9:g} Gb/s"


def _draw_node(canvas: _Canvas, node: Node) -> None:
    canvas.box("node", 1, 3, 98, 54)
    step = 96 / node.devices
    canvas.box(
        "nvswitch", 3, 47, 94, 6, f"{node.scaleup}: {show(node.scaleup_bandwidth, 'B/s')} per device and direction", 10
    )
    for device in range(node.devices):
        x = 2 + device * step
        canvas.line((x + step / 2, 47), (x + step / 2, 41), 2.5)
        name = f"gpu{device}\n{node.device.name}\n{show(node.device.memory, 'B')}" if device == 0 else f"gpu{device}"
        canvas.box("gpu", x + 0.6, 33, step - 1.2, 8, name)
    switches = min(node.devices, max(node.nics, 1))
    _draw_pcie(canvas, node, switches)


def _draw_pcie(canvas: _Canvas, node: Node, switches: int) -> None:
    step, wide = 96 / switches, 96 / node.devices
    for switch in range(switches):
        x = 2 + switch * step
        for device in range(switch * node.devices // switches, (switch + 1) * node.devices // switches):
            canvas.line((2 + (device + 0.5) * wide, 33), (x + step / 2, 28))
        canvas.box("pcie", x + 0.6, 24, step - 1.2, 4, "PCIe switch" if step > 8 else "PCIe")
        numa = switch * node.numa_domains // switches
        canvas.line((x + step / 2, 24), (2 + (numa + 0.5) * 96 / node.numa_domains, 19))
    for numa in range(node.numa_domains):
        x = 2 + numa * 96 / node.numa_domains
        canvas.box(
            "numa",
            x + 0.6,
            15,
            96 / node.numa_domains - 1.2,
            4,
            f"NUMA {numa}, PCIe {show(node.pcie_bandwidth, 'B/s')}",
        )
    cards = min(node.nics, 32)
    for card in range(cards):
        x = 2 + card * 96 / cards
        name = f"nic{card}\n{_rate(node.nic_bandwidth)}" if cards <= 10 else f"{card}"
        canvas.box("nic", x + 0.4, 5, 96 / cards - 0.8, 6, name)
    if cards:
        canvas.text(50, 13, f"{node.nics} network cards, each behind the PCIe switch of the devices above it")


def _draw_few(canvas: _Canvas, cluster: Cluster) -> None:
    plan = switch_plan(cluster)
    leaves = _row(canvas, "leaf", plan.leaves, min(plan.leaves, 16), 26)
    _draw_switches(canvas, cluster, plan, leaves, 26)
    step, number = 98 / cluster.nodes, 0
    for pool in cluster.pools:
        for _ in range(pool.count):
            x = 1 + number * step
            for leaf in leaves:
                canvas.line((x + step / 2, 20), (leaf, 26), 0.5)
            _draw_small_node(canvas, pool.node, x, step, number)
            number += 1
    card = _rate(min(cluster.node.nic_bandwidth, cluster.fabric.link_bandwidth))
    canvas.text(50, 23.2, f"{cluster.node.nics} x {card} per node, {cluster.fabric.name}")


def _draw_small_node(canvas: _Canvas, node: Node, x: float, step: float, number: int) -> None:
    canvas.box("node", x + 0.4, 2, step - 0.8, 18)
    canvas.text(x + step / 2, 18.4, f"node{number}", 8)
    columns = 4 if node.devices >= 4 else node.devices
    rows = ceil(node.devices / columns)
    wide, high = (step - 2) / columns, 9 / rows
    for device in range(node.devices):
        left, low = x + 1 + device % columns * wide, 13 - (device // columns) * high - high + 3
        canvas.box("gpu", left + 0.1, low + 0.2, wide - 0.2, high - 0.4, str(device), 7)
    canvas.box("nvswitch", x + 1, 3, step - 2, 3, node.scaleup if step > 6 else "", 7)


def _draw_switches(canvas: _Canvas, cluster: Cluster, plan: SwitchPlan, leaves: Sequence[float], low: float) -> None:
    """Spines and cores above the leaves, whose middles are at `leaves` and whose lower edge is at `low`."""
    rate = cluster.fabric.link_bandwidth
    if not plan.spines:
        return
    spines = _row(canvas, "spine", plan.spines, min(plan.spines, 12), low + 12)
    _mesh(canvas, leaves, low + 4, spines, low + 12)
    share, ratio = show(plan.up * rate, "B/s"), f"{cluster.fabric.oversubscription:g}:1"
    canvas.text(50, low + 6.2, f"{plan.up} x {_rate(rate)} = {share} above each leaf, {ratio}")
    if plan.cores:
        cores = _row(canvas, "core", plan.cores, min(plan.cores, 12), low + 24)
        _mesh(canvas, spines, low + 16, cores, low + 24)


def _row(canvas: _Canvas, kind: str, count: int, shown: int, low: float) -> list[float]:
    """`shown` of `count` switches in a row; the last stands for the rest. Returns their middles."""
    step = 98 / shown
    width = min(step - 0.8, 14)
    middles = [1 + (i + 0.5) * step for i in range(shown)]
    for i, middle in enumerate(middles):
        rest = count - shown + 1
        name = f"+{rest}" if i == shown - 1 and rest > 1 else f"{kind}{i}"
        canvas.box(kind, middle - width / 2, low, width, 4, name, 8 if width > 5 else 6)
    return middles


def _mesh(canvas: _Canvas, below: Sequence[float], low: float, above: Sequence[float], high: float) -> None:
    for one in below:
        for other in above:
            canvas.line((one, low), (other, high), 0.35)


def _draw_groups(canvas: _Canvas, cluster: Cluster) -> None:
    """Nodes that share their leaves are one group."""
    plan, node = switch_plan(cluster), cluster.node
    size = max(plan.down * plan.rails // max(node.nics, 1), 1)
    groups = ceil(cluster.nodes / size)
    shown = min(groups, _GROUPS)
    step = 98 / shown
    for group in range(shown):
        x = 1 + group * step
        last = group == shown - 1 and groups > shown
        _draw_group(canvas, cluster, x, step, size, group, groups - shown + 1 if last else 1)
        own = plan.leaves - group * plan.rails if last else min(plan.rails, plan.leaves)
        canvas.line((x + step / 2, 17), (x + step / 2, 22), 2.5)
        canvas.box("leaf", x + 1.2, 22, step - 2.4, 4, f"{own} leaves" if own > 1 else "1 leaf")
    _draw_switches(canvas, cluster, plan, [1 + (group + 0.5) * step for group in range(shown)], 22)
    card = _rate(min(node.nic_bandwidth, cluster.fabric.link_bandwidth))
    rails = "one leaf for each card of a node" if plan.rails > 1 else "nodes share their leaves"
    canvas.text(50, 19.4, f"{node.nics} x {card} per node, {rails}; {cluster.fabric.name}")


def _draw_group(
    canvas: _Canvas, cluster: Cluster, x: float, step: float, size: int, group: int, stands_for: int
) -> None:
    first = group * size
    nodes = cluster.nodes - first if stands_for > 1 else min(size, cluster.nodes - first)
    canvas.box("node", x + 0.4, 2, step - 0.8, 15)
    head = f"{stands_for} more groups" if stands_for > 1 else f"nodes {first}-{first + nodes - 1}"
    canvas.text(x + step / 2, 14.6, head, 8)
    canvas.box("gpu", x + 1.2, 6.5, step - 2.4, 6, f"{nodes * cluster.node.devices:,}\ndevices", 8)
    canvas.text(x + step / 2, 4.2, f"{nodes} x {cluster.node.name}", 7)
