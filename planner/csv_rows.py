"""Tables as CSV: rows of text with their line numbers, and the values in them, with every fault of a file at once."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from hwmodels.errors import Fault, SpecError, nearest_name
from hwmodels.loading import read_text

LARGEST = 2**31 - 1
"""Largest whole number taken, so that products of two stay within 64 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The columns of a CSV file and its rows: the line where each ends, and its cells by column, without blanks."""

    columns: tuple[str, ...]
    rows: tuple[tuple[int, dict[str, str]], ...]
    faults: tuple[Fault, ...]


Reader = Callable[[str], object]


class IllegalCellError(ValueError):
    """A cell that is not legal in its column; the text says what would be."""


def read_table(path: Path) -> Table:
    """The table in the file at `path`, with the faults of its shape: repeated columns, and rows longer than the header.

    Raises `SpecError` for a file that cannot be read, or that has no header.
    """
    try:
        lines = [(number, cells) for number, cells in _lines(read_text(path)) if any(cells)]
    except csv.Error as error:
        fault = Fault(path="", found=str(error), legal="a table of comma-separated values")
        raise SpecError([fault], str(path)) from None
    if not lines:
        raise SpecError([Fault(path="", found="an empty file", legal="a header and rows")], str(path))
    columns = tuple(lines[0][1])
    rows = [(number, {k: v for k, v in zip(columns, cells, strict=False) if v}) for number, cells in lines[1:]]
    return Table(columns=columns, rows=tuple(rows), faults=tuple(_shape_faults(columns, lines)))


def _lines(text: str) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    for cells in reader:
        yield reader.line_num, [cell.strip() for cell in cells]


def _shape_faults(columns: tuple[str, ...], lines: list[tuple[int, list[str]]]) -> Iterator[Fault]:
    first = lines[0][0]
    for column in sorted({name for name in columns if columns.count(name) > 1}):
        yield Fault(path=f"line {first}", found=f"column {column!r} twice", legal="each column once")
    for number, cells in lines[1:]:
        if len(cells) > len(columns):
            legal = f"at most {len(columns)}, as in the header"
            yield Fault(path=f"line {number}", found=f"{len(cells)} cells", legal=legal)


def column_faults(table: Table, known: Collection[str], required: Collection[str]) -> Iterator[Fault]:
    """A fault for each column of `table` that is not `known`, and for each `required` one that is missing."""
    for column in dict.fromkeys(table.columns):
        if column not in known:
            near = nearest_name(column, known)
            yield Fault(path="header", found=f"unknown column {column!r}", legal=", ".join(known), nearest=near)
    for column in required:
        if column not in table.columns:
            yield Fault(path="header", found=f"no column {column!r}", legal=f"the columns {', '.join(required)}")


def read_cells(line: int, cells: dict[str, str], readers: dict[str, Reader]) -> tuple[dict[str, object], list[Fault]]:
    """The value of each cell whose column has a reader, and a fault with its line and column for each illegal one."""
    values: dict[str, object] = {}
    faults = []
    for column, text in cells.items():
        if column in readers:
            try:
                values[column] = readers[column](text)
            except IllegalCellError as error:
                faults.append(Fault(path=f"line {line}, {column}", found=repr(text), legal=str(error)))
    return values, faults


def whole(lowest: int, highest: int = LARGEST) -> Reader:
    """A reader of whole numbers from `lowest` to `highest`; "8.0" is one."""

    def read(text: str) -> int:
        value = _float(text)
        if not (value.is_integer() and lowest <= value <= highest):
            raise IllegalCellError(f"a whole number from {lowest} to {highest}")
        return int(value)

    return read


def positive(text: str) -> float:
    """A number above zero."""
    value = _float(text)
    if not (0 < value < math.inf):
        raise IllegalCellError("a number above 0")
    return value


def switch(text: str) -> bool:
    """True or false."""
    if text.lower() not in ("true", "false"):
        raise IllegalCellError("true or false")
    return text.lower() == "true"


def one_of(*legal: str) -> Reader:
    """A reader of one of the `legal` texts."""

    def read(text: str) -> str:
        if text not in legal:
            raise IllegalCellError(", ".join(legal))
        return text

    return read


def word(text: str) -> str:
    """The text itself."""
    return text


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
