"""Rent or build: what a run costs on rented machines and on one's own, and when owning them pays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hwmodels.job import TrainingJob
from hwmodels.machine import Cluster
from hwmodels.units import show
from planner.assumptions import Assumption

HOUR, MONTH, YEAR = 3600.0, 31557600.0 / 12, 31557600.0
"""Seconds; a year of 365.25 days."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostLine:
    """One line of a bill: `usd`, and the arithmetic behind it."""

    name: str
    usd: float
    basis: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """Owning the machines: what is paid at once, and what every month costs while they run.

    `per_device_hour` spreads both over the used hours of the machines' life: (capital + running x months) / (devices x
    hours x utilization), in USD. `break_even_months` is when renting the used hours would have cost more: capital /
    (monthly rent - monthly running cost); None where it never does, or where no rental price is known.
    """

    capital: tuple[CostLine, ...]
    monthly: tuple[CostLine, ...]
    per_device_hour: float
    break_even_months: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CostReport:
    """What the run costs. `hours` is wall-clock, without failures; `device_hours` = hours x devices.

    `rent` and `own` are USD for the run: device_hours x the price per device-hour. None where a price is not known;
    `missing` names it. `energy` is J of the run, cooling included; `per_million_tokens` in USD, of the rent if known.
    """

    hours: float
    device_hours: float
    tokens: float
    energy: float
    rent: float | None
    own: float | None
    build: Build | None
    missing: tuple[str, ...]
    assumptions: tuple[Assumption, ...]

    @property
    def per_million_tokens(self) -> float | None:
        """USD per million tokens trained on; None without a token budget or a price."""
        total = self.rent if self.rent is not None else self.own
        return None if total is None or not self.tokens else total / self.tokens * 1e6


def run_seconds(job: TrainingJob, step_time: float) -> float:
    """Wall-clock seconds of the whole token budget, without failures: steps x step time; 0 without a budget."""
    return job.steps * step_time


def rent_of(seconds: float, devices: int, price: float) -> float:
    """USD of `devices` for `seconds`, at `price` USD per device and hour."""
    return seconds / HOUR * devices * price


def cost_report(job: TrainingJob, cluster: Cluster, step_time: float, known: Mapping[str, Assumption]) -> CostReport:
    """The costs of the token budget of `job` in steps of `step_time` seconds, on the assumptions `known`."""
    seconds = run_seconds(job, step_time)
    price = known.get("price")
    build = _build(cluster, known) if "node_price" in known else None
    return CostReport(
        hours=seconds / HOUR,
        device_hours=seconds / HOUR * cluster.devices,
        tokens=job.tokens,
        energy=seconds * _power(cluster, known),
        rent=None if price is None else rent_of(seconds, cluster.devices, price.value),
        own=None if build is None else rent_of(seconds, cluster.devices, build.per_device_hour),
        build=build,
        missing=tuple(name for name in ("price", "node_price") if name not in known),
        assumptions=tuple(known.values()),
    )


def _power(cluster: Cluster, known: Mapping[str, Assumption]) -> float:
    """Watts of the site while the run goes on: nodes x rated power x average share x PUE."""
    return cluster.nodes * known["node_power"].value * known["average_power"].value * known["pue"].value


def _build(cluster: Cluster, known: Mapping[str, Assumption]) -> Build:
    capital = _capital(cluster, known)
    monthly = _monthly(cluster, known, capital)
    paid, running = sum(line.usd for line in capital), sum(line.usd for line in monthly)
    months = known["depreciation"].value / MONTH
    used = cluster.devices * known["utilization"].value * MONTH / HOUR
    price = known.get("price")
    saved = price.value * used - running if price is not None else 0.0
    return Build(
        capital=capital,
        monthly=monthly,
        per_device_hour=(paid + running * months) / (used * months),
        break_even_months=paid / saved if saved > 0 else None,
    )


def _capital(cluster: Cluster, known: Mapping[str, Assumption]) -> tuple[CostLine, ...]:
    names = {"nodes": "node_price", "network": "network_per_node", "facility": "facility_per_node"}
    return tuple(
        CostLine(
            name=name,
            usd=cluster.nodes * known[key].value,
            basis=f"{cluster.nodes} nodes x {known[key].shown}",
        )
        for name, key in names.items()
    )


def _monthly(cluster: Cluster, known: Mapping[str, Assumption], capital: tuple[CostLine, ...]) -> tuple[CostLine, ...]:
    used = known["utilization"].value
    it = cluster.nodes * known["node_power"].value * known["average_power"].value
    kwh = it / 1e3 * MONTH / HOUR * used
    electricity, pue = known["electricity"], known["pue"]
    machines = sum(line.usd for line in capital if line.name != "facility")
    rate = known["maintenance"]
    return (
        CostLine(
            name="power", usd=kwh * electricity.value,
            basis=f"{show(it, 'W')} x {known['utilization'].shown} of the time x {electricity.shown}",
        ),
        CostLine(
            name="cooling", usd=kwh * (pue.value - 1) * electricity.value,
            basis=f"{pue.value - 1:.0%} more for cooling and losses (PUE {pue.shown})",
        ),
        CostLine(
            name="maintenance", usd=machines * rate.value * MONTH / YEAR,
            basis=f"{rate.shown} of nodes and network a year",
        ),
    )  # fmt: skip
