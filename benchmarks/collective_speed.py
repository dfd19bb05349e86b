"""Seconds to price the communication of a million layouts, by axis and in all, and to build the topology graph.

Run: OMP_NUM_THREADS=1 .venv/bin/python benchmarks/collective_speed.py
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from hwmodels.catalog import cluster_of
from hwmodels.layout_table import distinct
from planner.jobfile import load_job
from planner.space import layouts
from sim.communication import Held, context_parallel_time, data_parallel_time, pipeline_time, tensor_parallel_time

EXAMPLE = Path(__file__).parents[1] / "examples" / "llama3-70b-64xh100.yaml"
LAYER = ("tensor_parallel", "context_parallel", "micro_batch_size", "sequence_parallel", "overlap")
ROWS = 1_000_000


def main() -> None:
    file = load_job(EXAMPLE)
    job, cluster = file.job, cluster_of("dgx-h100 x 512")
    table = layouts(job, cluster, file.search)
    table = table.take(np.arange(ROWS) % len(table))
    ones = np.ones(len(table))

    held = Held(parameters=ones * 1e9, experts=0 * ones, layers=ones)

    def layer(formula):
        kinds = distinct(table, LAYER)
        return kinds.spread(formula(table.take(kinds.first)))

    parts = {
        "tensor": lambda: layer(lambda rows: tensor_parallel_time(job, cluster, rows)),
        "context": lambda: layer(lambda rows: context_parallel_time(job, cluster, rows, np.ones(len(rows)))),
        "data": lambda: data_parallel_time(job, cluster, table, held, ones, ones, ones),
        "pipeline": lambda: pipeline_time(job, cluster, table, ones),
    }
    seconds = {name: min(_timed(part) for _ in range(3)) for name, part in parts.items()}
    print(f"communication of {len(table):,} layouts on {cluster.devices} GPUs, one core:")
    for name, value in seconds.items():
        print(f"  {name:10}{value:.2f} s")
    print(f"  {'all':10}{sum(seconds.values()):.2f} s")
    for nodes in (8, 128, 1250, 12500):
        print(f"graph of {8 * nodes:7,d} GPUs: {_timed(cluster_of(f'dgx-h100 x {nodes}').graph):.2f} s")


def _timed(action) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
