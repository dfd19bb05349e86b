"""`plan validate`: predictions against measurements, by software stack."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from planner.validation import ValidationReport


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `plan validate` to `parser`."""
    parser.add_argument("measurements", nargs="?", type=Path, help="CSV of measured rows; without it, published ones")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--plot", type=Path, metavar="OUT.png", help="draw predicted against measured step times")


def run(args: argparse.Namespace) -> int:
    """Print how predictions compare with the measurements, and return 0. Raises `SpecError` for a bad file."""
    from planner import collective_measurements, measurements, validation_report
    from planner.csv_rows import read_table

    path = args.measurements or measurements.shipped()
    if collective_measurements.is_collective_table(read_table(path).columns):
        collectives = collective_measurements.validate_collectives(path)
        document = validation_report.collective_document(collectives)
        text = validation_report.collective_text(collectives)
    else:
        report = _validate(path, args.plot)
        document, text = validation_report.document(report), validation_report.text(report, path)
    print(json.dumps(document, allow_nan=False) if args.json else text)
    return 0


def _validate(path: Path, plot: Path | None) -> ValidationReport:
    from tqdm import tqdm

    from planner.measurements import read_measurements
    from planner.validation import validate

    rows = read_measurements(path)
    report = validate(tqdm(rows, desc="predict", unit="row", leave=False, disable=not sys.stderr.isatty()))
    if plot is not None:
        from planner.parity_plot import write_parity_plot

        write_parity_plot(report, plot)
    return report
