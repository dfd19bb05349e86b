"""Pipeline arithmetic: layers of each stage, micro-batches in flight, and how stage times make up a step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hwmodels.layout_table import Bools, Floats, Ints, LayoutTable


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One stage of each layout: its layers, whether it is first or last, and whether the layout has such a stage."""

    layers: Floats
    first: Bools
    last: Bools
    exists: Bools
    in_flight: Floats


def stages(layers: int, table: LayoutTable, micro_batches: Floats) -> tuple[Stage, Stage, Stage]:
    """The first, a middle and the last stage of each layout; no other stage is slower or fuller than these.

    Where layers do not divide into pp x vp chunks, the chunks are rounded up and the ends of the pipeline, which also
    hold embedding and head, get the shorter ones: the last stage first.
    """
    pp, vp = table.pipeline_parallel, table.virtual_stages
    chunk = -(-layers // (pp * vp))
    missing = chunk * pp * vp - layers
    full = chunk * vp
    last = np.maximum(full - -(-missing // 2), 0)
    first = np.where(pp == 1, layers, np.maximum(full - missing // 2, 0))
    last = np.where(pp == 1, layers, last)
    single, yes = pp == 1, np.ones(len(table), dtype=bool)
    held: list[Floats] = [
        _in_flight(table, micro_batches, position) for position in (0 * pp, np.minimum(1, pp - 1), pp - 1)
    ]
    return (
        Stage(layers=first.astype(float), first=yes, last=single, exists=yes, in_flight=held[0]),
        Stage(layers=full.astype(float), first=~yes, last=~yes, exists=pp > 2, in_flight=held[1]),
        Stage(layers=last.astype(float), first=single, last=yes, exists=yes, in_flight=held[2]),
    )


def _in_flight(table: LayoutTable, micro_batches: Floats, position: Ints) -> Floats:
    """Micro-batches whose activations a stage holds at its peak, counted in whole stages.

    1F1B: pp - position. Interleaved: (2 (pp - position - 1) + (vp - 1) pp + 1) / vp, which is pp + (pp - 1) / vp on the
    first stage. Source: Narayanan et al. 2021 (arXiv 2104.04473), section 2.2; Korthikanti et al. 2022, section 4.2.3.
    """
    pp, vp = table.pipeline_parallel, table.virtual_stages
    interleaved = (2 * (pp - position - 1) + (vp - 1) * pp + 1) / vp
    return np.minimum(np.where(vp > 1, interleaved, pp - position), micro_batches)


def bubble_time(slowest: Floats, everything: Floats, virtual_stages: Ints) -> Floats:
    """Idle seconds of the slowest stage, from its seconds per micro-batch and the sum over all stages.

    The slowest stage works through all micro-batches and waits for the others once: (sum - slowest) / vp, which is
    (pp - 1) / vp x stage time where stages are equal. Source: Narayanan et al. 2021 (arXiv 2104.04473), section 2.2.
    """
    return np.maximum(everything - slowest, 0.0) / virtual_stages
