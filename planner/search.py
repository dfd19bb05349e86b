"""Space -> rules -> estimate -> memory -> rank: the best layouts of a job on a cluster."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hwmodels.errors import Fault, refuse
from hwmodels.job import TrainingJob
from hwmodels.layout import Layout
from hwmodels.layout_table import Floats, LayoutTable, table_of
from hwmodels.machine import PRECISIONS, Cluster
from hwmodels.units import show
from planner.candidate import Candidate
from planner.constraints import RULES, keeping, memory_fits, violations
from planner.space import SearchSpec, layouts
from sim.estimate import StepTable, estimate, row_estimate

CHUNK = 65536
"""Layouts priced at a time, so that memory does not grow with the space."""
MISSES = 5
"""Layouts that do not fit and are reported as nearest misses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """Feasible layouts, best first; how many were priced and how many fit; and those that came nearest to fitting."""

    candidates: tuple[Candidate, ...]
    evaluated: int
    feasible: int
    seconds: float
    nearest_misses: tuple[Candidate, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Priced:
    """A table of legal layouts with their step times and memory."""

    table: LayoutTable
    step_time: Floats
    memory: Floats


def search(job: TrainingJob, cluster: Cluster, space: SearchSpec, top: int = 5) -> SearchResult:
    """The `top` fastest layouts of `space` that keep every rule and fit. Raises `SpecError` as `score` does."""
    started = time.perf_counter()
    refuse(unsupported(job, cluster))
    everything = layouts(job, cluster, space)
    legal = everything.take(keeping(job, cluster, everything))
    priced = _price(job, cluster, legal)
    fits = priced.memory <= cluster.device.memory
    order = np.lexsort((priced.memory, priced.step_time))
    best = order[fits[order]][:top]
    misses = np.argsort(np.where(fits, np.inf, priced.memory), kind="stable")[: min(MISSES, int((~fits).sum()))]
    return SearchResult(
        candidates=_candidates(job, cluster, legal.take(best)),
        evaluated=len(legal),
        feasible=int(fits.sum()),
        nearest_misses=_candidates(job, cluster, legal.take(misses)) or _broken(job, cluster, everything),
        seconds=time.perf_counter() - started,
    )


def score(job: TrainingJob, cluster: Cluster, layout: Layout) -> Candidate:
    """One layout, priced, with every rule that it breaks. Raises `SpecError` for a job no device can run."""
    refuse(unsupported(job, cluster))
    return _candidates(job, cluster, table_of([layout]))[0]


def unsupported(job: TrainingJob, cluster: Cluster) -> Iterator[Fault]:
    """The faults of a precision that the device does not have, and of pools that are not alike."""
    device = cluster.device
    if not cluster.uniform:
        names = ", ".join(f"{pool.count} x {pool.node.name}" for pool in cluster.pools)
        joined = f", joined by {show(cluster.pool_bandwidth, 'B/s')}" if cluster.pool_bandwidth else ""
        alike = "equal nodes on one fabric; plan each pool by itself"
        largest = max(cluster.pools, key=lambda pool: pool.count * pool.node.devices)
        nearest = f"{largest.node.name} x {largest.count}"
        yield Fault(path="cluster.pools", found=f"{names}{joined}", legal=alike, nearest=nearest)
    if not device.peak(job.precision):
        legal = [precision for precision in PRECISIONS if device.peak(precision)]
        yield Fault(
            path="training.precision",
            found=job.precision,
            legal=f"{', '.join(legal)} on {device.name}",
            nearest=legal[0] if legal else None,
        )


def _price(job: TrainingJob, cluster: Cluster, table: LayoutTable) -> _Priced:
    chunks = [
        estimate(job, cluster, table.take(np.arange(start, min(start + CHUNK, len(table)))))
        for start in range(0, len(table), CHUNK)
    ]
    empty = np.zeros(0)
    return _Priced(
        table=table,
        step_time=np.concatenate([empty, *(chunk.step_time for chunk in chunks)]),
        memory=np.concatenate([empty, *(chunk.memory_total for chunk in chunks)]),
    )


def _candidates(job: TrainingJob, cluster: Cluster, table: LayoutTable) -> tuple[Candidate, ...]:
    if not len(table):
        return ()
    found: StepTable = estimate(job, cluster, table)
    verdicts = [*(rule(job, cluster, table) for rule in RULES), memory_fits(job, cluster, found)]
    return tuple(
        Candidate(
            layout=table.row(row),
            estimate=row_estimate(job, cluster, table, found, row),
            violations=violations(verdicts, row),
        )
        for row in range(len(table))
    )


def _broken(job: TrainingJob, cluster: Cluster, table: LayoutTable) -> tuple[Candidate, ...]:
    """Where no layout keeps the rules: those that break the fewest."""
    if not len(table):
        return ()
    broken = np.sum([~rule(job, cluster, table).keeps for rule in RULES], axis=0)
    if not broken.any():
        return ()
    fewest = np.argsort(np.where(broken > 0, broken, np.iinfo(np.int64).max), kind="stable")[:MISSES]
    return _candidates(job, cluster, table.take(fewest[broken[fewest] > 0]))
