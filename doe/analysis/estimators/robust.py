"""Answers that lean on fewer assumptions: permutation, wild bootstrap, HC3, trimmed contrasts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import ClassVar, NamedTuple

import numpy as np
import scipy
from msgspec import Struct
from numpy.typing import NDArray

from doe.analysis import distributions as stats
from doe.analysis.case import Case
from doe.analysis.contrasts import MOST_RUNS, Floats, Ints, exchanges, sign_columns
from doe.analysis.fit import Fit, decomposed, estimator, without_blocks
from doe.analysis.pvalues import holm
from doe.analysis.rescale import units
from doe.numbers import cell_text

BOOTSTRAPS = 2000
FEWEST_DF = 12
"""Residual degrees of freedom from which the wild bootstrap can say anything."""
TRIM = 0.25
CHUNK = 2000


class RobustRow(Struct, frozen=True, gc=False):
    """One term by several methods."""

    UNITS: ClassVar = units(effect=1, boot_low=1, boot_high=1, trimmed=1, median=1)
    term: str
    effect: float
    p: float | None  # the analysis's own
    p_hc3: float | None  # None where all runs have the same leverage: it is the t test then
    p_permutation: float | None
    p_maxt: float | None  # permutation, adjusted for all terms at once
    p_wild: float | None  # wild bootstrap, adjusted for all terms at once
    boot_low: float | None  # interval of the wild bootstrap for this term alone
    boot_high: float | None
    trimmed: float | None  # contrast of cell means, a quarter trimmed off each end
    median: float | None  # contrast of cell medians
    verdicts: tuple[bool | None, ...]  # by Holm, HC3 with Holm, max-T, wild bootstrap
    agree: bool


class Robust(Struct, frozen=True):
    """Where the conclusions depend on the method."""

    rows: tuple[RobustRow, ...]
    alpha: float
    permutations: int
    bootstraps: int
    seed: int
    sentence: str


def hc3(fit: Fit) -> Floats | None:
    """Two-sided p values of all terms with MacKinnon and White's HC3 standard errors.

    ``V = (X'X)^-1 X' diag(e_i² / (1 - h_i)²) X (X'X)^-1``, t on the residual degrees of freedom.
    None where a run decides its own fit, and where all runs have the same leverage: in a balanced
    full model the variance of every contrast is the pooled one, so that nothing is added to t.
    """
    free = 1.0 - fit.leverage
    if fit.df_residual < 1 or (free < 1e-9).any() or float(np.ptp(free)) < 1e-9:
        return None
    maps = estimator(fit.cells, fit.block, fit.model)
    variance = (maps**2) @ (fit.residual / free) ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(2.0 * stats.t.sf(np.abs(fit.coef) / np.sqrt(variance), fit.df_residual))


def permutation(fit: Fit, permutations: int, seed: int) -> tuple[Floats, Floats]:
    """Permutation p of every term, alone and adjusted for all terms by the largest statistic.

    Responses are exchanged within blocks; the statistic is |t| with the residual mean square of
    the permuted data (|coef| in a saturated design), so that large effects do not hide small ones.
    ``p = (1 + #{T* >= T}) / (1 + N)``.
    """
    Q, R, first = decomposed(fit.cells, fit.block, fit.model)
    inverse = scipy.linalg.solve_triangular(R, np.eye(len(R)))[first:]
    total = float(fit.y @ fit.y)

    def statistic(rows: Floats) -> Floats:
        z = rows @ Q
        size = np.abs(z @ inverse.T) / np.sqrt(fit.scale)
        if fit.df_residual < 1:
            return np.asarray(size)
        rest = np.maximum(total - (z**2).sum(axis=1), 1e-12 * total + 1e-300)
        return np.asarray(size / np.sqrt(rest / fit.df_residual)[:, None])

    observed = statistic(fit.y[None, :])[0]
    # Ties count although they are rounded differently, of what is nothing but rounding too.
    limit = observed - 1e-9 * observed.max(initial=0.0)
    block = None if fit.block is None else tuple(fit.block.tolist())
    alone, largest = np.zeros(len(observed)), np.zeros(len(observed))
    for order in _orders(block, fit.n, permutations, seed):
        drawn = statistic(fit.y[order])
        alone += (drawn >= limit).sum(axis=0)
        peak = np.sort(drawn.max(axis=1))
        largest += len(peak) - np.searchsorted(peak, limit, side="left")
    return (1.0 + alone) / (1.0 + permutations), (1.0 + largest) / (1.0 + permutations)


@lru_cache(maxsize=1)  # all responses of the same runs are exchanged alike
def _orders(
    block: tuple[int, ...] | None, n: int, permutations: int, seed: int
) -> list[NDArray[np.uint16]]:
    """Permutations x runs, in chunks: which run gives its response, one of the same block."""
    numbers = None if block is None else np.array(block)
    rng = np.random.default_rng(seed)
    sizes = [min(CHUNK, permutations - start) for start in range(0, permutations, CHUNK)]
    # Numbers of at most MOST_RUNS runs fit into 16 bits.
    return [exchanges(numbers, n, size, rng).astype(np.uint16) for size in sizes]


class Wild(NamedTuple):
    """Answers of the wild bootstrap."""

    low: Floats  # intervals of the effects
    high: Floats
    p: Floats  # over all terms at once


def wild_bootstrap(fit: Fit, alpha: float, count: int, seed: int) -> Wild | None:
    """Wild bootstrap of t, which holds where the spread differs between runs (Wu 1986; Liu 1988).

    ``y* = ŷ + w e / sqrt(1 - h)`` with w = ±1 at random; t* is the deviation of a coefficient over
    its standard error in y*. An interval is ``effect ± q se`` with q the quantile of |t*|, and p
    the share of draws whose largest |t*| is at least |t|. None where few residuals are left, and
    their signs alone leave q undetermined.
    """
    free = 1.0 - fit.leverage
    if fit.df_residual < FEWEST_DF or (free < 1e-9).any():
        return None
    Q, R, first = decomposed(fit.cells, fit.block, fit.model)
    maps = scipy.linalg.solve_triangular(R, Q.T)[first:]
    error = fit.residual / np.sqrt(free)
    total = float(error @ error)
    rng = np.random.default_rng(seed)
    drawn = error * rng.choice(np.array([-1.0, 1.0]), size=(count, fit.n))
    rest = np.maximum(total - ((drawn @ Q) ** 2).sum(axis=1), 1e-12 * total)
    size = np.sqrt(fit.scale * rest[:, None] / fit.df_residual)
    t = np.abs(drawn @ maps.T) / size
    se = 2.0 * np.sqrt(fit.scale * fit.ss_residual / fit.df_residual)
    reach = np.quantile(t, 1.0 - alpha, axis=0) * se
    peak = np.sort(t.max(axis=1))
    above = count - np.searchsorted(peak, np.abs(fit.effect) / se, side="left")
    p = np.asarray((1.0 + above) / (1.0 + count), dtype=np.float64)
    return Wild(fit.effect - reach, fit.effect + reach, p)


def robust_contrasts(fit: Fit) -> tuple[Floats | None, Floats | None]:
    """Effects from trimmed cell means (a quarter off each end) and from cell medians.

    Trimming needs four runs in every cell, medians three; with fewer they are the means.
    """
    y = without_blocks(fit.y, fit.cells, fit.block)
    unique, counts = np.unique(fit.cells, return_counts=True)
    groups = [y[fit.cells == cell] for cell in unique]
    trimmed = median = None
    if counts.min() >= 4:
        trimmed = _contrast(fit, unique, np.array([stats.trim_mean(g, TRIM) for g in groups]))
    if counts.min() >= 3:
        median = _contrast(fit, unique, np.array([np.median(g) for g in groups]))
    return trimmed, median


def _contrast(fit: Fit, unique: Ints, values: Floats) -> Floats:
    X = np.column_stack([np.ones(len(unique)), sign_columns(unique, fit.model.masks)])
    return np.asarray(2.0 * np.linalg.lstsq(X, values, rcond=None)[0][1:])


def estimate(case: Case) -> Robust | None:
    """The shown effects by every method, and where the conclusions differ; None unless asked.

    None where replicates share seeds: every method takes replicates as independent.
    """
    if not case.options.robust or case.fit.n > MOST_RUNS or case.fit.seeding is not None:
        return None
    fit, alpha = case.fit, case.alpha
    permutations, seed = case.options.permutations, case.options.seed
    row_of = {name: i for i, name in enumerate(case.names)}
    p_hc3 = hc3(fit)
    hc3_holm = None if p_hc3 is None else holm(p_hc3)
    alone, largest = permutation(fit, permutations, seed)
    wild = wild_bootstrap(fit, alpha, BOOTSTRAPS, seed)
    trimmed, median = robust_contrasts(fit)
    rows = []
    for effect in case.effects:
        i = row_of[effect.term]
        p_wild = None if wild is None else float(wild.p[i])
        family = (effect.p_holm, _at(hc3_holm, i), float(largest[i]), p_wild)
        verdicts = tuple(_verdict(p, alpha) for p in family)
        rows.append(
            RobustRow(
                term=effect.term,
                effect=effect.effect,
                p=effect.p,
                p_hc3=_at(p_hc3, i),
                p_permutation=float(alone[i]),
                p_maxt=float(largest[i]),
                p_wild=p_wild,
                boot_low=None if wild is None else float(wild.low[i]),
                boot_high=None if wild is None else float(wild.high[i]),
                trimmed=_at(trimmed, i),
                median=_at(median, i),
                verdicts=verdicts,
                agree=not {True, False} <= set(verdicts),
            )
        )
    bootstraps = BOOTSTRAPS if wild is not None else 0
    sentence = _sentence([row.term for row in rows if not row.agree], alpha)
    return Robust(tuple(rows), alpha, permutations, bootstraps, seed, sentence)


def _verdict(p: float | None, alpha: float) -> bool | None:
    """Significant, or clearly not; None in between, where methods may differ by chance."""
    if p is None or alpha <= p <= 2.0 * alpha:
        return None
    return p < alpha


def _at(values: Floats | None, i: int) -> float | None:
    return None if values is None else float(values[i])


def _sentence(differ: Sequence[str], alpha: float) -> str:
    if not differ:
        level = cell_text(alpha, "short")
        return f"All methods agree on every term at {level}, adjusted for all terms."
    terms = ", ".join(differ[:8]) + (" …" if len(differ) > 8 else "")
    return f"The conclusion depends on the method for {terms}: treat these terms as open."
