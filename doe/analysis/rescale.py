"""Magnitudes: work on numbers near 1, and give results in the unit of the response."""

from __future__ import annotations

import math
from typing import Any, TypeVar

from msgspec import Struct, structs

T = TypeVar("T")
LARGEST = 1e100
"""Squares of larger values, and of values below its inverse, come near the ends of the floats."""


def units(**powers: int) -> dict[str, int]:
    """Which power of the response's unit each field of a value has; 0 keeps what is inside."""
    return powers


def power_of_two(largest: float) -> float:
    """A factor that takes values up to `largest` to about 1 without rounding; mostly 1."""
    if largest == 0.0 or 1.0 / LARGEST < largest < LARGEST:
        return 1.0
    return math.ldexp(1.0, min(math.frexp(largest)[1], 1023))


def rescaled(value: T, factor: float) -> T:
    """The same result for a response that is `factor` times as large."""
    changed: Any = value
    if isinstance(value, Struct):
        powers: dict[str, int] = getattr(type(value), "UNITS", {})
        changes = {
            name: _times(getattr(value, name), factor, powers[name])
            if name in powers
            else rescaled(getattr(value, name), factor)
            for name in value.__struct_fields__
        }
        changed = structs.replace(value, **changes)
    elif isinstance(value, tuple):
        changed = tuple(rescaled(item, factor) for item in value)
    elif isinstance(value, dict):
        changed = {key: rescaled(item, factor) for key, item in value.items()}
    return changed  # type: ignore[no-any-return]


def _times(value: Any, factor: float, power: int) -> Any:
    if isinstance(value, tuple):
        return tuple(_times(item, factor, power) for item in value)
    for _ in range(power):
        value = None if value is None else value * factor
    return value
