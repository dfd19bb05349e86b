"""`plan catalog`: what is known of models, devices, nodes, fabrics, switches, stacks and prices, and from where."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from hwmodels import catalog, models
from hwmodels.catalog import Price
from hwmodels.errors import SpecError, unknown_name
from hwmodels.parameters import parameter_count
from hwmodels.units import show
from planner.tables import short, table

Rows = list[dict[str, Any]]
_ROW_TABLES = ("devices", "nodes", "fabrics", "switches", "communicators", "stacks", "facilities")
KINDS = ("models", *_ROW_TABLES, "prices")
_SUMMARY = {
    "devices": ("memory", "memory_bandwidth", "peak_bf16", "peak_fp8", "power"),
    "nodes": ("device", "devices", "domain", "scaleup_bandwidth", "nics", "nic_bandwidth", "power"),
    "fabrics": ("kind", "link_bandwidth", "latency", "efficiency", "radix"),
    "switches": ("ports", "port_bandwidth", "power"),
    "communicators": ("ll_base", "simple_base", "simple_inner", "simple_outer", "tree_share"),
    "stacks": ("attention", "matmul_efficiency", "tp_overlap", "dp_overlap", "memory_reserve"),
}
"""Fields that a list shows; one record shows all of its own."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `plan catalog` to `parser`."""
    parser.add_argument("kind", help=f"one of: {', '.join(KINDS)}")
    parser.add_argument(
        "words", nargs="*", help="a name, for all of its facts with their sources, or words to look for"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(args: argparse.Namespace) -> int:
    """Print the matching records and return 0. Raises `SpecError` where nothing matches, with the nearest name."""
    if args.kind not in KINDS:
        raise SpecError([unknown_name("kind", args.kind, KINDS)])
    rows = _rows(args.kind)
    names = list(dict.fromkeys(row["name"] for row in rows))
    exact = [name for name in names if [name] == args.words]
    found = [row for row in rows if row["name"] == exact[0]] if exact else _matching(rows, args.words)
    if not found:
        raise SpecError([unknown_name(args.kind, " ".join(args.words), names)])
    print(json.dumps(found) if args.json else _text(args.kind, found, detailed=bool(exact)))
    return 0


def _rows(kind: str) -> Rows:
    if kind == "models":
        return [_model_row(name) for name in models.models()]
    if kind == "prices":
        return [_price_row(price) for price in catalog.prices()]
    return [asdict(fact) for fact in catalog.facts(kind)]


def _model_row(name: str) -> dict[str, Any]:
    spec = models.model(name)
    sizes = {key: getattr(spec, key) for key in ("layers", "hidden", "heads", "kv_heads", "vocab")}
    return {"name": name, "parameters": parameter_count(spec), **sizes, "source": models.model_source(name)}


def _price_row(price: Price) -> dict[str, Any]:
    return {"name": price.device, **{key: value for key, value in asdict(price).items() if key != "device"}}


def _matching(rows: Rows, words: Sequence[str]) -> Rows:
    """All rows of the records in which every word occurs, in any case."""
    texts: dict[str, str] = {}
    for row in rows:
        texts[row["name"]] = texts.get(row["name"], "") + " ".join(map(str, row.values())).lower()
    if "provider" in rows[0]:
        return [row for row in rows if all(word.lower() in str(row.values()).lower() for word in words)]
    return [row for row in rows if all(word.lower() in texts[row["name"]] for word in words)]


def _text(kind: str, rows: Rows, *, detailed: bool) -> str:
    if kind == "models":
        return _models(rows)
    if kind == "prices":
        return _prices(rows)
    return _facts(rows) if detailed or kind == "facilities" else _list(kind, rows)


def _models(rows: Rows) -> str:
    lines = [
        [
            row["name"],
            short(row["source"], 36),
            show(row["parameters"], "count"),
            *(str(row[key]) for key in ("layers", "hidden", "heads")),
        ]
        for row in rows
    ]
    return table(["model", "source", "parameters", "layers", "hidden", "heads"], lines, left=2)


def _prices(rows: Rows) -> str:
    lines = [
        [row["name"], short(row["provider"], 14), short(row["item"], 24), row["kind"].replace("_", " "),
         f"{row['value']:.2f}", short(row["region"], 12), short(row["date"], 16)]
        for row in rows
    ]  # fmt: skip
    return table(["device", "provider", "item", "kind", "USD/h", "region", "date"], lines, left=4)


def _facts(rows: Rows) -> str:
    lines = [
        [
            row["field"],
            _value(row),
            row["kind"],
            f"{row['source']} ({row['date']})" + (row["note"] and f"; {row['note']}"),
        ]
        for row in rows
    ]
    return table([rows[0]["name"], "value", "kind", "source"], lines, left=4, widths=(24, 16, 9, 44))


def _value(row: dict[str, Any]) -> str:
    unit = row["unit"] if row["unit"] not in ("text", "count", "fraction", "switch", "ratio") else ""
    return f"{row['value']} {unit}".strip()


def _mark(kind: str) -> str:
    return {"estimate": "*", "announced": "**"}.get(kind, "")


def _list(kind: str, rows: Rows) -> str:
    cells: dict[str, dict[str, str]] = {}
    for row in rows:
        cells.setdefault(row["name"], {})[row["field"]] = _value(row) + _mark(row["kind"])
    shown = _SUMMARY[kind]
    lines = [[name, *(short(values.get(field, ""), 14) for field in shown)] for name, values in cells.items()]
    heads = [field.replace("_", "\n") for field in shown]
    note = "\n\n* estimate, ** announced. All facts of one and their sources: plan catalog"
    return f"{table([kind, *heads], lines)}{note} {kind} {lines[0][0]}"
