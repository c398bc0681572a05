"""Dispersion effects: which factors change the spread between replicates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import numpy as np
from msgspec import Struct
from scipy import special

from doe.analysis import distributions as stats
from doe.analysis.best import reduced_fit
from doe.analysis.case import Case
from doe.analysis.contrasts import Floats, Ints, estimable, names_of, sign_columns
from doe.analysis.fit import Fit, estimator, without_blocks
from doe.analysis.lenth import Lenth, lenth
from doe.analysis.pvalues import holm, significant
from doe.analysis.rescale import units
from doe.numbers import cell_text

REWEIGHTED = 16
"""Cells from which block effects are found by weighted least squares."""
MOST_SIGNS = 1 << 24
"""Terms times runs up to which residuals are split by every term, then by pairs at most."""


class DispersionEffect(Struct, frozen=True, gc=False):
    """Effect of a term on ln s² of the cells."""

    term: str
    effect: float  # on ln s²
    ratio: float  # variance at high / variance at low, exp(effect)
    z: float | None  # effect over its standard error; None without replicates
    p: float | None
    p_holm: float | None


class Dispersion(Struct, frozen=True):
    """Which factors change the spread between replicates, or that of residuals without them."""

    UNITS: ClassVar = units(lenth=0)
    effects: tuple[DispersionEffect, ...]
    replicates: int  # fewest runs in a cell that was used; 1 where residuals stand in for them
    kurtosis: float | None  # excess of the errors, at least 0, which widens the standard errors
    lenth: Lenth | None
    skipped: tuple[str, ...]  # configurations without a spread
    sentence: str


def estimate(case: Case) -> Dispersion | None:
    """Effects on ln s² of the cells, after blocks; from residuals where runs are not repeated.

    ``Var(ln s²) = ψ'(ν / 2) + κ / n`` with ν = n - 1: what normal errors give (Bartlett and
    Kendall 1946), and what their excess kurtosis κ adds (Layard 1973). Lenth's method stands
    beside it. A cell whose replicates are all equal has no ln s² and is named.
    """
    spreads = cell_spreads(case.fit)
    if spreads is None:
        return of_residuals(case) if case.fit.df_pure == 0 else None
    model = estimable(spreads.cells, len(case.keys), case.order, None)
    if not model.masks:
        return None
    kurtosis = excess_kurtosis(spreads)
    maps = estimator(spreads.cells, None, model)
    effect = 2.0 * maps @ spreads.log_variance
    variance = special.polygamma(1, (spreads.n - 1) / 2.0) + kurtosis / spreads.n
    z = effect / (2.0 * np.sqrt(maps**2 @ variance))
    p = 2.0 * stats.norm.sf(np.abs(z))
    names = names_of(model.masks, case.keys)
    columns = (effect, np.exp(effect), z, p, holm(p))
    effects = tuple(
        DispersionEffect(*line)
        for line in zip(names, *(column.tolist() for column in columns), strict=True)
    )
    return Dispersion(
        effects=effects,
        replicates=int(spreads.n.min()),
        kurtosis=kurtosis,
        lenth=lenth(effect, names, case.alpha, tested=False),
        skipped=tuple(case.runs.config(int(cell)) for cell in spreads.skipped),
        sentence=_sentence(effects, case.alpha),
    )


def of_residuals(case: Case) -> Dispersion | None:
    """``ln(s²(high) / s²(low))`` of the reduced model's residuals for each term, untested.

    Box and Meyer (1986): what the active terms leave is split at each column of the design. None
    where these terms leave fewer degrees of freedom than they take.
    """
    small = reduced_fit(case)
    if small.exact or 2 * small.df_residual < small.n:
        return None
    masks = case.fit.model.masks
    if len(masks) * small.n > MOST_SIGNS:
        masks = tuple(mask for mask in masks if mask.bit_count() <= 2)
    effects = []
    for name, mask in zip(names_of(masks, case.keys), masks, strict=True):
        column = sign_columns(small.cells, [mask])[:, 0]
        halves = [small.residual[column > 0], small.residual[column < 0]]
        if min(len(half) for half in halves) < 2 or min(np.ptp(half) for half in halves) == 0.0:
            continue
        ratio = float(halves[0].var(ddof=1) / halves[1].var(ddof=1))
        effects.append(DispersionEffect(name, float(np.log(ratio)), ratio, None, None, None))
    terms = " ".join(names_of(small.model.masks, case.keys)) or "the mean"
    sentence = f"No run is repeated: spread of what {terms} leaves, which no test judges."
    if not effects:
        return None
    return Dispersion(tuple(effects), 1, None, None, (), sentence)


class Spreads(NamedTuple):
    """What the runs say of the spread within cells."""

    cells: Ints
    n: Ints  # runs in each cell
    log_variance: Floats  # ln s² of each cell
    foreseen: Floats  # the same by main effects alone
    within: Floats  # deviation of each run from its cell, after blocks
    cell_of_run: Ints
    free: float  # share of the degrees of freedom within cells that blocks leave
    skipped: Ints  # cells without a spread


def cell_spreads(fit: Fit) -> Spreads | None:
    """ln s² of the cells, block effects taken out by least squares.

    Plain least squares carries the noise of unstable cells into the stable ones, through the block
    means. From `REWEIGHTED` cells on, cells count by the inverse of the variance that main effects
    on ln s² foresee, which undoes that; of fewer cells the weights themselves are too uncertain.
    """
    unique, group, counts = np.unique(fit.cells, return_inverse=True, return_counts=True)
    rounds = 3 if fit.block is not None and (counts >= 2).sum() >= REWEIGHTED else 1
    weight: Floats | None = None
    for _ in range(rounds):
        adjusted = without_blocks(fit.y, fit.cells, fit.block, weight)
        within = adjusted - (np.bincount(group, weights=adjusted) / counts)[group]
        squares = np.bincount(group, weights=within**2)
        floor = 1e-24 * max(float((adjusted**2).mean()), 1e-300)
        usable = (counts >= 2) & (squares > floor)
        if usable.sum() < 2:
            return None
        log_variance = np.log(squares[usable] / (counts[usable] - 1))
        X = _main_effects(unique)
        slopes = np.linalg.lstsq(X[usable], log_variance, rcond=None)[0]
        foreseen = X @ slopes
        weight = np.exp(-foreseen)[group]
    chosen = usable[group]
    return Spreads(
        cells=unique[usable],
        n=counts[usable],
        log_variance=log_variance,
        foreseen=foreseen[usable],
        within=within[chosen],
        cell_of_run=np.searchsorted(unique[usable], fit.cells[chosen]),
        free=fit.df_pure / max(float((counts - 1).sum()), 1.0),
        skipped=unique[~usable],
    )


def _main_effects(cells: Ints) -> Floats:
    masks = [1 << i for i in range(int(cells.max()).bit_length())]
    return np.column_stack([np.ones(len(cells)), sign_columns(cells, masks)])


def excess_kurtosis(spreads: Spreads) -> float:
    """Pooled excess kurtosis κ of the errors from deviations within cells of n runs; at least 0.

    A deviation from the mean of n independent errors has fourth moment
    ``3 σ⁴ (1 - 1/n)² + κ σ⁴ ((n - 1)⁴ + n - 1) / n⁴``. Deviations are first divided by the spread
    that main effects foresee, since unequal spread looks like kurtosis.
    """
    size = spreads.within / np.exp(spreads.foreseen / 2.0)[spreads.cell_of_run]
    variance = float((size**2).sum()) / (spreads.free * float((spreads.n - 1).sum()))
    n = spreads.n[spreads.cell_of_run]
    normal = 3.0 * float(((spreads.free * (1.0 - 1.0 / n)) ** 2).mean())
    excess = spreads.free**2 * float((((n - 1.0) ** 4 + n - 1.0) / n**4.0).mean())
    return max(0.0, (float((size**4).mean()) / variance**2 - normal) / excess)


def _sentence(effects: Sequence[DispersionEffect], alpha: float) -> str:
    called = [e for e in effects if significant(e.p_holm, alpha)]
    surest = sorted(called, key=lambda e: -abs(e.z or 0.0))[:4]
    if not surest:
        return "No term changes the spread between replicates beyond chance."
    parts = [
        f"{e.term} at high {'multiplies' if e.effect > 0 else 'divides'} the variance "
        f"by {cell_text(max(e.ratio, 1 / e.ratio), 'short')}"
        for e in surest
    ]
    return "; ".join(parts) + "."
