"""Further analyses of a fitted response, one module each.

A module here offers ``estimate(response) -> Struct | None``: a frozen value, or None where the data
do not allow it. The JSON document shows the value under the module's name, and a view asks for it
by its type, ``analysis.get(Dispersion)``. Nothing else needs to know the module.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from msgspec import Struct

from doe.analysis.fitted import FittedResponse


def estimate_all(response: FittedResponse) -> dict[str, Struct | None]:
    """Return the value of every estimator of this package, by the name of its module."""
    return {
        module.name: import_module(f"{__name__}.{module.name}").estimate(response)
        for module in iter_modules(__path__)
    }
