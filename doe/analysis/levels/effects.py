"""Single-degree answers: effects of two-level terms, parts of numeric factors, curvature, and the
half-normal plot of all contrasts.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from doe.analysis.effects import Effect, plain
from doe.analysis.lenth import HalfNormalPoint, Lenth, half_normal_points, lenth
from doe.analysis.levels.coding import DEGREES, contrasts
from doe.analysis.levels.fit import LevelFit
from doe.analysis.levels.layout import FactorColumn
from doe.analysis.levels.means import difference_function
from doe.analysis.levels.model import CURVATURE
from doe.analysis.pvalues import (
    adjusted,
    f_upper,
    quotient,
    signed_quotient,
    t_critical,
    t_two_sided,
)
from doe.numbers import cell_text
from doe.terms import factors_in


class SingleContrast(Struct, frozen=True, gc=False):
    """One degree of freedom of a term, on the scale of a two-level effect."""

    term: str
    label: str  # what it compares, such as ``optimizer adam − sgd``
    value: float
    p: float | None  # Lenth's, simulated; None with fewer than three contrasts


class HalfNormal(Struct, frozen=True):
    """The contrasts in the order of the model, and the points by rising size."""

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
    sentence: str

    @property
    def f(self) -> float | None:
        """F on one degree of freedom."""
        return None if self.t is None else self.t**2


class _Tested(Struct, frozen=True):
    """A single linear function with its t test, on the scale of y."""

    value: float
    se: float | None
    ci_low: float | None
    ci_high: float | None
    t: float | None
    p: float | None


def _tested(fit: LevelFit, value: float, variance: float, alpha: float) -> _Tested:
    """``t = value / (σ √variance)`` on the error's degrees of freedom; both are of u."""
    value = float(value)
    if fit.df_error == 0:
        return _Tested(fit.unit * value, None, None, None, None, None)
    se = float(np.sqrt(variance * fit.ms_error))
    t = signed_quotient(value, se)
    p = None if t is None else float(t_two_sided(np.array(t), fit.df_error))
    reach = t_critical(alpha, fit.df_error) * se
    low, high = fit.unit * (value - reach), fit.unit * (value + reach)
    return _Tested(fit.unit * value, fit.unit * se, low, high, t, p)


def two_level_effects(fit: LevelFit, plot: HalfNormal, alpha: float) -> tuple[Effect, ...]:
    """Effect of every term of two-level factors: mean at high minus mean at low, ``2 b``.

    Where combinations that never ran leave that undetermined for a factor, it is the difference
    over those that have both levels. The second level counts as high. Adjusted p values are over
    all terms of the model, with F's p for those of more degrees of freedom. In a saturated design
    p is Lenth's from `plot`, adjusted over all its contrasts, and t is effect / PSE.
    """
    sizes = fit.matrix.layout.sizes
    terms = fit.matrix.terms
    sums = [fit.wald(fit.columns(mask)) for mask in terms]
    p = np.array([_f_test(fit, ss, fit.matrix.df(m)) for m, ss in zip(terms, sums, strict=True)])
    two = [mask for mask in terms if all(sizes[i] == 2 for i in factors_in(mask))]
    tested = {mask: _tested(fit, *_two_level_effect(fit, mask), alpha) for mask in two}
    for i, mask in enumerate(terms):
        if mask in tested and (p_effect := tested[mask].p) is not None:
            p[i] = p_effect
    margins = plot.lenth if fit.df_error == 0 else None
    numbers = list(range(len(terms)))  # of the terms among the tests
    if margins is not None:
        contrast_terms = [contrast.term for contrast in plot.contrasts]
        numbers = [contrast_terms.index(fit.matrix.name(mask)) for mask in terms]
        p = np.asarray(margins.p)
    p_holm, p_bh = map(plain, adjusted(p))
    effects = []
    for mask, ss, i in zip(terms, sums, numbers, strict=True):
        if mask not in tested:
            continue
        test = tested[mask]
        t, p_effect = test.t, test.p
        if margins is not None:
            t, p_effect = test.value / margins.pse, float(p[i])
        figures = (test.value, test.value / 2.0, test.se, test.ci_low, test.ci_high, t, p_effect)
        share = 100.0 * ss / fit.ss_total
        effects.append(
            Effect(fit.matrix.name(mask), *figures, p_holm[i], p_bh[i], ss * fit.square, share)
        )
    return tuple(effects)


def _two_level_effect(fit: LevelFit, mask: int) -> tuple[float, float]:
    """Effect of a term of two-level factors and its variance over σ², both of u."""
    matrix = fit.matrix
    row = np.where(matrix.source == mask, 2.0, 0.0)
    if mask.bit_count() == 1 and not matrix.estimable(row[None, :])[0]:
        shared = difference_function(fit, mask.bit_length() - 1, (0, 1)).row
        row = row if shared is None else shared
    value, variance = fit.estimate(row[None, :])
    return float(value[0]), float(variance[0, 0])


def _f_test(fit: LevelFit, ss: float, df: int) -> float:
    """P of a sum of squares of u against the error; NaN where there is none."""
    f = quotient(ss / df, fit.ms_error) if fit.df_error > 0 else None
    return float("nan") if f is None else float(f_upper(np.array(f), df, fit.df_error))


# Numeric factors --------------------------------------------------------------------------------


def numeric_parts(fit: LevelFit, factor: int, alpha: float) -> tuple[NumericPart, ...]:
    """Linear and quadratic part of a numeric factor's level means, and the rest.

    Orthogonal polynomials on the factor's scale, each tested by t. The linear part is the change
    of its straight line from the least to the greatest level; the quadratic part is how far its
    parabola stands above its ends in the middle of the scale, so positive where the middle is
    high: for three evenly spaced levels ``m_2 - (m_1 + m_3) / 2``. Empty where the factor has no
    numbers, or where empty cells leave its level means undetermined.
    """
    column = fit.matrix.layout.factors[factor]
    mask = 1 << factor
    if not column.numeric or fit.matrix.df(mask) < len(column.levels) - 1:
        return ()
    own = fit.columns(mask)
    rows = np.zeros((len(own), len(fit.matrix.source)))
    rows[np.arange(len(own)), np.flatnonzero(fit.matrix.source == mask)] = 1.0
    if not fit.matrix.estimable(rows).all():
        return ()
    weight = part_weights(column)
    parts = []
    for j in range(min(2, len(own))):
        variance = weight[j] ** 2 * fit.scale[own[j], own[j]]
        test = _tested(fit, weight[j] * fit.coef[own[j]], variance, alpha)
        f = None if test.t is None else test.t**2
        figures = (test.value, test.se, test.ci_low, test.ci_high, f, test.p)
        parts.append(NumericPart(column.key, DEGREES[j], 1, *figures))
    if len(own) > 2:
        f = p = None
        if fit.df_error > 0:
            ss = fit.wald(own[2:])
            f = quotient(ss / (len(own) - 2), fit.ms_error)
            p = _f_test(fit, ss, len(own) - 2) if f is not None else None
        parts.append(NumericPart(column.key, "rest", len(own) - 2, None, None, None, None, f, p))
    return tuple(parts)


def part_weights(column: FactorColumn) -> tuple[float, float]:
    """What a coefficient of the linear and of the quadratic contrast means for the response.

    The contrasts are polynomials in the position z, -1 to 1: the first rises by ``p_1(1) -
    p_1(-1)``, the second stands ``p_2(0) - (p_2(-1) + p_2(1)) / 2`` above its ends in the middle.
    """
    z, at_levels = column.positions, contrasts(column)
    line = np.polyfit(z, at_levels[:, 0], 1)
    if len(z) == 2:
        return float(2.0 * line[0]), float("nan")
    parabola = np.polyfit(z, at_levels[:, 1], 2)
    return float(2.0 * line[0]), float(-parabola[0])


# Centre runs ------------------------------------------------------------------------------------


def curvature(fit: LevelFit, alpha: float) -> Curvature | None:
    """Mean of the centre runs against the model; None without centre runs.

    With two-level factors this is ``ȳ_C - ȳ_F`` with ``SS = n_F n_C (ȳ_F - ȳ_C)² / (n_F + n_C)``
    (NIST/SEMATECH e-Handbook, 5.3.3.9): a straight line in every factor leaves it at zero.
    """
    own = fit.columns(CURVATURE)
    if len(own) == 0:
        return None
    test = _tested(fit, fit.coef[own[0]], fit.scale[own[0], own[0]], alpha)
    count = int(fit.matrix.layout.is_centre.sum())
    if test.p is None:
        verdict = "nothing is left to test it against"
    elif test.p < alpha:
        verdict = "some factor acts along a curve, and its levels do not tell which"
    else:
        verdict = "no curve is shown"
    runs = "One centre run lies" if count == 1 else f"{count} centre runs lie"
    sentence = f"{runs} {cell_text(test.value, 'signed')} from the model: {verdict}."
    figures = (test.value, test.se, test.ci_low, test.ci_high, test.t, test.p)
    return Curvature(*figures, n=count, sentence=sentence)


# Half-normal plot -------------------------------------------------------------------------------


def half_normal_plot(fit: LevelFit, alpha: float) -> HalfNormal:
    """Every degree of freedom of the terms as one contrast, all with the same variance.

    ``c_j = 2 q_j'y / √n`` where q_j is column j of the model after those before it, of length 1.
    The contrasts are independent with variance ``4σ²/n``; of a two-level term of a balanced
    design c is the effect. In an unbalanced design they depend on the order of the terms, which
    is the rising one.
    """
    source = fit.matrix.fitted_source
    chosen = np.flatnonzero(source > 0)
    values = 2.0 / np.sqrt(fit.n) * fit.rotated[chosen] * fit.unit
    every = [label for label, kept in zip(fit.matrix.labels, fit.matrix.kept, strict=True) if kept]
    labels = [every[j] for j in chosen.tolist()]
    margins = lenth(values, labels, alpha) if len(values) else None
    p = [None] * len(labels) if margins is None else list(margins.p)
    names = [fit.matrix.name(s) for s in source[chosen].tolist()]
    single = zip(names, labels, values.tolist(), p, strict=True)
    points = half_normal_points(values, labels)
    return HalfNormal(tuple(SingleContrast(*line) for line in single), points, margins)
