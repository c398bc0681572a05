"""Dispersion effects: which factors change the spread between replicates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from msgspec import Struct
from scipy import special, stats

from doe.analysis.case import Case
from doe.analysis.contrasts import Floats, Ints, estimable, names_of, sign_columns
from doe.analysis.fit import estimator, without_blocks
from doe.analysis.lenth import Lenth, lenth
from doe.analysis.pvalues import holm
from doe.analysis.rescale import units


class DispersionEffect(Struct, frozen=True, gc=False):
    """Effect of a term on ln s² of the cells."""

    term: str
    effect: float  # on ln s²
    ratio: float  # variance at high / variance at low, exp(effect)
    z: float  # effect over its standard error
    p: float
    p_holm: float


class Dispersion(Struct, frozen=True):
    """Which factors change the spread between replicates."""

    UNITS: ClassVar = units(lenth=0)
    effects: tuple[DispersionEffect, ...]
    replicates: int  # fewest runs in a cell that was used
    kurtosis: float  # excess of the errors, at least 0, which widens the standard errors
    lenth: Lenth | None
    skipped: tuple[str, ...]  # configurations without a spread
    sentence: str


def estimate(case: Case) -> Dispersion | None:
    """Effects on ln s² of the cells, after blocks by least squares; None without replicates.

    ``Var(ln s²) = ψ'(ν / 2) + κ / n`` with ν = n - 1: what normal errors give (Bartlett and
    Kendall 1946), and what their excess kurtosis κ adds (Layard 1973). Lenth's method stands
    beside it. A cell whose replicates are all equal has no ln s² and is named.
    """
    fit = case.fit
    adjusted = without_blocks(fit.y, fit.cells, fit.block)
    unique, group, counts = np.unique(fit.cells, return_inverse=True, return_counts=True)
    within = adjusted - (np.bincount(group, weights=adjusted) / counts)[group]
    squares = np.bincount(group, weights=within**2)
    floor = 1e-24 * max(float((adjusted**2).mean()), 1e-300)
    usable = (counts >= 2) & (squares > floor)
    if usable.sum() < 2:
        return None
    used, n = unique[usable], counts[usable]
    log_variance = np.log(squares[usable] / (n - 1))
    model = estimable(used, len(case.keys), case.order, None)
    if not model.masks:
        return None
    chosen = usable[group]
    cell_of_run = np.searchsorted(used, fit.cells[chosen])
    free = fit.df_pure / max(float((counts - 1).sum()), 1.0)
    kurtosis = excess_kurtosis(within[chosen], cell_of_run, n, used, log_variance, free)
    maps = estimator(used, None, model)
    effect = 2.0 * maps @ log_variance
    se = 2.0 * np.sqrt(maps**2 @ (special.polygamma(1, (n - 1) / 2.0) + kurtosis / n))
    z = effect / se
    p = 2.0 * stats.norm.sf(np.abs(z))
    names = names_of(model.masks, case.keys)
    columns = (effect, np.exp(effect), z, p, holm(p))
    effects = tuple(
        DispersionEffect(*line)
        for line in zip(names, *(column.tolist() for column in columns), strict=True)
    )
    return Dispersion(
        effects=effects,
        replicates=int(n.min()),
        kurtosis=kurtosis,
        lenth=lenth(effect, names, case.alpha),
        skipped=tuple(case.runs.config(int(cell)) for cell in unique[~usable]),
        sentence=_sentence(effects, case.alpha),
    )


def excess_kurtosis(
    within: Floats, cell_of_run: Ints, n: Ints, cells: Ints, log_variance: Floats, free: float
) -> float:
    """Pooled excess kurtosis κ of the errors from deviations within cells of n runs; at least 0.

    A deviation from the mean of n independent errors has fourth moment
    ``3 σ⁴ (1 - 1/n)² + κ σ⁴ ((n - 1)⁴ + n - 1) / n⁴``; `free` is the share of the degrees of
    freedom that blocks leave. Deviations are first divided by the spread that main effects on ln s²
    foresee, since unequal spread looks like kurtosis.
    """
    factors = int(cells.max()).bit_length()
    X = np.column_stack(
        [np.ones(len(cells)), sign_columns(cells, [1 << i for i in range(factors)])]
    )
    foreseen = X @ np.linalg.lstsq(X, log_variance, rcond=None)[0]
    size = within / np.exp(foreseen / 2.0)[cell_of_run]
    variance = float((size**2).sum()) / (free * float((n - 1).sum()))
    runs = n[cell_of_run]
    normal = 3.0 * float(((free * (1.0 - 1.0 / runs)) ** 2).mean())
    excess = free**2 * float((((runs - 1.0) ** 4 + runs - 1.0) / runs**4.0).mean())
    return max(0.0, (float((size**4).mean()) / variance**2 - normal) / excess)


def _sentence(effects: Sequence[DispersionEffect], alpha: float) -> str:
    surest = sorted((e for e in effects if e.p_holm < alpha), key=lambda e: e.p)[:4]
    if not surest:
        return "No term changes the spread between replicates beyond chance."
    parts = [
        f"{e.term} at high {'multiplies' if e.effect > 0 else 'divides'} the variance "
        f"by {max(e.ratio, 1 / e.ratio):.3g}"
        for e in surest
    ]
    return "; ".join(parts) + "."
