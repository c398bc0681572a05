"""Means with intervals: at the levels of each factor, of pairs of factors, and predicted ones.

Everything is on the response scale: a mean is taken back from the analysed one, and so are the ends
of its interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from msgspec import Struct

from doe.analysis.best import cell_estimates, prediction, reduced_fit
from doe.analysis.case import Case
from doe.analysis.contrasts import Floats, coded_levels
from doe.analysis.fit import Fit, design_matrix
from doe.analysis.pvalues import t_critical
from doe.analysis.ranking import MOST_CELLS
from doe.analysis.rescale import units
from doe.analysis.scales.log import exponential
from doe.terms import factors_in, order, parse_term

PAIRS = 6
"""Interactions that are told in means, the strongest ones."""
SIGNS = ((-1, -1), (1, -1), (-1, 1), (1, 1))


class Mean(Struct, frozen=True, gc=False):
    """A mean with its interval; no interval in a saturated design."""

    UNITS: ClassVar = units(mean=1, ci_low=1, ci_high=1)
    mean: float
    ci_low: float | None
    ci_high: float | None


class FactorMeans(Struct, frozen=True):
    """Means at the two levels of a factor."""

    factor: str
    low: Mean
    high: Mean


class Interaction(Struct, frozen=True):
    """What a factor does at either level of another one.

    Intervals hold for all pairs at once, since the strongest ones are shown.
    """

    term: str
    factor: str  # the one that acts
    other: str  # the one on whose level it depends
    means: tuple[Mean, ...]  # factor low and high with the other low, then with the other high
    at_low: Mean  # effect of the factor where the other is low: difference, or ratio on log scales
    at_high: Mean
    ratio: bool
    p: float | None
    p_holm: float | None


class Predicted(Struct, frozen=True, gc=False):
    """A configuration under the reduced model."""

    UNITS: ClassVar = units(mean=1, ci_low=1, ci_high=1)
    coded: tuple[int, ...]
    mean: float
    ci_low: float | None  # holds for all configurations at once, whatever terms were selected
    ci_high: float | None


class Means(Struct, frozen=True):
    """Means of the fitted model on the response scale, every cell weighted alike."""

    UNITS: ClassVar = units(grand=1)
    grand: float
    main: tuple[FactorMeans, ...]
    interactions: tuple[Interaction, ...]  # the strongest first
    predictions: tuple[Predicted, ...]  # every configuration in standard order, if at most 1024


def estimate(case: Case) -> Means | None:
    """Means of the full model, and predictions of the reduced one."""
    coef = dict(zip(case.names, case.fit.coef.tolist(), strict=True))
    shown = {effect.term for effect in case.effects}
    main = tuple(
        FactorMeans(key, *_means(case, [{key: -1}, {key: 1}], case.alpha))
        for key in case.keys
        if key in coef and key in shown
    )
    pairs = [e for e in case.effects if order(parse_term(e.term, case.keys)) == 2]
    pairs.sort(key=lambda e: (-abs(e.effect), e.term))
    return Means(
        grand=_back(case, np.array([case.fit.mean]))[0],
        main=main,
        interactions=tuple(_interaction(case, e.term, coef) for e in pairs[:PAIRS]),
        predictions=_predictions(case),
    )


def _interaction(case: Case, term: str, coef: dict[str, float]) -> Interaction:
    """The factor that acts is the one whose effect at a level of the other is the largest."""
    keys = [case.keys[i] for i in factors_in(parse_term(term, case.keys))]
    factor, other = max((keys, keys[::-1]), key=lambda pair: abs(coef.get(pair[0], 0.0)))
    points = [{factor: x, other: y, term: x * y} for x, y in SIGNS]
    means = _means(case, points, _pair_alpha(case))
    effect = next(e for e in case.effects if e.term == term)
    return Interaction(
        *(term, factor, other, means),
        at_low=_change(case, factor, other, term, -1),
        at_high=_change(case, factor, other, term, 1),
        ratio=case.transform.scale.ratio,
        p=effect.p,
        p_holm=effect.p_holm,
    )


def _pair_alpha(case: Case) -> float:
    """Level of one interval by Bonferroni: pairs have four means, and as many effects that depend
    on a level: those of either factor at either level of the other.
    """
    k = len(case.keys)
    return case.alpha / (2 * k * (k - 1))


def _change(case: Case, factor: str, other: str, term: str, y: int) -> Mean:
    """Effect of a factor where another has the level y: twice (b_factor + y b_both), taken back."""
    signs = _signs(case, [{factor: 1, term: y}])
    effect = 2.0 * float((signs @ case.fit.coef)[0])
    reach = np.nan
    if case.fit.df_error > 0:
        variance = 4.0 * float(_variance(case.fit, signs, 0.0)[0]) * case.fit.ms_error
        reach = t_critical(_pair_alpha(case), case.fit.df_error) * float(np.sqrt(variance))
    values = effect + np.array([0.0, -reach, reach])
    scale = case.transform.scale
    if scale.ratio:
        values = exponential(values)
    elif case.transform.name != "none":
        middle = case.fit.mean + float((_signs(case, [{other: y}]) @ case.fit.coef)[0])
        values = scale.back(middle + values / 2) - scale.back(middle - values / 2)
    return _mean(*values.tolist())


def _means(case: Case, points: Sequence[dict[str, int]], alpha: float) -> tuple[Mean, ...]:
    """Means where some terms have a sign and all others average out."""
    fit, signs = case.fit, _signs(case, points)
    centre = fit.mean + signs @ fit.coef
    reach = np.full(len(signs), np.nan)
    if fit.df_error > 0:
        variance = _variance(fit, signs) * fit.ms_error
        reach = t_critical(alpha, fit.df_error) * np.sqrt(variance)
    columns = (_back(case, centre), _back(case, centre - reach), _back(case, centre + reach))
    return tuple(_mean(*row) for row in zip(*columns, strict=True))


def _signs(case: Case, points: Sequence[dict[str, int]]) -> Floats:
    """A row of the model's terms per point; terms that the model lacks are zero."""
    index = {term: i for i, term in enumerate(case.names)}
    signs = np.zeros((len(points), len(case.names)))
    for i, point in enumerate(points):
        for term in point.keys() & index.keys():
            signs[i, index[term]] = point[term]
    return signs


def _variance(fit: Fit, signs: Floats, mean: float = 1.0) -> Floats:
    """Variance over σ² of the mean, so many times, plus each row of signs, averaged over blocks."""
    if fit.model.balanced:
        return np.asarray((mean**2 + (signs**2).sum(axis=1)) / fit.n)
    X = design_matrix(fit.cells, fit.block, fit.model)
    rows = np.zeros((len(signs), X.shape[1]))
    rows[:, 0] = mean
    rows[:, X.shape[1] - signs.shape[1] :] = signs
    return np.asarray((rows * np.linalg.solve(X.T @ X, rows.T).T).sum(axis=1))


def _predictions(case: Case) -> tuple[Predicted, ...]:
    """What the reduced model predicts for each configuration."""
    factors = len(case.keys)
    if 1 << factors > MOST_CELLS:
        return ()
    estimates, small = cell_estimates(case.fit), reduced_fit(case)
    predictions = []
    for cell, value in enumerate(small.cell_values().tolist()):
        at = prediction(case, estimates, small.model.masks, cell, value)
        predictions.append(Predicted(coded_levels(cell, factors), at.mean, at.ci_low, at.ci_high))
    return tuple(predictions)


def _back(case: Case, values: Floats) -> list[float]:
    """Means and bounds on the response scale."""
    return list(case.transform.to_response(values, case.fit.y).tolist())


def _mean(mean: float, low: float, high: float) -> Mean:
    return Mean(mean, None if np.isnan(low) else low, None if np.isnan(high) else high)
