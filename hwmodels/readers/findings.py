"""What the files of a machine say of it; None is what they leave out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any

from hwmodels.errors import Fault, SpecError


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolFinding:
    """Equal nodes: a node or a device of the catalog, devices and network cards of each node, and how many nodes.

    `domain` is devices of a node that NVLink or xGMI joins; `nic_bandwidth` is of one card, in B/s.
    """

    node: str | None = None
    device: str | None = None
    devices: int | None = None
    domain: int | None = None
    nics: int | None = None
    nic_bandwidth: float | None = None
    count: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FabricFinding:
    """The network between nodes: a fabric of the catalog, B/s of a port, ports of a switch, oversubscription."""

    name: str | None = None
    link_bandwidth: float | None = None
    radix: int | None = None
    oversubscription: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What one file, or several together, say."""

    pools: tuple[PoolFinding, ...] = ()
    fabric: FabricFinding = FabricFinding()


def merged(found: Iterable[tuple[str, Findings]]) -> Findings:
    """What all files, given by name, say together. Raises `SpecError` where two of them disagree."""
    faults: list[Fault] = []
    total = Findings()
    for source, each in found:
        total = Findings(
            pools=_merged_pools(total.pools, each.pools, source, faults),
            fabric=_joined(total.fabric, each.fabric, source, "fabric", faults),
        )
    if faults:
        raise SpecError(faults)
    return total


def _merged_pools(
    known: tuple[PoolFinding, ...], new: tuple[PoolFinding, ...], source: str, faults: list[Fault]
) -> tuple[PoolFinding, ...]:
    if not known or not new:
        return known or new
    if len(known) == len(new) == 1:
        return (_joined(known[0], new[0], source, "node", faults),)
    found = f"{len(known)} and {len(new)} kinds of nodes in several files"
    faults.append(Fault(path=source, found=found, legal="files of one kind of node, or one file of several kinds"))
    return known


def _joined(known: Any, new: Any, source: str, what: str, faults: list[Fault]) -> Any:
    """`known` with what only `new` says."""
    changes = {}
    for field in fields(known):
        old, value = getattr(known, field.name), getattr(new, field.name)
        if value is None:
            continue
        if old is not None and old != value:
            path = f"{source}: {what}.{field.name}"
            faults.append(Fault(path=path, found=str(value), legal=f"{old}, as the other files say"))
        changes[field.name] = value
    return replace(known, **changes)
