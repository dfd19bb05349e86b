"""`torchrun -m executor plan.yaml --data FILES`: train a plan and measure it."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from executor.preflight import preflight
from hwmodels.errors import SpecError, refuse
from planner.plan import Plan, load_plan, write_atomically

if TYPE_CHECKING:
    from executor.measurement import RunRecord

BAD_INPUT, FAILED = 2, 1


def main() -> int:
    """Train, or with --check only say what would speak against it. Returns 2 for bad input, 1 for a failed run."""
    options = _parser().parse_args()
    first = os.environ.get("RANK", "0") == "0"
    started = os.environ.get("WORLD_SIZE")
    try:
        plan = load_plan(options.plan)
        refuse(preflight(plan, options.data, options.out, int(started) if started else None))
    except SpecError as error:
        if first:
            print(f"executor: {error.within(str(options.plan))}", file=sys.stderr)
        return BAD_INPUT
    if options.check:
        return 0
    if started is None:
        print("executor: start it with torchrun, or use plan run", file=sys.stderr)
        return BAD_INPUT
    return _train(plan, options, first)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="torchrun -m executor", description="Train a plan and measure it.")
    parser.add_argument("plan", type=Path)
    parser.add_argument("--data", type=Path, nargs="+", required=True, help="text files; their bytes are the tokens")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument("--out", type=Path, help="measurement file that gets a row")
    parser.add_argument("--report", type=Path, help="JSON file for the figures, or for what failed")
    parser.add_argument("--check", action="store_true", help="check the input and stop")
    return parser


def _train(plan: Plan, options: argparse.Namespace, first: bool) -> int:
    from executor.data import open_windows
    from executor.report import header, step_line, summary
    from executor.train import LossError, train

    if first:
        windows = len(open_windows(options.data, plan.job.sequence_length))
        print(header(plan, options.steps, windows), flush=True)

    def report(step, record, memory):  # type: ignore[no-untyped-def]
        line = step_line(plan, options.steps, step, record, memory)
        if line:
            print(line, flush=True)

    try:
        record = train(plan, options.data, options.steps, options.seed, options.learning_rate, report)
    except LossError as error:
        if first:
            print(f"executor: {error}", file=sys.stderr)
        if first and options.report is not None:
            write_atomically(options.report, json.dumps({"failed": str(error)}))
        # Whoever asked for a report reads the failure there, without torchrun's account of failed processes.
        leave(FAILED if options.report is None else 0)
    if first:
        print(summary(plan, record), flush=True)
        _write(plan, options, record)
    leave(0)


def _write(plan: Plan, options: argparse.Namespace, record: RunRecord) -> None:
    from executor.measurement import append_measurement
    from executor.report import comparison

    if options.out is not None:
        append_measurement(options.out, plan, record)
        print(f"Added a row to {options.out}.", flush=True)
    if options.report is not None:
        write_atomically(options.report, json.dumps(comparison(plan, record)))


def leave(code: int) -> NoReturn:
    """End this process together with the others.

    Gloo's threads may abort a process that ends in the usual way, so that nothing is left to the interpreter.
    """
    import torch.distributed as dist

    dist.barrier()
    dist.destroy_process_group()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    sys.exit(main())
