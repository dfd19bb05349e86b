"""`plan profile`: measure here, and write what a cluster file can name."""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import yaml

from hwmodels import catalog
from hwmodels.errors import Fault, SpecError
from hwmodels.loading import read_text
from hwmodels.machine import Cluster
from hwmodels.readers import nccl_tests
from hwmodels.units import UnitError, parse, show
from planner.collective_profile import (
    PREDICT,
    Pair,
    Point,
    Profile,
    bus_bandwidth,
    calibration,
    fit,
    predicted,
    suspicions,
)
from planner.output import whole_number, write_new
from planner.tables import paragraph, table


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `plan profile` to `parser`."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="collectives")
    each = actions.add_parser("collectives", help="times of collectives, and what looks sick")
    each.add_argument("--processes", type=whole_number, help="ranks to start on this machine (default: its devices)")
    each.add_argument("--max-bytes", type=_bytes, default=64 * 2**20, help="largest message (default: 64 MiB)")
    each.add_argument("--from-log", type=Path, metavar="FILE", help="read an nccl-tests or rccl-tests log instead")
    each.add_argument("--collective", choices=sorted(PREDICT), help="collective of a log that does not name it")
    each.add_argument("--cluster", help="cluster file, or as in 'dgx-h100 x 2', to compare with")
    each.add_argument("--out", type=Path, help="calibration file to write; a cluster file names it as calibration")
    each.add_argument("--force", action="store_true", help="replace a file that differs")
    each.add_argument("--json", action="store_true", help="print one JSON document")


def run(args: argparse.Namespace) -> int:
    """Measure or read, print bus bandwidths and suspicions, write the calibration if asked to; returns 0."""
    cluster = _cluster(args.cluster) if args.cluster else None
    profile = _from_log(args.from_log, args.collective) if args.from_log else _measure(args)
    cluster = cluster or _usual(profile)
    if args.out is not None and cluster is None:
        raise SpecError([Fault(path="--cluster", found="nothing", legal="the cluster that the calibration is for")])
    done = ""
    if args.out is not None and cluster is not None:
        document = calibration(profile, cluster, _made(profile))
        done = write_new({args.out: yaml.safe_dump(document, sort_keys=False)}, args.force)
    print(json.dumps(_document(profile, cluster)) if args.json else _text(profile, cluster, done))
    return 0


def _bytes(text: str) -> int:
    try:
        value = parse(text, "B")
    except UnitError as error:
        raise argparse.ArgumentTypeError(f"found {text!r}; legal: {error.legal}") from None
    if not 1024 <= value <= 2**34:
        raise argparse.ArgumentTypeError(f"found {text!r}; legal: 1 KiB to 16 GiB")
    return int(value)


def _cluster(reference: str) -> Cluster:
    path = Path(reference)
    written = path.suffix in (".yaml", ".yml") or path.exists()
    return catalog.load_cluster(path) if written else catalog.cluster_of(reference)


def _usual(profile: Profile) -> Cluster | None:
    """A node of as many processes of this machine, where the catalog has one and nothing else was said."""
    name = f"cpu-{profile.ranks}"
    return catalog.cluster_of(f"{name} x 1") if "gloo" in profile.software and name in catalog.nodes() else None


def _from_log(path: Path, collective: str | None) -> Profile:
    try:
        log = nccl_tests.read(read_text(path))
    except SpecError as error:
        raise error.within(str(path)) from None
    name = collective or log.collective
    if name not in PREDICT:
        legal = f"--collective with one of {', '.join(sorted(PREDICT))}"
        raise SpecError([Fault(path="collective", found=name or "not in the log", legal=legal)], str(path))
    points = tuple(Point(collective=name, nbytes=size, seconds=s, slow_seconds=s) for size, s in log.rows)
    return Profile(ranks=log.ranks, nodes=log.hosts, software=f"log {path.name}", points=points)


def _measure(args: argparse.Namespace) -> Profile:
    if find_spec("torch") is None:
        legal = "an installation with PyTorch: pip install 'meshwright[executor]'"
        raise SpecError([Fault(path="torch", found="nothing", legal=legal)])
    ranks = args.processes or max(os.cpu_count() or 1, 2)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "profile.json"
        command = [
            sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks), "-m",
            "executor.profile_collectives", str(out), "--max-bytes", str(args.max_bytes),
        ]  # fmt: skip
        environment = {"OMP_NUM_THREADS": "1", **os.environ}
        done = subprocess.run(command, env=environment, check=False, stdout=sys.stderr)  # noqa: S603
        if done.returncode:
            found = f"torch.distributed.run ended with {done.returncode}"
            raise SpecError([Fault(path="profile", found=found, legal="processes that can reach each other")])
        return _read(json.loads(out.read_text(encoding="utf-8")))


def _read(data: dict[str, Any]) -> Profile:
    return Profile(
        ranks=data["ranks"],
        nodes=data["nodes"],
        software=f"{data['software']}, {data['backend']}",
        points=tuple(
            Point(collective=each["collective"], nbytes=each["bytes"], seconds=each["seconds"],
                  slow_seconds=each["slow_seconds"])
            for each in data["collectives"]
        ),
        pairs=tuple(
            Pair(ranks=(each["ranks"][0], each["ranks"][1]), nbytes=each["bytes"], seconds=each["seconds"])
            for each in data["pairs"]
        ),
    )  # fmt: skip


def _made(profile: Profile) -> dict[str, str]:
    now = datetime.now(UTC)
    return {
        "command": "plan profile collectives", "date": f"{now:%Y-%m-%d}", "software": profile.software,
        "machine": platform.machine(), "ranks": str(profile.ranks), "nodes": str(profile.nodes),
    }  # fmt: skip


def _document(profile: Profile, cluster: Cluster | None) -> dict[str, Any]:
    return {
        "ranks": profile.ranks,
        "nodes": profile.nodes,
        "software": profile.software,
        "collectives": [
            {
                "collective": point.collective,
                "bytes": point.nbytes,
                "time_s": point.seconds,
                "bus_bandwidth_bytes_per_s": bus_bandwidth(point, profile.ranks),
                "predicted_time_s": predicted(cluster, profile, point) if cluster else None,
            }
            for point in profile.points
        ],
        "suspicions": list(suspicions(profile, cluster)),
    }


def _text(profile: Profile, cluster: Cluster | None, done: str) -> str:
    lines = []
    for point in profile.points:
        row = [point.collective, show(point.nbytes, "B"), show(point.seconds, "s"),
               show(bus_bandwidth(point, profile.ranks), "B/s")]  # fmt: skip
        if cluster is not None:
            expected = predicted(cluster, profile, point)
            row.extend([show(expected, "s"), f"{expected / point.seconds - 1:+.0%}"])
        lines.append(row)
    head = ["collective", "size", "time", "bus bandwidth", *(["described", "error"] if cluster else [])]
    found = fit(profile)
    sick = [paragraph(line, "- ", "  ") for line in suspicions(profile, cluster)]
    parts = [
        f"{profile.ranks} ranks on {profile.nodes} nodes, {profile.software}",
        table(head, lines),
        f"Fit: {show(found.latency, 's')} a step, {show(found.bandwidth, 'B/s')}, median error {found.error:.0%}.",
        "Worth a look:\n" + "\n".join(sick) if sick else "Nothing looks sick.",
        done,
    ]
    return "\n\n".join(part for part in parts if part)
