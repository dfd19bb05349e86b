"""Predictions against measurements: each row, and how far the predictions are off by stack and over all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hwmodels.errors import SpecError
from hwmodels.job import TrainingJob
from hwmodels.layout import Layout
from hwmodels.layout_table import Floats
from hwmodels.machine import Cluster
from planner.candidate import Candidate
from planner.framework_defaults import default
from planner.ledger import Filled
from planner.measurements import BYTES, Measurement, step_time
from planner.reconstruction import Skip, reconstruct
from planner.search import score
from sim.step import StepEstimate

Score = Callable[[TrainingJob, Cluster, Layout], Candidate]
Status = Literal["ok", "skipped", "infeasible"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowResult:
    """One measured row and its prediction; None where there is none.

    `reason` says why the row was skipped or cannot be estimated. `failed` rows ran out of memory or crashed.
    """

    id: str
    stack: str
    status: Status
    reason: str | None = None
    filled: dict[str, Filled]
    measured_step_time_s: float | None = None
    predicted_step_time_s: float | None = None
    measured_memory_bytes: float | None = None
    predicted_memory_bytes: float | None = None
    fits: bool | None = None
    failed: bool = False

    @property
    def time_error(self) -> float | None:
        """Predicted over measured step time, minus 1."""
        return _error(self.predicted_step_time_s, self.measured_step_time_s)

    @property
    def memory_error(self) -> float | None:
        """Predicted over measured peak memory, minus 1."""
        return _error(self.predicted_memory_bytes, self.measured_memory_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """Errors of `count` predictions: median and 90th percentile of their size, their median with sign (above 0: too
    high), and Spearman's rank correlation of predicted with measured; None where there are too few."""

    count: int
    median: float | None = None
    p90: float | None = None
    bias: float | None = None
    rank_correlation: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """Whether predicted memory decides as reality did: rows that ran and how many of them are predicted to fit, rows
    that failed and how many of them are predicted not to."""

    ran: int
    ran_and_fits: int
    failed: int
    failed_and_not_fits: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationReport:
    """All rows, and what they come to. `time_by_stack` and `memory_by_stack` hold the stacks with such measurements."""

    rows: tuple[RowResult, ...]
    time: Errors
    time_by_stack: dict[str, Errors]
    memory: Errors
    memory_by_stack: dict[str, Errors]
    fit: Fit
    skipped: dict[str, int]
    filled: dict[str, int]


def validate(rows: Iterable[Measurement], score: Score = score) -> ValidationReport:
    """Predict every row of `rows` and compare. Rows that cannot be priced are kept, with their reason."""
    results = tuple(_result(row, score) for row in rows)
    unpriced = [result.reason for result in results if result.reason]
    return ValidationReport(
        rows=results,
        time=_time_errors(results),
        time_by_stack=_by_stack(results, _time_errors),
        memory=_memory_errors(results),
        memory_by_stack=_by_stack(results, _memory_errors),
        fit=_fit(results),
        skipped=dict(Counter(unpriced).most_common()),
        filled=dict(Counter(name for r in results if r.status == "ok" for name in r.filled).most_common()),
    )


def worst(report: ValidationReport, count: int) -> tuple[RowResult, ...]:
    """The `count` rows whose step time is furthest off, as a ratio, the worst first."""
    rows = [row for row in report.rows if row.time_error is not None]
    return tuple(sorted(rows, key=lambda row: -abs(np.log1p(row.time_error or 0.0)))[:count])


def _result(row: Measurement, score: Score) -> RowResult:
    measured = {
        "id": row.configuration.id,
        "stack": row.configuration.stack,
        "measured_step_time_s": step_time(row),
        "measured_memory_bytes": _memory(row),
        "failed": "oom" in row.measured.outcome,
    }
    case = reconstruct(row.configuration)
    if isinstance(case, Skip):
        return RowResult(**measured, status="skipped", reason=case.reason, filled=case.filled)  # type: ignore[arg-type]
    try:
        estimate = score(case.job, case.cluster, case.layout).estimate
    except SpecError as error:
        return RowResult(**measured, status="infeasible", reason=str(error), filled=case.filled)  # type: ignore[arg-type]
    return RowResult(**measured, status="ok", filled=case.filled, **_predicted(row, estimate))  # type: ignore[arg-type]


def _predicted(row: Measurement, estimate: StepEstimate) -> dict[str, float | bool]:
    return {
        "predicted_step_time_s": estimate.step_time,
        "predicted_memory_bytes": _comparable_memory(row, estimate),
        "fits": estimate.fits,
    }


def _memory(row: Measurement) -> float | None:
    """Measured peak bytes, in the unit that the row states or that its framework prints."""
    measured, run = row.measured, row.configuration
    if measured.peak_memory_gb is None:
        return None
    usual = default(run.stack, run.year, "memory_unit")
    unit = measured.memory_unit or (usual.value if usual else "GB")
    return measured.peak_memory_gb * next(size for name, size in BYTES.items() if name == unit)


def _comparable_memory(row: Measurement, estimate: StepEstimate) -> float:
    """Predicted peak bytes as the row's framework counts: of the whole device, or of the allocator, which does not see
    what the context, libraries and communicators hold."""
    scope = default(row.configuration.stack, row.configuration.year, "memory_scope")
    unseen = estimate.memory["reserve"] if scope and scope.value == "allocator" else 0.0
    return estimate.memory_total - unseen


def _error(predicted: float | None, measured: float | None) -> float | None:
    return None if predicted is None or measured is None else predicted / measured - 1


def _by_stack(rows: Sequence[RowResult], errors: Callable[[Sequence[RowResult]], Errors]) -> dict[str, Errors]:
    stacks = dict.fromkeys(row.stack for row in rows)
    found = {stack: errors([row for row in rows if row.stack == stack]) for stack in stacks}
    return {stack: each for stack, each in found.items() if each.count}


def _time_errors(rows: Sequence[RowResult]) -> Errors:
    return errors_of([(r.predicted_step_time_s, r.measured_step_time_s) for r in rows])


def _memory_errors(rows: Sequence[RowResult]) -> Errors:
    return errors_of([(r.predicted_memory_bytes, r.measured_memory_bytes) for r in rows])


def errors_of(pairs: Sequence[tuple[float | None, float | None]]) -> Errors:
    """Errors of pairs of a predicted and a measured value; pairs without one of them do not count."""
    known = np.array([pair for pair in pairs if None not in pair], dtype=np.float64).reshape(-1, 2)
    if not len(known):
        return Errors(count=0)
    predicted, measured = known[:, 0], known[:, 1]
    error = predicted / measured - 1
    return Errors(
        count=len(known),
        median=float(np.median(abs(error))),
        p90=float(np.percentile(abs(error), 90)),
        bias=float(np.median(error)),
        rank_correlation=rank_correlation(predicted, measured),
    )


def rank_correlation(a: Floats, b: Floats) -> float | None:
    """Spearman's rank correlation of two columns, None for fewer than three pairs or where one column is constant."""
    ranks = np.array([_ranks(a), _ranks(b)])
    if len(a) < 3 or not ranks.std(axis=1).all():
        return None
    return float(np.corrcoef(ranks)[0, 1])


def _ranks(values: Floats) -> NDArray[np.float64]:
    """Rank of each value from 1; equal values share the mean of their ranks."""
    _, position, count = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    shared: NDArray[np.float64] = (last - (count - 1) / 2)[position]
    return shared


def _fit(rows: Sequence[RowResult]) -> Fit:
    ran = [row.fits for row in rows if row.status == "ok" and not row.failed and _has_run(row)]
    failed = [row.fits for row in rows if row.status == "ok" and row.failed]
    return Fit(ran=len(ran), ran_and_fits=ran.count(True), failed=len(failed), failed_and_not_fits=failed.count(False))


def _has_run(row: RowResult) -> bool:
    return row.measured_step_time_s is not None
