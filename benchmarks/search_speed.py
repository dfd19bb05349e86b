"""Layouts priced per second and core, and the wall time of whole searches, measured in one run.

Run: OMP_NUM_THREADS=1 .venv/bin/python benchmarks/search_speed.py
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from hwmodels.catalog import cluster_of
from planner.jobfile import load_job
from planner.search import search
from planner.space import SearchSpec, layouts
from sim.estimate import estimate

EXAMPLE = Path(__file__).parents[1] / "examples" / "llama3-70b-64xh100.yaml"


def pricing_rate() -> float:
    """Layouts per second of the closed-form estimate alone, best of five runs."""
    file = load_job(EXAMPLE)
    table = layouts(file.job, file.cluster, file.search)
    seconds = min(_timed(lambda: estimate(file.job, file.cluster, table)) for _ in range(5))
    return len(table) / seconds


def _timed(action) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def main() -> None:
    file = load_job(EXAMPLE)
    print(f"closed form: {pricing_rate():,.0f} layouts/s on one core")
    for nodes in (1, 8, 64, 512):
        cluster = cluster_of(f"dgx-h100 x {nodes}")
        result = search(file.job, cluster, SearchSpec())
        print(f"search on {cluster.devices:5d} GPUs: {result.evaluated:8,d} legal layouts, {result.seconds:.2f} s")
    print(f"plan search, start included: {_timed(lambda: _plan('search', str(EXAMPLE), '--json')):.2f} s")
    print(f"plan --help: {_timed(lambda: _plan('--help')):.2f} s")


def _plan(*arguments: str) -> None:
    """Run the command line in an empty folder."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "planner", *arguments]
        subprocess.run(command, check=True, capture_output=True, cwd=folder)


if __name__ == "__main__":
    main()
