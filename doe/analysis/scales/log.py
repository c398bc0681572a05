"""Natural logarithms: effects are ratios of geometric means."""

from __future__ import annotations

import numpy as np

from doe.analysis.contrasts import Floats
from doe.analysis.scales import Scale


def exponential(z: Floats) -> Floats:
    """``e^z``, infinite where that has no number: bounds at extreme levels may lie there."""
    with np.errstate(over="ignore"):
        return np.exp(z)


def ratio_of(difference: float) -> float:
    """Return the ratio of a difference of logarithms."""
    return float(exponential(np.array(difference)))


SCALE = Scale(np.log, exponential, "ln {}", ratio="geometric mean")
