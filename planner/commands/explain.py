"""`plan explain`: where the time and memory of a plan go, and what else was possible."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from hwmodels.units import show
from planner.assumptions import rental_price
from planner.breakdown import breakdown
from planner.candidate import Candidate
from planner.documents import estimate_document
from planner.explain import Alternative, alternatives, difference, reasons, why_not
from planner.layout_text import parse_pins, show_layout
from planner.plan import Plan, load_plan
from planner.search import SearchResult, score
from planner.tables import paragraph, table


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `plan explain` to `parser`."""
    parser.add_argument("plan", type=Path, help="plan file, as written by plan search")
    parser.add_argument("--why-not", metavar="LAYOUT", help="as in 'tp=16' or 'pp=1,zero=3'")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(args: argparse.Namespace) -> int:
    """Print why the plan's layout was chosen, or why not another one; returns 0."""
    plan = load_plan(args.plan)
    pins = parse_pins(args.why_not) if args.why_not else {}
    best = score(plan.job, plan.cluster, plan.layout)
    if args.why_not:
        other = why_not(plan.job, plan.cluster, pins)
        print(
            json.dumps(_why_not_document(plan, best, other)) if args.json else _why_not_text(args.why_not, best, other)
        )
        return 0
    ways = alternatives(plan.job, plan.cluster)
    print(json.dumps(_document(plan, best, ways)) if args.json else _text(plan, best, ways))
    return 0


def _text(plan: Plan, best: Candidate, ways: tuple[Alternative, ...]) -> str:
    others = tuple(score(plan.job, plan.cluster, each.layout) for each in plan.runners_up)
    why = "\n".join(paragraph(line, "- ", "  ") for line in reasons(best, others))
    parts = [breakdown(best, plan.job, plan.cluster, rental_price(plan.cluster)), "Why this layout:\n" + why]
    if others:
        lines = [[show_layout(each.layout), _against(best, each)] for each in others]
        parts.append(table(["runner-up", "against the plan"], lines, left=2, widths=(38, 56)))
    ways_found = [_way(best, each) for each in ways]
    parts.append(table(["another way", "its best layout", "against the plan"], ways_found, 3, (22, 38, 34)))
    return "\n\n".join(parts)


def _way(best: Candidate, way: Alternative) -> list[str]:
    if way.best is None:
        return [way.name, "none", "no legal layout"]
    return [way.name, show_layout(way.best.layout), _against(best, way.best)]


def _against(best: Candidate, other: Candidate) -> str:
    estimate = other.estimate
    rules = [each.rule for each in other.violations if each.rule != "memory"]
    if rules:
        return f"breaks the rule {', '.join(rules)}"
    if other.violations:
        return f"needs {show(estimate.memory_total, 'B')} of {show(estimate.capacity, 'B')}"
    return difference(best.estimate, estimate)


def _why_not_text(wanted: str, best: Candidate, result: SearchResult) -> str:
    head = f"The plan: {show_layout(best.layout)}, {show(best.estimate.step_time, 's', 4)}"
    if result.candidates:
        other = result.candidates[0]
        found = f"The best with {wanted}: {show_layout(other.layout)}, {show(other.estimate.step_time, 's', 4)}"
        return "\n".join([head, found, paragraph(f"It {difference(best.estimate, other.estimate)}.")])
    if not result.nearest_misses:
        return f"{head}\nNo layout with {wanted} uses all devices and divides the batch and the layers."
    miss = result.nearest_misses[0]
    lines = [paragraph(f"{each.rule}: {each.message}", "- ", "  ") for each in miss.violations]
    return "\n".join([head, f"No layout with {wanted} is feasible; the nearest is {show_layout(miss.layout)}:", *lines])


def _document(plan: Plan, best: Candidate, ways: tuple[Alternative, ...]) -> dict[str, Any]:
    price = rental_price(plan.cluster)
    return {
        "plan": estimate_document(best, plan.job, plan.cluster, price),
        "runners_up": [estimate_document(each, plan.job, plan.cluster, price) for each in plan.runners_up],
        "alternatives": [
            {"name": each.name, "best": each.best and estimate_document(each.best, plan.job, plan.cluster, price)}
            for each in ways
        ],
    }


def _why_not_document(plan: Plan, best: Candidate, result: SearchResult) -> dict[str, Any]:
    found = result.candidates or result.nearest_misses
    return {
        "plan": estimate_document(best, plan.job, plan.cluster),
        "other": estimate_document(found[0], plan.job, plan.cluster) if found else None,
        "difference": difference(best.estimate, found[0].estimate) if found else None,
    }
