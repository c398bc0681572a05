"""What every combination of levels is predicted to give, beside what its runs gave."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from doe.analysis.contrasts import Floats
from doe.analysis.effects import plain
from doe.analysis.levels.anova import TermTest
from doe.analysis.levels.best import cell_estimates
from doe.analysis.levels.fit import LevelFit, least_squares
from doe.analysis.levels.means import margin_rows
from doe.analysis.levels.model import ModelMatrix, model_matrix, parts_of
from doe.analysis.pvalues import significant, t_critical
from doe.analysis.ranking import MOST_CELLS, Estimates
from doe.analysis.transform import Transformation
from doe.terms import factors_in


class CellPrediction(Struct, frozen=True, gc=False):
    """A combination of levels on the response scale, predicted and observed."""

    levels: tuple[int, ...]  # number of the level of each factor, -1 at its middle
    mean: float | None  # of the model of significant terms; None where it says nothing of it
    ci_low: float | None  # None where no run has its levels of the factors in the model
    ci_high: float | None
    observed: float | None  # the mean of its runs after blocks; None where there are none
    n: int


def reduced_terms(tests: Sequence[TermTest], fit: LevelFit, alpha: float) -> tuple[int, ...]:
    """Terms that are significant at false discovery rate α, with all terms that they contain."""
    called = {test.term for test in tests if significant(test.p_bh, alpha)}
    active = [mask for mask in fit.matrix.terms if fit.matrix.name(mask) in called]
    return tuple(sorted({*active, *(part for mask in active for part in parts_of(mask))}))


def cell_predictions(
    fit: LevelFit, tests: Sequence[TermTest], transform: Transformation, alpha: float
) -> tuple[CellPrediction, ...]:
    """Every combination of levels in standard order, and centre runs last.

    The mean is that of the model of significant terms. Its interval is for the mean over all
    combinations with runs that share the levels of the factors in that model; it comes from the
    full model and is as wide as Bonferroni asks for the ``Π (levels + 1)`` ways to fix some factors
    and leave others open, so that it holds whatever was selected. None where there are too many
    combinations to show.
    """
    layout = fit.matrix.layout
    every = math.prod(layout.sizes)
    if every > MOST_CELLS:
        return ()
    matrix = model_matrix(layout, reduced_terms(tests, fit, alpha), curved=not fit.pooled)
    coef = least_squares(matrix, fit.u)[0]
    levels = np.array([layout.cell_levels(cell) for cell in range(every)], np.int64)
    rows = margin_rows(matrix, levels)
    predicted = np.where(matrix.estimable(rows), rows[:, matrix.kept] @ coef, np.nan)
    estimates = cell_estimates(fit)
    low, high = _bounds(fit, matrix, estimates, levels, alpha)
    columns = [
        plain(transform.to_response(fit.shift + fit.unit * values, fit.y))
        for values in (predicted, low, high)
    ]
    means = plain(transform.scale.back(fit.shift + fit.unit * estimates.means))
    counts = estimates.counts.tolist()
    by_cell = dict(zip(estimates.cells.tolist(), zip(means, counts, strict=True), strict=True))
    predictions = []
    for cell, (mean, ci_low, ci_high) in enumerate(zip(*columns, strict=True)):
        observed, n = by_cell.get(cell, (None, 0))
        figures = (mean, ci_low, ci_high, observed, n)
        predictions.append(CellPrediction(layout.cell_levels(cell), *figures))
    for cell, (observed, n) in by_cell.items():
        if cell < 0:
            centre = layout.cell_levels(cell)
            predictions.append(CellPrediction(centre, None, None, None, observed, n))
    return tuple(predictions)


def _bounds(
    fit: LevelFit, matrix: ModelMatrix, estimates: Estimates, levels: np.ndarray, alpha: float
) -> tuple[Floats, Floats]:
    """Ends of the intervals, of u; NaN where no run has the levels of the factors in the model."""
    layout = fit.matrix.layout
    ends = np.full((2, len(levels)), np.nan)
    if fit.df_error == 0:
        return ends[0], ends[1]
    fixed = sorted({i for mask in matrix.masks for i in factors_in(mask)})
    with_runs = np.array([layout.cell_levels(cell) for cell in estimates.cells.tolist()], np.int64)
    factorial = estimates.cells >= 0
    ways = math.prod(size + 1 for size in layout.sizes)
    wide = t_critical(alpha / ways, fit.df_error) * math.sqrt(fit.ms_error)
    for i, cell in enumerate(levels):
        alike = factorial & (with_runs[:, fixed] == cell[fixed]).all(axis=1)
        if not alike.any():
            continue
        weight = alike / alike.sum()
        middle = float(weight @ estimates.means)
        ends[:, i] = middle + wide * math.sqrt(estimates.variance_of(weight)) * np.array(
            [-1.0, 1.0]
        )
    return ends[0], ends[1]
