"""What was filled in for a measured row, and what keeps it from being priced."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

from planner.framework_defaults import default
from planner.measurements import Configuration

T = TypeVar("T", int, bool, str)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    """A value that the row leaves blank, and where it was taken from."""

    value: int | bool | str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """Collects, while a row is read: the fields that were filled, by name, and the reasons that it cannot be priced."""

    row: Configuration
    filled: dict[str, Filled] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)

    def fill(self, name: str, value: T, source: str) -> T:
        """`value`, noted as filled into `name` from `source`."""
        self.filled[name] = Filled(value=value, source=source)
        return value

    def stated(self, name: str, value: T, source: str) -> T:
        """What the row states for `name`; `value` from `source` where it is blank."""
        found: T | None = getattr(self.row, name)
        return self.fill(name, value, source) if found is None else found

    def default(self, name: str) -> tuple[str, str]:
        """The default of the row's framework for `name`, as text, and its source; blank where there is none."""
        found = default(self.row.stack, self.row.year, name)
        return (found.value, found.source) if found else ("", "")

    def refuse(self, reason: str) -> None:
        """Note that the row cannot be priced."""
        self.reasons.append(reason)
