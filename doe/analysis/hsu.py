"""Comparisons over many means at once: Hsu's with the best, and the studentized maximum modulus.

Critical values are found by numerical integration, not by simulation.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from doe.analysis import distributions as stats
from doe.analysis.contrasts import Floats
from doe.analysis.roots import root

NODES = 128
SMALLEST_ALPHA = 1e-9
"""Below this the quadrature cannot tell 1 - α from 1; Bonferroni's bound takes its place."""
MOST_CORRELATIONS = 256
"""Means for whose differences all correlations are looked through."""


@lru_cache(maxsize=64)
def _spread_nodes(df: int) -> tuple[Floats, Floats]:
    """Nodes and weights for the integral over s, where s² is χ²_ν / ν, even in ln s."""
    x, w = np.polynomial.legendre.leggauss(NODES)
    low, high = 0.5 * np.log(stats.chi2.ppf([1e-14, 1 - 1e-14], df) / df)
    s = np.exp(0.5 * (high - low) * x + 0.5 * (high + low))
    weight = 0.5 * (high - low) * w * stats.chi2.pdf(df * s**2, df) * 2.0 * df * s**2
    return s, weight


def _solve(coverage: Callable[[float], float], alpha: float, bound: float) -> float:
    """The value at which `coverage` reaches 1 - α, at least 0 and never beyond Bonferroni's."""
    if alpha < SMALLEST_ALPHA:
        return bound
    if coverage(0.0) >= 1.0 - alpha:
        return 0.0
    if coverage(bound) <= 1.0 - alpha:
        return bound
    return root(lambda d: coverage(d) - (1.0 - alpha), 0.0, bound, xtol=1e-10)


@lru_cache(maxsize=256)
def critical_value(others: tuple[tuple[float, int], ...], df: int, alpha: float) -> float:
    """One-sided Dunnett quantile d of comparisons with a common control.

    `others` lists (λ², number of means): two comparisons have the correlation λ_i λ_j, with
    ``λ_j² = n_j / (n_j + n_control)`` where means are independent. d solves
    ``∫∫ φ(z) Π_j Φ((λ_j z + d s) / sqrt(1 - λ_j²)) dz dF(s) = 1 - α`` where s² is χ²_ν / ν.
    """
    x, w = np.polynomial.legendre.leggauss(NODES)
    z, wz = 8.5 * x, 8.5 * w * stats.norm.pdf(8.5 * x)
    s, ws = _spread_nodes(df)

    def coverage(d: float) -> float:
        log_inside = np.zeros((NODES, NODES))
        for squared, means in others:
            at = (np.sqrt(squared) * z[:, None] + d * s[None, :]) / np.sqrt(1.0 - squared)
            log_inside += means * stats.norm.logcdf(at)
        return float(wz @ np.exp(log_inside) @ ws)

    count = sum(means for _, means in others)
    return _solve(coverage, alpha, float(stats.t.isf(alpha / count, df)))


@lru_cache(maxsize=256)
def maximum_modulus(means: int, df: int, alpha: float) -> float:
    """Two-sided quantile of the largest of `means` studentized means.

    Solves ``∫ (2 Φ(m s) - 1)^k dF(s) = 1 - α``; for correlated means it is conservative (Šidák's
    inequality). Intervals of this width hold for all means at once, so also for a selected one.
    """
    s, ws = _spread_nodes(df)

    def coverage(m: float) -> float:
        return float(np.exp(means * np.log1p(-2.0 * stats.norm.sf(m * s))) @ ws)

    with np.errstate(divide="ignore"):  # ln 0 at m = 0, where the coverage is 0
        return _solve(coverage, alpha, float(stats.t.isf(alpha / (2 * means), df)))


def with_the_best(
    means: Floats, covariance: Floats, sigma: float, df: int, alpha: float
) -> tuple[Floats, Floats, Floats]:
    """Simultaneous bounds for each mean minus the best (largest) of the others, and d of each.

    `covariance` is that of the means over σ²: a vector of 1/n where they are independent, else a
    matrix. Edwards and Hsu's form: ``D+_i = max(0, min_j (m_i - m_j + d_i s_ij))``; with
    G = {i : D+_i > 0}, ``D-_i = min(0, min_{j in G} (m_i - m_j - d_j s_ij))``, 0 when G = {i}.
    A mean with D+ = 0 is not the best; the others cannot be told from it.
    """
    matrix = np.diag(covariance) if covariance.ndim == 1 else covariance
    own = np.diag(matrix)
    variance = own[:, None] + own[None, :] - 2.0 * matrix
    d = _critical_values(matrix, variance, df, alpha)
    spread = sigma * np.sqrt(np.maximum(variance, 0.0))
    gap = means[:, None] - means[None, :]
    self_ = np.eye(len(means), dtype=bool)
    upper = np.where(self_, np.inf, gap + d[:, None] * spread).min(axis=1)
    upper = np.maximum(0.0, upper)
    rivals = (upper > 0)[None, :] & ~self_
    lower = np.where(rivals, gap - d[None, :] * spread, np.inf).min(axis=1)
    return np.where(np.isinf(lower), 0.0, np.minimum(0.0, lower)), upper, d


def _critical_values(matrix: Floats, variance: Floats, df: int, alpha: float) -> Floats:
    """d with each mean as the control.

    Equal covariances give correlations of the product form. Otherwise the smallest correlation
    stands for all, which is conservative (Slepian 1962), or Bonferroni's bound where they are many.
    """
    k = len(matrix)
    off = matrix[~np.eye(k, dtype=bool)]
    if k > 2 and np.ptp(off) > 1e-9 * matrix.max():
        if k > MOST_CORRELATIONS:
            return np.full(k, stats.t.isf(alpha / (k - 1), df))
        return np.array(
            [
                critical_value(((_smallest_correlation(matrix, variance, i), k - 1),), df, alpha)
                for i in range(k)
            ]
        )
    free = np.round(np.diag(matrix) - off[0], 12)
    sizes, numbers = np.unique(free, return_counts=True)
    d_of = {}
    for own in sizes.tolist():
        pairs = zip(sizes.tolist(), numbers.tolist(), strict=True)
        others = ((own / (own + other), n - (other == own)) for other, n in pairs)
        d_of[own] = critical_value(tuple(o for o in others if o[1] > 0), df, alpha)
    return np.array([d_of[own] for own in free.tolist()])


def _smallest_correlation(matrix: Floats, variance: Floats, i: int) -> float:
    """Of the differences of mean i from two others; rounded down, and at least 0."""
    shared = matrix[i, i] - matrix[i][:, None] - matrix[i][None, :] + matrix
    size = np.sqrt(variance[i])
    size[i] = np.inf
    ratio = shared / (size[:, None] * size[None, :])
    ratio[i], ratio[:, i] = 1.0, 1.0
    return float(np.clip(np.floor(1e4 * ratio.min()) / 1e4, 0.0, 0.9999))
