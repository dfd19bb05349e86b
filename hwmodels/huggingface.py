"""Read a model from a Hugging Face `config.json`, with the defaults of transformers for keys that it leaves out.

Source: transformers 5.24, configuration_{llama,mistral,qwen2,qwen3,gpt2}.py (keys and defaults), modeling_*.py of the
same (which projections have a bias, where queries and keys are normalized), modeling_rope_utils.py (where the rotary
base is found).
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterator, Mapping
from dataclasses import fields

from hwmodels.errors import Fault, SpecError, refuse, unknown_name
from hwmodels.families import ACTIVATIONS, FAMILIES, Family, Values, sliding_layers
from hwmodels.model import ModelSpec

_EXPERT_KEYS = ("num_local_experts", "num_experts", "n_routed_experts", "moe_intermediate_size")
_OTHER_ATTENTION = ("add_cross_attention", "is_encoder_decoder")
_NULLABLE = (
    "num_key_value_heads", "sliding_window", "layer_types", "mlp_only_layers", "q_lora_rank", "n_shared_experts",
)  # fmt: skip
"""Keys that may be null although their default is not."""
_FROM_ZERO = ("max_window_layers", "first_k_dense_replace", "n_shared_experts", "sliding_window")
_TYPO = 0.85
"""Spelling likeness from which an unknown key counts as a misspelt one (estimate); published files add many keys."""


def model_from_config(config: Mapping[str, object], name: str) -> ModelSpec:
    """The model that a published `config.json` describes, under `name`.

    Rotary scaling is not kept: it changes no shape. Raises `SpecError` with all faults, each named by its key; for an
    architecture that is not a decoder of a supported type, with one fault that says what to do.
    """
    family = _family(config)
    refuse(_unsupported(config, family))
    faults = list(_typos(config, family))
    values, bad = _read(config, family, faults)
    faults.extend(_cross_faults(values, family, bad))
    try:
        model = ModelSpec(name=name, **_spec(values, family, bad))
    except SpecError as error:
        raise SpecError([*faults, *(_renamed(fault, family) for fault in error.faults)]) from None
    refuse(faults)
    return model


def looks_like_config(data: Mapping[str, object]) -> bool:
    """Whether `data` is written with the keys of a `config.json`, rather than with the fields of `ModelSpec`."""
    return any(key in data for key in ("model_type", "architectures", "hidden_size", "n_embd"))


def _family(config: Mapping[str, object]) -> Family:
    found = config.get("model_type")
    if isinstance(found, str) and found in FAMILIES:
        return FAMILIES[found]
    fields_of_spec = ", ".join(field.name for field in fields(ModelSpec))
    plain = str(found).lower().replace("-", "").replace("_", "")
    raise SpecError([Fault(
        path="model_type",
        found="nothing" if found is None else repr(found),
        legal=f"{', '.join(sorted(FAMILIES))}; describe any other decoder by the keys {fields_of_spec}",
        nearest=plain if plain in FAMILIES else None,
    )])  # fmt: skip


def _unsupported(config: Mapping[str, object], family: Family) -> Iterator[Fault]:
    for key in _EXPERT_KEYS:
        if config.get(key) is not None and "num_experts_per_tok" not in family.defaults:
            yield Fault(path=key, found=repr(config[key]), legal="a dense model, which has no such key")
    for key in _OTHER_ATTENTION:
        if config.get(key):
            yield Fault(path=key, found=repr(config[key]), legal="false: a decoder without cross attention")


def _typos(config: Mapping[str, object], family: Family) -> Iterator[Fault]:
    """A fault for each unknown key that is spelled like a key that is read and that the file lacks."""
    absent = [key for key in family.defaults if key not in config]
    for key in config:
        close = difflib.get_close_matches(str(key), absent, n=1, cutoff=_TYPO) if key not in family.defaults else []
        if close:
            yield Fault(path=str(key), found="unknown key", legal="a key of this model type", nearest=close[0])


def _read(config: Mapping[str, object], family: Family, faults: list[Fault]) -> tuple[Values, set[str]]:
    """The value of each key, a default in place of a faulty one; and the faulty keys, whose faults are added."""
    values: Values = dict(family.defaults)
    bad = set()
    for key, default in family.defaults.items():
        if key not in config:
            continue
        if config[key] is None and (default is None or key in _NULLABLE):
            values[key] = None
            continue
        fault = _value_fault(key, config[key], int if default is None else type(default))
        if fault is None:
            values[key] = config[key]
        else:
            faults.append(fault)
            bad.add(key)
    if "rope_theta" in family.defaults:
        fault = _read_rope_theta(config, values)
        faults.extend([fault] if fault else [])
    return values, bad


def _value_fault(key: str, found: object, kind: type) -> Fault | None:
    if kind in (int, float):
        return _number_fault(key, found, kind)
    words = {bool: "true or false", str: "text", list: "a list of texts"}[kind]
    if not isinstance(found, kind):
        return Fault(path=key, found=repr(found), legal=words)
    if key in ("hidden_act", "activation_function") and found not in ACTIVATIONS:
        return unknown_name(key, found, ACTIVATIONS)
    return None


def _number_fault(key: str, found: object, kind: type) -> Fault | None:
    lowest = 0 if key in _FROM_ZERO else 1
    legal = f"a whole number, {lowest} or more" if kind is int else "a finite number above 0"
    number = isinstance(found, (int, float)) and not isinstance(found, bool)
    if not number or not math.isfinite(found):  # type: ignore[arg-type]
        return Fault(path=key, found=repr(found), legal=legal)
    assert isinstance(found, (int, float))  # noqa: S101 (narrows the type that `number` has checked)
    if kind is int and not isinstance(found, int):
        return Fault(path=key, found=repr(found), legal=legal, nearest=str(max(lowest, round(found))))
    if found < lowest if kind is int else found <= 0:
        return Fault(path=key, found=repr(found), legal=legal, nearest=str(lowest) if kind is int else None)
    return None


def _read_rope_theta(config: Mapping[str, object], values: Values) -> Fault | None:
    """Take the rotary base from `rope_scaling` or else `rope_parameters`, where the file keeps it there."""
    key = "rope_scaling" if config.get("rope_scaling") else "rope_parameters"
    found = config.get(key)
    if not found:
        return None
    if not isinstance(found, Mapping):
        return Fault(path=key, found=repr(found), legal="a mapping, or null")
    nested = found.get("full_attention")
    inner = nested if isinstance(nested, Mapping) else found
    if "rope_theta" not in inner:
        return None
    fault = _number_fault(f"{key}.rope_theta", inner["rope_theta"], float)
    if fault is None:
        values["rope_theta"] = inner["rope_theta"]
    return fault


def _cross_faults(values: Values, family: Family, bad: set[str]) -> Iterator[Fault]:
    hidden, heads = family.keys["hidden"], family.keys["heads"]
    head_dim_follows = values.get("head_dim") is None and "qk_rope_head_dim" not in family.defaults
    if head_dim_follows and not bad & {hidden, heads, "head_dim"} and values[hidden] % values[heads]:
        low = values[hidden] // values[heads] * values[heads]
        legal = f"a multiple of {heads}={values[heads]}"
        if "head_dim" in family.defaults:
            legal += ", or a head_dim beside it"
        yield Fault(path=hidden, found=str(values[hidden]), legal=legal, nearest=str(low or values[heads]))
    if "use_sliding_window" in family.defaults and not bad & {"layer_types", "max_window_layers"}:
        yield from _window_faults(values, bad)


def _window_faults(values: Values, bad: set[str]) -> Iterator[Fault]:
    """A model whose layers differ in their attention span is not one that `ModelSpec` can hold."""
    sliding = sliding_layers(values)
    if values["use_sliding_window"] and not bad & {"num_hidden_layers"} and 0 < sliding < values["num_hidden_layers"]:
        path = "layer_types" if values["layer_types"] else "max_window_layers"
        yield Fault(
            path=path,
            found=f"sliding attention in {sliding} of {values['num_hidden_layers']} layers",
            legal="the same attention in all layers",
            nearest="use_sliding_window: false",
        )


def _spec(values: Values, family: Family, bad: set[str]) -> Values:
    """The fields of `ModelSpec`. A faulty number of heads is replaced, so that it is not blamed twice."""
    spec = {field: values[key] for field, key in family.keys.items()} | family.spec(values)
    heads, hidden = spec["heads"], spec["hidden"]
    spec.setdefault("head_dim", values.get("head_dim") or max(1, hidden // heads))
    spec.setdefault("kv_heads", values.get("num_key_value_heads") or heads)
    if bad & {family.keys["heads"], "num_key_value_heads"}:
        spec["kv_heads"] = heads
    return spec


def _renamed(fault: Fault, family: Family) -> Fault:
    names = {**family.keys, "kv_heads": "num_key_value_heads"}
    legal = fault.legal.replace("heads=", f"{family.keys['heads']}=")
    return Fault(path=names.get(fault.path, fault.path), found=fault.found, legal=legal, nearest=fault.nearest)
