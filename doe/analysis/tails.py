"""Tail probabilities of t and F: survival functions of SciPy without its checking of arguments.

`scipy.stats` takes a third of a millisecond per call to check what is known here; the functions
below are the ones that it ends up calling.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy import special, stats

from doe.analysis.contrasts import Floats


def t_two_sided(t: Floats, df: float) -> Floats:
    """``P(|T| >= |t|) = 2 sf(|t|)`` of Student's t, by its lower tail at -|t|."""
    return np.asarray(2.0 * special.stdtr(df, -np.abs(t)))


def f_upper(f: Floats, df1: float, df2: float) -> Floats:
    """``P(F >= f) = sf(f)`` of Fisher's F."""
    return np.asarray(special.fdtrc(df1, df2, f))


@lru_cache(maxsize=1024)
def t_critical(alpha: float, df: float) -> float:
    """Quantile of t with α/2 beyond it."""
    return float(stats.t.isf(alpha / 2.0, df))
