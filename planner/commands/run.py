"""`plan run`: train a plan with torch.distributed on this machine, measured beside predicted."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from hwmodels.errors import Fault, SpecError
from planner.output import positive_number, whole_number
from planner.plan import Plan, load_plan


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `plan run` to `parser`."""
    parser.add_argument("plan", type=Path, help="plan file, as written by plan search")
    parser.add_argument("--data", nargs="+", required=True, metavar="FILE", help="text files; bytes are the tokens")
    parser.add_argument("--steps", type=whole_number, default=20, help="optimizer steps (default: 20)")
    parser.add_argument("--out", type=Path, metavar="FILE.csv", help="measurement file that gets a row")
    parser.add_argument("--seed", type=whole_number, default=1, help="of the weights and the order of the data")
    parser.add_argument("--learning-rate", type=positive_number, default=1e-3, help="of AdamW (default: 0.001)")
    parser.add_argument("--json", action="store_true", help="print one JSON document; progress goes to stderr")


def run(args: argparse.Namespace) -> int:
    """Start one process per device and wait. Returns 0, 2 for bad input, 1 where training failed."""
    plan = load_plan(args.plan)
    _check_machine(plan, args.plan)
    words = [str(args.plan), "--data", *args.data, *_options(args)]
    environment = {"OMP_NUM_THREADS": "1", **os.environ}
    check = subprocess.run(  # noqa: S603 (explicit arguments)
        [sys.executable, "-m", "executor", *words, "--check"], env=environment, check=False
    )
    if check.returncode:
        return check.returncode
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        code = _train(plan, [*words, "--report", str(report)], environment, quiet=args.json)
        found = json.loads(report.read_text(encoding="utf-8")) if code == 0 else {}
    if "failed" in found:
        return 1
    if code == 0 and args.json:
        print(json.dumps(found))
    return code


def _check_machine(plan: Plan, path: Path) -> None:
    faults = []
    if find_spec("torch") is None:
        legal = "an installation with PyTorch: pip install 'meshwright[executor]'"
        faults.append(Fault(path="torch", found="nothing", legal=legal))
    if plan.cluster.nodes > 1:
        legal = f"1 node; plan emit {path} --target torchrun or slurm writes what starts all nodes"
        faults.append(Fault(path="cluster", found=f"{plan.cluster.nodes} nodes", legal=legal))
    if faults:
        raise SpecError(faults, str(path))


def _options(args: argparse.Namespace) -> list[str]:
    found = ["--steps", str(args.steps), "--seed", str(args.seed), "--learning-rate", str(args.learning_rate)]
    return [*found, "--out", str(args.out)] if args.out is not None else found


def _train(plan: Plan, words: list[str], environment: dict[str, str], quiet: bool) -> int:
    command = [
        sys.executable, "-m", "torch.distributed.run", "--standalone",
        "--nproc-per-node", str(plan.cluster.devices), "-m", "executor", *words,
    ]  # fmt: skip
    sys.stdout.flush()
    done = subprocess.run(  # noqa: S603 (explicit arguments)
        command, env=environment, check=False, stdout=sys.stderr if quiet else None
    )
    if done.returncode:
        print("plan run: training ended early; the reason stands above", file=sys.stderr)
        return 1
    return 0
