"""What commands share on their way out: files that are never overwritten unasked, and arguments that are numbers."""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping
from pathlib import Path

from hwmodels.errors import Fault, SpecError
from hwmodels.loading import read_text
from planner.plan import write_atomically


def write_new(files: Mapping[Path, str], force: bool) -> str:
    """Write `files`, each at once or not at all. Returns a sentence on what was done.

    A file with the same content is left as it is. One with other content is replaced only with `force`; otherwise
    nothing is written at all and `SpecError` names every such file.
    """
    changed = {path: text for path, text in files.items() if not _holds(path, text)}
    faults = [
        Fault(path=str(path), found="a file with other content", legal="a new path, or --force to replace it")
        for path in changed
        if path.exists() and not force
    ]
    if faults:
        raise SpecError(faults)
    for path, text in changed.items():
        write_atomically(path, text)
    done = [f"Wrote {', '.join(map(str, changed))}."] if changed else []
    same = [str(path) for path in files if path not in changed]
    return " ".join([*done, *([f"{', '.join(same)} is up to date."] if same else [])])


def _holds(path: Path, text: str) -> bool:
    if not path.exists():
        return False
    if not path.is_file():
        raise SpecError([Fault(path=str(path), found="not a file", legal="the path of a file")])
    try:
        return read_text(path) == text
    except SpecError:
        return False


def whole_number(text: str) -> int:
    """An argument that is a whole number above 0."""
    if not text.isascii() or not text.isdigit() or int(text[:18]) < 1:
        raise argparse.ArgumentTypeError(f"found {text!r}; legal: a whole number, 1 or more")
    return int(text[:18])


def positive_number(text: str) -> float:
    """An argument that is a finite number above 0."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"found {text!r}; legal: a number above 0")
    return value
