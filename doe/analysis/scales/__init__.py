"""Scales on which a response can be analysed, one module each.

A module here offers ``SCALE`` under the name that is asked for, such as log; nothing else
needs to know it. The names are known without importing any of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from doe.analysis.contrasts import Floats


class Scale(NamedTuple):
    """The way to a scale and back."""

    forward: Callable[[Floats], Floats]
    back: Callable[[Floats], Floats]  # NaN where no response maps there
    label: str  # how the response reads on this scale
    ratio: str = ""  # of what exp(effect) is a ratio: "geometric mean", "odds"
    low: float = 0.0  # values must lie above
    high: float = math.inf  # and below


def _same(values: Floats) -> Floats:
    return values


IDENTITY = Scale(_same, _same, "{}", low=-math.inf)


def scale_names() -> tuple[str, ...]:
    """Return the response as it is, and every scale of this package."""
    return ("none", *(module.name for module in iter_modules(__path__)))


def scale_of(name: str) -> Scale:
    """Return a scale by its name."""
    if name == "none":
        return IDENTITY
    scale: Scale = import_module(f"{__name__}.{name}").SCALE
    return scale


def choices() -> tuple[str, ...]:
    """Return what may be asked for: a scale, a power to be found, or the better of raw and log."""
    return (*scale_names(), "boxcox", "auto")
