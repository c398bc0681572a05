"""Configurations ranked by their means, with Hsu's comparisons with the best."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from doe.analysis.contrasts import Floats, Ints
from doe.analysis.fitted import Fitted
from doe.analysis.hsu import maximum_modulus, with_the_best
from doe.analysis.rescale import units

MOST_CELLS = 1024
"""Hsu's comparisons need a table of all pairs of cells; of more cells the best are listed."""


class RankedCell(Struct, frozen=True, gc=False, kw_only=True):
    """One configuration on the response scale; Hsu's bounds are on the analysed one."""

    UNITS: ClassVar = units(mean=1, ci_low=1, ci_high=1, mcb_low=1, mcb_high=1, geometric=1)
    config: str
    n: int
    mean: float
    ci_low: float | None  # intervals hold for all configurations at once
    ci_high: float | None
    mcb_low: float | None  # Hsu: this mean minus the best of the others
    mcb_high: float | None
    among_best: bool  # cannot be told from the best
    geometric: float | None = None  # the geometric mean, where the interval is that one's


class RankedCells(Struct, frozen=True, kw_only=True):
    """Configurations ranked, the best first."""

    goal: str
    cells: tuple[RankedCell, ...]  # at most 1024
    critical: float | None  # Hsu's d, for the cell that is best
    among_best: tuple[str, ...]
    assumed: tuple[str, ...]  # terms taken as zero, because blocks stand in for them
    sentence: str


class Estimates(NamedTuple):
    """Means of the configurations after blocks, and their covariance over σ²."""

    cells: Ints
    counts: Ints
    means: Floats
    covariance: Floats  # 1/n of each where means are independent, else a matrix
    assumed: tuple[int, ...]  # terms taken as zero, because blocks stand in for them

    @property
    def variance(self) -> Floats:
        """Variance of each mean over σ²."""
        return self.covariance if self.covariance.ndim == 1 else np.diag(self.covariance)

    def variance_of(self, weight: Floats) -> float:
        """Variance of a weighted sum of the means over σ²."""
        if self.covariance.ndim == 1:
            return float(weight**2 @ self.covariance)
        return float(weight @ self.covariance @ weight)

    @property
    def told_apart(self) -> bool:
        """Whether every two means differ by something that the runs estimate."""
        if self.covariance.ndim == 1:
            return True
        own = np.diag(self.covariance)
        variance = own[:, None] + own[None, :] - 2.0 * self.covariance
        return bool((variance[~np.eye(len(own), dtype=bool)] > 1e-9 * own.max()).all())


class Ranking(NamedTuple):
    """The order of configurations, the best first, and what is certain of it."""

    order: list[int]  # at most 1024
    reach: Floats  # half the width of the intervals that hold for all means at once
    low: Floats  # Hsu: a mean minus the best of the others
    high: Floats
    among: NDArray[np.bool_]  # cannot be told from the best
    critical: float | None  # Hsu's d, for the one that is best


def margins(fit: Fitted, estimates: Estimates, alpha: float) -> Floats:
    """Half the width of intervals that hold for all means at once; NaN without an error."""
    if fit.df_error == 0:
        return np.full(len(estimates.means), np.nan)
    wide = maximum_modulus(len(estimates.means), fit.df_error, alpha)
    return np.asarray(wide * float(np.sqrt(fit.ms_error)) * np.sqrt(estimates.variance))


def ranked(fit: Fitted, estimates: Estimates, goal: str, alpha: float) -> Ranking:
    """Rank the configurations by their means on the scale of the fit."""
    means, k = estimates.means, len(estimates.means)
    sign = 1.0 if goal == "max" else -1.0
    order = np.argsort(-sign * means, kind="stable")
    low = high = np.full(k, np.nan)
    among = np.zeros(k, dtype=bool)
    among[order[0]] = True
    critical = None
    if fit.df_error > 0 and 1 < k <= MOST_CELLS and estimates.told_apart:
        sigma = float(np.sqrt(fit.ms_error))
        lower, upper, d = with_the_best(
            sign * means, estimates.covariance, sigma, fit.df_error, alpha
        )
        low, high = (lower, upper) if sign > 0 else (-upper, -lower)
        among, critical = upper > 0, float(d[order[0]])
    reach = margins(fit, estimates, alpha)
    return Ranking(order[:MOST_CELLS].tolist(), reach, low, high, among, critical)


def best_sentence(
    among: Sequence[str], top: str, cells: int, critical: float | None, assumed: Sequence[str]
) -> str:
    """Which configuration is the best, and how many cannot be told from it."""
    others = f"{len(among) - 1} other configuration{'s' if len(among) > 2 else ''}"
    if critical is None:
        sentence = f"{top} has the best value; without an error estimate no other can be ruled out."
    elif len(among) == 1:
        sentence = f"{top} is the best configuration."
    else:
        sentence = f"{top} is best; {others} of {cells} cannot be told from it."
    if not assumed:
        return sentence
    verb = "which is" if len(assumed) == 1 else "which are"
    return (
        f"{sentence} Configurations of different blocks are compared as if {', '.join(assumed)}, "
        f"{verb} confounded with blocks, were zero."
    )
