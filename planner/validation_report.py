"""Validation reports as text of at most 100 columns, and as plain data for JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import shorten
from typing import Any

from tabulate import tabulate

from planner.collective_measurements import BySize, CollectiveReport
from planner.validation import Errors, RowResult, ValidationReport, worst

WORST = 8
"""Rows shown as furthest off."""
KINDS = ("rows", "median", "p90", "bias", "rank")
"""What is shown of errors: how many, median size, 90th percentile, median with sign, and rank correlation."""
ID_WIDTH = 46
WIDTH = 100
_FIT = ("ran", "ran_and_fits", "failed", "failed_and_not_fits")


def document(report: ValidationReport) -> dict[str, Any]:
    """The report as plain data: `rows` and `summary`."""
    return {
        "rows": [_row(row) for row in report.rows],
        "summary": {
            "step_time": _errors(report.time),
            "step_time_by_stack": {stack: _errors(each) for stack, each in report.time_by_stack.items()},
            "memory": _errors(report.memory),
            "memory_by_stack": {stack: _errors(each) for stack, each in report.memory_by_stack.items()},
            "fit": {name: getattr(report.fit, name) for name in _FIT},
            "not_predicted": report.skipped,
            "filled": report.filled,
        },
    }


def _row(row: RowResult) -> dict[str, Any]:
    plain = ("id", "stack", "status", "reason", "measured_step_time_s", "predicted_step_time_s",
             "measured_memory_bytes", "predicted_memory_bytes", "fits")  # fmt: skip
    filled = {name: {"value": each.value, "from": each.source} for name, each in row.filled.items()}
    return {**{name: getattr(row, name) for name in plain}, "filled": filled}


def _errors(errors: Errors) -> dict[str, float | int | None]:
    names = ("count", "median", "p90", "bias", "rank_correlation")
    return {name: getattr(errors, name) for name in names}


def text(report: ValidationReport, path: Path) -> str:
    """The report on the file at `path`, as tables."""
    statuses = [row.status for row in report.rows]
    counts = ", ".join(f"{statuses.count(s)} {s}" for s in ("ok", "skipped", "infeasible"))
    parts = [f"{path.name}: {len(report.rows)} rows, {counts}", _stack_table(report), _fit_text(report)]
    parts.append(_counted("not predicted", report.skipped))
    parts.append(_counted("filled in where the row leaves it blank (values and sources: --json)", report.filled))
    parts.append(_worst_table(report))
    return "\n\n".join(part for part in parts if part)


def _stack_table(report: ValidationReport) -> str:
    stacks = dict.fromkeys([*report.time_by_stack, *report.memory_by_stack])
    none = Errors(count=0)
    lines = [
        [stack, *_cells(report.time_by_stack.get(stack, none)), *_memory_cells(report.memory_by_stack.get(stack, none))]
        for stack in sorted(stacks)
    ]
    lines.append(["all", *_cells(report.time), *_memory_cells(report.memory)])
    steps = [f"step\n{kind}" for kind in KINDS]
    memory = [f"memory\n{kind}" for kind in ("rows", "median", "bias")]
    return _table(["stack", *steps, *memory], lines)


def _cells(errors: Errors) -> list[str]:
    if not errors.count:
        return [""] * 5
    rank = "" if errors.rank_correlation is None else f"{errors.rank_correlation:.2f}"
    return [str(errors.count), _percent(errors.median), _percent(errors.p90), _percent(errors.bias, "+"), rank]


def _memory_cells(errors: Errors) -> list[str]:
    count, median, _, bias, _ = _cells(errors)
    return [count, median, bias]


def _percent(value: float | None, sign: str = "") -> str:
    return "" if value is None else f"{value:{sign}.1%}"


def _fit_text(report: ValidationReport) -> str:
    fit = report.fit
    ran = f"{fit.ran_and_fits} of {fit.ran} rows that ran are predicted to fit in memory"
    return f"{ran}; {fit.failed_and_not_fits} of {fit.failed} that failed are predicted not to"


def _counted(title: str, counts: Mapping[str, int]) -> str:
    lines = [f"{count:6}  {shorten(name, WIDTH - 8, placeholder='...')}" for name, count in counts.items()]
    return "\n".join([f"{title}:", *lines]) if lines else ""


def _worst_table(report: ValidationReport) -> str:
    rows = worst(report, WORST)
    lines = [
        [_short(row.id), *_seconds(row.measured_step_time_s, row.predicted_step_time_s), _percent(row.time_error, "+")]
        for row in rows
    ]
    return "furthest off:\n" + _table(["id", "measured s", "predicted s", "error"], lines) if lines else ""


def _seconds(*values: float | None) -> list[str]:
    return ["" if value is None else f"{value:.4g}" for value in values]


def _short(name: str) -> str:
    return name if len(name) <= ID_WIDTH else f"{name[: ID_WIDTH // 2 - 2]}...{name[-ID_WIDTH // 2 + 1 :]}"


def collective_text(report: CollectiveReport) -> str:
    """The report of collectives, as tables: by collective, and by device and collective."""
    by_collective = {**report.by_collective, "all": report.by_size}
    tables = [_sizes_table("collective", by_collective), _sizes_table("device and collective", report.by_device)]
    return "\n\n".join(part for part in (*tables, _counted("not predicted", report.skipped)) if part)


def _sizes_table(head: str, errors: Mapping[str, BySize]) -> str:
    lines = [[name, *_size_cells(each.long), *_size_cells(each.short)] for name, each in errors.items()
             if each.long.count or each.short.count]  # fmt: skip
    kinds = ("rows", "median", "p90", "bias")
    long, short = ([f"{size}\n{kind}" for kind in kinds] for size in ("16 MB+", "below"))
    return _table([head, *long, *short], lines)


def _size_cells(errors: Errors) -> list[str]:
    return _cells(errors)[:4]


def collective_document(report: CollectiveReport) -> dict[str, Any]:
    """The report of collectives as plain data: `rows` and `summary`."""
    names = ("key", "status", "reason", "device", "measured_time_s", "predicted_time_s")
    return {
        "rows": [{name: getattr(row, name) for name in names} for row in report.rows],
        "summary": {
            "time": _errors(report.time),
            "by_size": _sizes(report.by_size),
            "by_collective": {name: _sizes(each) for name, each in report.by_collective.items()},
            "by_device_and_collective": {name: _sizes(each) for name, each in report.by_device.items()},
            "not_predicted": report.skipped,
        },
    }


def _sizes(errors: BySize) -> dict[str, Any]:
    return {"16_mb_and_more": _errors(errors.long), "below_16_mb": _errors(errors.short)}


def _table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    sides = ("left", *["right"] * (len(head) - 1))
    return tabulate(lines, head, tablefmt="plain", disable_numparse=True, colalign=sides if lines else None)
