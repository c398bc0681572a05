"""Tests of terms, and single-degree answers: effects, parts of numbers, curvature, contrasts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from doe.analysis.coding import DEGREES, contrasts
from doe.analysis.contrasts import Floats, names_of
from doe.analysis.dataset import FactorColumn
from doe.analysis.fit import Fit
from doe.analysis.lenth import HalfNormalPoint, Lenth, half_normal_points, lenth
from doe.analysis.means import difference_function
from doe.analysis.model import CURVATURE
from doe.analysis.pvalues import (
    adjusted,
    f_upper,
    plain,
    quotient,
    signed_quotient,
    t_critical,
    t_two_sided,
)
from doe.analysis.scales.log import ratio_of
from doe.analysis.transform import Transformation
from doe.terms import FACTORS, order


class Effect(Struct, frozen=True, gc=False):
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


class TermTest(Struct, frozen=True, gc=False):
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


class SingleContrast(Struct, frozen=True, gc=False):
    """One degree of freedom of a term, on the scale of a two-level effect."""

    term: str
    label: str  # what it compares, such as ``optimizer adam − sgd``
    value: float
    p: float | None  # Lenth's, simulated; None with fewer than three contrasts


class HalfNormal(Struct, frozen=True):
    """The contrasts in standard order, and the points by rising size."""

    contrasts: tuple[SingleContrast, ...]
    points: tuple[HalfNormalPoint, ...]
    lenth: Lenth | None  # reference line y = x / pse


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


def single_test(fit: Fit, value: float, variance: float, alpha: float) -> SingleTest:
    """``t = value / (σ √variance)`` on the error's degrees of freedom; both are of u."""
    value = float(value)
    if fit.df_error == 0:
        return SingleTest(fit.unit * value, None, None, None, None, None)
    se = float(np.sqrt(variance * fit.ms_error))
    t = signed_quotient(value, se)
    p = None if t is None else float(t_two_sided(np.array(t), fit.df_error))
    reach = t_critical(alpha, fit.df_error) * se
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
    """Every term with its F test in standard order, adjusted over those that are shown.

    `sums` are the sums of squares of the leading type. In a saturated design p is Lenth's: that of
    the term's largest contrast, times their number. Terms with a factor of `hidden` are left out.
    """
    model = fit.model
    shown = [term for term in model.shown_terms if not term & hidden]
    names = names_of(shown, model.runs.keys)
    df = [model.df(t) for t in shown] if not model.runs.two_level else [1] * len(shown)
    if fit.df_error > 0:
        with np.errstate(divide="ignore", invalid="ignore"):
            f = np.array([sums[term] for term in shown]) / np.array(df) / fit.ms_error
        p = _f_upper(f, np.array(df), fit.df_error)
    else:
        f = np.full(len(shown), np.nan)
        p = _lenth_p(plot, names)
    p_holm, p_bh = adjusted(p)
    asked = df if model.full_rank else [model.df_asked(term) for term in shown]
    squares = [sums[term] * fit.square for term in shown]
    shares = _shares(fit, shown).tolist()
    figures = (names, df, asked, squares, shares, *map(plain, (f, p, p_holm, p_bh)), shown)
    lines: Iterable[tuple[Any, ...]] = zip(*figures, strict=True)
    return tuple(TermTest(*line) for line in lines)


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
    if plot.lenth is None:
        return np.full(len(names), np.nan)
    smallest: dict[str, list[float]] = {}
    for contrast in plot.contrasts:
        smallest.setdefault(contrast.term, []).append(1.0 if contrast.p is None else contrast.p)
    return np.array([min(1.0, min(smallest[n]) * len(smallest[n])) for n in names])


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
    value, variance, known = _effect_values(fit, terms)
    if fit.df_error > 0:
        se = np.sqrt(variance * fit.ms_error)
        with np.errstate(divide="ignore", invalid="ignore"):
            t = value / se
        p = t_two_sided(t, fit.df_error)
        reach = t_critical(alpha, fit.df_error) * se
        low, high = value - reach, value + reach
        every = np.array([np.nan if test.p is None else test.p for test in tests])
        own = np.array([i for i, _ in chosen])
        every[own] = np.where(np.isnan(p), every[own], p)
        p_holm, p_bh = (column[own] for column in adjusted(every))
    else:
        se = low = high = np.full(len(terms), np.nan)
        pse = np.nan if plot.lenth is None else plot.lenth.pse
        t = fit.unit * value / pse
        columns = [(test.p, test.p_holm, test.p_bh) for _, test in chosen]
        p, p_holm, p_bh = np.array(columns, dtype=np.float64).T
    unit = fit.unit
    sums = _own_squares(fit, terms)
    figures = (
        *(unit * value, unit * value / 2.0, unit * se, unit * low, unit * high),
        *(t, p, p_holm, p_bh, sums * fit.square, np.array([test.percent for _, test in chosen])),
    )
    names = [test.term for _, test in chosen]
    lines: Iterable[tuple[Any, ...]] = zip(names, *map(plain, figures), terms, strict=True)
    return tuple(Effect(*line) for line, ok in zip(lines, known, strict=True) if ok)


def _effect_values(fit: Fit, terms: tuple[int, ...]) -> tuple[Floats, Floats, list[bool]]:
    """Effects of two-level terms and their variances over σ², of u, and which are determined."""
    coef, scale = fit.coef_of(terms)
    value, variance = 2.0 * coef, 4.0 * scale
    known = [True] * len(terms)
    if fit.model.full_rank:
        return value, variance, known
    for i, term in enumerate(terms):
        row = np.where(fit.model.source == term, 2.0, 0.0).astype(np.float64)
        if fit.model.estimable(row[None, :])[0]:
            continue
        shared = None
        if order(term) == 1:
            shared = difference_function(fit, (term & FACTORS).bit_length() - 1, (0, 1)).row
        known[i] = shared is not None
        if shared is not None:
            estimate, covariance = fit.estimate(shared[None, :])
            value[i], variance[i] = float(estimate[0]), float(covariance[0, 0])
    return value, variance, known


def _own_squares(fit: Fit, terms: tuple[int, ...]) -> Floats:
    """Sum of squares of each single-degree term after all others, of u."""
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
    variances = fit.variance(rows)
    parts = []
    for j in range(min(2, len(own))):
        test = single_test(fit, weight[j] * fit.coef[own[j]], weight[j] ** 2 * variances[j], alpha)
        f = None if test.t is None else test.t**2
        figures = (test.value, test.se, test.ci_low, test.ci_high, f, test.p)
        parts.append(NumericPart(column.key, DEGREES[j], 1, *figures))
    if len(own) > 2:
        rest = own[2:]
        b = fit.coef[rest]
        ss = float(b @ np.linalg.solve(fit.scale[np.ix_(rest, rest)], b))
        f, p = f_test(fit, ss, len(rest))
        parts.append(NumericPart(column.key, "rest", len(rest), None, None, None, None, f, p))
    return tuple(parts)


def part_weights(column: FactorColumn) -> tuple[float, float]:
    """What a coefficient of the linear and of the quadratic contrast means for the response.

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
    test = single_test(fit, fit.coef[own[0]], fit.scale[own[0], own[0]], alpha)
    figures = (test.value, test.se, test.ci_low, test.ci_high, test.t, test.p)
    return Curvature(*figures, n=int(fit.runs.off.sum()))


# Half-normal plot -------------------------------------------------------------------------------


def half_normal_plot(fit: Fit, alpha: float) -> HalfNormal:
    """Every degree of freedom of the terms as one contrast, all with the same variance.

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
    names = names_of(terms, model.runs.keys)
    labels = names
    if not (model.runs.two_level and model.full_rank):
        kept = [label for label, k in zip(model.labels, model.kept, strict=True) if k]
        labels = [kept[j] for j in chosen]
    saturated = fit.df_error == 0
    margins = lenth(values, labels, alpha, tested=saturated) if len(values) else None
    p: list[float | None] = [None] * len(labels)
    if margins is not None and saturated:
        p = list(margins.p)
    single = zip(names, labels, values.tolist(), p, strict=True)
    points = half_normal_points(values, labels)
    return HalfNormal(tuple(SingleContrast(*line) for line in single), points, margins)


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
