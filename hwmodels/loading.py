"""The one loader: YAML, JSON or plain data to frozen records, with every fault at once, each with its path."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import yaml
from cattrs import Converter
from cattrs.errors import (
    AttributeValidationNote,
    BaseValidationError,
    ForbiddenExtraKeysError,
    IterableValidationNote,
)
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn

from hwmodels.errors import Fault, SpecError, nearest_name
from hwmodels.units import Quantity, UnitError, exact, parse

T = TypeVar("T")


class _IllegalError(ValueError):
    """One value that is not legal; the path is added where it is caught."""

    def __init__(self, found: object, legal: str, nearest: str | None = None) -> None:
        super().__init__(legal)
        self.fault = Fault(path="", found=repr(found), legal=legal, nearest=nearest)


class _UniqueKeyLoader(yaml.SafeLoader):
    """SafeLoader that refuses a key written twice, which YAML would silently resolve to the last one."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key_node, _ in node.value:
            if key_node.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"key '{key_node.value}' appears twice", key_node.start_mark
                )
            seen.add(key_node.value)
        return super().construct_mapping(node, deep)


def read_text(path: Path) -> str:
    """The text of a file in UTF-8, with or without a byte order mark. Raises `SpecError` naming the file."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise SpecError([_missing(path, error)], str(path)) from None
    except UnicodeDecodeError:
        raise SpecError([Fault(path="", found="bytes that are not UTF-8", legal="a text file")], str(path)) from None


def read_document(path: Path) -> Any:
    """The plain data of a YAML or JSON file. Raises `SpecError` naming the file, and the line where it breaks off."""
    source, text = str(path), read_text(path)
    try:
        return json.loads(text) if path.suffix == ".json" else yaml.load(text, _UniqueKeyLoader)  # noqa: S506 (safe subclass)
    except json.JSONDecodeError as error:
        raise SpecError([Fault(path=f"line {error.lineno}", found=error.msg, legal="complete JSON")], source) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise SpecError([_broken_yaml(error)], source) from None


def _missing(path: Path, error: OSError) -> Fault:
    siblings = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
    nearest = nearest_name(path.name, siblings)
    where = str(path.parent / nearest) if nearest else None
    return Fault(path="", found=(error.strerror or "unreadable").lower(), legal="a readable file", nearest=where)


def _broken_yaml(error: Exception) -> Fault:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error).splitlines()[0]
    return Fault(path=f"line {mark.line + 1}" if mark else "", found=problem, legal="complete, valid YAML")


def structure(data: object, record: type[T], source: str = "") -> T:
    """`data` (mappings, lists, scalars) as a `record`. Raises `SpecError` with all faults."""
    try:
        return _CONVERTER.structure(data, record)
    except Exception as error:
        faults = tuple(_faults(error, ""))
        if not faults:
            raise
        raise SpecError(faults, source) from None


def unstructure(record: object) -> Any:
    """Plain data that `structure` reads back to an equal record; quantities as text with their unit."""
    return _CONVERTER.unstructure(record)


def _faults(error: BaseException, path: str) -> Iterator[Fault]:
    """The faults inside `error`; none for an error that bad input does not raise."""
    match error:
        case SpecError():
            yield from (fault.under(path) for fault in error.faults)
        case _IllegalError():
            yield error.fault.under(path)
        case ForbiddenExtraKeysError():
            legal = sorted(set(_keys(error.cl)))
            for key in sorted(error.extra_fields, key=str):
                near = nearest_name(key, legal)
                yield Fault(path=str(key), found="unknown key", legal=", ".join(legal), nearest=near).under(path)
        case BaseValidationError():
            for inner in error.exceptions:
                yield from _faults(inner, _deeper(path, inner))
        case KeyError():
            yield Fault(path="", found="nothing", legal="a value (this key is required)").under(path)


def _keys(record: type) -> Iterator[str]:
    return iter(record.__dataclass_fields__)  # type: ignore[attr-defined]


def _deeper(path: str, error: BaseException) -> str:
    for note in getattr(error, "__notes__", ()):
        if isinstance(note, IterableValidationNote):
            step = f"[{note.index}]" if isinstance(note.index, int) else f".{note.index}"
            return path + step if path else step.removeprefix(".")
        if isinstance(note, AttributeValidationNote):
            return f"{path}.{note.name}" if path else note.name
    return path


def _make_converter() -> Converter:
    converter = Converter(forbid_extra_keys=True, detailed_validation=True, omit_if_default=False)
    for kind, words in ((int, "a whole number"), (float, "a number"), (bool, "true or false"), (str, "text")):
        converter.register_structure_hook(kind, _scalar_hook(kind, words))
    converter.register_structure_hook_factory(_is_quantity, _quantity_reader)
    converter.register_unstructure_hook_factory(_is_quantity, _quantity_writer)
    converter.register_structure_hook_factory(lambda kind: _origin(kind) is Literal, _literal_reader)
    converter.register_structure_hook_factory(_is_record, lambda kind: _record_reader(kind, converter))
    converter.register_unstructure_hook_factory(_is_record, lambda kind: _record_writer(kind, converter))
    converter.register_structure_hook_factory(
        lambda kind: _origin(kind) is tuple, lambda kind: _list_reader(kind, converter)
    )
    converter.register_unstructure_hook_factory(
        lambda kind: _origin(kind) is tuple, lambda kind: _list_writer(kind, converter)
    )
    return converter


def _scalar_hook(kind: type, words: str) -> Callable[[Any, Any], Any]:
    accepted = (int, float) if kind is float else (kind,)

    def read(value: Any, _: Any) -> Any:
        if not isinstance(value, accepted) or (isinstance(value, bool) and kind is not bool):
            whole = str(int(value)) if kind is int and isinstance(value, float) and math.isfinite(value) else None
            raise _IllegalError(value, words, whole)
        return kind(value)

    return read


def _origin(kind: Any) -> Any:
    return get_origin(kind)


def _is_quantity(kind: Any) -> bool:
    return _origin(kind) is Annotated and any(isinstance(mark, Quantity) for mark in get_args(kind)[1:])


def _unit(kind: Any) -> str:
    return next(mark.unit for mark in get_args(kind)[1:] if isinstance(mark, Quantity))


def _quantity_reader(kind: Any) -> Callable[[Any, Any], float]:
    def read(value: Any, _: Any) -> float:
        try:
            return parse(value, _unit(kind))
        except UnitError as error:
            raise _IllegalError(value, error.legal, error.nearest) from None

    return read


def _quantity_writer(kind: Any) -> Callable[[float], str | float]:
    unit = _unit(kind)
    return (lambda value: value) if unit in ("fraction", "count") else (lambda value: exact(value, unit))


def _literal_reader(kind: Any) -> Callable[[Any, Any], Any]:
    legal = get_args(kind)

    def read(value: Any, _: Any) -> Any:
        if not any(value == choice and type(value) is type(choice) for choice in legal):
            raise _IllegalError(value, " | ".join(map(str, legal)), nearest_name(value, map(str, legal)))
        return value

    return read


def _is_record(kind: Any) -> bool:
    return isinstance(kind, type) and is_dataclass(kind)


def _resolve(kind: type) -> None:
    """Put the types of a record's fields in place of their names; cattrs would lose the units of quantities."""
    hints = get_type_hints(kind, include_extras=True)
    for field in fields(kind):
        field.type = hints[field.name]


def _record_writer(kind: type, converter: Converter) -> Callable[[Any], Any]:
    _resolve(kind)
    return make_dict_unstructure_fn(kind, converter)


def _record_reader(kind: type, converter: Converter) -> Callable[[Any, Any], Any]:
    _resolve(kind)
    read_mapping: Callable[[Any, Any], Any] = make_dict_structure_fn(
        kind, converter, _cattrs_forbid_extra_keys=True, _cattrs_detailed_validation=True
    )

    def read(value: Any, wanted: Any) -> Any:
        if isinstance(value, kind):
            return value
        if not isinstance(value, Mapping):
            raise _IllegalError(value, f"a mapping with the keys {', '.join(_keys(kind))}")
        return read_mapping(value, wanted)

    return read


def _list_reader(kind: Any, converter: Converter) -> Callable[[Any, Any], Any]:
    inner = converter.get_structure_hook(list[get_args(kind)[0]])  # type: ignore[misc]

    def read(value: Any, _: Any) -> Any:
        if not isinstance(value, (list, tuple)):
            raise _IllegalError(value, "a list")
        return tuple(inner(value, list))

    return read


def _list_writer(kind: Any, converter: Converter) -> Callable[[Any], Any]:
    inner = converter.get_unstructure_hook(get_args(kind)[0])
    return lambda values: [inner(value) for value in values]


_CONVERTER = _make_converter()
