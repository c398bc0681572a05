"""Configurations that differ in their spread: a variance for each level in place of one for all."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from doe.analysis import distributions as stats
from doe.analysis.contrasts import Floats, Ints
from doe.analysis.diagnostics import distances, spread_between, spreads_by_factor
from doe.analysis.fit import Fit, within_cells
from doe.analysis.fitted import FittedResponse
from doe.analysis.pvalues import holm, significant

PRETEST = 0.25
"""Level at which spreads count as different, that of preliminary tests (Bancroft and Han 1977): at
0.05 a fourfold σ is missed in one of five studies in blocks, and their intervals cover 0.68."""
MOST_ENTRIES = 1 << 22
"""Groups times configurations squared up to which variances are told apart."""


class UnequalSpread(NamedTuple):
    """Covariance of the configurations' means, by the runs that share a variance."""

    factors: tuple[str, ...]  # whose levels have a variance each; none: each configuration has
    parts: Floats  # groups x configurations x configurations, of u
    df: Floats  # of the variance of each group

    def of_sum(self, weight: Floats, alpha: float) -> float:
        """Half the width of the interval of a weighted sum of the means."""
        own = np.array([weight @ part @ weight for part in self.parts])
        df = _satterthwaite(own[:, None], self.df)[0]
        return float(stats.t.isf(alpha / 2.0, df) * np.sqrt(own.sum()))

    def of_means(self, alpha: float) -> Floats:
        """Half the width of intervals that hold for all means at once (Šidák)."""
        own = np.stack([np.diag(part) for part in self.parts])
        alone = -np.expm1(np.log1p(-alpha) / own.shape[1])
        quantile = stats.t.isf(alone / 2.0, _satterthwaite(own, self.df))
        return np.asarray(quantile * np.sqrt(own.sum(axis=0)))

    def of_differences(self, alpha: float) -> Floats:
        """Return the one-sided reach of every two means, for one against all others at once.

        Welch's t with Bonferroni's level: no distribution is known of the largest of them.
        """
        df, error = self.pairs
        return np.asarray(stats.t.isf(alpha / max(len(df) - 1, 1), df) * error)

    @property
    def pairs(self) -> tuple[Floats, Floats]:
        """Welch's degrees of freedom and standard error of every difference of two means."""
        own = np.stack([np.diag(part) for part in self.parts])
        variance = np.maximum(own[:, :, None] + own[:, None, :] - 2.0 * self.parts, 0.0)
        size = own.shape[1]
        error = np.sqrt(variance.sum(axis=0))
        variance += np.eye(size)  # of a mean against itself nothing is asked
        df = _satterthwaite(variance.reshape(len(variance), -1), self.df)
        return df.reshape(size, size), error

    @property
    def sentence(self) -> str:
        """Spread that the intervals use."""
        whose = f"the level of {', '.join(self.factors)}" if self.factors else "their own runs"
        return f"Intervals of configurations use the spread of {whose} where that is larger."


def _satterthwaite(parts: Floats, df: Floats) -> Floats:
    return np.asarray(parts.sum(axis=0) ** 2 / (parts**2 / df[:, None]).sum(axis=0))


def unequal_spread(fit: Fit, weights: Floats) -> UnequalSpread | None:
    """Variances of groups of runs, where spreads differ; None if one variance holds for all.

    `weights` (configurations x runs) make the means. A factor whose levels differ in their spread
    (Brown and Forsythe, Holm over factors) has a variance at each of them. Where no single factor
    does, and configurations differ, each has its own. A group whose runs are all equal, as counts
    of 0, takes the variance of all runs. Levels that differ by chance would make some intervals too
    narrow, so that no interval is narrower than with one variance for all.
    """
    if fit.error != "pure error":
        return None
    grouped = _groups(fit)
    if grouped is None:
        return None
    factors, group = grouped
    count = int(group.max()) + 1
    if count * len(weights) ** 2 > MOST_ENTRIES:
        return None
    within = within_cells(fit.u, fit.groups, fit.block, fit.model.solved_by_transform)[0]
    cells, runs = np.bincount(fit.groups), np.bincount(group)
    first = np.unique(fit.groups, return_index=True)[1]
    free = runs - np.bincount(group[first], minlength=count)  # runs less configurations
    squares = np.bincount(group, weights=within**2)
    df = free * (fit.df_pure / float((cells - 1).sum()))
    known = (df > 0) & (squares > runs * fit.rounding**2)
    variance = np.where(known, squares / np.where(known, df, 1.0), fit.ms_error)
    freedom: Floats = np.where(known, df, float(fit.df_error)).astype(np.float64)
    parts = [
        variance[g] * (weights[:, group == g] @ weights[:, group == g].T) for g in range(count)
    ]
    return UnequalSpread(factors, np.stack(parts), freedom)


def _groups(fit: Fit) -> tuple[tuple[str, ...], Ints] | None:
    """Factors that change the spread, and the runs that share a variance; None where none do."""
    distance, run = distances(fit)
    tests = spreads_by_factor(distance, fit.runs.index[run], fit.runs.keys)
    p = holm(np.array([test[1] for test in tests.values()])) if tests else np.empty(0)
    factors = tuple(key for key, value in zip(tests, p.tolist(), strict=True) if value < PRETEST)
    if factors:
        own = [fit.runs.keys.index(key) for key in factors]
        return factors, np.unique(fit.runs.index[:, own], axis=0, return_inverse=True)[1]
    between = spread_between(distance, fit.groups[run])
    return ((), fit.groups) if between is not None and between[1] < PRETEST else None


def doubted_terms(response: FittedResponse) -> tuple[str, ...]:
    """Terms that are significant by one variance for all runs alone, where spreads differ.

    Holm over HC3's p decides. Runs that weigh alike are not doubted, as their tests nearly hold
    whatever the spread, nor are counted items, whose variance has a model of its own.
    """
    fit, alpha = response.fit, response.alpha
    called = [t for t in response.tests if significant(t.p_holm, alpha)]
    if not called or fit.error != "pure error" or fit.grouped or response.transform.share.items:
        return ()
    if float(np.ptp(fit.leverage)) < 1e-9 or _groups(fit) is None:
        return ()
    from doe.analysis.estimators.robust import hc3  # a table without doubts need not load it

    p = hc3(fit)
    p_holm = dict(zip(p, holm(np.array(list(p.values()))).tolist(), strict=True))
    return tuple(t.term for t in called if p_holm.get(t.mask, 0.0) >= alpha)
