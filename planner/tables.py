"""Tables and paragraphs of at most 100 columns, for people."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill, shorten

from tabulate import tabulate

WIDTH = 100


def table(
    head: Sequence[str], lines: Sequence[Sequence[str]], left: int = 1, widths: Sequence[int | None] | None = None
) -> str:
    """`lines` under `head`: the first `left` columns flush left, the others right; cells wrapped at `widths`."""
    sides = tuple("left" if column < left else "right" for column in range(len(head)))
    return tabulate(
        lines, head, tablefmt="simple", disable_numparse=True, colalign=sides if lines else None, maxcolwidths=widths
    )


def facts(pairs: Sequence[tuple[str, str]]) -> str:
    """Names and values, one pair a line, the values aligned and wrapped."""
    width = max((len(name) for name, _ in pairs), default=0) + 2
    return "\n".join(paragraph(value, f"{name:<{width}}", " " * width) for name, value in pairs)


def paragraph(text: str, first: str = "", rest: str = "") -> str:
    """`text` wrapped, after `first` on its first line and `rest` on the others."""
    return fill(
        text, WIDTH, initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
    )


def short(text: str, width: int) -> str:
    """`text` on one line of at most `width` columns, with dots where it has been cut."""
    return shorten(text, width, placeholder="...")


def percent(value: float, digits: int = 1) -> str:
    """A fraction in per cent."""
    return f"{value:.{digits}%}"
