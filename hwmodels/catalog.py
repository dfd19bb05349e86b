"""What is known of devices, nodes, fabrics, software stacks and prices: one fact a row, each with its source."""

from __future__ import annotations

import csv
import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar, get_type_hints

from hwmodels.communicator import Communicator
from hwmodels.errors import Fault, SpecError, unknown_name
from hwmodels.loading import read_document, structure, unstructure
from hwmodels.machine import Cluster, Device, Fabric, Node, Pool
from hwmodels.stack import Stack

DATA = Path(__file__).parent / "data"
Kind = Literal["devices", "communicators", "nodes", "fabrics", "switches", "stacks", "facilities"]
FACT_KINDS = ("published", "measured", "derived", "announced", "estimate")
T = TypeVar("T", Device, Communicator, Node, Fabric, Stack)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One row: the value of one field of one record, its unit, and where it is from.

    `kind` is one of `FACT_KINDS`: published, measured, derived (arithmetic on published figures), announced (of what is
    not shipping yet) or estimate.
    """

    name: str
    field: str
    value: str
    unit: str
    kind: str
    source: str
    date: str
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """A rental price: `value` is USD per device and hour; `kind` is on_demand, spot or reserved."""

    provider: str
    item: str
    device: str
    kind: str
    value: float
    region: str
    source: str
    date: str
    note: str
    basis: str


@cache
def facts(kind: Kind) -> tuple[Fact, ...]:
    """All rows of a table, in order. Raises `SpecError` for a row without a source, or of no known kind."""
    return read_facts(DATA / f"{kind}.csv")


def read_facts(path: Path) -> tuple[Fact, ...]:
    """The facts of a file with the columns of `Fact`. Raises `SpecError` as `facts` does."""
    with path.open(encoding="utf-8", newline="") as file:
        found = tuple(Fact(**row) for row in csv.DictReader(file))
    faults = [fault for line, fact in enumerate(found, 2) for fault in _fact_faults(line, fact)]
    if faults:
        raise SpecError(faults, str(path))
    return found


def _fact_faults(line: int, fact: Fact) -> Iterator[Fault]:
    where = f"line {line}, {fact.name}.{fact.field}"
    if not fact.source.strip():
        yield Fault(path=where, found="no source", legal="where the value was published or measured")
    if not fact.date.strip():
        yield Fault(path=where, found="no date", legal="when the source was written or read")
    if fact.kind not in FACT_KINDS:
        yield unknown_name(where, fact.kind, FACT_KINDS)


@cache
def prices() -> tuple[Price, ...]:
    """All rental prices, in order."""
    rows = ({key: value for key, value in row.items() if key != "unit"} for row in _rows("prices.csv"))
    return tuple(structure({**row, "value": float(row["value"])}, Price) for row in rows)


def facilities() -> dict[str, Fact]:
    """Prices and rates of building and running one's own machines, by field."""
    return {fact.field: fact for fact in facts("facilities")}


@cache
def devices() -> dict[str, Device]:
    """All devices by name."""
    return _records("devices", Device, {})


@cache
def communicators() -> dict[str, Communicator]:
    """All communication libraries by name."""
    return _records("communicators", Communicator, {})


@cache
def nodes() -> dict[str, Node]:
    """All nodes by name."""
    return _records("nodes", Node, {"device": devices(), "communicator": communicators()})


@cache
def fabrics() -> dict[str, Fabric]:
    """All fabrics by name."""
    return _records("fabrics", Fabric, {})


@cache
def stacks() -> dict[str, Stack]:
    """All software stacks by name."""
    return _records("stacks", Stack, {})


def device(name: str) -> Device:
    """The device called `name`. Raises `SpecError` with the nearest name."""
    return _named(devices(), name)


def node(name: str) -> Node:
    """The node called `name`. Raises `SpecError` with the nearest name."""
    return _named(nodes(), name)


def fabric(name: str) -> Fabric:
    """The fabric called `name`. Raises `SpecError` with the nearest name."""
    return _named(fabrics(), name)


def stack(name: str) -> Stack:
    """The software stack called `name`, or the one that an alias stands for. Raises `SpecError`."""
    return _named(stacks(), stack_aliases().get(name, name))


@cache
def stack_aliases() -> dict[str, str]:
    """Releases of software, and the stack whose efficiencies they are priced with."""
    return {row["name"]: row["stack"] for row in _rows("stack_aliases.csv")}


@cache
def digest() -> str:
    """Twelve hexadecimal digits that change with any fact of the catalog."""
    everything = hashlib.sha256()
    for path in sorted(DATA.glob("*.csv")):
        everything.update(path.read_bytes())
    return everything.hexdigest()[:12]


def cluster_of(text: str) -> Cluster:
    """The cluster that "dgx-h100 x 8" names: nodes of the catalog on their default fabric. Raises `SpecError`."""
    match = re.fullmatch(r"\s*(\S+?)\s+[xX*]\s*(-?\d+)\s*", text)
    if match is None:
        legal = "a node of the catalog and a count, as in 'dgx-h100 x 8', or the path of a cluster file"
        raise SpecError([Fault(path="", found=repr(text), legal=legal, nearest=_nearest_cluster(text))])
    # A cloud's node may be written with its provider in front, as in aws/p5.48xlarge.
    name, count = match[1].rpartition("/")[2], int(match[2])
    if count < 1:
        raise SpecError([Fault(path="", found=f"{count} nodes", legal="1 node or more", nearest=f"{name} x 1")])
    chosen = node(name)
    return Cluster(
        name=f"{name} x {count}", pools=(Pool(node=chosen, count=count),), fabric=fabric(chosen.default_fabric)
    )


def load_cluster(source: Path | Mapping[str, Any]) -> Cluster:
    """The cluster of a YAML file or of a mapping with the same keys: name, pools, and optionally fabric.

    Each pool has a `count` and a `node`: a name of the catalog, or a mapping with the fields of `Node`, of which `base`
    names a node of the catalog whose fields apply unless they are given. The fabric is likewise a name or a mapping, by
    default that of the first node. `calibration` may name a file of `plan profile`, whose measured fields come before
    all others. Raises `SpecError` with all faults.
    """
    data = source if isinstance(source, Mapping) else read_document(source)
    folder = Path() if isinstance(source, Mapping) else source.parent
    try:
        return structure(_expanded(_calibrated(data, folder)), Cluster)
    except SpecError as error:
        raise error.within("" if isinstance(source, Mapping) else str(source)) from None


def _calibrated(data: Any, folder: Path) -> Any:
    """`data` with the measured fields of the file that its key `calibration` names, in its nodes and its fabric."""
    if not isinstance(data, Mapping) or "calibration" not in data:
        return data
    path = folder / str(data["calibration"])
    found = read_document(path)
    if not isinstance(found, Mapping) or found.get("schema_version") != 1 or found.get("kind") != "collectives":
        legal = "a calibration, as written by plan profile collectives --out"
        raise SpecError([Fault(path="calibration", found=f"{path}: another file", legal=legal)])
    plain = {key: value for key, value in data.items() if key != "calibration"}
    if "node" in found and isinstance(plain.get("pools"), list):
        pools = [_measured_pool(pool, found["node"]) for pool in plain["pools"]]
        plain["pools"] = pools
    if "fabric" in found:
        network = plain.get("fabric") or _first_fabric(plain)
        plain["fabric"] = {**({"base": network} if isinstance(network, str) else network), **found["fabric"]}
    return plain


def _measured_pool(pool: Any, measured: Mapping[str, Any]) -> Any:
    if not isinstance(pool, Mapping) or "node" not in pool:
        return pool
    found = pool["node"]
    return {**pool, "node": {**({"base": found} if isinstance(found, str) else found), **measured}}


def _first_fabric(data: Mapping[str, Any]) -> Any:
    """The usual fabric of the first pool's node, by name."""
    pool = next(iter(data.get("pools") or [{}]))
    found = pool.get("node", {}) if isinstance(pool, Mapping) else {}
    name = found if isinstance(found, str) else found.get("base") if isinstance(found, Mapping) else None
    return nodes()[name].default_fabric if name in nodes() else {}


def _expanded(data: Any) -> Any:
    """`data` with the names of the catalog replaced by what they stand for."""
    if not isinstance(data, Mapping) or not isinstance(data.get("pools"), list):
        return data
    if not data["pools"]:
        legal = "at least one pool of nodes"
        raise SpecError([Fault(path="pools", found="no nodes", legal=legal, nearest="{node: dgx-h100, count: 1}")])
    faults: list[Fault] = []
    pools = [_expanded_pool(pool, f"pools[{i}]", faults) for i, pool in enumerate(data["pools"])]
    default = next((pool["node"].default_fabric for pool in pools if _has_node(pool)), None)
    given = data.get("fabric", default)
    network = _resolved(given, fabrics(), "fabric", faults) if given is not None else None
    if faults:
        raise SpecError(faults)
    filled = {"name": "cluster", **data, "pools": pools}
    return filled if network is None else {**filled, "fabric": network}


def _has_node(pool: Any) -> bool:
    return isinstance(pool, Mapping) and isinstance(pool.get("node"), Node)


def _expanded_pool(pool: Any, path: str, faults: list[Fault]) -> Any:
    if not isinstance(pool, Mapping) or "node" not in pool:
        return pool
    found = pool["node"]
    if isinstance(found, Mapping):
        inner: dict[str, Mapping[str, Any]] = {"device": devices(), "communicator": communicators()}
        known = {key: _resolved(found[key], inner[key], f"{path}.node.{key}", faults) for key in inner if key in found}
        found = {**found, **known}
    return {**pool, "node": _resolved(found, nodes(), f"{path}.node", faults)}


def _resolved(found: Any, known: Mapping[str, Any], path: str, faults: list[Fault]) -> Any:
    """A record for a name or for a mapping with `base`; anything else as it is."""
    if isinstance(found, str):
        if found not in known:
            faults.append(unknown_name(path, found, known))
        return known.get(found, found)
    if not isinstance(found, Mapping) or "base" not in found:
        return found
    base = found["base"]
    if base not in known:
        faults.append(unknown_name(f"{path}.base", base, known))
        return found
    return _overridden(known[base], {key: value for key, value in found.items() if key != "base"}, path, faults)


def _overridden(base: Any, changes: Mapping[str, Any], path: str, faults: list[Fault]) -> Any:
    """`base` with the fields of `changes`; what is given is no longer an estimate of ours."""
    kept = {field.name: getattr(base, field.name) for field in fields(base)}
    estimates = tuple(name for name in base.estimates if name not in changes)
    try:
        plain = {name: _plain(base, name, value) for name, value in kept.items() if name not in changes}
        return structure({**plain, "estimates": list(estimates), **changes}, type(base))
    except SpecError as error:
        faults.extend(fault.under(path) for fault in error.faults)
        return base


def _plain(base: Any, name: str, value: Any) -> Any:
    return value if isinstance(value, (Device, Communicator)) else unstructure(base)[name]


def _nearest_cluster(text: str) -> str | None:
    name = unknown_name("", text.partition(" ")[0], nodes()).nearest
    return f"{name} x 1" if name else None


def _named(known: Mapping[str, T], name: str) -> T:
    if name not in known:
        raise SpecError([unknown_name("", name, known)])
    return known[name]


def _rows(table: str) -> Iterator[dict[str, str]]:
    with (DATA / table).open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


def _records(kind: Kind, record: type[T], references: Mapping[str, Mapping[str, Any]]) -> dict[str, T]:
    """One record for each name of a table, its fields read from the rows of that name."""
    grouped: dict[str, list[Fact]] = {}
    for fact in facts(kind):
        grouped.setdefault(fact.name, []).append(fact)
    return {name: _record(name, rows, record, references) for name, rows in grouped.items()}


def _record(name: str, rows: list[Fact], record: type[T], references: Mapping[str, Mapping[str, Any]]) -> T:
    kinds = get_type_hints(record, include_extras=True)
    data = {row.field: _value(row, kinds[row.field], references) for row in rows}
    estimates = [row.field for row in rows if row.kind in ("estimate", "announced")]
    return structure({"name": name, **data, "estimates": estimates}, record, f"{record.__name__} {name}")


def _value(fact: Fact, kind: Any, references: Mapping[str, Mapping[str, Any]]) -> Any:
    if fact.field in references:
        return references[fact.field][fact.value]
    if fact.unit == "switch":
        return fact.value == "true"
    if kind is int:
        return int(fact.value)
    return float(fact.value) if kind is float else fact.value if fact.unit == "text" else f"{fact.value} {fact.unit}"
