"""Dispersion effects: which factors change the spread between replicates."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from scipy import special

from doe.analysis import distributions as stats
from doe.analysis.case import Case
from doe.analysis.contrasts import Floats, Ints, estimable, names_of
from doe.analysis.fit import estimator, without_blocks
from doe.analysis.lenth import Lenth, lenth
from doe.analysis.pvalues import holm


class DispersionEffect(Struct, frozen=True, gc=False):
    """Effect of a term on ln s² of the cells."""

    term: str
    effect: float  # on ln s²
    ratio: float  # variance at high / variance at low, exp(effect)
    z: float  # effect over its normal-theory standard error
    p: float
    p_holm: float


class Dispersion(Struct, frozen=True):
    """Which factors change the spread between replicates."""

    effects: tuple[DispersionEffect, ...]
    replicates: int  # fewest runs in a cell that was used
    lenth: Lenth | None
    skipped: tuple[str, ...]  # configurations without a spread
    sentence: str


def estimate(case: Case) -> Dispersion | None:
    """Effects on ln s² of the cells, after blocks; None without replicates.

    For normal data ``Var(ln s²) = ψ'(ν / 2)`` with ν = replicates - 1, which gives each contrast
    a known standard error; Lenth's method beside it needs no normality. A cell whose replicates
    are all equal has no ln s² and is named.
    """
    cells, block = case.fit.cells, case.fit.block
    adjusted = _steadied(without_blocks(case.fit.y, cells, block), cells, block)
    unique, group, counts = np.unique(cells, return_inverse=True, return_counts=True)
    means = np.bincount(group, weights=adjusted) / counts
    squares = np.bincount(group, weights=(adjusted - means[group]) ** 2)
    floor = 1e-24 * max(float((adjusted**2).mean()), 1e-300)
    usable = (counts >= 2) & (squares > floor)
    if usable.sum() < 2:
        return None
    used, nu = unique[usable], counts[usable] - 1
    log_variance = np.log(squares[usable] / nu)
    model = estimable(used, len(case.keys), case.order, None)
    if not model.masks:
        return None
    maps = estimator(used, None, model)
    effect = 2.0 * maps @ log_variance
    se = 2.0 * np.sqrt(maps**2 @ special.polygamma(1, nu / 2.0))
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
        replicates=int(counts[usable].min()),
        lenth=lenth(effect, names, case.alpha, tested=False),
        skipped=tuple(case.runs.config(int(cell)) for cell in unique[~usable]),
        sentence=_sentence(effects, case.alpha),
    )


def _steadied(y: Floats, cells: Ints, block: Ints | None) -> Floats:
    """Take the median deviation of each block out as well.

    Least-squares block effects carry the noise of unstable cells into the stable ones, which
    would hide the very difference that is looked for; medians over cells do not.
    """
    if block is None:
        return y
    group = np.unique(cells, return_inverse=True)[1]
    within = y - (np.bincount(group, weights=y) / np.bincount(group))[group]
    shift = np.array([np.median(within[block == b]) for b in range(int(block.max()) + 1)])
    return np.asarray(y - shift[block])


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
