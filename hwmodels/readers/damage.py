"""The one error of a machine file that cannot be read."""

from __future__ import annotations

from hwmodels.errors import Fault, SpecError


def damaged(what: str, found: str, legal: str, line: int | None = None) -> SpecError:
    """The error of a file of format `what`, at a `line` if known: what was found, and what is legal."""
    path = f"line {line}" if line is not None else ""
    return SpecError([Fault(path=path, found=found, legal=f"{legal} ({what})")])
