"""Traffic that shares links: routes on the topology graph, max-min fair rates, and when transfers end.

A transfer is described by its usage: the part of its rate that it puts on each link and direction. A ring is one
transfer, since all of its hops move at the pace of the slowest.
Source: Bertsekas and Gallager, Data Networks, section 6.5.2 (max-min fairness by progressive filling).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hwmodels.layout_table import Floats

if TYPE_CHECKING:
    import networkx as nx

Link = tuple[str, str]
Usage = Mapping[Link, float]
"""Link and direction -> bytes that it carries for each byte of the transfer."""
_SPINE_COST = 2
"""Hops that a spine counts for: NCCL hands data to the device on the right rail before it crosses a spine (PXN)."""
_TINY = 1e-12


def route(graph: nx.Graph[str], source: str, target: str) -> Usage:
    """The links from `source` to `target`, evenly split over all shortest paths (equal-cost multipath)."""
    import networkx as nx

    def cost(one: str, other: str, _: Mapping[str, object]) -> int:
        return _SPINE_COST if "spine" in (graph.nodes[one]["kind"], graph.nodes[other]["kind"]) else 1

    paths = list(nx.all_shortest_paths(graph, source, target, weight=cost))
    usage: Counter[Link] = Counter()
    for path in paths:
        for link in pairwise(path):
            usage[link] += 1 / len(paths)  # type: ignore[assignment]
    return usage


def ring_usage(graph: nx.Graph[str], ranks: Sequence[int], inner: int) -> Usage:
    """Usage of a ring over `ranks`, of which each `inner` in a row share a domain, per byte of bus bandwidth.

    There are `inner` channels; in number c the data enters and leaves each domain at its member c, so that all cards
    of the group carry an equal part.
    """
    usage: Counter[Link] = Counter()
    for channel in range(inner):
        for one, other in _hops(ranks, inner, channel):
            for link, part in route(graph, f"gpu{one}", f"gpu{other}").items():
                usage[link] += part / inner  # type: ignore[assignment]
    return usage


def _hops(ranks: Sequence[int], inner: int, channel: int) -> list[tuple[int, int]]:
    """The hops of one channel: through all members of a domain, then to the same place in the next domain."""
    domains = [ranks[start : start + inner] for start in range(0, len(ranks), inner)]
    if len(domains) == 1:
        return list(zip(ranks, [*ranks[1:], ranks[0]], strict=True))
    exits = _exits(len(domains), inner, channel)
    hops: list[tuple[int, int]] = []
    for place, domain in enumerate(domains):
        entry, leave = exits[place - 1], exits[place]
        middle = [member for member in range(inner) if member not in (entry, leave)]
        walk = [domain[member] for member in dict.fromkeys([entry, *middle, leave])]
        hops.extend(pairwise(walk))
        hops.append((walk[-1], domains[(place + 1) % len(domains)][leave]))
    return hops


def _exits(domains: int, inner: int, channel: int) -> list[int]:
    """Where a channel leaves each domain: not where it has entered, which is where it has left the one before."""
    places = [(channel + 1) % inner, channel] * (domains // 2)
    if domains % 2:
        places = [(channel + 1) % inner, (channel + 2) % inner, channel, *places][:domains]
        places[-1] = channel
    return places


def fair_rates(usages: Sequence[Usage], capacities: Mapping[Link, float]) -> Floats:
    """Max-min fair rates in B/s of transfers that run at the same time: [len(usages)].

    All rates grow alike until a link is full; the transfers on it keep their rate, and the others grow on.
    """
    matrix, room = _matrix(usages, capacities)
    rates = np.zeros(len(usages))
    growing = np.ones(len(usages), dtype=bool)
    while growing.any():
        load = matrix[:, growing].sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            step = np.where(load > _TINY, room / load, np.inf)
        least = step.min()
        if not np.isfinite(least):
            rates[growing] = np.inf
            break
        rates[growing] += least
        room = room - load * least
        full = step <= least * (1 + 1e-9)
        growing &= ~(matrix[full] > _TINY).any(axis=0)
    return rates


def finish_times(
    usages: Sequence[Usage], capacities: Mapping[Link, float], nbytes: Sequence[float], starts: Sequence[float]
) -> Floats:
    """Seconds at which transfers of `nbytes` that begin at `starts` end, at max-min fair rates: [len(usages)]."""
    left, begin = np.array(nbytes, dtype=np.float64), np.array(starts, dtype=np.float64)
    ends, now = np.full(len(usages), np.nan), float(begin.min(initial=0.0))
    while np.isnan(ends).any():
        active = np.flatnonzero(np.isnan(ends) & (begin <= now))
        later = begin[np.isnan(ends) & (begin > now)]
        until = float(later.min(initial=np.inf))
        if not len(active):
            now = until
            continue
        rates = fair_rates([usages[int(i)] for i in active], capacities)
        with np.errstate(invalid="ignore"):
            finish = now + np.where(left[active] > 0, left[active] / rates, 0.0)
        step = min(until, float(finish.min()))
        left[active] = np.where(np.isinf(rates), 0.0, left[active] - rates * (step - now))
        done = active[finish <= step * (1 + 1e-12)]
        ends[done] = finish[finish <= step * (1 + 1e-12)]
        now = step
    return ends


def capacities_of(graph: nx.Graph[str]) -> dict[Link, float]:
    """B/s of every link in each of its two directions."""
    both: dict[Link, float] = {}
    for one, other, data in graph.edges(data=True):
        both[(one, other)] = both[(other, one)] = float(data["bandwidth"])
    return both


def _matrix(usages: Sequence[Usage], capacities: Mapping[Link, float]) -> tuple[NDArray[np.float64], Floats]:
    """Usage by link and transfer, and the capacity of each link that is used."""
    links = list(dict.fromkeys(link for usage in usages for link in usage))
    row = {link: number for number, link in enumerate(links)}
    matrix = np.zeros((len(links), len(usages)))
    for column, usage in enumerate(usages):
        for link, part in usage.items():
            matrix[row[link], column] = part
    return matrix, np.array([capacities[link] for link in links])
