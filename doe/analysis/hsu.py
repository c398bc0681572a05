"""Hsu's multiple comparisons with the best, with critical values by numerical integration."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from doe.analysis import distributions as stats
from doe.analysis.contrasts import Floats, Ints
from doe.analysis.roots import root

NODES = 96


@lru_cache(maxsize=256)
def critical_value(others: tuple[tuple[int, int], ...], own: int, df: int, alpha: float) -> float:
    """One-sided Dunnett quantile d with a cell of `own` runs as the control.

    `others` lists (runs, number of cells) of the cells compared with it. With
    ``λ_j = sqrt(n_j / (n_j + n_own))`` the comparisons have correlation λ_i λ_j, and d solves
    ``∫∫ φ(z) Π_j Φ((λ_j z + d s) / sqrt(1 - λ_j²)) dz dF(s) = 1 - α`` where s² is χ²_ν / ν.
    """
    x, w = np.polynomial.legendre.leggauss(NODES)
    z, wz = 8.5 * x, 8.5 * w
    wz = wz * stats.norm.pdf(z)
    ends = np.sqrt(stats.chi2.ppf([1e-13, 1 - 1e-13], df) / df)
    s = 0.5 * (ends[1] - ends[0]) * x + 0.5 * (ends[1] + ends[0])
    ws = 0.5 * (ends[1] - ends[0]) * w * stats.chi2.pdf(df * s**2, df) * 2.0 * df * s

    def shortfall(d: float) -> float:
        log_inside = np.zeros((NODES, NODES))
        for runs, cells in others:
            squared = runs / (runs + own)
            at = (np.sqrt(squared) * z[:, None] + d * s[None, :]) / np.sqrt(1.0 - squared)
            log_inside += cells * stats.norm.logcdf(at)
        return float(wz @ np.exp(log_inside) @ ws) - (1.0 - alpha)

    return root(shortfall, 0.0, 50.0, xtol=1e-10)


def with_the_best(
    means: Floats, counts: Ints, sigma: float, df: int, alpha: float
) -> tuple[Floats, Floats, Floats]:
    """Simultaneous bounds for each mean minus the best (largest) of the others, and d of each.

    Edwards and Hsu's form for unequal counts:
    ``D+_i = max(0, min_j (m_i - m_j + d_i s_ij))``; with G = {i : D+_i > 0},
    ``D-_i = min(0, min_{j in G} (m_i - m_j - d_j s_ij))``, and 0 when G = {i}.
    A cell with D+ = 0 is not the best; the others cannot be told from it.
    """
    sizes, numbers = np.unique(counts, return_counts=True)
    tally = dict(zip(sizes.tolist(), numbers.tolist(), strict=True))
    d_of = {}
    for own in tally:
        others = tuple((n, c - (n == own)) for n, c in tally.items() if c - (n == own) > 0)
        d_of[own] = critical_value(others, own, df, alpha)
    d = np.array([d_of[n] for n in counts.tolist()])
    spread = sigma * np.sqrt(1.0 / counts[:, None] + 1.0 / counts[None, :])
    gap = means[:, None] - means[None, :]
    self_ = np.eye(len(means), dtype=bool)
    upper = np.where(self_, np.inf, gap + d[:, None] * spread).min(axis=1)
    upper = np.maximum(0.0, upper)
    rivals = (upper > 0)[None, :] & ~self_
    lower = np.where(rivals, gap - d[None, :] * spread, np.inf).min(axis=1)
    return np.where(np.isinf(lower), 0.0, np.minimum(0.0, lower)), upper, d
