"""Divisors of whole numbers, in a time that grows with the square root."""

from __future__ import annotations

from math import isqrt


def divisors(number: int) -> list[int]:
    """All divisors of `number`, ascending."""
    small = [d for d in range(1, isqrt(number) + 1) if number % d == 0]
    return sorted({*small, *(number // d for d in small)})


def nearest_divisor(number: int, wanted: int) -> int:
    """The divisor of `number` that is nearest to `wanted`, the smaller of two equally near ones."""
    return min(divisors(number), key=lambda d: (abs(d - wanted), d))
