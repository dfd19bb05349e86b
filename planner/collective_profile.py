"""Measured collectives of one group: bus bandwidths, what looks sick, and what a cluster file should say instead."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from hwmodels.collectives import (
    all_gather_time,
    all_reduce_time,
    all_to_all_time,
    broadcast_time,
    exchange_time,
    group,
    reduce_scatter_time,
    reduce_time,
)
from hwmodels.machine import Cluster
from hwmodels.units import exact, show

PREDICT = {
    "all_reduce": all_reduce_time, "all_gather": all_gather_time, "reduce_scatter": reduce_scatter_time,
    "all_to_all": all_to_all_time, "broadcast": broadcast_time,
    "reduce": reduce_time, "sendrecv": exchange_time,
}  # fmt: skip
_PASSES = {"all_reduce": 2, "all_gather": 1, "reduce_scatter": 1, "all_to_all": 1}
LONG = 8e6
"""Bytes from which a message shows the bandwidth rather than the latency."""
SLOW_PAIR, SLOW_LINK, UNSTEADY = 0.7, 0.7, 1.5
"""A pair below this part of the median, a collective below this part of the prediction, and a 90th percentile above
this many medians are worth a look (estimate: healthy links differ by 10%, with room for noise)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One measured size: `seconds` the median, `slow_seconds` the 90th percentile of repetitions."""

    collective: str
    nbytes: int
    seconds: float
    slow_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One pair of ranks that sent `nbytes` to each other at the same time."""

    ranks: tuple[int, int]
    nbytes: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """The collectives of `ranks` ranks on `nodes` nodes, and pairs of them where measured."""

    ranks: int
    nodes: int
    software: str
    points: tuple[Point, ...]
    pairs: tuple[Pair, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """Latency of a ring's step in s and bus bandwidth in B/s that explain a profile, and the median error of that."""

    latency: float
    bandwidth: float
    error: float


def bus_factor(collective: str, ranks: int) -> float:
    """Bus bandwidth = factor x size / time. Source: NVIDIA, nccl-tests PERFORMANCE.md."""
    return _PASSES[collective] * (ranks - 1) / ranks if collective in _PASSES else 1.0


def bus_bandwidth(point: Point, ranks: int) -> float:
    """B/s by the definition of nccl-tests."""
    return bus_factor(point.collective, ranks) * point.nbytes / point.seconds


def fit(profile: Profile) -> Fit:
    """Latency from the shortest messages, bandwidth from the longest: medians over the ring collectives.

    Short: seconds / steps. Long: bus bandwidth. The error is that of steps x latency + bus factor x bytes / bandwidth.
    """
    rings = [p for p in profile.points if p.collective in _PASSES] or list(profile.points)
    shortest, longest = min(p.nbytes for p in rings), max(p.nbytes for p in rings)
    latency = median(p.seconds / _steps(p, profile.ranks) for p in rings if p.nbytes <= 4 * shortest)
    bandwidth = median(bus_bandwidth(p, profile.ranks) for p in rings if 4 * p.nbytes >= longest)
    explained = [
        _steps(p, profile.ranks) * latency + bus_factor(p.collective, profile.ranks) * p.nbytes / bandwidth
        for p in rings
    ]
    error = median(abs(seconds / p.seconds - 1) for seconds, p in zip(explained, rings, strict=True))
    return Fit(latency=latency, bandwidth=bandwidth, error=error)


def _steps(point: Point, ranks: int) -> int:
    """Steps of a ring."""
    return _PASSES.get(point.collective, 1) * max(ranks - 1, 1)


def predicted(cluster: Cluster, profile: Profile, point: Point) -> float:
    """Seconds that the cluster's description gives for one measured size."""
    over = group(cluster, np.array([profile.ranks]), np.array([1]))
    return float(PREDICT[point.collective](over, np.array([float(point.nbytes)]))[0])


def suspicions(profile: Profile, cluster: Cluster | None) -> Iterator[str]:
    """What looks sick, in sentences: a slow pair or rank, a collective far under its rate, times that vary."""
    yield from _slow_pairs(profile.pairs)
    for point in profile.points:
        if point.nbytes >= LONG and point.slow_seconds > UNSTEADY * point.seconds:
            ratio = point.slow_seconds / point.seconds
            size = show(point.nbytes, "B")
            yield f"{point.collective} of {size} is unsteady: one in ten takes {ratio:.1f} x the median."
    if cluster is not None:
        yield from _slow_collectives(profile, cluster)


def _slow_pairs(pairs: Sequence[Pair]) -> Iterator[str]:
    if len(pairs) < 3:
        return
    usual = median(pair.seconds for pair in pairs)
    slow = [pair for pair in pairs if usual / pair.seconds < SLOW_PAIR]
    for pair in slow:
        rate, other = pair.nbytes / pair.seconds, pair.nbytes / usual
        yield f"Ranks {pair.ranks[0]} and {pair.ranks[1]}: {show(rate, 'B/s')}, where pairs reach {show(other, 'B/s')}."
    for rank in sorted({rank for pair in pairs for rank in pair.ranks}):
        own = [pair for pair in pairs if rank in pair.ranks]
        if len(own) > 1 and all(pair in slow for pair in own) and len(slow) < len(pairs):
            yield f"Rank {rank} is slow with every partner."


def _slow_collectives(profile: Profile, cluster: Cluster) -> Iterator[str]:
    for name in PREDICT:
        points = [p for p in profile.points if p.collective == name and p.nbytes >= LONG]
        if points:
            largest = max(points, key=lambda point: point.nbytes)
            share = predicted(cluster, profile, largest) / largest.seconds
            if share < SLOW_LINK:
                rate = show(bus_bandwidth(largest, profile.ranks), "B/s")
                size = show(largest.nbytes, "B")
                yield f"{name} of {size} reaches {rate} of bus bandwidth, {share:.0%} of the cluster's."


def calibration(profile: Profile, cluster: Cluster, made: Mapping[str, str]) -> dict[str, Any]:
    """What a cluster file may name as its `calibration`: fields of its nodes or of its fabric, as measured.

    A library without protocols of its own takes latency and bandwidth of the fit. Of others the latencies are known,
    and the efficiency follows from the longest all-gather, or the best collective where there is none.
    """
    long = [p for p in profile.points if p.nbytes >= LONG] or list(profile.points)
    rings = [p for p in long if p.collective == "all_gather"] or long
    best = max(bus_bandwidth(p, profile.ranks) for p in rings)
    node = cluster.node
    document: dict[str, Any] = {"schema_version": 1, "kind": "collectives", "made": dict(made)}
    if profile.nodes > 1:
        cards = node.nics * min(node.nic_bandwidth, cluster.fabric.link_bandwidth) / cluster.fabric.oversubscription
        return {**document, "fabric": {"efficiency": min(best / cards, 1.0)}}
    if node.communicator.ll_share:
        return {**document, "node": {"scaleup_efficiency": min(best / node.scaleup_bandwidth, 1.0)}}
    found = fit(profile)
    measured = {
        "scaleup_bandwidth": exact(found.bandwidth, "B/s"),
        "scaleup_efficiency": 1.0,
        "scaleup_latency": exact(found.latency, "s"),
    }
    return {**document, "node": measured}
