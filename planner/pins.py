"""Why a search has nothing to choose from: which pinned axis leaves no legal layout, and what it could be instead."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

from hwmodels.errors import Fault
from hwmodels.job import TrainingJob
from hwmodels.layout import RECOMPUTE
from hwmodels.layout_table import LayoutTable
from hwmodels.machine import Cluster
from planner.candidate import Candidate
from planner.constraints import keeping
from planner.space import SearchSpec, layouts

AXES: tuple[str, ...] = tuple(field.name for field in fields(SearchSpec) if field.name != "objective")
_SHOWN = 12
"""Legal values that a message lists at most."""


def pin_faults(
    job: TrainingJob, cluster: Cluster, space: SearchSpec, misses: tuple[Candidate, ...] = ()
) -> tuple[Fault, ...]:
    """The faults of a `space` without a legal layout; none where even the free space has no legal layout.

    An axis is at fault if legal layouts appear once it is freed and the others stay pinned. Where no axis alone is, the
    fault is that of all pins together. `misses` are the layouts that break the fewest rules; they give the reason.
    """
    pinned = [axis for axis in AXES if getattr(space, axis)]
    reason = f" ({misses[0].violations[0].legal})" if misses and misses[0].violations else ""
    found = tuple(replace(fault, legal=fault.legal + reason) for fault in _single_faults(job, cluster, space, pinned))
    if found or not pinned or not len(_legal(job, cluster, SearchSpec())):
        return found
    written = ", ".join(f"{axis}: {_values(getattr(space, axis))}" for axis in pinned)
    legal = f"values that keep the rules together on {cluster.devices} devices"
    return (Fault(path="search", found=written, legal=legal, nearest="no pins"),)


def _single_faults(job: TrainingJob, cluster: Cluster, space: SearchSpec, pinned: list[str]) -> Iterator[Fault]:
    for axis in pinned:
        legal = _legal(job, cluster, replace(space, **_free(axis)))
        if not len(legal):
            continue
        values = sorted({_value(axis, code) for code in getattr(legal, axis).tolist()})
        wanted = getattr(space, axis)
        others = ", with the other axes as they are" if len(pinned) > 1 else ""
        shown = _values(values[:_SHOWN]) + (", ..." if len(values) > _SHOWN else "")
        nearest = _nearest(wanted[0], values)
        yield Fault(path=f"search.{axis}", found=_values(wanted), legal=f"{shown}{others}", nearest=nearest)


def _free(axis: str) -> dict[str, Any]:
    return {axis: ()}


def _legal(job: TrainingJob, cluster: Cluster, space: SearchSpec) -> LayoutTable:
    everything = layouts(job, cluster, space)
    return everything.take(keeping(job, cluster, everything))


def _value(axis: str, code: int) -> Any:
    if axis == "recompute":
        return RECOMPUTE[code]
    return bool(code) if axis == "sequence_parallel" else code


def _values(values: Any) -> str:
    return ", ".join(str(value).lower() if isinstance(value, bool) else str(value) for value in values)


def _nearest(wanted: Any, legal: list[Any]) -> str:
    if isinstance(wanted, int):
        return _values([min(legal, key=lambda value: (abs(value - wanted), value))])
    return _values(legal[:1])
