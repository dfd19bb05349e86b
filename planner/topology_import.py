"""From what machine files say, and what the user adds, to a cluster file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hwmodels import catalog
from hwmodels.errors import Fault, SpecError, nearest_name, unknown_name
from hwmodels.machine import Node
from hwmodels.readers.findings import Findings, PoolFinding
from hwmodels.units import UnitError, exact, parse

KEYS = {
    "node": "a node of plan catalog nodes", "device": "a device of plan catalog devices",
    "devices": "devices of each node", "domain": "devices that NVLink or xGMI joins",
    "nics": "network cards of each node for training traffic", "nic_bandwidth": "rate of one card, as in 400 Gb/s",
    "count": "number of nodes", "fabric": "a fabric of plan catalog fabrics",
    "oversubscription": "of the leaf switches, 1 for none",
}  # fmt: skip
"""What the user may add, and what it is."""
_POOL = re.compile(r"^pools\[\d+\]\.")
"""Start of a key that is about one of several pools."""
_NUMBERS = ("devices", "domain", "nics", "count")


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """A cluster file as plain data, and what in it is from the catalog rather than from the machine."""

    document: dict[str, Any]
    notes: tuple[str, ...]


def imported(findings: Findings, given: Sequence[str], name: str) -> Imported:
    """The cluster file that `findings` and the texts `given`, key=value, make together.

    Raises `SpecError` with everything that neither says, each by the key to give it with, and with all faults of
    `given`.
    """
    values, faults = _given(given)
    pools = findings.pools or (PoolFinding(),)
    told = [_with(pool, values, _where(position, pools)) for position, pool in enumerate(pools)]
    notes: list[str] = []
    documents = [_pool(pool, _where(position, pools), faults, notes) for position, pool in enumerate(told)]
    fabric = _fabric(findings, values, told, faults, notes)
    if faults:
        raise SpecError(_each_once(faults))
    return Imported(document={"name": name, "pools": documents, "fabric": fabric}, notes=tuple(notes))


def _given(texts: Sequence[str]) -> tuple[dict[str, Any], list[Fault]]:
    values: dict[str, Any] = {}
    faults: list[Fault] = []
    for text in texts:
        key, equals, value = (part.strip() for part in text.partition("="))
        if not equals or _POOL.sub("", key) not in KEYS:
            faults.append(unknown_name("--set", key, KEYS))
            continue
        try:
            values[key] = _value(_POOL.sub("", key), value)
        except UnitError as error:
            faults.append(Fault(path=f"--set {key}", found=repr(value), legal=error.legal, nearest=error.nearest))
    return values, faults


def _value(key: str, text: str) -> Any:
    if key == "nic_bandwidth":
        return parse(text, "B/s")
    if key in _NUMBERS:
        if not text.isdigit() or not 0 < int(text) < 10**7:
            raise UnitError("a whole number above 0")
        return int(text)
    if key == "oversubscription":
        number = parse(text, "count")
        if number < 1:
            raise UnitError("1 or more", "1")
        return number
    names: Mapping[str, list[str]] = {
        "node": sorted(catalog.nodes()), "device": sorted(catalog.devices()), "fabric": sorted(catalog.fabrics()),
    }  # fmt: skip
    known = names[key]
    if text not in known:
        raise UnitError(f"{KEYS[key]}: {', '.join(known)}", nearest_name(text, known))
    return text


def _with(pool: PoolFinding, values: Mapping[str, Any], where: str) -> PoolFinding:
    """`pool` with what the user says of it or of all pools, which comes before what the files say."""
    keys = ("node", "device", *_NUMBERS, "nic_bandwidth")
    own = {key: values[each] for key in keys for each in (key, where + key) if each in values}
    return replace(pool, **own)


def _where(position: int, pools: Sequence[PoolFinding]) -> str:
    return f"pools[{position}]." if len(pools) > 1 else ""


def _pool(pool: PoolFinding, where: str, faults: list[Fault], notes: list[str]) -> dict[str, Any]:
    stated = _base(pool)
    faults.extend(_missing(pool, where, stated is not None and pool.node is not None))
    if stated is None:
        return {}
    changes = {
        "devices": pool.devices, "domain": pool.domain, "nics": pool.nics,
        "nic_bandwidth": None if pool.nic_bandwidth is None else exact(pool.nic_bandwidth, "B/s"),
    }  # fmt: skip
    differing = {key: value for key, value in changes.items() if value is not None and value != _plain(stated, key)}
    if pool.device and pool.device != stated.device.name:
        differing["device"] = pool.device
    if pool.node is None:
        notes.append(f"{where}node: links inside the node and power are those of {stated.name} in the catalog")
    return {"node": {"base": stated.name, **differing} if differing else stated.name, "count": pool.count}


def _plain(node: Node, key: str) -> Any:
    return exact(node.nic_bandwidth, "B/s") if key == "nic_bandwidth" else getattr(node, key)


def _base(pool: PoolFinding) -> Node | None:
    """The node that is named, or the catalog's node with the same device, as many of them if there is one."""
    if pool.node:
        return catalog.node(pool.node)
    own = [node for node in catalog.nodes().values() if node.device.name == pool.device]
    return max(own, key=lambda node: (node.devices == pool.devices, node.name.startswith("dgx")), default=None)


def _missing(pool: PoolFinding, where: str, complete: bool) -> Iterator[Fault]:
    """What neither the files nor the user say; a node of the catalog says all but how many there are."""
    wanted = ("count",) if complete else ("device", "devices", "domain", "nics", "nic_bandwidth", "count")
    for key in wanted:
        if getattr(pool, key) is None:
            yield _ask(where + key, key)
    if pool.device and not complete and _base(pool) is None:
        legal = f"{KEYS['node']} (the catalog has none with {pool.device})"
        yield Fault(path=f"{where}node", found="not in the files", legal=f"--set node=...: {legal}")


def _ask(path: str, key: str) -> Fault:
    return Fault(path=path, found="not in the files", legal=f"--set '{path}=...': {KEYS[key]}")


def _fabric(
    findings: Findings, values: Mapping[str, Any], pools: Sequence[PoolFinding], faults: list[Fault], notes: list[str]
) -> Any:
    found = findings.fabric
    name = values.get("fabric", found.name)
    if name is None and pools[0].node is not None:
        name = catalog.node(pools[0].node).default_fabric
        notes.append(f"fabric: {name}, the usual one of {pools[0].node}")
    if name is None:
        faults.append(_ask("fabric", "fabric"))
        return None
    base = catalog.fabric(name)
    ratio = values.get("oversubscription", found.oversubscription)
    changes: dict[str, Any] = {}
    if found.link_bandwidth is not None and found.link_bandwidth != base.link_bandwidth:
        changes["link_bandwidth"] = exact(found.link_bandwidth, "B/s")
    if found.radix is not None and found.radix != base.radix:
        changes["radix"] = found.radix
    if ratio is not None and ratio != base.oversubscription:
        changes["oversubscription"] = float(ratio)
    elif ratio is None:
        notes.append("fabric: no oversubscription, since no file says so; else --set oversubscription=...")
    return {"base": name, **changes} if changes else name


def _each_once(faults: Sequence[Fault]) -> list[Fault]:
    return list(dict.fromkeys(faults))
