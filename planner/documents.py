"""Estimates and searches as plain data for `--json`, in the fields that other tools read."""

from __future__ import annotations

from typing import Any

from hwmodels.job import TrainingJob
from hwmodels.machine import Cluster
from planner.assumptions import Assumption
from planner.candidate import Candidate
from planner.cost import CostReport, rent_of, run_seconds
from planner.layout_text import layout_columns
from planner.search import SearchResult


def estimate_document(
    candidate: Candidate, job: TrainingJob, cluster: Cluster, price: Assumption | None = None
) -> dict[str, Any]:
    """One priced layout: times in s, memory in bytes of the fullest stage, and what speaks against it."""
    estimate = candidate.estimate
    per_device = estimate.model_flop / estimate.step_time / estimate.devices
    seconds = run_seconds(job, estimate.step_time)
    return {
        "step_time_s": estimate.step_time,
        "tokens_per_s": estimate.tokens_per_second,
        "tokens_per_s_per_device": estimate.tokens_per_second / estimate.devices,
        "model_tflops_per_device": per_device / 1e12,
        "mfu": estimate.mfu,
        "hfu": estimate.hfu,
        "breakdown_s": dict(estimate.breakdown),
        "memory_bytes": {**estimate.memory, "total": estimate.memory_total},
        "memory_capacity_bytes": estimate.capacity,
        "fits": estimate.fits,
        "violations": [{"rule": each.rule, "message": each.message} for each in candidate.violations],
        "layout": layout_columns(candidate.layout, job),
        "sources": estimate.estimates,
        "run_days": seconds / 86400 if seconds else None,
        "rent_usd": rent_of(seconds, cluster.devices, price.value) if price is not None and seconds else None,
    }


def search_document(
    result: SearchResult, job: TrainingJob, cluster: Cluster, price: Assumption | None
) -> dict[str, Any]:
    """The best layouts, best first, and the size of the search."""
    return {
        "plans": [estimate_document(each, job, cluster, price) for each in result.candidates],
        "evaluated": result.evaluated,
        "feasible": result.feasible,
        "search_seconds": result.seconds,
        "nearest_misses": [estimate_document(each, job, cluster, price) for each in result.nearest_misses],
    }


def cost_document(report: CostReport) -> dict[str, Any]:
    """What a run costs, in USD, hours and J, with the assumptions in SI units."""
    build = report.build
    return {
        "hours": report.hours,
        "device_hours": report.device_hours,
        "energy_j": report.energy,
        "rent_usd": report.rent,
        "own_usd": report.own,
        "usd_per_million_tokens": report.per_million_tokens,
        "build": None
        if build is None
        else {
            "capital_usd": {line.name: line.usd for line in build.capital},
            "monthly_usd": {line.name: line.usd for line in build.monthly},
            "usd_per_device_hour": build.per_device_hour,
            "break_even_months": build.break_even_months,
        },
        "missing": list(report.missing),
        "assumptions": [
            {"name": each.name, "value": each.text, "basis": each.basis, "source": each.source, "date": each.date}
            for each in report.assumptions
        ],
    }
