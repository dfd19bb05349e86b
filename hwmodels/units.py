"""Quantities as people write them ("80 GB", "400 Gb/s") and as the code holds them (floats in SI)."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated

from hwmodels.errors import nearest_name


@dataclass(frozen=True, slots=True)
class Quantity:
    """Marks a float field with its SI unit; the loader reads such a field only with a unit."""

    unit: str


Bytes = Annotated[float, Quantity("B")]
BytesPerSecond = Annotated[float, Quantity("B/s")]
Seconds = Annotated[float, Quantity("s")]
Flop = Annotated[float, Quantity("FLOP")]
FlopPerSecond = Annotated[float, Quantity("FLOP/s")]
Watts = Annotated[float, Quantity("W")]
Joules = Annotated[float, Quantity("J")]
Usd = Annotated[float, Quantity("USD")]
UsdPerHour = Annotated[float, Quantity("USD/h")]
UsdPerKwh = Annotated[float, Quantity("USD/kWh")]
Fraction = Annotated[float, Quantity("fraction")]
Count = Annotated[float, Quantity("count")]

_SI = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
_IEC = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50}
_COUNT = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}


def _si(symbol: str, scale: float = 1.0) -> dict[str, float]:
    return {prefix + symbol: factor * scale for prefix, factor in _SI.items()}


def _byte_units(tail: str) -> dict[str, float]:
    return _si("B" + tail) | {f"{prefix}B{tail}": factor for prefix, factor in _IEC.items()}


_UNITS: dict[str, dict[str, float]] = {
    "B": _byte_units(""),
    "B/s": _byte_units("/s") | _si("b/s", 1 / 8),
    "s": {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "y": 31557600.0},
    "FLOP": _si("FLOP"),
    "FLOP/s": _si("FLOP/s"),
    "W": _si("W"),
    "J": _si("J") | _si("Wh", 3600.0),
    "USD": {f"{prefix}USD": factor for prefix, factor in _COUNT.items()} | {"USD": 1.0},
    "USD/h": {"USD/h": 1.0},
    "USD/kWh": {"USD/kWh": 1.0},
    "fraction": {"": 1.0, "fraction": 1.0, "%": 0.01},
    "count": _COUNT | {f"{prefix}tokens": factor for prefix, factor in _COUNT.items()},
}
_EXAMPLES = {
    "B": "80 GB", "B/s": "400 Gb/s", "s": "5 us", "FLOP": "1 PFLOP", "FLOP/s": "989 TFLOP/s", "W": "700 W",
    "J": "3 kWh",
    "USD": "2M USD", "USD/h": "2.10 USD/h", "USD/kWh": "0.08 USD/kWh", "fraction": "80%", "count": "1T",
}  # fmt: skip
_SHOWN = {
    "B": ("TB", "GB", "MB", "kB", "B"),
    "B/s": ("TB/s", "GB/s", "MB/s", "kB/s", "B/s"),
    "s": ("y", "d", "h", "min", "s", "ms", "us", "ns"),
    "count": ("T", "B", "M", "k", ""),
    "fraction": ("%",),
    "USD": ("BUSD", "MUSD", "kUSD", "USD"),
}
_NUMBER = re.compile(r"\s*([-+]?(?:\d+(?:,\d{3})*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*(.*?)\s*$")


class UnitError(ValueError):
    """A text that is not a quantity of the wanted unit. `legal` and `nearest` say what would be."""

    def __init__(self, legal: str, nearest: str | None = None) -> None:
        super().__init__(legal)
        self.legal = legal
        self.nearest = nearest


def parse(text: object, unit: str) -> float:
    """The value of `text` in the SI `unit`. Bare numbers pass only for counts and fractions. Raises `UnitError`."""
    legal = f"a number with a unit, as in '{_EXAMPLES[unit]}'"
    plain = isinstance(text, (int, float)) and not isinstance(text, bool)
    match = _NUMBER.match(str(text)) if plain or isinstance(text, str) else None
    if match is None:
        raise UnitError(legal)
    symbol = re.sub(r"\s+", "", match[2])
    units = _UNITS[unit]
    if symbol not in units:
        close = nearest_name(symbol, units) if symbol else _EXAMPLES[unit].split()[-1]
        raise UnitError(legal, f"{match[1]} {close}" if close else None)
    value = float(Decimal(match[1].replace(",", "")) * Decimal(repr(units[symbol])))
    if not math.isfinite(value) or value < 0:
        raise UnitError(f"{legal}, finite and not below 0")
    return value


def exact(value: float, unit: str) -> str:
    """`value` in its SI unit, in digits that `parse` reads back to the same float."""
    return f"{value!r} {unit}" if unit not in ("fraction", "count") else repr(value)


def show(value: float, unit: str, digits: int = 3) -> str:
    """`value` for people: the largest unit that leaves at least one whole, with `digits` significant digits."""
    if unit in ("USD/h", "USD/kWh"):
        return f"{value:.2f} {unit}"
    symbols = _SHOWN.get(unit) or tuple(reversed(_si(unit)))
    symbol = next((symbol for symbol in symbols if abs(value) >= _UNITS[unit][symbol]), symbols[-1])
    number = _significant(value / _UNITS[unit][symbol], digits)
    if unit == "USD":
        return f"{number}{symbol[:-3]} USD"
    return f"{number}{symbol}" if unit in ("count", "fraction") else f"{number} {symbol}"


def _significant(value: float, digits: int) -> str:
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
