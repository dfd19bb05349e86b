"""What costs rest on: each price and rate with its unit, source and date, and a user's own in their place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median_low

from hwmodels import catalog
from hwmodels.catalog import Fact, Price
from hwmodels.errors import Fault, SpecError, nearest_name, unknown_name
from hwmodels.machine import Cluster
from hwmodels.units import UnitError, exact, parse, show

PRICE_KINDS = ("on_demand", "spot", "reserved")
_UNITS = {
    "price": "USD/h", "node_price": "USD", "network_per_node": "USD", "facility_per_node": "USD",
    "node_power": "W", "average_power": "fraction", "pue": "count", "electricity": "USD/kWh",
    "maintenance": "fraction", "depreciation": "s", "utilization": "fraction",
}  # fmt: skip
"""Every assumption and its SI unit. `price` is per device and hour."""
NAMES: tuple[str, ...] = tuple(_UNITS)
_SITE = ("facility_per_node", "average_power", "pue", "electricity", "maintenance", "depreciation", "utilization")


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumption:
    """One price or rate: `value` in the SI `unit`; `basis` is published, derived, estimate or given."""

    name: str
    value: float
    unit: str
    basis: str
    source: str
    date: str

    @property
    def shown(self) -> str:
        """The value with its unit, for people."""
        return f"{self.value:g}" if self.unit == "count" else show(self.value, self.unit)

    @property
    def text(self) -> str:
        """The value with its unit, in digits that are read back exactly."""
        return exact(self.value, self.unit)


def assumptions(
    cluster: Cluster, given: Sequence[str] = (), provider: str | None = None, price_kind: str = "on_demand"
) -> dict[str, Assumption]:
    """What is known of the costs of `cluster`, by name; what nobody has published is left out.

    `given` are texts `name=value` that come before the catalog. The rental price is the lowest of `provider`, or of the
    median provider, among published prices of `price_kind`. Raises `SpecError` with all faults of `given` and provider.
    """
    own, faults = _given(given)
    try:
        price = [] if "price" in own else list(_price(cluster, provider, price_kind))
    except SpecError as error:
        faults.extend(error.faults)
        price = []
    if faults:
        raise SpecError(faults)
    known = {each.name: each for each in (*price, *_building(cluster))}
    return {name: (known | own)[name] for name in NAMES if name in (known | own)}


def rental_price(cluster: Cluster) -> Assumption | None:
    """The usual price of one device of `cluster` and hour; None where none is published."""
    return next(iter(_price(cluster, None, "on_demand")), None)


def _given(texts: Sequence[str]) -> tuple[dict[str, Assumption], list[Fault]]:
    found: dict[str, Assumption] = {}
    faults: list[Fault] = []
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals:
            faults.append(Fault(path="--set", found=repr(text), legal="name=value", nearest=nearest_name(text, NAMES)))
        elif name not in _UNITS:
            faults.append(unknown_name("--set", name, NAMES))
        else:
            _add_given(found, faults, name, value)
    return found, faults


def _add_given(found: dict[str, Assumption], faults: list[Fault], name: str, value: str) -> None:
    unit = _UNITS[name]
    try:
        number = parse(value, unit)
    except UnitError as error:
        faults.append(Fault(path=f"--set {name}", found=repr(value), legal=error.legal, nearest=error.nearest))
        return
    faults.extend(_range_faults(name, number, value))
    found[name] = Assumption(name=name, value=number, unit=unit, basis="given", source="--set", date="")


def _range_faults(name: str, number: float, value: str) -> Iterator[Fault]:
    if name in ("utilization", "average_power") and not 0 < number <= 1:
        yield Fault(path=f"--set {name}", found=value, legal="above 0 and at most 100%", nearest="100%")
    if name == "depreciation" and not number > 0:
        yield Fault(path=f"--set {name}", found=value, legal="a time above 0", nearest="5 y")
    if name == "pue" and number < 1:
        yield Fault(path=f"--set {name}", found=value, legal="1 or more", nearest="1")


def _price(cluster: Cluster, provider: str | None, kind: str) -> Iterator[Assumption]:
    offers = [price for price in catalog.prices() if price.device == cluster.device.name and price.kind == kind]
    published = [price for price in offers if price.basis == "published"] or offers
    lowest: dict[str, Price] = {}
    for price in sorted(published if provider is None else offers, key=lambda price: -price.value):
        lowest[price.provider] = price
    if provider is not None and provider not in lowest:
        raise SpecError([_provider_fault(cluster, provider, kind, sorted(lowest))])
    if provider is not None:
        yield _from_price(lowest[provider])
    elif lowest:
        middle = median_low(price.value for price in lowest.values())
        yield _from_price(next(price for price in lowest.values() if price.value == middle))


def _provider_fault(cluster: Cluster, provider: str, kind: str, known: list[str]) -> Fault:
    if known:
        return unknown_name("--provider", provider, known)
    legal = f"a provider with a {kind} price of {cluster.device.name}: none is known; give --set price='2.50 USD/h'"
    return Fault(path="--provider", found=repr(provider), legal=legal)


def _from_price(price: Price) -> Assumption:
    source = f"{price.provider} {price.item}, {price.kind.replace('_', ' ')}, {price.region}: {price.source}"
    return Assumption(name="price", value=price.value, unit="USD/h", basis=price.basis, source=source, date=price.date)


def _building(cluster: Cluster) -> Iterator[Assumption]:
    rows = catalog.facilities()
    if cluster.node.name in rows:
        yield _from_fact(rows[cluster.node.name], "node_price")
    sizes = {int(field.removeprefix("per_node_")): field for field in rows if field.startswith("per_node_")}
    size = min((each for each in sizes if each >= cluster.nodes), default=max(sizes))
    yield _from_fact(rows[sizes[size]], "network_per_node")
    basis = "estimate" if "power" in cluster.node.estimates else "published"
    yield Assumption(
        name="node_power", value=cluster.node.power, unit="W", basis=basis,
        source=f"plan catalog nodes {cluster.node.name}", date="",
    )  # fmt: skip
    for name in _SITE:
        yield _from_fact(rows[name], name)


def _from_fact(fact: Fact, name: str) -> Assumption:
    unit = _UNITS[name]
    text = fact.value if unit == "count" else f"{fact.value} {fact.unit}"
    source = f"{fact.source}; {fact.note}" if fact.note else fact.source
    return Assumption(name=name, value=parse(text, unit), unit=unit, basis=fact.kind, source=source, date=fact.date)
