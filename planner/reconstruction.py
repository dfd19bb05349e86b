"""From a measured row to a job, a cluster and a layout that can be priced, and what had to be filled in for that."""

from __future__ import annotations

from dataclasses import dataclass

from hwmodels import catalog
from hwmodels.job import TrainingJob
from hwmodels.layout import Layout
from hwmodels.machine import PRECISIONS, Cluster, Precision
from hwmodels.model import ModelSpec
from hwmodels.stack import Stack
from planner.ledger import Filled, Ledger
from planner.measured_cluster import measured_cluster
from planner.measured_layout import measured_layout
from planner.measured_model import measured_model
from planner.measurements import Configuration

_PRICED_TASKS = ("pretrain", "sft", "memory", "ci")
"""Full fine-tuning has the FLOPs of pretraining; memory and ci rows are pretraining steps too."""
_PRICED_AS: dict[str, Precision] = {"mxfp8": "fp8"}
"""Block-scaled fp8 runs on the tensor cores at the rate of fp8 (estimate: its scales cost nothing)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A measured row that can be priced. `filled` holds every value that the row did not state, by field."""

    job: TrainingJob
    cluster: Cluster
    layout: Layout
    filled: dict[str, Filled]


@dataclass(frozen=True, slots=True, kw_only=True)
class Skip:
    """A measured row that cannot be priced, with the first reason."""

    reason: str
    filled: dict[str, Filled]


def reconstruct(row: Configuration) -> Case | Skip:
    """What was run, completed from the catalog and the framework's defaults; or why that is not possible."""
    ledger = Ledger(row=row)
    if row.task not in _PRICED_TASKS:
        ledger.refuse(f"task {row.task} is not priced")
    precision = _precision(ledger)
    model = measured_model(ledger)
    layout = measured_layout(ledger, model.layers, bool(model.experts)) if model else None
    cluster = measured_cluster(ledger)
    job = _job(ledger, model, precision)
    if job is None or layout is None or cluster is None or ledger.reasons:
        return Skip(reason=ledger.reasons[0], filled=ledger.filled)
    return Case(job=job, cluster=cluster, layout=layout, filled=ledger.filled)


def _job(ledger: Ledger, model: ModelSpec | None, precision: Precision | None) -> TrainingJob | None:
    row = ledger.row
    for value, name in ((row.gbs, "global batch"), (row.seq_len, "sequence length")):
        if value is None:
            ledger.refuse(f"the {name} is not stated")
    if model is None or precision is None or row.gbs is None or row.seq_len is None:
        return None
    return TrainingJob(
        model=model,
        global_batch_size=row.gbs,
        sequence_length=row.seq_len,
        precision=precision,
        stack=_stack(ledger),
    )


def _stack(ledger: Ledger) -> Stack:
    """The software generation that the row's stack belongs to, or the nearest one to a stack that is not known."""
    name = ledger.row.stack
    if name not in catalog.stacks() and name not in catalog.stack_aliases():
        return catalog.stack(ledger.fill("generation", *ledger.default("generation")))
    found = catalog.stack(name)
    if found.name != name:
        ledger.fill("generation", found.name, f"stack {name} in the catalog")
    return found


def _precision(ledger: Ledger) -> Precision | None:
    value, source = ledger.default("precision")
    stated = ledger.stated("precision", value, source)
    if stated in _PRICED_AS:
        ledger.fill("precision", str(_PRICED_AS[stated]), f"{stated}, priced as the nearest precision")
        return _PRICED_AS[stated]
    for precision in PRECISIONS:
        if stated == precision:
            return precision
    ledger.refuse(f"precision {stated} is not priced")
    return None
