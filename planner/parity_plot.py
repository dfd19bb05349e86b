"""A plot of predicted against measured step times."""

from __future__ import annotations

import io
from pathlib import Path

from hwmodels.errors import Fault, SpecError
from planner.validation import RowResult, ValidationReport

FORMATS = (".png", ".pdf", ".svg")


def write_parity_plot(report: ValidationReport, path: Path) -> None:
    """Draw predicted over measured step time of every row of `report`, coloured by stack, into a new file at `path`.

    Raises `SpecError` for a path that is taken, cannot be written, or does not end in one of `FORMATS`.
    """
    if path.suffix not in FORMATS:
        legal = f"a name that ends in {', '.join(FORMATS)}"
        raise SpecError([Fault(path="--plot", found=repr(str(path)), legal=legal)])
    if path.exists():
        raise SpecError([Fault(path="--plot", found=f"{path}, which exists", legal="the name of a new file")])
    picture = _draw(report, path.suffix.removeprefix("."))
    try:
        path.write_bytes(picture)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise SpecError([Fault(path="--plot", found=reason, legal="a place that can be written")]) from None


def _draw(report: ValidationReport, kind: str) -> bytes:
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 6.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    colours = mpl.colormaps["tab20"]
    for index, stack in enumerate(sorted(report.time_by_stack)):
        points = _points([row for row in report.rows if row.stack == stack])
        measured, predicted = zip(*points, strict=True)
        axes.scatter(measured, predicted, s=18, alpha=0.8, color=colours(index % 20), label=stack,
                     marker="o" if index < 20 else "^")  # fmt: skip
    values = [value for point in _points(report.rows) for value in point] or [0.1, 10.0]
    ends = [min(values) / 1.3, max(values) * 1.3]
    axes.plot(ends, ends, color="black", linewidth=1, label="equal")
    low, high = [end / 1.2 for end in ends], [end * 1.2 for end in ends]
    axes.fill_between(ends, low, high, color="black", alpha=0.08, label="within 20%")
    axes.set(xscale="log", yscale="log", xlim=ends, ylim=ends, xlabel="measured step time, s",
             ylabel="predicted step time, s", title=f"{report.time.count} measured steps")  # fmt: skip
    figure.legend(loc="outside right upper", fontsize="x-small")
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind, dpi=140)
    return buffer.getvalue()


def _points(rows: tuple[RowResult, ...] | list[RowResult]) -> list[tuple[float, float]]:
    both = [(row.measured_step_time_s, row.predicted_step_time_s) for row in rows]
    return [(measured, predicted) for measured, predicted in both if measured is not None and predicted is not None]
