"""Layouts as columns: one NumPy array per field, the form in which every cost formula takes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from math import prod

import numpy as np
from numpy.typing import NDArray

from hwmodels.layout import OFFLOADS, RECOMPUTE, SCHEDULES, Layout

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_CODES: dict[str, tuple[str, ...]] = {"recompute": RECOMPUTE, "schedule": SCHEDULES, "offload": OFFLOADS}
_SWITCHES = ("sequence_parallel", "overlap")


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutTable:
    """Columns of equal length, one entry per layout, named as in `Layout`.

    Switches are 0 or 1; `recompute`, `schedule`, `offload` hold the position in `RECOMPUTE`, `SCHEDULES`, `OFFLOADS`.
    """

    tensor_parallel: Ints
    pipeline_parallel: Ints
    virtual_stages: Ints
    data_parallel: Ints
    context_parallel: Ints
    expert_parallel: Ints
    expert_tensor_parallel: Ints
    sequence_parallel: Ints
    zero_stage: Ints
    shard_group: Ints
    micro_batch_size: Ints
    recompute: Ints
    schedule: Ints
    offload: Ints
    overlap: Ints

    def __len__(self) -> int:
        return len(self.tensor_parallel)

    @property
    def world_size(self) -> Ints:
        """Number of ranks of each layout."""
        return self.tensor_parallel * self.pipeline_parallel * self.data_parallel * self.context_parallel

    def take(self, index: NDArray[np.intp] | Bools) -> LayoutTable:
        """The rows that `index` (positions or a mask) selects."""
        return LayoutTable(**{name: getattr(self, name)[index] for name in FIELDS})

    def row(self, index: int) -> Layout:
        """The layout at position `index`."""
        return Layout(**{name: _decode(name, int(getattr(self, name)[index])) for name in FIELDS})  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True, kw_only=True)
class Distinct:
    """The distinct rows of a table in some of its columns: a formula of these columns is computed once for each.

    `first` is the position of one row of each kind in the table, `place` the position of each row's kind among them.
    """

    first: NDArray[np.intp]
    place: NDArray[np.intp]

    def spread(self, values: Floats) -> Floats:
        """`values`, one for each kind, for every row of the table."""
        return values[self.place]


def distinct(table: LayoutTable, names: Sequence[str]) -> Distinct:
    """The distinct rows of `table` in the columns `names`."""
    columns = [getattr(table, name) for name in names]
    sizes = [int(column.max(initial=0)) + 1 for column in columns]
    if prod(sizes) < 2**62:
        # One whole number stands for a row: its columns as digits.
        keys = np.ravel_multi_index(columns, sizes)
        _, first, place = np.unique(keys, return_index=True, return_inverse=True)
    else:
        _, first, place = np.unique(np.stack(columns, axis=1), axis=0, return_index=True, return_inverse=True)
    return Distinct(first=first, place=place.reshape(-1))


FIELDS: tuple[str, ...] = tuple(field.name for field in fields(LayoutTable))


def encode(name: str, value: object) -> int:
    """The integer that stands for `value` in column `name`."""
    return _CODES[name].index(str(value)) if name in _CODES else int(value)  # type: ignore[call-overload]


def _decode(name: str, value: int) -> object:
    if name in _CODES:
        return _CODES[name][value]
    return bool(value) if name in _SWITCHES else value


def table_of(layouts: Sequence[Layout]) -> LayoutTable:
    """The columns of `layouts`, in order."""
    return LayoutTable(**{f: np.array([encode(f, getattr(x, f)) for x in layouts], dtype=np.int64) for f in FIELDS})


def table_from_columns(columns: Mapping[str, Ints]) -> LayoutTable:
    """A table from equally long columns; a field that is not given takes the default of `Layout`."""
    length = len(next(iter(columns.values())))
    default = Layout()
    filled = {name: np.full(length, encode(name, getattr(default, name)), dtype=np.int64) for name in FIELDS}
    return LayoutTable(**{**filled, **columns})
