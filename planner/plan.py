"""The plan file: the one thing that planning and running share."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import yaml

from hwmodels.errors import Fault, SpecError
from hwmodels.job import TrainingJob
from hwmodels.layout import Layout
from hwmodels.loading import read_document, structure, unstructure
from hwmodels.machine import Cluster
from planner.candidate import Candidate
from sim.step import StepEstimate

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """What made a plan: the version of this software, the digest of its catalog, and the size of the search."""

    meshwright: str
    catalog: str
    evaluated: int
    feasible: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The chosen layout of a job on a cluster, with its estimate, the runners-up and where it came from."""

    schema_version: int = SCHEMA_VERSION
    job: TrainingJob
    cluster: Cluster
    layout: Layout
    estimate: StepEstimate
    runners_up: tuple[Candidate, ...] = ()
    provenance: Provenance


def dump_plan(plan: Plan) -> str:
    """`plan` as YAML text that `load_plan` reads back to an equal plan."""
    return yaml.dump(unstructure(plan), sort_keys=False, width=110, allow_unicode=True)


def write_plan(plan: Plan, path: Path) -> None:
    """Write `plan` to `path` at once or not at all."""
    write_atomically(path, dump_plan(plan))


def write_atomically(path: Path, text: str) -> None:
    """Write `text` to `path` so that no reader ever sees half of it. Raises `SpecError` where that cannot be done."""
    try:
        handle, partial = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(partial).chmod(0o644)
        Path(partial).replace(path)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise SpecError([Fault(path="", found=reason, legal="a place that can be written")], str(path)) from None


def load_plan(path: Path) -> Plan:
    """The plan in `path`. Raises `SpecError` for a file of another schema version or with any fault."""
    data = read_document(path)
    faults = list(_header_faults(data))
    if faults:
        raise SpecError(faults, str(path))
    plan = structure(data, Plan, str(path))
    if plan.layout.world_size != plan.cluster.devices:
        raise SpecError([_world_fault(plan)], str(path))
    return plan


def _header_faults(data: Any) -> list[Fault]:
    if not isinstance(data, dict):
        return [Fault(path="", found=type(data).__name__, legal="a plan, as written by `plan search --out`")]
    found = data.get("schema_version")
    if found != SCHEMA_VERSION:
        legal = f"{SCHEMA_VERSION}; plan again with `plan search` to write the current version"
        return [Fault(path="schema_version", found=str(found), legal=legal, nearest=str(SCHEMA_VERSION))]
    return []


def _world_fault(plan: Plan) -> Fault:
    found = f"{plan.layout.world_size} ranks"
    return Fault(path="layout", found=found, legal=f"as many ranks as the cluster has devices: {plan.cluster.devices}")


def provenance(catalog: str, evaluated: int, feasible: int) -> Provenance:
    """The provenance of a plan made by this installation."""
    return Provenance(meshwright=version("meshwright"), catalog=catalog, evaluated=evaluated, feasible=feasible)
