"""`plan estimate`: one layout, priced, with its breakdown and the rules that it breaks."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from hwmodels.errors import Fault, SpecError
from planner.assumptions import rental_price
from planner.breakdown import breakdown
from planner.candidate import Candidate, Violation
from planner.documents import estimate_document
from planner.jobfile import load_job
from planner.layout_text import KEYS, parse_layout
from planner.search import score
from planner.tables import paragraph


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `plan estimate` to `parser`."""
    parser.add_argument("job", type=Path, help="job file")
    parser.add_argument("--layout", required=True, help=f"as in 'tp=8,pp=4,mbs=1'; keys: {' '.join(KEYS)}")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(args: argparse.Namespace) -> int:
    """Print what the layout takes. Returns 0; 2 where it breaks a rule; 3 where only its memory does not fit."""
    file = load_job(args.job)
    try:
        layout, job = parse_layout(args.layout, file.job, file.cluster.devices)
        candidate = score(job, file.cluster, layout)
    except SpecError as error:
        raise error.within(str(args.job)) from None
    price = rental_price(file.cluster)
    if args.json:
        print(json.dumps(estimate_document(candidate, job, file.cluster, price), allow_nan=False))
    elif not _broken(candidate):
        print(breakdown(candidate, job, file.cluster, price))
    return _verdict(candidate, args.job)


def _broken(candidate: Candidate) -> list[Violation]:
    """The violations that no larger memory would mend."""
    return [each for each in candidate.violations if each.rule != "memory"]


def _verdict(candidate: Candidate, path: Path) -> int:
    rules = _broken(candidate)
    if rules:
        faults = [Fault(path="layout", found=v.found, legal=v.legal, nearest=v.nearest) for v in rules]
        print(f"plan estimate: {SpecError(faults, str(path))}", file=sys.stderr)
        return 2
    for each in candidate.violations:
        print(paragraph(f"plan estimate: does not fit: {each.message}"), file=sys.stderr)
    return 3 if candidate.violations else 0
