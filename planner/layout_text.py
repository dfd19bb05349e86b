"""A layout as short text: `tp=8,pp=4,mbs=1` to read it, `tp8 pp4 dp2` to show it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from hwmodels.divisors import nearest_divisor
from hwmodels.errors import Fault, nearest_name, refuse, unknown_name
from hwmodels.job import TrainingJob
from hwmodels.layout import OFFLOADS, RECOMPUTE, SCHEDULES, Layout
from hwmodels.machine import PRECISIONS

Value = int | bool | str

_FIELDS: dict[str, str] = {
    "tp": "tensor_parallel",
    "pp": "pipeline_parallel",
    "vp": "virtual_stages",
    "cp": "context_parallel",
    "ep": "expert_parallel",
    "etp": "expert_tensor_parallel",
    "dp": "data_parallel",
    "sp": "sequence_parallel",
    "zero": "zero_stage",
    "shard": "shard_group",
    "mbs": "micro_batch_size",
    "gbs": "global_batch_size",
    "recompute": "recompute",
    "schedule": "schedule",
    "offload": "offload",
    "overlap": "overlap",
    "precision": "precision",
}
"""Short key -> field, of `Layout` or, for `_JOB_KEYS`, of `TrainingJob`."""
KEYS: tuple[str, ...] = tuple(_FIELDS)
"""The short keys, in the order in which a complete layout lists them."""
_JOB_KEYS = ("gbs", "precision")
_PIN_KEYS = ("tp", "pp", "vp", "cp", "dp", "ep", "etp", "sp", "zero", "shard", "mbs", "recompute")
"""Keys of the axes that a search varies."""
_WORDS: dict[str, Sequence[str]] = {
    "recompute": RECOMPUTE, "schedule": SCHEDULES, "offload": OFFLOADS, "precision": PRECISIONS,
}  # fmt: skip
_SWITCHES = ("sp", "overlap")
_BOOLS = {"true": True, "false": False}
_ITEM = re.compile(r"\s*([^=\s]+)\s*=\s*(\S+)\s*")
_GLUED = re.compile(r"\s*([a-z]+?)[ :]*(\d+)\s*")
LARGEST = 2**31 - 1
"""Largest whole number taken, so that products of two stay within the 64-bit columns of a layout table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Item:
    """One `key=value` of the text."""

    key: str
    value: str


def parse_layout(text: str, job: TrainingJob, devices: int) -> tuple[Layout, TrainingJob]:
    """The layout that `text` writes on `devices` devices, and `job` with the batch and precision that it overrides.

    What is not written is filled in: dp = devices / (tp x pp x cp); sp where tp > 1; zero = 1 where dp x cp > 1, unless
    shard=1 is written or the software stack does not combine ZeRO with pp > 1, else 0; shard = dp x cp under ZeRO, else
    1; schedule = interleaved_1f1b where vp > 1; every other degree 1, mbs = 1, recompute = none, overlap = true.
    Raises `SpecError` with all faults: unknown or repeated keys, illegal values, and degrees whose product is not the
    number of devices. Whether the job can run in the layout is for the rules of the search to say.
    """
    items, faults = _items(text)
    faults.extend(_key_faults(items))
    known = [item for item in items if item.key in _FIELDS]
    values: dict[str, Value] = {}
    for item in known:
        value = _value(item)
        if isinstance(value, Fault):
            faults.append(value)
        else:
            values[item.key] = value
    if not ({item.key for item in known} - set(values)) & {"tp", "pp", "cp", "dp"}:
        faults.extend(_product_faults(values, devices))
    refuse(fault.under("layout") for fault in faults)
    filled = _fill(values, job, devices)
    layout = Layout(**{_FIELDS[key]: value for key, value in filled.items() if key not in _JOB_KEYS})  # type: ignore[arg-type]
    overrides = {_FIELDS[key]: values[key] for key in _JOB_KEYS if key in values}
    return layout, replace(job, **overrides)  # type: ignore[arg-type]


def parse_pins(text: str) -> dict[str, Value]:
    """The fields of a search that `text` pins, as in `tp=16,zero=3`. Raises `SpecError` with all faults."""
    items, faults = _items(text)
    faults.extend(_key_faults(items))
    pins: dict[str, Value] = {}
    for item in items:
        if item.key in _FIELDS and item.key not in _PIN_KEYS:
            faults.append(Fault(path=item.key, found="a key that no search varies", legal=", ".join(_PIN_KEYS)))
        elif item.key in _FIELDS:
            value = _value(item)
            if isinstance(value, Fault):
                faults.append(value)
            else:
                pins[_FIELDS[item.key]] = value
    if not items and not faults:
        faults.append(Fault(path="", found=repr(text), legal="key=value, separated by commas", nearest="tp=1"))
    refuse(fault.under("layout") for fault in faults)
    return pins


def layout_columns(layout: Layout, job: TrainingJob) -> dict[str, Value]:
    """The complete layout under the short keys, with the batch and the precision of `job`."""
    return {key: getattr(job if key in _JOB_KEYS else layout, field) for key, field in _FIELDS.items()}


def layout_argument(layout: Layout, job: TrainingJob) -> str:
    """The complete layout as `key=value` text, which `parse_layout` reads back to an equal one."""
    return ",".join(f"{key}={_written(value)}" for key, value in layout_columns(layout, job).items())


def show_layout(layout: Layout) -> str:
    """The layout in few characters, for tables: what is neither 1 nor off, with tp, pp, dp and mbs always."""
    degrees = {
        "tp": layout.tensor_parallel, "pp": layout.pipeline_parallel, "vp": layout.virtual_stages,
        "cp": layout.context_parallel, "dp": layout.data_parallel, "ep": layout.expert_parallel,
        "etp": layout.expert_tensor_parallel,
    }  # fmt: skip
    parts = [f"{key}{value}" for key, value in degrees.items() if value > 1 or key in ("tp", "pp", "dp")]
    return " ".join([*parts, *_shown_switches(layout)])


def _shown_switches(layout: Layout) -> Iterator[str]:
    if layout.zero_stage:
        yield f"zero{layout.zero_stage}"
    if layout.shard_group != (_replicas(layout) if layout.zero_stage else 1):
        yield f"shard{layout.shard_group}"
    if layout.sequence_parallel:
        yield "sp"
    yield f"mbs{layout.micro_batch_size}"
    if layout.recompute != "none":
        yield f"recompute={layout.recompute}"
    if layout.schedule != _usual_schedule(layout.virtual_stages):
        yield f"schedule={layout.schedule}"
    if layout.offload != "none":
        yield f"offload={layout.offload}"
    if not layout.overlap:
        yield "overlap=false"


def _replicas(layout: Layout) -> int:
    return layout.data_parallel * layout.context_parallel


def _usual_schedule(virtual_stages: int) -> str:
    return "interleaved_1f1b" if virtual_stages > 1 else "1f1b"


def _written(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _items(text: str) -> tuple[list[_Item], list[Fault]]:
    """The items of `text`, and a fault for each part that is none."""
    items, faults = [], []
    for part in filter(str.strip, text.split(",")):
        match = _ITEM.fullmatch(part)
        if match:
            items.append(_Item(key=match[1], value=match[2]))
            continue
        glued = _GLUED.fullmatch(part)
        nearest = f"{glued[1]}={glued[2]}" if glued and glued[1] in _FIELDS else None
        faults.append(Fault(path="", found=repr(part), legal="key=value, separated by commas", nearest=nearest))
    return items, faults


def _key_faults(items: Sequence[_Item]) -> Iterator[Fault]:
    keys = [item.key for item in items]
    for key in dict.fromkeys(keys):
        if key not in _FIELDS:
            near = next((short for short, field in _FIELDS.items() if field == key), nearest_name(key, KEYS))
            yield Fault(path=key, found="unknown key", legal=", ".join(KEYS), nearest=near)
        elif keys.count(key) > 1:
            written = ", ".join(f"{item.key}={item.value}" for item in items if item.key == key)
            yield Fault(path=key, found=written, legal=f"{key} once")


def _value(item: _Item) -> Value | Fault:
    if item.key in _WORDS:
        return item.value if item.value in _WORDS[item.key] else unknown_name(item.key, item.value, _WORDS[item.key])
    if item.key in _SWITCHES:
        found = _BOOLS.get(item.value.lower())
        return Fault(path=item.key, found=repr(item.value), legal="true or false") if found is None else found
    return _number(item)


def _number(item: _Item) -> int | Fault:
    lowest, highest = (0, 3) if item.key == "zero" else (1, LARGEST)
    legal = "0, 1, 2 or 3" if item.key == "zero" else "a whole number, 1 or more"
    if not re.fullmatch(r"[-+]?[0-9]{1,18}", item.value):
        return Fault(path=item.key, found=repr(item.value), legal=legal)
    number = int(item.value)
    if not lowest <= number <= highest:
        return Fault(path=item.key, found=item.value, legal=legal, nearest=str(min(max(number, lowest), highest)))
    return number


def _product_faults(values: Mapping[str, Value], devices: int) -> Iterator[Fault]:
    """The fault of degrees that cannot use, or do not use, all devices."""
    tp, pp, cp = (int(values.get(key, 1)) for key in ("tp", "pp", "cp"))
    used = tp * pp * cp
    if devices % used:
        nearest = f"tp x pp x cp = {nearest_divisor(devices, used)}"
        yield Fault(path="", found=f"tp x pp x cp = {used}", legal=f"a divisor of {devices} devices", nearest=nearest)
    elif "dp" in values and used * int(values["dp"]) != devices:
        found = f"tp x pp x dp x cp = {used * int(values['dp'])}"
        yield Fault(path="dp", found=found, legal=f"{devices} devices", nearest=f"dp={devices // used}")


def _fill(values: Mapping[str, Value], job: TrainingJob, devices: int) -> dict[str, Value]:
    tp, pp, cp, vp = (int(values.get(key, 1)) for key in ("tp", "pp", "cp", "vp"))
    dp = int(values.get("dp", devices // (tp * pp * cp)))
    zero = int(values.get("zero", _usual_zero(values, dp * cp, job.stack.zero_with_pipeline if pp > 1 else 1)))
    usual: dict[str, Value] = {
        "dp": dp,
        "sp": tp > 1,
        "zero": zero,
        "shard": dp * cp if zero else 1,
        "schedule": _usual_schedule(vp),
    }
    return {**usual, **values}


def _usual_zero(values: Mapping[str, Value], replicas: int, supported: int) -> int:
    return min(1, supported) if replicas > 1 and values.get("shard") != 1 else 0
