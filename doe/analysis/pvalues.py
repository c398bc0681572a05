"""P values: tails of t and F, and adjustment for many tests.

`scipy.stats` takes a third of a millisecond per call to check what is known here; the tails below
are the functions of `scipy.special` that it ends up calling.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy import special

from doe.analysis.contrasts import Floats, Ints


def t_two_sided(t: Floats, df: float) -> Floats:
    """``P(|T| >= |t|) = 2 sf(|t|)`` of Student's t, by its lower tail at -|t|."""
    return np.asarray(2.0 * special.stdtr(df, -np.abs(t)))


def f_upper(f: Floats, df1: float, df2: float) -> Floats:
    """``P(F >= f) = sf(f)`` of Fisher's F."""
    return np.asarray(special.fdtrc(df1, df2, f))


@lru_cache(maxsize=1024)
def t_critical(alpha: float, df: float) -> float:
    """Quantile of t with α/2 beyond it."""
    return float(-special.stdtrit(df, alpha / 2.0))


def holm(p: Floats) -> Floats:
    """Holm's step-down adjustment: ``max_{j<=i} min(1, (m - j + 1) p_(j))``."""
    order = np.argsort(p, kind="stable")
    factor = np.arange(len(p), 0, -1)
    adjusted = np.minimum(1.0, np.maximum.accumulate(factor * p[order]))
    return _unsort(adjusted, order)


def benjamini_hochberg(p: Floats) -> Floats:
    """Benjamini and Hochberg's step-up adjustment: ``min_{j>=i} min(1, m p_(j) / j)``."""
    order = np.argsort(p, kind="stable")
    scaled = p[order] * len(p) / np.arange(1, len(p) + 1)
    adjusted = np.minimum(1.0, np.minimum.accumulate(scaled[::-1])[::-1])
    return _unsort(adjusted, order)


def _unsort(values: Floats, order: Ints) -> Floats:
    result = np.empty_like(values)
    result[order] = values
    return result
