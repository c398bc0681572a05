"""Dispersion effects: which factors change the spread between replicates."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from msgspec import Struct
from scipy import special

from doe.analysis import distributions as stats
from doe.analysis.coding import level_patterns, run_columns, term_columns
from doe.analysis.contrasts import MOST_RUNS, Floats, Ints
from doe.analysis.dataset import Runs
from doe.analysis.fit import Fit, coefficient_maps, wald, without_blocks
from doe.analysis.fitted import FittedResponse
from doe.analysis.lenth import Lenth, lenth
from doe.analysis.model import Model, make_model
from doe.analysis.pvalues import adjusted, none_for_nan, significant
from doe.numbers import about
from doe.terms import order

REWEIGHTED = 16
"""Cells from which block effects are found by weighted least squares."""
MOST_SIGNS = 1 << 24
"""Terms times runs up to which residuals are split by every term, then by pairs at most."""
EQUAL = 1e-9
"""Distance from 1 up to which a ratio of variances of residuals is rounding."""


class DispersionEffect(Struct, frozen=True, gc=False):
    """Effect of a term on ln s² of the cells."""

    term: str
    df: int
    effect: float | None  # on ln s²; that of the pair of levels that differ most
    ratio: float | None  # variance at high / variance at low, exp(effect)
    pattern: str  # these two levels, "" of one degree of freedom
    z: float | None  # effect over its standard error; None of more df and without replicates
    chi2: float | None  # z² of one degree of freedom; None where empty cells leave it unknown
    p: float | None
    p_holm: float | None


class Dispersion(Struct, frozen=True):
    """Which factors change the spread between replicates, or that of residuals without them."""

    effects: tuple[DispersionEffect, ...]
    replicates: int  # fewest runs in a cell that was used; 1 where residuals stand in for them
    kurtosis: float | None  # excess of the errors, at least 0, which widens the standard errors
    lenth: Lenth | None  # where every term has one degree of freedom
    skipped: tuple[str, ...]  # configurations without a spread
    sentence: str


def estimate(response: FittedResponse) -> Dispersion | None:
    """Effects on ln s² of the cells, after blocks; from residuals where runs are not repeated.

    ``Var(ln s²) = ψ'(ν / 2) + κ / n`` with ν = n - 1: what normal errors give (Bartlett and
    Kendall 1946), and what their excess kurtosis κ adds (Layard 1973). A term is tested by
    ``b' V^-1 b``, χ² with its degrees of freedom. Lenth's method stands beside it. A cell whose
    replicates are all equal has no ln s² and is named.
    """
    fit = response.fit
    if fit.exact or fit.strata is not None:
        return None
    spreads = cell_spreads(fit)
    if spreads is None:
        return of_residuals(response) if fit.df_pure == 0 else None
    model = make_model(spreads.runs, fit.model.terms, curved=not fit.pooled)
    terms = model.sorted_terms
    if not terms or spreads.runs.count > MOST_RUNS:
        return None
    kurtosis = excess_kurtosis(spreads)
    maps = coefficient_maps(model)
    variance = special.polygamma(1, (spreads.n - 1) / 2.0) + kurtosis / spreads.n
    coef = maps @ spreads.log_variance
    own = [model.columns(term) for term in terms]
    chi2 = np.array([wald(coef[at], (maps[at] * variance) @ maps[at].T) for at in own])
    chi2[[not determined(model, term) for term in terms]] = np.nan
    df = np.array([len(at) for at in own])
    p = np.asarray(stats.chi2.sf(chi2, df))
    z = np.where(df == 1, np.copysign(np.sqrt(chi2), coef[[at[0] for at in own]]), np.nan)
    figures = zip(*map(none_for_nan, (z, chi2, p, adjusted(p)[0])), strict=True)
    single = bool((df == 1).all())
    effects = tuple(
        DispersionEffect(model.name(term), model.df(term), *_largest(model, term, coef), *line)
        for term, line in zip(terms, figures, strict=True)
    )
    values, names = np.array([e.effect or 0.0 for e in effects]), [e.term for e in effects]
    return Dispersion(
        effects=effects,
        replicates=int(spreads.n.min()),
        kurtosis=kurtosis,
        lenth=lenth(values, names, response.alpha, tested=False) if single else None,
        skipped=tuple(response.runs.config(int(cell)) for cell in spreads.skipped),
        sentence=_sentence(effects, {model.name(t) for t in terms if order(t) > 1}, response.alpha),
    )


def determined(model: Model, term: int) -> bool:
    """Return whether the runs determine all coefficients of a term, whatever other columns are
    kept.
    """
    if model.full_rank:
        return True
    own = np.flatnonzero(model.source == term)
    return bool(model.estimable(np.eye(len(model.source))[own]).all())


def _largest(model: Model, term: int, coef: Floats) -> tuple[float | None, float | None, str]:
    """Return the largest effect of a term between two levels of each factor, as a ratio, and
    which.
    """
    at = np.flatnonzero(model.source == term)
    rows, labels = np.zeros((1, len(model.source))), [""]
    rows[0, at] = 2.0
    if len(at) > 1:
        patterns, labels = level_patterns(model.runs.factors, term)
        rows = np.zeros((len(patterns), len(model.source)))
        rows[:, at] = patterns
    known = np.flatnonzero(model.estimable(rows))
    if not len(known):
        return None, None, ""
    values = rows[known][:, model.fitted] @ coef
    widest = int(np.argmax(np.abs(values)))
    value = float(values[widest])
    return value, float(np.exp(value)), labels[known[widest]]


def of_residuals(response: FittedResponse) -> Dispersion | None:
    """``ln(s²(high) / s²(low))`` of the reduced model's residuals for each term, untested.

    Box and Meyer (1986): what the active terms leave is split at each two-level column of the
    design. None where these terms leave fewer degrees of freedom than they take.
    """
    small, model = response.reduced, response.fit.model
    if small.exact or 2 * small.df_residual < small.n:
        return None
    terms = [term for term in model.two_level_terms if not small.runs.off.any()]
    if len(terms) * small.n > MOST_SIGNS:
        terms = [term for term in terms if term.bit_count() <= 2]
    columns = run_columns(small.runs)
    effects = []
    for term in terms:
        column = term_columns(columns, term)[:, 0]
        halves = [small.residual[column > 0], small.residual[column < 0]]
        if min(len(half) for half in halves) < 2:
            continue
        if min(float(np.ptp(half)) for half in halves) <= small.rounding:
            continue
        ratio = float(halves[0].var(ddof=1) / halves[1].var(ddof=1))
        ratio = 1.0 if abs(ratio - 1.0) <= EQUAL else ratio
        figures = (float(np.log(ratio)), ratio, "", None, None, None, None)
        effects.append(DispersionEffect(model.name(term), 1, *figures))
    left = " ".join(small.model.name(term) for term in small.model.sorted_terms) or "the mean"
    sentence = f"No run is repeated: this is the spread of what {left} leaves, untested."
    return Dispersion(tuple(effects), 1, None, None, (), sentence) if effects else None


class Spreads(NamedTuple):
    """Estimates of the spread within cells."""

    runs: Runs  # one of each cell, without blocks
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
    unique, first, counts = np.unique(fit.cells, return_index=True, return_counts=True)
    group = fit.groups
    rounds = 3 if fit.block is not None and (counts >= 2).sum() >= REWEIGHTED else 1
    each = replace(fit.runs, block=None).only(first)
    X = np.column_stack([np.ones(len(first)), *(part.contrasts for part in run_columns(each))])
    weight: Floats | None = None
    for _ in range(rounds):
        adjusted = without_blocks(fit.u, group, fit.block, weight)
        within = adjusted - (np.bincount(group, weights=adjusted) / counts)[group]
        squares = np.bincount(group, weights=within**2)
        usable = (counts >= 2) & (squares > counts * fit.rounding**2)
        if usable.sum() < 2:
            return None
        log_variance = np.log(squares[usable] / (counts[usable] - 1))
        slopes = np.linalg.lstsq(X[usable], log_variance, rcond=None)[0]
        foreseen = X @ slopes
        weight = np.exp(-foreseen)[group]
    chosen = usable[group]
    return Spreads(
        runs=each.only(np.flatnonzero(usable)),
        n=counts[usable],
        log_variance=log_variance,
        foreseen=foreseen[usable],
        within=within[chosen],
        cell_of_run=(np.cumsum(usable) - 1)[group[chosen]],
        free=fit.df_pure / max(float((counts - 1).sum()), 1.0),
        skipped=unique[~usable],
    )


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


def _sentence(
    effects: Sequence[DispersionEffect], interactions: Collection[str], alpha: float
) -> str:
    called = [e for e in effects if significant(e.p_holm, alpha)]
    surest = sorted(called, key=lambda e: e.p or 0.0)[:4]
    if not surest:
        return "No term is shown to change the spread between replicates."
    return "; ".join(_change(e, e.term in interactions) for e in surest) + "."


def _change(effect: DispersionEffect, is_interaction: bool) -> str:
    if effect.effect is None or effect.ratio is None:
        return f"{effect.term} changes the variance"
    factor = about(max(effect.ratio, 1 / effect.ratio))
    verb = "multiplies" if effect.effect > 0 else "divides"
    if effect.pattern:
        return f"{effect.term} {verb} the variance by {factor} ({effect.pattern})"
    if is_interaction:  # no level of it is high: the product of the coded levels is +1 or −1
        more, less = ("+1", "−1") if effect.effect > 0 else ("−1", "+1")
        return (
            f"the variance is {factor} times as large where {effect.term} = {more} as where it is "
            f"{less}"
        )
    return f"{effect.term} at high {verb} the variance by {factor}"
