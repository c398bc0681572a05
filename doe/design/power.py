"""Power of designs: the effect that a plan can detect, and the replicates that it needs.

An effect (mean at high minus mean at low) over N runs has standard error 2σ/√N, so under an effect
δ its t statistic follows the noncentral t with noncentrality δ√N/(2σ) and the error degrees of
freedom of the model (Montgomery, Design and Analysis of Experiments, ch. 6).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

from doe.errors import DoeError

MOST_REPLICATES = 10_000
LARGEST_ROOT = 1e8
"""Above this root of the noncentrality SciPy's noncentral F returns NaN; the power of any usual
test is 1 long before."""


class DesignSize(NamedTuple):
    """The size of a design as far as power depends on it."""

    cells: int
    """Distinct configurations, 2^(k−p)."""
    replicates: int
    blocks_per_replicate: int
    """1 if each replicate is a block, 0 without blocks."""
    terms: int
    """Effects in the model, without the mean and without those confounded with blocks."""
    levels: int = 2
    """Levels of the factor whose levels are compared."""
    inflation: float = 1.0
    """Variance of its contrasts relative to that of a balanced design."""

    @property
    def runs(self) -> int:
        """Number of runs N."""
        return self.cells * self.replicates

    @property
    def blocks(self) -> int:
        """Number of block means to estimate; without blocks, 1 for the grand mean."""
        return max(1, self.blocks_per_replicate * self.replicates)

    @property
    def df_error(self) -> int:
        """Degrees of freedom left for error: N − blocks − terms."""
        return self.runs - self.blocks - self.terms


class PowerQuestion(NamedTuple):
    """A question about the power of a design."""

    sigma: float = 1.0
    """Standard deviation of single runs."""
    effect: float | None = None
    """Effect whose power is wanted, if any."""
    alpha: float = 0.05
    target: float = 0.8
    """Power with which an effect is to be detected."""


def power(effect: float, sigma: float, size: DesignSize, alpha: float = 0.05) -> float:
    """Return the probability that the two-sided t test at level `alpha` detects an effect of this
    size."""
    _check(sigma, alpha)
    _check_error(size)
    return _power(abs(effect) / standard_error(sigma, size), 1, size.df_error, alpha)


def standard_error(sigma: float, size: DesignSize) -> float:
    """Return the standard error of the difference of two of L levels, σ√(2L/N): 2σ/√N of an
    effect."""
    return sigma * math.sqrt(2 * size.levels * size.inflation / size.runs)


def detectable_effect(
    sigma: float, size: DesignSize, alpha: float = 0.05, target: float = 0.8
) -> float:
    """Return the smallest effect detected with probability `target`."""
    _check(sigma, alpha)
    _check_target(target, alpha)
    _check_error(size)
    return _detectable(1, size.df_error, alpha, target) * standard_error(sigma, size)


def term_power(
    effect: float, sigma: float, noncentrality: float, dfs: tuple[int, float], alpha: float
) -> float:
    """Return the probability that the F test of a term detects an effect of this size.

    `noncentrality` is that of F per (effect / σ)², `dfs` the degrees of freedom of the term and of
    the error.
    """
    _check(sigma, alpha)
    return _power(abs(effect) / sigma * math.sqrt(noncentrality), *dfs, alpha)


def detectable_by_term(
    sigma: float, noncentrality: float, dfs: tuple[int, float], alpha: float, target: float
) -> float:
    """Return the smallest effect of a term that its F test detects with probability `target`."""
    _check(sigma, alpha)
    _check_target(target, alpha)
    return _detectable(*dfs, alpha, target) * sigma / math.sqrt(noncentrality)


@functools.cache
def _detectable(df_term: int, df_error: float, alpha: float, target: float) -> float:
    """Return the root λ of the noncentrality at which an F test has the power `target`, by
    bisection.

    Importing `scipy.optimize` for it takes 0.19 s beyond `scipy.special`, and `scipy.stats` for the
    tests 0.47 s: `doe plan` takes 0.55 s in all.
    """
    low, high = 0.0, 1.0
    while _power(high, df_term, df_error, alpha) < target:
        low, high = high, 2.0 * high
    while high - low > 1e-12 * high:
        middle = (low + high) / 2.0
        if _power(middle, df_term, df_error, alpha) < target:
            low = middle
        else:
            high = middle
    return high


def replicates_needed(
    effect: float, sigma: float, size: DesignSize, alpha: float = 0.05, target: float = 0.8
) -> int:
    """Return the fewest replicates that detect an effect of this size with probability `target`."""
    _check(sigma, alpha)
    _check_target(target, alpha)
    if effect == 0:
        raise DoeError("an effect of 0 cannot be detected by any number of replicates")

    def enough(replicates: int) -> bool:
        trial = size._replace(replicates=replicates)
        return trial.df_error >= 1 and power(effect, sigma, trial, alpha) >= target

    high = 1
    while not enough(high):
        high *= 2
        if high > MOST_REPLICATES:
            raise DoeError(
                f"more than {MOST_REPLICATES} replicates would be needed to detect an effect of "
                f"{effect} with sigma = {sigma}; expected a larger effect or less noise"
            )
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def power_rows(base: DesignSize, most: int, asked: PowerQuestion) -> list[dict[str, Any]]:
    """Return one row per number of replicates: power for a single term, and after Holm's
    adjustment."""
    rows = []
    for n in range(1, most + 1):
        size = base._replace(replicates=n)
        row: dict[str, Any] = {"replicates": n, "runs": size.runs, "df_error": size.df_error}
        tested = size.df_error >= 1
        for suffix, level in (("", asked.alpha), ("_holm", asked.alpha / size.terms)):
            row[f"detectable{suffix}"] = (
                detectable_effect(asked.sigma, size, level, asked.target) if tested else None
            )
            row[f"power{suffix}"] = (
                power(asked.effect, asked.sigma, size, level)
                if tested and asked.effect is not None
                else None
            )
        rows.append(row)
    return rows


def pooled_sigma(
    values: Sequence[float], cells: Sequence[Hashable], blocks: Sequence[Hashable]
) -> float:
    """Estimate the standard deviation of single runs: residuals of cell + block, by least squares.

    Raises
    ------
    DoeError
        If no configuration has run in two blocks, so that nothing tells chance from effect.
    """
    import numpy as np

    columns = [
        [float(label == level) for label in labels]
        for labels in (cells, blocks)
        for level in dict.fromkeys(labels)
    ]
    X, y = np.array(columns).T, np.array(values, dtype=float)
    fitted, _, rank, _ = np.linalg.lstsq(X, y) if len(y) else (None, None, 0, None)
    if len(y) - rank < 1:
        raise DoeError(
            f"{len(y)} finished runs leave no degrees of freedom for sigma; run at least two "
            "replicates, or give sigma"
        )
    return float(np.sqrt(np.sum((y - X @ fitted) ** 2) / (len(y) - rank)))


def _power(root: float, df_term: int, df_error: float, alpha: float) -> float:
    """P(F > f) of a noncentral F with noncentrality λ², of which `root` is λ; on one degree of
    freedom of the term this is P(|T| > t) of the noncentral t, whose square F is.

    SciPy's own noncentral t is NaN at some arguments (3 degrees of freedom, λ = 8), and its
    noncentral F is wrong at λ = 0, where the power is alpha by definition.
    """
    from scipy import special

    if root == 0:
        return alpha
    critical = _critical(df_term, df_error, alpha)
    ncp = min(root, LARGEST_ROOT) ** 2
    return 1.0 - float(special.ncfdtr(df_term, df_error, ncp, critical))


@functools.cache
def _critical(df_term: int, df_error: int, alpha: float) -> float:
    """Return the value that F exceeds with probability `alpha` under the null hypothesis."""
    from scipy import special

    w = float(special.betaincinv(df_error / 2.0, df_term / 2.0, alpha))
    return df_error * (1.0 - w) / (df_term * w)


def _check(sigma: float, alpha: float) -> None:
    if not (math.isfinite(sigma) and sigma > 0):
        raise DoeError(f"sigma = {sigma}: expected a positive standard deviation of single runs")
    if not 0 < alpha < 1:
        raise DoeError(f"alpha = {alpha}: expected a level between 0 and 1, such as 0.05")


def _check_target(target: float, alpha: float) -> None:
    if not alpha < target < 1:
        raise DoeError(f"power = {target}: expected a probability between alpha = {alpha} and 1")


def _check_error(size: DesignSize) -> None:
    if size.df_error < 1:
        raise DoeError(
            f"{size.runs} runs leave no degrees of freedom for error after {size.terms} terms and "
            f"{size.blocks} blocks; add replicates or omit high-order interactions"
        )
