"""Host lists as Slurm writes them: `node[01-03,07],login1`.

Source: Slurm documentation, "Hostlist expressions".
"""

from __future__ import annotations

import re


def expand(text: str) -> list[str]:
    """The names that `text` stands for. Raises `ValueError` for an unclosed bracket or a range that is none."""
    return [name for part in _split(text) for name in _expanded(part)]


def _split(text: str) -> list[str]:
    """Parts between commas outside brackets."""
    parts, depth, current = [], 0, ""
    for letter in text:
        depth += (letter == "[") - (letter == "]")
        if letter == "," and depth == 0:
            parts.append(current)
            current = ""
        else:
            current += letter
    if depth:
        raise ValueError(f"unclosed bracket in {text!r}")
    return [part for part in (*parts, current) if part]


def _expanded(part: str) -> list[str]:
    match = re.fullmatch(r"([^\[\]]*)\[([^\[\]]+)\](.*)", part)
    if match is None:
        if "[" in part or "]" in part:
            raise ValueError(f"bracket in {part!r}")
        return [part]
    head, ranges, tail = match.groups()
    numbers = [number for each in ranges.split(",") for number in _numbers(each)]
    return [f"{head}{number}{rest}" for number in numbers for rest in _expanded(tail) or [""]]


def _numbers(text: str) -> list[str]:
    match = re.fullmatch(r"(\d+)(?:-(\d+))?", text)
    if match is None or (match[2] and int(match[2]) < int(match[1])):
        raise ValueError(f"range {text!r}")
    last = int(match[2] or match[1])
    if last - int(match[1]) > 1_000_000:
        raise ValueError(f"range {text!r} of more than a million names")
    return [str(number).zfill(len(match[1])) for number in range(int(match[1]), last + 1)]
