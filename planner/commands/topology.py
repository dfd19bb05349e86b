"""`plan topology`: read real machines into a cluster file, and draw clusters."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import yaml

from hwmodels import catalog
from hwmodels.errors import Fault, SpecError
from hwmodels.machine import Cluster
from hwmodels.readers import FORMATS, read_machine_file
from hwmodels.readers.findings import merged
from hwmodels.switches import bill_of_materials, switch_plan
from hwmodels.units import show
from planner.output import write_new
from planner.tables import facts, paragraph
from planner.topology_import import KEYS, Imported, imported


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `plan topology` to `parser`."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="import|draw|show")
    reader = actions.add_parser("import", help="a cluster file from what a machine's tools print")
    reader.add_argument("files", type=Path, nargs="+", help=f"outputs of: {'; '.join(each.name for each in FORMATS)}")
    reader.add_argument("--set", action="append", default=[], dest="given", metavar="KEY=VALUE",
                        help=f"what the files leave out: {', '.join(KEYS)}")  # fmt: skip
    reader.add_argument("--name", default="cluster", help="name of the cluster")
    reader.add_argument("--out", type=Path, default=Path("cluster.yaml"), help="cluster file to write")
    reader.add_argument("--force", action="store_true", help="replace a file that differs")
    reader.add_argument("--json", action="store_true", help="print one JSON document")
    drawer = actions.add_parser("draw", help="a picture of a cluster")
    drawer.add_argument("cluster", help="cluster file, or as in 'dgx-h100 x 8'")
    drawer.add_argument("--out", type=Path, required=True, metavar="FILE.svg|FILE.png", help="picture to write")
    drawer.add_argument("--force", action="store_true", help="replace an existing picture")
    shower = actions.add_parser("show", help="nodes, links, switches and cables of a cluster")
    shower.add_argument("cluster", help="cluster file, or as in 'dgx-h100 x 8'")
    shower.add_argument("--json", action="store_true", help="print one JSON document")


def run(args: argparse.Namespace) -> int:
    """Import, draw or show; returns 0."""
    if args.action == "import":
        return _import(args)
    cluster = _cluster(args.cluster)
    if args.action == "draw":
        return _draw(cluster, args.out, args.force)
    print(json.dumps(_counts(cluster)) if args.json else _text(cluster))
    return 0


def _cluster(reference: str) -> Cluster:
    path = Path(reference)
    written = path.suffix in (".yaml", ".yml", ".json") or "/" in reference or path.exists()
    return catalog.load_cluster(path) if written else catalog.cluster_of(reference)


def _import(args: argparse.Namespace) -> int:
    found = imported(merged((str(path), read_machine_file(path)) for path in args.files), args.given, args.name)
    text = yaml.safe_dump(found.document, sort_keys=False)
    # What is written is what is read: a fault here would be one of the import.
    cluster = catalog.load_cluster(yaml.safe_load(text))
    done = write_new({args.out: text}, args.force)
    if args.json:
        print(json.dumps({"cluster": found.document, "notes": list(found.notes), "file": str(args.out)}))
    else:
        print(_imported_text(found, cluster, done))
    return 0


def _imported_text(found: Imported, cluster: Cluster, done: str) -> str:
    notes = "\n".join(paragraph(note, "- ", "  ") for note in found.notes)
    return "\n\n".join(part for part in (_text(cluster), notes and f"Not from the files:\n{notes}", done) if part)


def _draw(cluster: Cluster, out: Path, force: bool) -> int:
    from planner.topology_drawing import FORMATS as PICTURES
    from planner.topology_drawing import draw

    if out.suffix not in PICTURES:
        raise SpecError([Fault(path="--out", found=str(out), legal=f"a file that ends in {' or '.join(PICTURES)}")])
    if out.exists() and not force:
        legal = "a new path, or --force to replace it"
        raise SpecError([Fault(path="--out", found=f"{out}: an existing file", legal=legal)])
    draw(cluster, out)
    print(f"Wrote {out}.")
    return 0


def _counts(cluster: Cluster) -> dict[str, int | float | str]:
    plan, bill = switch_plan(cluster), bill_of_materials(cluster)
    return {
        "name": cluster.name, "nodes": cluster.nodes, "devices": cluster.devices, "leaves": plan.leaves,
        "spines": plan.spines, "cores": plan.cores, "card_cables": bill.card_cables, "leaf_cables": bill.leaf_cables,
        "core_cables": bill.core_cables, "transceivers": bill.transceivers,
    }  # fmt: skip


def _text(cluster: Cluster) -> str:
    plan, bill, fabric = switch_plan(cluster), bill_of_materials(cluster), cluster.fabric
    pools = [
        f"{pool.count} x {pool.node.name}: {pool.node.devices} x {pool.node.device.name}, {pool.node.scaleup} "
        f"{show(pool.node.scaleup_bandwidth, 'B/s')} among {max(pool.node.domain, 1)}, {pool.node.nics} cards of "
        f"{pool.node.nic_bandwidth * 8 / 1e9:g} Gb/s"
        for pool in cluster.pools
    ]
    ratio = f"{fabric.oversubscription:g}:1"
    pairs = [
        ("cluster", f"{cluster.name}, {cluster.nodes} nodes, {cluster.devices} devices"),
        *(("pool", pool) for pool in pools),
        ("fabric", f"{fabric.name}, {fabric.link_bandwidth * 8 / 1e9:g} Gb/s ports, {fabric.topology}, {ratio}"),
        ("switches", f"{plan.leaves} leaves, {plan.spines} spines, {plan.cores} cores, {fabric.radix} ports each"),
        ("cables", f"{bill.card_cables} to cards, {bill.leaf_cables} above leaves, {bill.core_cables} above spines; "
                   f"{bill.transceivers} transceivers"),
    ]  # fmt: skip
    return facts(pairs)
