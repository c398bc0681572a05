"""Distributions and tests from `scipy.special`, under the names that `scipy.stats` gives them.

Importing `scipy.stats` takes 0.47 s of processor time beyond `scipy.special`, and `scipy.optimize`
0.19 s; `doe analyze` takes 0.57 s in all. What is needed of them are the few lines here, each the
function that it ends up calling, and each compared with it in the tests.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special

from doe.analysis.contrasts import Floats, Ints

Function = Callable[[float], float]
GOLDEN = (5.0**0.5 - 1.0) / 2.0
SHORTEST = 1e-8
"""Length of the section in which a minimum is known well enough."""


def root(function: Function, low: float, high: float, xtol: float = 1e-12) -> float:
    """Return a root between two points where the function has opposite signs (Chandrupatla,
    1997).
    """
    a, b = low, high
    fa, fb = function(a), function(b)
    if fa * fb > 0:
        raise ValueError(f"no sign change between {low} and {high}")
    t = 0.5
    for _ in range(200):
        x = a + t * (b - a)
        fx = function(x)
        if (fx > 0) == (fa > 0):
            c, fc, a, fa = a, fa, x, fx
        else:
            c, fc, b, a, fb, fa = b, fb, a, x, fa, fx
        best = a if abs(fa) < abs(fb) else b
        limit = (xtol + 4e-16 * abs(best)) / abs(b - c)
        if limit > 0.5 or fa == 0.0:
            return best
        xi, phi = (a - b) / (c - b), (fa - fb) / (fc - fb)
        t = 0.5
        if phi**2 < xi and (1.0 - phi) ** 2 < 1.0 - xi:  # inverse quadratic interpolation is safe
            t = fa / (fb - fa) * fc / (fb - fc)
            t += (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
        t = min(max(t, limit), 1.0 - limit)
    return best


def minimum(function: Function, low: float, high: float) -> float:
    """Return where a function with one minimum between two points has it, by golden sections."""
    a, b = low, high
    x, y = b - GOLDEN * (b - a), a + GOLDEN * (b - a)
    fx, fy = function(x), function(y)
    while b - a > SHORTEST:
        if fx < fy:
            b, y, fy = y, x, fx
            x = b - GOLDEN * (b - a)
            fx = function(x)
        else:
            a, x, fx = x, y, fy
            y = a + GOLDEN * (b - a)
            fy = function(y)
    return (a + b) / 2.0


Number = Any  # a float or an array of them
MOST_SPLITS, DRAWN = 1_000_000, 100_000
"""Splits of events over groups up to which all are gone through, and how many are drawn else."""


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
    def cdf(x: Number) -> Number:
        """Lower tail."""
        return special.ndtr(x)


class StudentT:
    """Student's t."""

    @staticmethod
    def sf(x: Number, df: Number) -> Number:
        """Upper tail, by the lower one at -x."""
        return special.stdtr(df, -x)

    @staticmethod
    def isf(p: Number, df: Number) -> Number:
        """Quantile with p beyond it."""
        return -special.stdtrit(df, p)


class ChiSquared:
    """χ²."""

    @staticmethod
    def logpdf(x: Number, df: Number) -> Number:
        """Logarithm of the density."""
        log = special.xlogy(df / 2.0 - 1.0, x) - x / 2.0
        return log - special.gammaln(df / 2.0) - np.log(2.0) * df / 2.0

    @staticmethod
    def pdf(x: Number, df: Number) -> Number:
        """Density."""
        return np.exp(ChiSquared.logpdf(x, df))

    @staticmethod
    def sf(x: Number, df: Number) -> Number:
        """Upper tail."""
        return special.chdtrc(df, x)

    @staticmethod
    def isf(p: Number, df: Number) -> Number:
        """Quantile with p beyond it."""
        return special.chdtri(df, p)

    @staticmethod
    def ppf(p: Number, df: Number) -> Number:
        """Quantile with p below it."""
        return 2.0 * special.gammaincinv(df / 2.0, np.asarray(p))


class FisherF:
    """Fisher's F."""

    @staticmethod
    def sf(x: Number, df1: Number, df2: Number) -> Number:
        """Upper tail."""
        return special.fdtrc(df1, df2, x)

    @staticmethod
    def isf(p: Number, df1: Number, df2: Number) -> Number:
        """Quantile with p beyond it."""
        w = special.betaincinv(df2 / 2.0, df1 / 2.0, p)  # exact in the far tail as well
        return df2 * (1.0 - w) / (df1 * w)


norm, t, chi2, f = Normal(), StudentT(), ChiSquared(), FisherF()


def rankdata(values: Any, method: str = "average") -> Floats:
    """Ranks from 1; ties share their mean rank, or have ranks in their order (`ordinal`)."""
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


def exact_rates(events: Ints, counts: Ints) -> float:
    """Test of equal rates in groups: Fisher's exact, of more than two Freeman and Halton's (1951).

    p is the chance of all splits of the events over the groups that are no more likely than this
    one; of very many splits the share of drawn ones.
    """
    largest_last = np.argsort(counts, kind="stable")
    events, counts = events[largest_last], counts[largest_last]
    total = int(events.sum())
    size = int(np.prod(np.minimum(counts, total)[:-1] + 1.0))
    weigh = _log_choices(np.arange(total + 1), counts)  # events x groups
    seen = float(weigh[events, np.arange(len(counts))].sum())
    if size > MOST_SPLITS:
        rng = np.random.default_rng(0)
        drawn = rng.multivariate_hypergeometric(counts, total, DRAWN)
        logs = weigh[drawn, np.arange(len(counts))].sum(axis=1)
        return float((1 + (logs <= seen + 1e-7).sum()) / (1 + DRAWN))
    used, logs = np.zeros(1, np.int64), np.zeros(1)
    for j in range(len(counts) - 1):
        most = min(int(counts[j]), total) + 1
        used = (used[:, None] + np.arange(most)).ravel()
        logs = (logs[:, None] + weigh[:most, j]).ravel()
        possible = used <= total
        used, logs = used[possible], logs[possible]
    logs = logs + weigh[total - used, -1]
    chance = np.exp(logs - logs.max())
    return min(1.0, float(chance[logs <= seen + 1e-7].sum() / chance.sum()))


def _log_choices(k: Ints, n: Ints) -> Floats:
    """Logarithm of n over k, of k x n; -infinity where there is none."""
    chosen, of = k[:, None], n[None, :]
    log = special.gammaln(of + 1.0) - special.gammaln(chosen + 1.0)
    log = log - special.gammaln(np.maximum(of - chosen, 0) + 1.0)
    return np.where(chosen <= of, log, -np.inf)


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
