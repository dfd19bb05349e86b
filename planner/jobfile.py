"""A job file: what to train, on which machines, and what the search may vary."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from hwmodels import catalog
from hwmodels.errors import Fault, SpecError, nearest_name, positive_faults, refuse
from hwmodels.job import Optimizer, TrainingJob
from hwmodels.loading import read_document, structure
from hwmodels.machine import Cluster, Precision
from hwmodels.model import ModelSpec
from hwmodels.models import is_path, load_model
from hwmodels.units import Count, Seconds, Usd
from planner.space import SearchSpec

DEFAULT_STACK = "megatron-core-2025"
"""Software generation of a job file that names none."""
LARGEST = 2**31 - 1
"""Largest batch and sequence length taken, so that their product stays within 64 bits."""
_KEYS = ("model", "cluster", "training", "search", "deadline", "budget")
_REQUIRED = ("model", "cluster", "training")
_AXES = tuple(field.name for field in fields(SearchSpec) if field.name != "objective")
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFile:
    """The content of a job file."""

    job: TrainingJob
    cluster: Cluster
    search: SearchSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class _Training:
    """The section `training`, with the stack by its name."""

    global_batch_size: int
    sequence_length: int
    tokens: Count = 0.0
    precision: Precision = "bf16"
    optimizer: Optimizer = "adamw"
    stack: str = DEFAULT_STACK

    def __post_init__(self) -> None:
        refuse(self._faults())

    def _faults(self) -> Iterator[Fault]:
        yield from positive_faults(self, "global_batch_size", "sequence_length")
        for field in ("global_batch_size", "sequence_length"):
            if getattr(self, field) > LARGEST:
                yield Fault(path=field, found=str(getattr(self, field)), legal=f"at most {LARGEST}")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Limits:
    """The keys `deadline` and `budget`; 0 where there is none."""

    deadline: Seconds = 0.0
    budget: Usd = 0.0


def load_job(path: Path) -> JobFile:
    """The job in the file at `path`. Relative paths in it start from its folder.

    Raises `SpecError` with all faults of the file, and of the files that it refers to.
    """
    data = read_document(path)
    try:
        return read_job(data, path.parent)
    except SpecError as error:
        raise error.within(str(path)) from None


def read_job(data: object, base_dir: Path) -> JobFile:
    """The job in `data`, the content of a job file, whose relative paths start from `base_dir`.

    Raises `SpecError` with all faults, each with its path.
    """
    if not isinstance(data, Mapping):
        legal = f"a job file: a mapping with the keys {', '.join(_KEYS)}"
        raise SpecError([Fault(path="", found="nothing" if data is None else type(data).__name__, legal=legal)])
    faults = list(_key_faults(data))
    model = _section(faults, data, "model", lambda value: load_model(value, base_dir))
    cluster = _section(faults, data, "cluster", lambda value: _cluster(value, base_dir))
    training = _section(faults, data, "training", lambda value: structure(value, _Training))
    search = _section(faults, {"search": {}} if data.get("search") is None else data, "search", _search)
    limits = _try(faults, "", lambda: structure(_given(data, "deadline", "budget"), _Limits))
    job = _job(faults, model, training, limits or _Limits()) if training else None
    if job is None or cluster is None or search is None or faults:
        raise SpecError(faults)
    return JobFile(job=job, cluster=cluster, search=search)


def _job(faults: list[Fault], model: ModelSpec | None, training: _Training, limits: _Limits) -> TrainingJob | None:
    stack = _try(faults, "training.stack", lambda: catalog.stack(training.stack))
    if model is None:
        return None
    # With the default stack in place of an unknown one, the faults of the other fields are still found.
    known = stack or catalog.stack(DEFAULT_STACK)
    sizes = {field.name: getattr(training, field.name) for field in fields(training) if field.name != "stack"}
    stated = {**sizes, "deadline": limits.deadline, "budget": limits.budget}
    return _try(faults, "training", lambda: TrainingJob(model=model, stack=known, **stated))


def _given(data: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: data[key] for key in keys if data.get(key) is not None}


def _key_faults(data: Mapping[Any, object]) -> Iterator[Fault]:
    for key in data:
        if key not in _KEYS:
            near = nearest_name(key, _KEYS)
            yield Fault(path=str(key), found="unknown key", legal=", ".join(_KEYS), nearest=near)
    for key in _REQUIRED:
        if data.get(key) is None:
            yield Fault(path=key, found="nothing", legal="a value (this key is required)")


def _section(faults: list[Fault], data: Mapping[str, Any], key: str, read: Callable[[Any], T]) -> T | None:
    """What `read` makes of the value at `key`; None where there is no value, or where its faults have been added."""
    return None if data.get(key) is None else _try(faults, key, lambda: read(data[key]))


def _try(faults: list[Fault], path: str, read: Callable[[], T]) -> T | None:
    try:
        return read()
    except SpecError as error:
        where = f" in {error.source}" if error.source else ""
        faults.extend(replace(fault, found=fault.found + where).under(path) for fault in error.faults)
        return None


def _cluster(reference: object, base_dir: Path) -> Cluster:
    if isinstance(reference, Cluster):
        return reference
    if isinstance(reference, str) and reference.strip():
        is_file = is_path(reference, base_dir)
        return catalog.load_cluster(base_dir / reference) if is_file else catalog.cluster_of(reference)
    if isinstance(reference, Mapping):
        return catalog.load_cluster(reference)
    legal = "a node of the catalog x a count, a path to a cluster file, or an inline spec"
    raise SpecError([Fault(path="", found=repr(reference), legal=legal, nearest="dgx-h100 x 8")])


def _search(section: object) -> SearchSpec:
    """The section `search`: a scalar pins an axis, a list restricts it, null or no key leaves it free."""
    if isinstance(section, SearchSpec) or not isinstance(section, Mapping):
        return structure(section, SearchSpec)
    scalars = {key for key, value in section.items() if key != "objective" and not isinstance(value, (list, tuple))}
    lists = {key: [value] if key in scalars else value for key, value in section.items() if value is not None}
    faults = [
        Fault(path=str(key), found="an empty list", legal="at least one value, or no such key to leave the axis free")
        for key, value in lists.items()
        if key in _AXES and value in ([], ())
    ]
    found = _try(faults, "", lambda: structure(lists, SearchSpec))
    if found is None or faults:
        raise SpecError(_without_index(fault, scalars) for fault in faults)
    return _each_once(found)


def _without_index(fault: Fault, scalars: set[str]) -> Fault:
    """The fault of a scalar names its key, not position 0 of the list that it was read as."""
    key = fault.path.removesuffix("[0]")
    return replace(fault, path=key) if key in scalars else fault


def _each_once(search: SearchSpec) -> SearchSpec:
    distinct: dict[str, Any] = {axis: tuple(dict.fromkeys(getattr(search, axis))) for axis in _AXES}
    return replace(search, **distinct)
