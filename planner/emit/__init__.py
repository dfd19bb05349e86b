"""Launch files of a plan, one module for each launcher."""

from __future__ import annotations

from collections.abc import Callable

from planner.emit import slurm, torchrun
from planner.plan import Plan

TARGETS: dict[str, Callable[[Plan], dict[str, str]]] = {"torchrun": torchrun.files, "slurm": slurm.files}
"""Name of a target -> the files that launch a plan there: name of the file -> its text."""
