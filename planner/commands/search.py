"""`plan search`: the best layouts of a job, as a table and a plan file."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from hwmodels import catalog
from hwmodels.errors import SpecError
from hwmodels.units import show
from planner.assumptions import Assumption, rental_price
from planner.candidate import Candidate
from planner.cost import rent_of, run_seconds
from planner.documents import search_document
from planner.explain import reasons
from planner.jobfile import JobFile, load_job
from planner.layout_text import show_layout
from planner.output import whole_number, write_new
from planner.pins import pin_faults
from planner.plan import Plan, dump_plan, provenance
from planner.search import SearchResult, search
from planner.tables import paragraph, percent, table


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `plan search` to `parser`."""
    parser.add_argument("job", type=Path, help="job file")
    parser.add_argument("--out", type=Path, default=Path("plan.yaml"), help="plan file to write (default: plan.yaml)")
    parser.add_argument("--top", type=whole_number, default=5, help="layouts to show (default: 5)")
    parser.add_argument("--force", action="store_true", help="replace a plan file that differs")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(args: argparse.Namespace) -> int:
    """Print the best layouts, write the best as a plan and return 0; or print the nearest misses and return 3."""
    file = load_job(args.job)
    try:
        result = search(file.job, file.cluster, file.search, top=args.top)
    except SpecError as error:
        raise error.within(str(args.job)) from None
    if not result.evaluated:
        faults = pin_faults(file.job, file.cluster, file.search, result.nearest_misses)
        if faults:
            raise SpecError(faults, str(args.job))
    price = rental_price(file.cluster)
    written = _write(args.out, file, result, args.force) if result.candidates else None
    if args.json:
        print(json.dumps(search_document(result, file.job, file.cluster, price), allow_nan=False))
    else:
        print(_text(file, result, price, written))
    return 0 if result.candidates else 3


def _write(path: Path, file: JobFile, result: SearchResult, force: bool) -> str:
    best, *others = result.candidates
    plan = Plan(
        job=file.job,
        cluster=file.cluster,
        layout=best.layout,
        estimate=best.estimate,
        runners_up=tuple(others),
        provenance=provenance(catalog.digest(), result.evaluated, result.feasible),
    )
    return write_new({path: dump_plan(plan)}, force)


def _text(file: JobFile, result: SearchResult, price: Assumption | None, written: str | None) -> str:
    job, cluster = file.job, file.cluster
    head = (
        f"{job.model.name} on {cluster.name} ({cluster.devices} x {cluster.device.name}), "
        f"{job.global_batch_size} x {job.sequence_length} tokens a step, {job.precision}, {job.stack.name}"
    )
    size = f"{result.evaluated:,} legal layouts, {result.feasible:,} fit in memory, searched in {result.seconds:.2f} s"
    parts = [paragraph(head), size]
    if not result.candidates:
        return "\n\n".join([*parts, _misses(result)])
    parts.append(_table(file, result.candidates, price))
    best, *others = result.candidates
    why = [paragraph(line, "- ", "  ") for line in [*reasons(best, tuple(others)), *_limits(file, best, price)]]
    parts.append("Why the first is first:\n" + "\n".join(why))
    parts.append(_footnotes(file, best, price))
    return "\n\n".join([*(part for part in parts if part), written or ""]).rstrip()


def _table(file: JobFile, candidates: tuple[Candidate, ...], price: Assumption | None) -> str:
    seconds = [run_seconds(file.job, each.estimate.step_time) for each in candidates]
    columns: dict[str, list[str]] = {
        "": [str(number + 1) for number in range(len(candidates))],
        "layout": [show_layout(each.layout) for each in candidates],
        "step": [show(each.estimate.step_time, "s", 4) for each in candidates],
        "MFU": [percent(each.estimate.mfu) for each in candidates],
        f"memory of {show(file.cluster.device.memory, 'B')}": [
            show(each.estimate.memory_total, "B") for each in candidates
        ],
    }
    if file.job.tokens:
        columns[f"{show(file.job.tokens, 'count')} tokens"] = [show(each, "s") for each in seconds]
        if price is not None:
            rents = [rent_of(each, file.cluster.devices, price.value) for each in seconds]
            columns["rent"] = [show(each, "USD", 4) for each in rents]
    return table(list(columns), list(zip(*columns.values(), strict=True)), left=2)


def _limits(file: JobFile, best: Candidate, price: Assumption | None) -> list[str]:
    """Whether the deadline and the budget of the job hold."""
    job, seconds = file.job, run_seconds(file.job, best.estimate.step_time)
    found = []
    if job.deadline and seconds:
        verb = "keeps" if seconds <= job.deadline else "MISSES"
        found.append(f"The run takes {show(seconds, 's')} and {verb} the deadline of {show(job.deadline, 's')}.")
    if job.budget and seconds and price is not None:
        rent = rent_of(seconds, file.cluster.devices, price.value)
        verb = "keeps" if rent <= job.budget else "EXCEEDS"
        found.append(f"Rented, it costs {show(rent, 'USD')} and {verb} the budget of {show(job.budget, 'USD')}.")
    return found


def _footnotes(file: JobFile, best: Candidate, price: Assumption | None) -> str:
    notes = []
    if file.job.tokens and price is not None:
        notes.append(f"Rent at {price.shown} a device: {price.source} ({price.date}). Without failures.")
    elif file.job.tokens:
        notes.append(f"No rental price of {file.cluster.device.name} is known; see plan cost --set price=...")
    if best.estimate.estimates:
        notes.append(f"The figures rest on {best.estimate.estimates} estimates among the catalog's values.")
    return "\n".join(paragraph(note) for note in notes)


def _misses(result: SearchResult) -> str:
    if not result.nearest_misses:
        return "Nothing is feasible: no layout divides the batch and the layers over all devices."
    lines = []
    for each in result.nearest_misses:
        lines.append(f"- {show_layout(each.layout)}")
        lines.extend(paragraph(f"{v.rule}: {v.message}", "    ", "      ") for v in each.violations)
    return "Nothing is feasible. The nearest misses:\n" + "\n".join(lines)
