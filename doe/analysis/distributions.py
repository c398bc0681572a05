"""Distributions and tests from `scipy.special`, under the names that `scipy.stats` gives them.

Importing `scipy.stats` takes longer than a whole analysis; what is needed of it are the few lines
here, each the function that it ends up calling, and each compared with it in the tests.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from doe.analysis.contrasts import Floats, Ints

Number = Any  # a float or an array of them


class Normal:
    """The standard normal distribution."""

    @staticmethod
    def pdf(x: Number) -> Number:
        """Density."""
        return np.exp(-(x**2) / 2.0) / np.sqrt(2.0 * np.pi)

    @staticmethod
    def sf(x: Number) -> Number:
        """Upper tail."""
        return special.ndtr(-x)

    @staticmethod
    def ppf(p: Number) -> Number:
        """Quantile with p below it."""
        return special.ndtri(p)

    @staticmethod
    def logcdf(x: Number) -> Number:
        """Logarithm of the lower tail."""
        return special.log_ndtr(x)


class StudentT:
    """Student's t."""

    @staticmethod
    def sf(x: Number, df: float) -> Number:
        """Upper tail, by the lower one at -x."""
        return special.stdtr(df, -x)

    @staticmethod
    def isf(p: Number, df: float) -> Number:
        """Quantile with p beyond it."""
        return -special.stdtrit(df, p)


class ChiSquared:
    """χ²."""

    @staticmethod
    def logpdf(x: Number, df: float) -> Number:
        """Logarithm of the density."""
        log = special.xlogy(df / 2.0 - 1.0, x) - x / 2.0
        return log - special.gammaln(df / 2.0) - np.log(2.0) * df / 2.0

    @staticmethod
    def pdf(x: Number, df: float) -> Number:
        """Density."""
        return np.exp(ChiSquared.logpdf(x, df))

    @staticmethod
    def sf(x: Number, df: float) -> Number:
        """Upper tail."""
        return special.chdtrc(df, x)

    @staticmethod
    def isf(p: Number, df: float) -> Number:
        """Quantile with p beyond it."""
        return special.chdtri(df, p)

    @staticmethod
    def ppf(p: Number, df: float) -> Number:
        """Quantile with p below it."""
        return 2.0 * special.gammaincinv(df / 2.0, np.asarray(p))


class FisherF:
    """Fisher's F."""

    @staticmethod
    def sf(x: Number, df1: float, df2: float) -> Number:
        """Upper tail."""
        return special.fdtrc(df1, df2, x)

    @staticmethod
    def isf(p: Number, df1: float, df2: float) -> Number:
        """Quantile with p beyond it."""
        return special.fdtri(df1, df2, 1.0 - np.asarray(p))


norm, t, chi2, f = Normal(), StudentT(), ChiSquared(), FisherF()


def rankdata(values: Any, method: str = "average") -> Floats:
    """Ranks from 1; ties share their mean rank, or stand in their order (`ordinal`)."""
    values = np.asarray(values)
    rank = np.empty(len(values))
    rank[np.argsort(values, kind="stable")] = np.arange(1, len(values) + 1)
    if method == "ordinal":
        return rank
    _, group, counts = np.unique(values, return_inverse=True, return_counts=True)
    mean = np.bincount(group, weights=rank) / counts
    return np.asarray(mean[group])


def f_oneway(*groups: Floats) -> tuple[float, float]:
    """One-way analysis of variance: F and its p; NaN where the groups have no variance."""
    values = np.concatenate(groups)
    grand = values.mean()
    between = sum(len(g) * (g.mean() - grand) ** 2 for g in groups)
    within = sum(float(((g - g.mean()) ** 2).sum()) for g in groups)
    df1, df2 = len(groups) - 1, len(values) - len(groups)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.float64(between / df1) / np.float64(within / df2 if df2 else np.nan)
    return float(ratio), float(f.sf(ratio, df1, df2))


def trim_mean(values: Floats, share: float) -> float:
    """Mean without the given share at either end."""
    cut = int(share * len(values))
    return float(np.sort(values)[cut : len(values) - cut].mean())


def fisher_exact(table: Ints) -> tuple[float, float]:
    """Odds ratio and p of Fisher's exact test; rare, so that the import is worth its time."""
    from scipy import stats

    ratio, p = stats.fisher_exact(table)
    return float(ratio), float(p)


def shapiro(values: Floats) -> tuple[float, float]:
    """Shapiro and Wilk's W and its p, by Royston's approximation (Applied Statistics R94, 1995)."""
    x = np.sort(np.asarray(values, dtype=np.float64))
    n = len(x)
    if np.ptp(x) < 1e-19:
        return 1.0, 1.0
    weights = np.array([-np.sqrt(0.5), 0.0, np.sqrt(0.5)]) if n == 3 else _royston_weights(n)
    w = min(float((weights @ x) ** 2 / ((x - x.mean()) ** 2).sum()), 1.0)
    if n == 3:
        exact = 6.0 / np.pi * (np.arcsin(np.sqrt(w)) - np.arcsin(np.sqrt(0.75)))
        return w, float(min(max(exact, 0.0), 1.0))
    y = np.log(max(1.0 - w, 1e-19))
    log_n = np.log(n)
    if n <= 11:
        gamma = 0.459 * n - 2.273
        if y >= gamma:
            return w, 1e-99
        y = -np.log(gamma - y)
        mean = np.polyval([-0.0006714, 0.025054, -0.39978, 0.544], n)
        spread = np.exp(np.polyval([-0.0020322, 0.062767, -0.77857, 1.3822], n))
    else:
        mean = np.polyval([0.0038915, -0.083751, -0.31082, -1.5861], log_n)
        spread = np.exp(np.polyval([0.0030302, -0.082676, -0.4803], log_n))
    return w, float(norm.sf((y - mean) / spread))


def _royston_weights(n: int) -> Floats:
    """Weights of the ordered values: normal scores, the outer ones by Royston's polynomials."""
    scores = special.ndtri((np.arange(1, n + 1) - 0.375) / (n + 0.25))
    total = float(scores @ scores)
    u = 1.0 / np.sqrt(n)
    last = np.polyval([-2.706056, 4.434685, -2.07119, -0.147981, 0.221157, 0.0], u)
    last += scores[-1] / np.sqrt(total)
    if n <= 5:
        rest = (total - 2.0 * scores[-1] ** 2) / (1.0 - 2.0 * last**2)
        outer = [last]
    else:
        second = np.polyval([-3.582633, 5.682633, -1.752461, -0.293762, 0.042981, 0.0], u)
        second += scores[-2] / np.sqrt(total)
        rest = (total - 2.0 * scores[-1] ** 2 - 2.0 * scores[-2] ** 2) / (
            1.0 - 2.0 * last**2 - 2.0 * second**2
        )
        outer = [last, second]
    weights = scores / np.sqrt(rest)
    for i, weight in enumerate(outer):
        weights[i], weights[n - 1 - i] = -weight, weight
    return np.asarray(weights)
