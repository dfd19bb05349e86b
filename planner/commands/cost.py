"""`plan cost`: rent or build, what a job or a plan costs, and when owning the machines pays."""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path

from hwmodels.errors import Fault, SpecError
from hwmodels.job import TrainingJob
from hwmodels.loading import read_document
from hwmodels.machine import Cluster
from hwmodels.units import show
from planner.assumptions import NAMES, PRICE_KINDS, assumptions
from planner.cost import Build, CostReport, cost_report
from planner.documents import cost_document
from planner.jobfile import load_job
from planner.layout_text import show_layout
from planner.plan import load_plan
from planner.search import search
from planner.tables import facts, paragraph, short, table


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `plan cost` to `parser`."""
    parser.add_argument("subject", type=Path, metavar="JOB|PLAN", help="job file (its best layout) or plan file")
    parser.add_argument("--provider", help="rent from this provider instead of the median one")
    parser.add_argument("--price-kind", choices=PRICE_KINDS, default="on_demand", help="kind of rental price")
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", dest="given",
        help=f"your own price or rate, with its unit, as in 'price=2.10 USD/h'; names: {', '.join(NAMES)}",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print one JSON document")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Subject:
    job: TrainingJob
    cluster: Cluster
    layout: str
    step_time: float


def run(args: argparse.Namespace) -> int:
    """Print the costs and return 0; 3 where a job has no feasible layout."""
    found = _subject(args.subject)
    known = assumptions(found.cluster, args.given, args.provider, args.price_kind) if found else {}
    if found is None:
        print(f"plan cost: nothing is feasible; see plan search {args.subject}")
        return 3
    report = cost_report(found.job, found.cluster, found.step_time, known)
    print(json.dumps(cost_document(report), allow_nan=False) if args.json else _text(found, report))
    return 0


def _subject(path: Path) -> _Subject | None:
    """The job with its plan, or with the best layout that a search finds; None where there is none."""
    document = read_document(path)
    if isinstance(document, dict) and "schema_version" in document:
        plan = load_plan(path)
        job, cluster, layout, estimate = plan.job, plan.cluster, plan.layout, plan.estimate
    else:
        file = load_job(path)
        job, cluster = file.job, file.cluster
        try:
            best = next(iter(search(job, cluster, file.search, top=1).candidates), None)
        except SpecError as error:
            raise error.within(str(path)) from None
        if best is None:
            return None
        layout, estimate = best.layout, best.estimate
    if not job.tokens:
        fault = Fault(path="training.tokens", found="nothing", legal="tokens to train on, as in 1T")
        raise SpecError([fault], str(path))
    return _Subject(job=job, cluster=cluster, layout=show_layout(layout), step_time=estimate.step_time)


def _text(subject: _Subject, report: CostReport) -> str:
    job, cluster = subject.job, subject.cluster
    head = [
        ("job", f"{job.model.name}, {show(job.tokens, 'count')} tokens, on {cluster.name} ({cluster.devices} x "
                f"{cluster.device.name}), {subject.layout}"),
        ("run", f"{show(report.hours * 3600, 's')} without failures, {report.device_hours:,.0f} device-hours, "
                f"{report.energy / 3.6e9:,.0f} MWh with cooling"),
    ]  # fmt: skip
    parts = [facts(head), _choices(report)]
    if report.build is not None:
        parts.extend([_bill(report.build), paragraph(_verdict(report, report.build))])
    parts.append(_assumed(report))
    hints = {"price": "--set 'price=2.50 USD/h'", "node_price": "--set 'node_price=300000 USD'"}
    parts.extend(f"No {name.replace('_', ' ')} of {cluster.node.name} is known; give {hints[name]}."
                 for name in report.missing)  # fmt: skip
    return "\n\n".join(parts)


def _choices(report: CostReport) -> str:
    lines = []
    for name, total in (("rent", report.rent), ("own, share of this run", report.own)):
        if total is not None:
            lines.append(
                [name, f"{total / report.device_hours:.2f} USD/h", show(total, "USD", 4),
                 f"{total / report.tokens * 1e6:.3f} USD"]
            )  # fmt: skip
    return table(["this run", "per device", "total", "per million tokens"], lines)


def _bill(build: Build) -> str:
    lines = [[line.name, show(line.usd, "USD", 4), line.basis] for line in build.capital]
    lines.append(["at once", show(sum(line.usd for line in build.capital), "USD", 4), ""])
    lines.extend([line.name, show(line.usd, "USD", 4), line.basis] for line in build.monthly)
    lines.append(["every month", show(sum(line.usd for line in build.monthly), "USD", 4), ""])
    return table(["building", "", "from"], lines, left=3)


def _verdict(report: CostReport, build: Build) -> str:
    life = next(each for each in report.assumptions if each.name == "depreciation")
    if report.rent is None:
        return "Without a rental price there is no break-even."
    months = build.break_even_months
    if months is None:
        return "Building never pays: the running costs exceed the rent."
    late = " - after the end of the machines' life" if months * 2629800 > life.value else ""
    return f"Building pays after {months:.1f} months of use{late} (life {life.shown})."


def _assumed(report: CostReport) -> str:
    lines = [[each.name, each.shown, each.basis, short(f"{each.date} {each.source}".strip(), 132)]
             for each in report.assumptions]  # fmt: skip
    return table(["assumed, --set", "", "", "from"], lines, left=4, widths=(None, None, None, 46))
