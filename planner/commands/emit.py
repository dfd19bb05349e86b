"""`plan emit`: launch files of a plan."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from hwmodels.errors import Fault, SpecError, unknown_name
from planner.emit import TARGETS
from planner.output import write_new
from planner.plan import load_plan


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `plan emit` to `parser`."""
    parser.add_argument("plan", type=Path, help="plan file, as written by plan search")
    parser.add_argument("--target", required=True, help=f"one of: {', '.join(TARGETS)}")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder to write into")
    parser.add_argument("--force", action="store_true", help="replace files that differ")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(args: argparse.Namespace) -> int:
    """Write the files, say which, and return 0."""
    if args.target not in TARGETS:
        raise SpecError([unknown_name("--target", args.target, TARGETS)])
    files = {args.out / name: text for name, text in TARGETS[args.target](load_plan(args.plan)).items()}
    try:
        args.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        found = (error.strerror or str(error)).lower()
        raise SpecError([Fault(path="--out", found=f"{args.out}: {found}", legal="a folder")]) from None
    done = write_new(files, args.force)
    for path in files:
        if path.suffix == ".sh":
            path.chmod(0o755)
    print(json.dumps({"target": args.target, "files": [str(path) for path in files]}) if args.json else done)
    return 0
