"""One scored layout, and the reasons that speak against one."""

from __future__ import annotations

from dataclasses import dataclass

from hwmodels.layout import Layout
from sim.step import StepEstimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A rule that a layout breaks: what was found, what is legal, and the nearest legal value."""

    rule: str
    found: str
    legal: str
    nearest: str | None = None

    @property
    def message(self) -> str:
        """The violation as one sentence."""
        hint = f"; nearest legal value: {self.nearest}" if self.nearest is not None else ""
        return f"found {self.found}; legal: {self.legal}{hint}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A layout with its estimate and the rules that it breaks; feasible if there are none."""

    layout: Layout
    estimate: StepEstimate
    violations: tuple[Violation, ...] = ()
