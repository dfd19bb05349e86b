"""The models that are known by name, and any model that a job file refers to."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hwmodels.errors import Fault, SpecError, unknown_name
from hwmodels.huggingface import looks_like_config, model_from_config
from hwmodels.loading import read_document, structure
from hwmodels.model import ModelSpec

_FOLDER = Path(__file__).parent / "data" / "models"
_LEGAL = "a model of the catalog, a path to a config.json, or an inline spec"


def models() -> tuple[str, ...]:
    """Names of the models in the catalog, in alphabetical order."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.json")))


def model(name: str) -> ModelSpec:
    """The model of the catalog with this `name`. Raises `SpecError` with the nearest name."""
    return model_from_config(published_config(name), name)


def published_config(name: str) -> dict[str, Any]:
    """The configuration of a model of the catalog, as published. Raises `SpecError` with the nearest name."""
    if name not in models():
        raise SpecError([_unknown(name)])
    config: dict[str, Any] = read_document(_FOLDER / f"{name}.json")
    return config


def model_source(name: str) -> str:
    """Where the dimensions of a model of the catalog were published. Raises `SpecError` with the nearest name."""
    return str(published_config(name)["_source"])


def load_model(reference: object, base_dir: Path) -> ModelSpec:
    """The model that `reference` stands for.

    A name of the catalog; or a path, relative to `base_dir`, to a config.json or its folder; or a mapping: the content
    of a config.json, or the fields of `ModelSpec`. A name of the catalog comes first; "./name" is always a path.
    Raises `SpecError` with all faults, which names the file where there is one.
    """
    if isinstance(reference, ModelSpec):
        return reference
    if isinstance(reference, Mapping):
        return _inline(reference, str(reference.get("name", reference.get("_name_or_path", "inline"))))
    if not isinstance(reference, str) or not reference.strip():
        raise SpecError([Fault(path="", found=repr(reference), legal=_LEGAL)])
    if reference in models():
        return model(reference)
    if is_path(reference, base_dir):
        path = base_dir / reference
        return _from_file(path / "config.json" if path.is_dir() else path)
    raise SpecError([_unknown(reference)])


def is_path(reference: str, base_dir: Path) -> bool:
    """Whether `reference` is meant as a path: written like one, or there is such a file in `base_dir`."""
    written = "/" in reference or reference.endswith((".json", ".yaml", ".yml"))
    return "\0" not in reference and (written or os.path.exists(base_dir / reference))  # noqa: PTH110 (never raises)


def _unknown(name: str) -> Fault:
    fault = unknown_name("", name, models())
    return Fault(path="", found=fault.found, legal=f"{_LEGAL}; the catalog has {fault.legal}", nearest=fault.nearest)


def _from_file(path: Path) -> ModelSpec:
    data = read_document(path)
    if not isinstance(data, Mapping):
        found = type(data).__name__
        raise SpecError([Fault(path="", found=found, legal="a mapping, as in a config.json")], str(path))
    name = path.absolute().parent.name if path.name == "config.json" else path.stem
    try:
        return _inline(data, name)
    except SpecError as error:
        raise error.within(str(path)) from None


def _inline(data: Mapping[str, object], name: str) -> ModelSpec:
    return model_from_config(data, name) if looks_like_config(data) else structure({"name": name, **data}, ModelSpec)
