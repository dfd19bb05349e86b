"""The one error that bad input raises: every fault at once, each with its path."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault of an input: where it is, what was found, what is legal, and the nearest legal value."""

    path: str
    found: str
    legal: str
    nearest: str | None = None

    def __str__(self) -> str:
        hint = f"; nearest legal value: {self.nearest}" if self.nearest is not None else ""
        return f"{self.path or 'input'}: found {self.found}; legal: {self.legal}{hint}"

    def under(self, prefix: str) -> Fault:
        """The same fault, seen from one level further out."""
        if not prefix:
            return self
        joint = "" if not self.path or self.path.startswith("[") else "."
        return replace(self, path=f"{prefix}{joint}{self.path}")


class SpecError(Exception):
    """Bad input. Carries every fault that was found and the name of the source it was found in."""

    def __init__(self, faults: Iterable[Fault], source: str = "") -> None:
        self.faults = tuple(faults)
        self.source = source
        super().__init__(str(self))

    def __str__(self) -> str:
        head = f"{self.source}: " if self.source else ""
        if len(self.faults) == 1:
            return f"{head}{self.faults[0]}"
        lines = "\n".join(f"  - {fault}" for fault in self.faults)
        return f"{head}{len(self.faults)} faults\n{lines}"

    def under(self, prefix: str) -> SpecError:
        """The same error, with every path seen from one level further out."""
        return SpecError((fault.under(prefix) for fault in self.faults), self.source)

    def within(self, source: str) -> SpecError:
        """The same error, named after the file that was read, unless it names an inner file already."""
        return SpecError(self.faults, self.source or source)


def refuse(faults: Iterable[Fault]) -> None:
    """Raise `SpecError` with all `faults`, if there are any."""
    found = tuple(faults)
    if found:
        raise SpecError(found)


def nearest_name(found: object, legal: Iterable[str]) -> str | None:
    """The legal name that is spelled most like `found`, or None where none is close."""
    by_lower = {name.lower(): name for name in legal}
    close = difflib.get_close_matches(str(found).lower(), by_lower, n=1, cutoff=0.5)
    return by_lower[close[0]] if close else None


def unknown_name(path: str, found: object, legal: Iterable[str]) -> Fault:
    """The fault of a name that is not among the `legal` ones."""
    names = sorted(legal)
    return Fault(path=path, found=repr(found), legal=", ".join(names), nearest=nearest_name(found, names))


def positive_faults(record: object, *fields: str) -> Iterable[Fault]:
    """A fault for each of the named numeric `fields` of `record` that is not above zero."""
    for field in fields:
        value = getattr(record, field)
        if not value > 0:
            yield Fault(path=field, found=str(value), legal="a number above 0", nearest="1")
