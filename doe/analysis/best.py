"""The best configuration: cell means, Hsu's comparisons with the best, a reduced model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import scipy
from msgspec import Struct

from doe.analysis.case import Case
from doe.analysis.contrasts import (
    MOST_COLUMNS,
    Floats,
    Model,
    coded_levels,
    estimable,
    sign_columns,
)
from doe.analysis.effects import plain
from doe.analysis.fit import Fit, decomposed, refitted
from doe.analysis.pvalues import t_critical
from doe.analysis.ranking import (
    MOST_CELLS,
    Estimates,
    RankedCell,
    RankedCells,
    best_sentence,
    margins,
    ranked,
)
from doe.analysis.rescale import units
from doe.analysis.scales.log import exponential
from doe.terms import term_name


class CellMean(RankedCell, frozen=True, gc=False, kw_only=True):
    """A configuration by the coded levels of its factors."""

    coded: tuple[int, ...]


class Prediction(Struct, frozen=True):
    """The best levels under the reduced model."""

    UNITS: ClassVar = units(mean=1, ci_low=1, ci_high=1)
    config: str  # of the factors in the model; the others are open
    mean: float
    ci_low: float | None
    ci_high: float | None


class ReducedModel(Struct, frozen=True):
    """The active terms closed under strong heredity, and what they predict to be best."""

    UNITS: ClassVar = units(coefficients=1, sigma=1)
    terms: tuple[str, ...]
    added: tuple[str, ...]  # parents that heredity brought in
    coefficients: tuple[float, ...]  # the mean first
    sigma: float | None
    r2: float | None
    best: Prediction


class Best(RankedCells, frozen=True, kw_only=True):
    """Configurations ranked, and the model that predicts the best."""

    cells: tuple[CellMean, ...]
    reduced: ReducedModel


def cell_estimates(full: Fit) -> Estimates:
    """What the runs say of each configuration, all blocks weighted alike.

    Where every block holds every cell, or there is no block, these are the cells' means. Elsewhere
    they are predictions ``L b`` of the largest model that the runs can tell from the blocks, with
    covariance ``L (X'X)^-1 L'``: means of cells that share no block differ by their blocks as well.
    """
    cells, counts = np.unique(full.cells, return_counts=True)
    if full.block is None or full.model.balanced:
        group = np.searchsorted(cells, full.cells)
        return Estimates(cells, counts, np.bincount(group, weights=full.y) / counts, 1 / counts, ())
    model = full.model
    if len(cells) <= MOST_COLUMNS:
        model = estimable(full.cells, full.factors, full.factors, full.block)
    Q, R, first = decomposed(full.cells, full.block, model)
    rows = np.zeros((len(cells), R.shape[1]))
    rows[:, 0] = 1.0
    rows[:, first:] = sign_columns(cells, model.masks)
    maps = scipy.linalg.solve_triangular(R, rows.T, trans="T").T
    assumed = (*model.with_blocks, *model.inestimable) if len(model.masks) + 1 < len(cells) else ()
    means = np.asarray(maps @ (Q.T @ full.y))
    covariance = maps @ maps.T if len(cells) <= MOST_CELLS else (maps**2).sum(axis=1)
    return Estimates(cells, counts, means, np.asarray(covariance), assumed)


def best(case: Case, goal: str) -> Best:
    """Rank the configurations, the best first.

    Intervals hold for all configurations at once, so also for the one that comes out best; they
    are back on the response scale, Hsu's bounds on the analysed one.
    """
    full, alpha = case.fit, case.alpha
    estimates = cell_estimates(full)
    means, k = estimates.means, len(estimates.means)
    order, reach, low, high, among, critical = ranked(full, estimates, goal, alpha)
    view = case.transform.scale.back
    ends = (view(means - reach), view(means + reach))
    geometric = np.full(k, np.nan)
    if leaves_range(full.y, ends[0], case.transform.name):
        geometric, *logged = geometric_means(full, alpha)
        ends = (logged[0], logged[1])
    values = view(means)
    ci_low, ci_high, mcb_low, mcb_high = map(plain, (*ends, low, high))
    geometrics = plain(geometric)
    cells = tuple(
        CellMean(
            config=case.runs.config(int(estimates.cells[i])),
            coded=coded_levels(int(estimates.cells[i]), len(case.keys)),
            n=int(estimates.counts[i]),
            mean=float(values[i]),
            ci_low=ci_low[i],
            ci_high=ci_high[i],
            mcb_low=mcb_low[i],
            mcb_high=mcb_high[i],
            among_best=bool(among[i]),
            geometric=geometrics[i],
        )
        for i in order
    )
    names = tuple(cell.config for cell in cells if cell.among_best)
    assumed = tuple(term_name(mask, case.keys) for mask in estimates.assumed)
    return Best(
        goal=goal,
        cells=cells,
        critical=critical,
        among_best=names,
        assumed=assumed,
        reduced=reduced_model(case, estimates, goal),
        sentence=best_sentence(names, cells[0].config, k, critical, assumed),
    )


def reduced_fit(case: Case) -> Fit:
    """The active terms and all their parents, fitted again.

    Strong heredity: an interaction stays only with every term that it contains, which keeps the
    model's predictions independent of how levels are coded.
    """
    full, active = case.fit, case.active
    masks = tuple(m for m in full.model.masks if any(m & a == m for a in active))
    model = Model(masks, {}, (), (), full.model.balanced)
    return refitted(full, full.y, model)


def leaves_range(y: Floats, low: Floats, scale: str) -> bool:
    """Whether an interval of a mean of positive values, analysed as they are, reaches below 0."""
    return scale == "none" and bool((y > 0).all() and (low <= 0).any())


def geometric_means(full: Fit, alpha: float) -> tuple[Floats, Floats, Floats]:
    """Geometric mean of each configuration with its interval, from the same model of ln y.

    The interval of a mean is as wide for small values as for large ones, and reaches where no
    value can be; this one follows the spread of each.
    """
    logs = refitted(full, np.log(full.y), full.model)
    estimates = cell_estimates(logs)
    means, reach = estimates.means, margins(logs, estimates, alpha)
    return exponential(means), exponential(means - reach), exponential(means + reach)


def reduced_model(case: Case, estimates: Estimates, goal: str) -> ReducedModel:
    """The reduced model, and what it predicts to be best."""
    keys, small = case.keys, reduced_fit(case)
    masks, predicted = small.model.masks, small.cell_values()
    cell = int(np.argmax(predicted) if goal == "max" else np.argmin(predicted))
    return ReducedModel(
        terms=tuple(term_name(mask, keys) for mask in masks),
        added=tuple(term_name(mask, keys) for mask in masks if mask not in case.active),
        coefficients=(small.mean, *small.coef.tolist()),
        sigma=small.sigma,
        r2=small.r_squared()[0],
        best=prediction(case, estimates, masks, cell, float(predicted[cell])),
    )


def prediction(
    case: Case, estimates: Estimates, masks: Sequence[int], cell: int, predicted: float
) -> Prediction:
    """What a configuration is predicted to give: its levels of the factors in the model alone.

    The interval is for the mean over all configurations with these levels. It comes from the full
    model and is as wide as Bonferroni asks for the 3^k ways to fix some factors and leave others
    open, so that it holds whatever was selected.
    """
    fixed = 0
    for mask in masks:
        fixed |= mask
    view = case.transform.scale.back
    config = case.runs.config(cell, fixed)
    mean = float(view(np.array([predicted]))[0])
    alike = ((estimates.cells ^ cell) & fixed) == 0
    if case.fit.df_error == 0 or not alike.any():
        return Prediction(config, mean, None, None)
    weight = alike / alike.sum()
    variance = estimates.variance_of(weight) * case.fit.ms_error
    ways = 3.0 ** len(case.keys)
    reach = t_critical(case.alpha / ways, case.fit.df_error) * np.sqrt(variance)
    ends = view(float(weight @ estimates.means) + reach * np.array([-1.0, 1.0]))
    if leaves_range(case.fit.y, ends, case.transform.name):
        mean, ends = max(mean, 0.0), np.maximum(ends, 0.0)  # cut where no value is: coverage stays
    return Prediction(config, mean, *plain(ends))
