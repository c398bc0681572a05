"""Tests of terms, and single-degree answers: effects, parts of numbers, curvature, contrasts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from msgspec import Struct, structs

from doe.analysis.coding import DEGREES, contrasts
from doe.analysis.contrasts import Floats
from doe.analysis.dataset import FactorColumn
from doe.analysis.fit import Fit, wald
from doe.analysis.lenth import HalfNormalPoint, Lenth, half_normal_points, lenth
from doe.analysis.means import difference_function
from doe.analysis.model import CURVATURE
from doe.analysis.pvalues import (
    adjusted,
    f_upper,
    none_for_nan,
    quotient,
    signed_quotient,
    t_critical,
    t_two_sided,
)
from doe.analysis.scales.log import ratio_of
from doe.analysis.transform import Transformation
from doe.terms import FACTORS, order


class Effect(Struct, frozen=True, gc=False, omit_defaults=True):
    """One term of two-level factors on the analysed scale."""

    term: str
    effect: float  # mean at high minus mean at low, twice the coefficient
    coef: float
    se: float | None  # standard error of the effect; None in a saturated design
    ci_low: float | None
    ci_high: float | None
    t: float | None  # effect / se; in a saturated design effect / PSE
    p: float | None  # two-sided t; in a saturated design Lenth's, simulated
    p_holm: float | None  # over all terms that are shown
    p_bh: float | None
    ss: float  # after all other terms: type III (all types agree in a balanced design)
    percent: float  # of the total sum of squares, beyond blocks and terms before it
    mask: int = 0  # the term as a value
    stratum: str = ""  # whose error it is tested against, where there are several
    df_error: float | None = None  # of that error


class TermTest(Struct, frozen=True, gc=False, omit_defaults=True):
    """One term of any degrees of freedom with its test; adjusted p values are over the terms."""

    term: str
    df: int
    df_asked: int  # with runs in every cell; more than `df` where cells are empty
    ss: float
    percent: float  # of the total sum of squares, beyond blocks and terms before it
    f: float | None  # None in a saturated design
    p: float | None  # in a saturated design Lenth's, of its largest contrast
    p_holm: float | None
    p_bh: float | None
    mask: int = 0
    stratum: str = ""  # whose error it is tested against, where there are several
    df_error: float | None = None  # of that error


class SingleContrast(Struct, frozen=True, gc=False):
    """One degree of freedom of a term, on the scale of a two-level effect."""

    term: str
    label: str  # what it compares, such as ``optimizer adam − sgd``
    value: float
    p: float | None  # Lenth's, simulated; None with fewer than three contrasts


class HalfNormal(Struct, frozen=True, omit_defaults=True):
    """The contrasts in standard order, and the points by rising size."""

    contrasts: tuple[SingleContrast, ...]
    points: tuple[HalfNormalPoint, ...]
    lenth: Lenth | None  # reference line y = x / pse
    stratum: str = ""  # whose contrasts they are, where runs have several errors
    further: tuple[HalfNormal, ...] = ()  # of the strata above single runs, the coarsest first

    @property
    def strata(self) -> tuple[HalfNormal, ...]:
        """The plot of every stratum, that of single runs last."""
        return (*self.further, self)


class NumericPart(Struct, frozen=True, gc=False):
    """A part of the main effect of a numeric factor on its scale."""

    factor: str
    part: str  # linear, quadratic, or rest: all higher degrees
    df: int
    estimate: float | None  # of the response: see `numeric_parts`; None for the rest
    se: float | None
    ci_low: float | None
    ci_high: float | None
    f: float | None
    p: float | None


class Curvature(Struct, frozen=True):
    """The mean of the centre runs minus what the model says of the centre."""

    difference: float
    se: float | None
    ci_low: float | None
    ci_high: float | None
    t: float | None
    p: float | None
    n: int  # centre runs


class SingleTest(Struct, frozen=True):
    """A single linear function with its t test, on the scale of y."""

    value: float
    se: float | None
    ci_low: float | None
    ci_high: float | None
    t: float | None
    p: float | None


def single_test(fit: Fit, row: Floats, alpha: float) -> SingleTest:
    """``t = value / se`` of a linear function of the coefficients, against its own error."""
    value = float(fit.estimate(row[None, :])[0][0])
    (se,), (df,) = (figures.tolist() for figures in fit.errors(row[None, :]))
    if not df > 0:
        return SingleTest(fit.unit * value, None, None, None, None, None)
    t = signed_quotient(value, se)
    p = None if t is None else float(t_two_sided(np.array(t), df))
    reach = t_critical(alpha, df) * se
    low, high = fit.unit * (value - reach), fit.unit * (value + reach)
    return SingleTest(fit.unit * value, fit.unit * se, low, high, t, p)


def f_test(fit: Fit, ss: float, df: int) -> tuple[float | None, float | None]:
    """F of a sum of squares of u against the error, and its p; None where there is none."""
    f = quotient(ss / df, fit.ms_error) if fit.df_error > 0 else None
    return f, None if f is None else float(f_upper(np.array(f), df, fit.df_error))


# Tests of terms ----------------------------------------------------------------------------------


def term_tests(
    fit: Fit, sums: dict[int, float], plot: HalfNormal, hidden: int = 0
) -> tuple[TermTest, ...]:
    """Return every term with its F test in standard order, adjusted over those that are shown.

    `sums` are the sums of squares of the leading type. In a saturated design p is Lenth's: that of
    the term's largest contrast, times their number. Terms with a factor of `hidden` are left out.
    """
    model = fit.model
    shown = [term for term in model.sorted_terms if not term & hidden]
    names = [model.name(term) for term in shown]
    df = [model.df(term) for term in shown]
    f, p, df_error = term_figures(fit, shown, sums)
    untested = np.isnan(p)
    if untested.any():
        p[untested] = _lenth_p(plot, [n for n, u in zip(names, untested, strict=True) if u])
    p_holm, p_bh = adjusted(p)
    asked = df if model.full_rank else [model.df_asked(term) for term in shown]
    squares = [sums[term] * fit.square for term in shown]
    shares = _shares(fit, shown).tolist()
    figures = (names, df, asked, squares, shares, *map(none_for_nan, (f, p, p_holm, p_bh)), shown)
    if fit.strata is not None:
        figures = (*figures, [fit.strata.names[term] for term in shown], none_for_nan(df_error))
    lines: Iterable[tuple[Any, ...]] = zip(*figures, strict=True)
    return tuple(TermTest(*line) for line in lines)


def term_figures(
    fit: Fit, terms: Sequence[int], sums: dict[int, float]
) -> tuple[Floats, Floats, Floats]:
    """F, p and degrees of freedom of the error of some terms; NaN where they have no error."""
    if fit.strata is not None:
        tests = [fit.stratum_test(term) for term in terms]
        lines = [(np.nan,) * 3 if t is None else (t.f, t.p, t.df_error) for t in tests]
        f, p, df_error = np.array(lines, np.float64).reshape(-1, 3).T
        return f, p, df_error
    df = np.array([fit.model.df(term) for term in terms])
    with np.errstate(divide="ignore", invalid="ignore"):
        f = np.array([sums[term] for term in terms]) / df / fit.ms_error
    if fit.df_error == 0:
        return f, np.full(len(f), np.nan), f
    return f, _f_upper(f, df, fit.df_error), np.full(len(f), float(fit.df_error))


def _shares(fit: Fit, terms: Sequence[int]) -> Floats:
    """Percent of the total sum of squares that each term adds to blocks and terms before it.

    Of type I, whatever the tests are of: these parts and the residual add up to the total.
    """
    if fit.model.solved_by_transform:
        squares = fit.coef_of(tuple(terms))[0] ** 2 * fit.n
    else:
        squares = np.array([(fit.rotated[fit.model.columns(t)] ** 2).sum() for t in terms])
    return np.asarray(100.0 * squares / fit.ss_total)


def _f_upper(f: Floats, df: Floats, df_error: float) -> Floats:
    """P of F statistics with degrees of freedom of their own."""
    p = np.full(len(f), np.nan)
    for free in np.unique(df).tolist():
        own = df == free
        p[own] = f_upper(f[own], free, df_error)
    return p


def _lenth_p(plot: HalfNormal, names: Sequence[str]) -> Floats:
    """Lenth's p of each term: the smallest of its contrasts', times their number."""
    smallest: dict[str, list[float]] = {}
    for contrast in (c for part in plot.strata for c in part.contrasts):
        if contrast.p is not None:
            smallest.setdefault(contrast.term, []).append(contrast.p)
    p = [min(1.0, min(smallest[n]) * len(smallest[n])) if n in smallest else np.nan for n in names]
    return np.array(p, np.float64)


# Effects of two-level terms ----------------------------------------------------------------------


def two_level_effects(
    fit: Fit, tests: Sequence[TermTest], plot: HalfNormal, alpha: float
) -> tuple[Effect, ...]:
    """Effect of every term of two-level factors: mean at high minus mean at low, ``2 b``.

    Where combinations that never ran leave that undetermined for a factor, it is the difference
    over those that have both levels; an interaction that is undetermined has no effect. The second
    level counts as high. Adjusted p values are over all terms, with F's p for those of more
    degrees of freedom. In a saturated design p is Lenth's, and t is effect / PSE.
    """
    two = set(fit.model.two_level_terms)
    chosen = [(i, test) for i, test in enumerate(tests) if test.mask in two]
    if not chosen:
        return ()
    terms = tuple(test.mask for _, test in chosen)
    value, se, df, known = _effect_values(fit, terms)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = value / se
    own = np.array([i for i, _ in chosen])
    every = np.array([np.nan if test.p is None else test.p for test in tests])
    p = every[own]
    low = high = np.full(len(terms), np.nan)
    for free in np.unique(df[df > 0]).tolist():
        same = df == free
        p[same] = np.where(np.isnan(t[same]), p[same], t_two_sided(t[same], free))
        reach = t_critical(alpha, free) * se
        low, high = np.where(same, value - reach, low), np.where(same, value + reach, high)
    every[own] = p
    p_holm, p_bh = (column[own] for column in adjusted(every))
    lacking = ~(df > 0)
    if lacking.any():
        t[lacking] = (
            fit.unit * value[lacking] / _pse(plot, [test.term for _, test in chosen])[lacking]
        )
    unit = fit.unit
    sums = _partial_squares(fit, terms)
    figures = (
        *(unit * value, unit * value / 2.0, unit * se, unit * low, unit * high),
        *(t, p, p_holm, p_bh, sums * fit.square, np.array([test.percent for _, test in chosen])),
    )
    names = [test.term for _, test in chosen]
    further = ([test.stratum for _, test in chosen], none_for_nan(df)) if fit.strata else ()
    lines: Iterable[tuple[Any, ...]] = zip(
        names, *map(none_for_nan, figures), terms, *further, strict=True
    )
    return tuple(Effect(*line) for line, ok in zip(lines, known, strict=True) if ok)


def _pse(plot: HalfNormal, terms: Sequence[str]) -> Floats:
    """Lenth's pseudo standard error beside each term, of its own stratum."""
    known = {c.term: part.lenth for part in plot.strata for c in part.contrasts if part.lenth}
    return np.array([known[term].pse if term in known else np.nan for term in terms])


def _effect_values(fit: Fit, terms: tuple[int, ...]) -> tuple[Floats, Floats, Floats, list[bool]]:
    """Effects of two-level terms, standard errors, their degrees of freedom, which are known."""
    coef, scale = fit.coef_of(terms)
    value, known = 2.0 * coef, [True] * len(terms)
    if fit.strata is None and fit.model.full_rank:
        df = np.full(len(terms), fit.df_error or np.nan, np.float64)
        return value, np.sqrt(4.0 * scale * fit.ms_error), df, known
    rows = np.where(fit.model.source == np.array(terms, dtype=object)[:, None], 2.0, 0.0)
    rows = rows.astype(np.float64)
    for i, ok in enumerate(fit.model.estimable(rows).tolist()):
        shared = None
        if not ok and order(terms[i]) == 1:
            factor = (terms[i] & FACTORS).bit_length() - 1
            shared = difference_function(fit, factor, (0, 1)).row
        known[i] = ok or shared is not None
        if shared is not None:
            rows[i] = shared
    value = fit.estimate(rows)[0]
    return value, *fit.errors(rows), known


def _partial_squares(fit: Fit, terms: tuple[int, ...]) -> Floats:
    """Sum of squares of each single-degree term after all others, of u."""
    if fit.strata is not None:
        return np.array([fit.square_of(fit.term_basis(t)) for t in terms])
    coef, scale = fit.coef_of(terms)
    return np.asarray(coef**2 / scale)


# Numeric factors --------------------------------------------------------------------------------


def numeric_parts(fit: Fit, factor: int, alpha: float) -> tuple[NumericPart, ...]:
    """Linear and quadratic part of a numeric factor's level means, and the rest.

    Orthogonal polynomials on the factor's scale, each tested by t. The linear part is the change
    of its straight line from the least to the greatest level; the quadratic part is how far its
    parabola stands above its ends in the middle of the scale, so positive where the middle is
    high: for three evenly spaced levels ``m_2 - (m_1 + m_3) / 2``. Empty where the factor has no
    numbers or two levels, or where empty cells leave its level means undetermined.
    """
    column, model, term = fit.runs.factors[factor], fit.model, 1 << factor
    own = model.columns(term)
    if not column.numeric or len(own) < max(model.df_asked(term), 1) or column.degree == 1:
        return ()
    rows = np.zeros((len(own), len(model.source)))
    rows[np.arange(len(own)), np.flatnonzero(model.source == term)] = 1.0
    if not model.estimable(rows).all():
        return ()
    weight = part_weights(column)
    parts = []
    for j in range(min(2, len(own))):
        test = single_test(fit, weight[j] * rows[j], alpha)
        f = None if test.t is None else test.t**2
        figures = (test.value, test.se, test.ci_low, test.ci_high, f, test.p)
        parts.append(NumericPart(column.key, DEGREES[j], 1, *figures))
    if len(own) > 2:
        rest = own[2:]
        b = fit.coef[rest]
        if fit.strata is not None:
            tested = fit.strata.test(np.eye(model.rank)[rest])
            f, p = (None, None) if tested is None else (tested.f, tested.p)
        else:
            f, p = f_test(fit, wald(b, fit.scale[np.ix_(rest, rest)]), len(rest))
        parts.append(NumericPart(column.key, "rest", len(rest), None, None, None, None, f, p))
    return tuple(parts)


def part_weights(column: FactorColumn) -> tuple[float, float]:
    """Return what a coefficient of the linear and of the quadratic contrast means for the response.

    The contrasts are polynomials in the position z, -1 to 1: the first rises by ``p_1(1) -
    p_1(-1)``, the second stands ``p_2(0) - (p_2(-1) + p_2(1)) / 2`` above its ends in the middle.
    """
    z, at_levels = column.positions, contrasts(column)
    line = np.polyfit(z, at_levels[:, 0], 1)
    if at_levels.shape[1] < 2:
        return float(2.0 * line[0]), float("nan")
    parabola = np.polyfit(z, at_levels[:, 1], 2)
    return float(2.0 * line[0]), float(-parabola[0])


def curvature(fit: Fit, alpha: float) -> Curvature | None:
    """Mean of the centre runs against the model; None without centre runs.

    With two-level factors this is ``ȳ_C - ȳ_F`` with ``SS = n_F n_C (ȳ_F - ȳ_C)² / (n_F + n_C)``
    (NIST/SEMATECH e-Handbook, 5.3.3.9): a straight line in every factor leaves it at zero.
    """
    own = fit.model.columns(CURVATURE)
    if len(own) == 0:
        return None
    row = np.where(fit.model.source == CURVATURE, 1.0, 0.0).astype(np.float64)
    test = single_test(fit, row, alpha)
    figures = (test.value, test.se, test.ci_low, test.ci_high, test.t, test.p)
    return Curvature(*figures, n=int(fit.runs.off.sum()))


# Half-normal plot -------------------------------------------------------------------------------


def half_normal_plot(fit: Fit, alpha: float) -> HalfNormal:
    """Return every degree of freedom of the terms as one contrast, all with the same variance.

    ``c_j = 2 q_j'y / √n`` where q_j is column j of the model after those before it, of length 1.
    The contrasts are independent with variance ``4σ²/n``; of a two-level term of a balanced
    design c is the effect; centre runs, on which no effect rests, are not in its n. In an
    unbalanced design they depend on the order of the terms, which
    is the rising one. Lenth's p is simulated where there is no error to test against.
    """
    model = fit.model
    source = model.fitted_source.tolist()
    rank = sorted((term, j) for j, term in enumerate(source) if term > 0)
    terms, chosen = [term for term, _ in rank], [j for _, j in rank]
    if model.solved_by_transform:  # the effects themselves
        values = 2.0 * fit.coef[chosen] * fit.unit
    else:
        runs = fit.n if model.runs.has_surface else int((~model.runs.off).sum())
        values = 2.0 / np.sqrt(runs) * fit.rotated[chosen] * fit.unit
    names = [model.name(term) for term in terms]
    labels = names
    if not (model.runs.two_level and model.full_rank):
        kept = [label for label, k in zip(model.labels, model.fitted, strict=True) if k]
        labels = [kept[j] for j in chosen]
    if fit.exact:  # no contrast is noise, so that none shows how large noise is
        points = half_normal_points(values, labels)
        single = zip(names, labels, values.tolist(), [None] * len(labels), strict=True)
        return HalfNormal(tuple(SingleContrast(*line) for line in single), points, None)
    if fit.strata is None:
        return _plot((names, labels, values), alpha, tested=fit.df_error == 0)
    lacking = {line.name for line in fit.strata.lines if line.lacking}
    of = [fit.strata.names[term] for term in terms]
    plots = []
    for stratum in (line.name for line in fit.strata.lines):
        own = [i for i, name in enumerate(of) if name == stratum]
        lines = ([names[i] for i in own], [labels[i] for i in own], values[own])
        tested = fit.df_error == 0 or stratum in lacking
        plots.append(_plot(lines, alpha, tested=tested, stratum=stratum))
    further = tuple(plot for plot in plots[:-1] if plot.contrasts)
    return structs.replace(plots[-1], further=further)


def _plot(
    lines: tuple[list[str], list[str], Floats], alpha: float, *, tested: bool, stratum: str = ""
) -> HalfNormal:
    """Contrasts of one variance, `tested` by Lenth's method where there is no error."""
    names, labels, values = lines
    margins = lenth(values, labels, alpha, tested=tested) if len(values) else None
    p: list[float | None] = [None] * len(labels)
    if margins is not None and tested:
        p = list(margins.p)
    single = zip(names, labels, values.tolist(), p, strict=True)
    contrasts = tuple(SingleContrast(*line) for line in single)
    points = half_normal_points(values, labels) if margins is None else margins.points
    return HalfNormal(contrasts, points, margins, stratum)


# Effects on the response scale -------------------------------------------------------------------


class ScaleEffect(Struct, frozen=True, gc=False):
    """An effect taken back from the analysed scale to the scale of the response."""

    term: str
    kind: str  # "ratio" (geometric mean or odds at high / at low) or "difference"
    value: float
    low: float | None
    high: float | None


def back(
    effects: Sequence[Effect], mean: float, transform: Transformation
) -> tuple[ScaleEffect, ...]:
    """Effects on the response scale.

    For log and logit the ratio ``exp(effect)`` of geometric means or odds; else the difference of
    the back-transformed means ``g(mean + effect/2) - g(mean - effect/2)``.
    """
    if transform.name == "none":
        return ()
    scale = transform.scale

    def difference(effect: float) -> float:
        ends = scale.back(np.array([mean + effect / 2, mean - effect / 2]))
        return float(ends[0] - ends[1])

    kind, value = ("ratio", ratio_of) if scale.ratio else ("difference", difference)
    return tuple(
        ScaleEffect(
            e.term,
            kind,
            value(e.effect),
            None if e.ci_low is None else value(e.ci_low),
            None if e.ci_high is None else value(e.ci_high),
        )
        for e in effects
    )
