"""What frameworks do where a source does not say, and what the models of a family share: two tables of the data."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from pathlib import Path

from planner.csv_rows import Reader, positive, read_cells, read_table, switch, whole, word

NO_END = 9999
"""Year of a default that still holds."""
_FOLDER = Path(str(files("hwmodels") / "data" / "measurements"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Default:
    """The `value` that `field` takes under the stacks that match the pattern `stack`, up to the year `until`."""

    stack: str
    until: int = NO_END
    field: str
    value: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """What the models whose name matches `pattern` share. `unsupported` says why such models cannot be priced.

    `ffn_ratio` is MLP width / hidden width, 0 where the family has no such rule.
    """

    pattern: str = ""
    unsupported: str = ""
    gated_mlp: bool = True
    activation: str = "silu"
    norm: str = "rmsnorm"
    qkv_bias: bool = False
    attention_output_bias: bool = False
    mlp_bias: bool = False
    qk_norm: bool = False
    tied_embeddings: bool = False
    learned_positions: bool = False
    latent: bool = False
    ffn_ratio: float = 0.0
    source: str


_DEFAULT: dict[str, Reader] = {**dict.fromkeys(("stack", "field", "value", "source"), word), "until": whole(1)}
_FAMILY: dict[str, Reader] = {
    **dict.fromkeys(("pattern", "unsupported", "activation", "norm", "source"), word),
    **dict.fromkeys(("gated_mlp", "qkv_bias", "attention_output_bias", "mlp_bias"), switch),
    **dict.fromkeys(("qk_norm", "tied_embeddings", "learned_positions", "latent"), switch),
    "ffn_ratio": positive,
}


def default(stack: str, year: int | None, field: str) -> Default | None:
    """The first default of `field` whose pattern matches `stack` and that holds in `year` (None: today), or None."""
    when = NO_END if year is None else year
    matching = (row for row in _defaults() if row.field == field and fnmatchcase(stack, row.stack))
    return next((row for row in matching if when <= row.until), None)


def family(model: str) -> Family:
    """The first family whose pattern is found in the name `model`; the last one matches every name."""
    return next(row for row in _families() if re.search(row.pattern, model, re.IGNORECASE))


@cache
def _defaults() -> tuple[Default, ...]:
    return tuple(Default(**values) for values in _records("framework_defaults.csv", _DEFAULT))  # type: ignore[arg-type]


@cache
def _families() -> tuple[Family, ...]:
    return tuple(Family(**values) for values in _records("model_families.csv", _FAMILY))  # type: ignore[arg-type]


def _records(name: str, readers: dict[str, Reader]) -> list[dict[str, object]]:
    return [read_cells(line, cells, readers)[0] for line, cells in read_table(_FOLDER / name).rows]
