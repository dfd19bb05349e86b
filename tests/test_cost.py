"""Costs against arithmetic by hand, with round assumptions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hwmodels import catalog
from hwmodels.errors import SpecError
from planner.assumptions import NAMES, assumptions, rental_price
from planner.cost import cost_report
from tests.worlds import round_cluster, round_job

GIVEN = [
    "price=2 USD/h", "node_price=100k USD", "network_per_node=10k USD", "facility_per_node=50k USD", "node_power=10 kW",
    "average_power=100%", "pue=1.5", "electricity=0.10 USD/kWh", "maintenance=12%", "depreciation=5 y",
    "utilization=50%",
]  # fmt: skip
"""Two nodes of eight devices: at once 2 x 160k = 320k USD; a month is 8766 / 12 = 730.5 hours."""


def report(given=GIVEN, tokens=65_536_000.0, step_time=3.6):
    cluster = round_cluster(nodes=2)
    job = replace(round_job(), tokens=tokens)
    return cost_report(job, cluster, step_time, assumptions(cluster, given))


def test_run_takes_its_steps_on_all_devices():
    found = report()
    # 64 x 1024 tokens a step: 1000 steps of 3.6 s are one hour of 16 devices.
    assert found.hours == pytest.approx(1.0)
    assert found.device_hours == pytest.approx(16.0)
    assert found.rent == pytest.approx(32.0)
    assert found.per_million_tokens == pytest.approx(32.0 / 65.536)
    # 2 nodes x 10 kW x PUE 1.5 for an hour.
    assert found.energy == pytest.approx(30e3 * 3600)


def test_building_adds_what_is_paid_at_once_and_every_month():
    build = report().build
    assert {line.name: line.usd for line in build.capital} == pytest.approx(
        {"nodes": 200e3, "network": 20e3, "facility": 100e3}
    )
    # 20 kW x 730.5 h x half of the time x 0.10 USD; half as much again for cooling; 12% of 220k USD a year.
    assert {line.name: line.usd for line in build.monthly} == pytest.approx(
        {"power": 730.5, "cooling": 365.25, "maintenance": 2200.0}
    )
    # 320k + 60 months x 3295.75 over 16 devices x 365.25 used hours x 60 months.
    assert build.per_device_hour == pytest.approx((320e3 + 60 * 3295.75) / (16 * 365.25 * 60))
    # Renting the used hours costs 16 x 365.25 x 2 = 11,688 USD a month.
    assert build.break_even_months == pytest.approx(320e3 / (11688 - 3295.75))


def test_building_never_pays_where_running_costs_more_than_rent():
    assert report([*GIVEN[1:], "price=0.50 USD/h"]).build.break_even_months is None


def test_what_is_not_known_is_named_and_not_guessed():
    found = report(given=["price=2 USD/h"])
    assert found.missing == ("node_price",)
    assert found.build is None and found.own is None and found.rent == pytest.approx(32.0)
    nothing = report(given=[])
    assert nothing.missing == ("price", "node_price")
    assert nothing.rent is None and nothing.per_million_tokens is None


def test_every_assumption_of_a_catalog_node_has_a_source():
    known = assumptions(catalog.cluster_of("dgx-h100 x 8"))
    assert tuple(known) == NAMES
    assert all(each.source for each in known.values())


def test_usual_rental_price_is_a_published_row_of_the_median_provider():
    cluster = catalog.cluster_of("dgx-h100 x 8")
    price = rental_price(cluster)
    rows = [p for p in catalog.prices() if p.device == "h100-sxm" and p.kind == "on_demand" and p.basis == "published"]
    lowest = sorted(min(p.value for p in rows if p.provider == name) for name in {p.provider for p in rows})
    assert price.value == lowest[(len(lowest) - 1) // 2]
    assert price.date and price.basis == "published"
    assert assumptions(cluster, provider="aws")["price"].value == pytest.approx(6.88)


def test_all_faults_of_assumptions_are_reported_at_once():
    with pytest.raises(SpecError) as caught:
        assumptions(
            round_cluster(), ["price=3", "elektricity=1 USD/kWh", "pue=0.5", "utilization=120%", "depreciation=0 y"]
        )
    paths = [fault.path for fault in caught.value.faults]
    assert paths == ["--set price", "--set", "--set pue", "--set utilization", "--set depreciation"]
    assert caught.value.faults[1].nearest == "electricity"
    with pytest.raises(SpecError, match="nearest legal value: aws"):
        assumptions(catalog.cluster_of("dgx-h100 x 8"), provider="awz")


def test_price_range_of_a_network_grows_with_the_cluster():
    small = assumptions(catalog.cluster_of("dgx-h100 x 8"))["network_per_node"].value
    large = assumptions(catalog.cluster_of("dgx-h100 x 4096"))["network_per_node"].value
    assert large > small
