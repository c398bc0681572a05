"""Tukey's studentized range, by numerical integration."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy import optimize

from doe.analysis import distributions as stats
from doe.analysis.contrasts import Floats
from doe.analysis.pvalues import t_critical, t_two_sided

NODES = 160


@lru_cache(maxsize=64)
def _nodes(df: float) -> tuple[Floats, Floats, Floats, Floats]:
    """Points and weights of the largest of normal values, and of ``ln s`` with s² = χ²_df / df."""
    x, w = np.polynomial.legendre.leggauss(NODES)
    z, wz = 9.0 * x, 9.0 * w * stats.norm.pdf(9.0 * x)
    ends = 0.5 * np.log(stats.chi2.ppf([1e-30, 1.0], df) / df)
    ends[1] = 0.5 * np.log(stats.chi2.isf(1e-18, df) / df)
    t = 0.5 * (ends[1] - ends[0]) * x + 0.5 * (ends[1] + ends[0])
    s = np.exp(t)
    density = stats.chi2.logpdf(df * s**2, df) + np.log(2.0 * df) + 2.0 * t
    return z, wz, s, 0.5 * (ends[1] - ends[0]) * w * np.exp(density)


def range_upper(q: float, groups: int, df: float) -> float:
    """``P(Q >= q)`` of the studentized range of `groups` means.

    With z the largest of the values, ``Φ(z)^(k-1) - [Φ(z) - Φ(z - q s)]^(k-1)`` is integrated over
    ``k φ(z)`` and s: the tail itself and not one minus the rest, so that small p stay exact.
    """
    if q <= 0:
        return 1.0
    z, wz, s, ws = _nodes(df)
    log_all = stats.norm.logcdf(z)[:, None]
    below = stats.norm.logcdf(z[:, None] - q * s[None, :])
    ratio = np.minimum(np.exp(below - log_all), 1.0 - 1e-16)
    tail = -np.exp((groups - 1) * log_all) * np.expm1((groups - 1) * np.log1p(-ratio))
    return float(min(1.0, groups * (wz @ tail @ ws)))


@lru_cache(maxsize=256)
def range_critical(alpha: float, groups: int, df: float) -> float:
    """The value that the studentized range exceeds with probability `alpha`."""
    if groups == 2:
        return float(np.sqrt(2.0) * t_critical(alpha, df))
    top = 10.0
    while range_upper(top, groups, df) > alpha:
        top *= 4.0
    return float(
        optimize.brentq(lambda q: range_upper(q, groups, df) - alpha, 0.0, top, xtol=1e-12)
    )


def tukey_p(t: float, groups: int, df: float) -> float:
    """Adjusted p of a difference with ratio t to its standard error: ``P(Q >= √2 |t|)``."""
    if groups == 2:
        return float(t_two_sided(np.array(t), df))
    return range_upper(float(np.sqrt(2.0)) * abs(t), groups, df)
