"""The best configuration: cell means with intervals, and Hsu's comparisons with the best."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from msgspec import structs

from doe.analysis.contrasts import MOST_COLUMNS, Floats, Ints
from doe.analysis.effects import plain
from doe.analysis.levels.fit import LevelFit, least_squares
from doe.analysis.levels.model import BLOCK, model_matrix
from doe.analysis.ranking import (
    MOST_CELLS,
    Estimates,
    RankedCell,
    RankedCells,
    best_sentence,
    ranked,
)
from doe.terms import terms_up_to


class CellRow(RankedCell, frozen=True, gc=False, kw_only=True):
    """A configuration by the numbers of its levels."""

    levels: tuple[int, ...]  # -1 at the middle of a centre run


class LevelBest(RankedCells, frozen=True, kw_only=True):
    """Configurations of factors with levels, ranked."""

    cells: tuple[CellRow, ...]


def cell_estimates(fit: LevelFit) -> Estimates:
    """What the runs say of each configuration, all blocks weighted alike.

    Where every block holds every cell equally often, or there is no block, these are the cells'
    means. Elsewhere they are predictions ``L b`` of the largest model that the runs can tell from
    the blocks, with covariance ``L (X'X)^-1 L'``.
    """
    layout = fit.matrix.layout
    cells, first, group, counts = np.unique(
        layout.cells, return_index=True, return_inverse=True, return_counts=True
    )
    if layout.block is None or _complete(group, layout.block):
        means = np.bincount(group, weights=fit.u) / counts
        return Estimates(cells, counts, means, 1.0 / counts, ())
    matrix = fit.matrix
    if math.prod(layout.sizes) <= MOST_COLUMNS:
        matrix = model_matrix(layout, terms_up_to(len(layout.factors)))
    coef, scale, _, _ = least_squares(matrix, fit.u)
    rows = matrix.fitted_columns[first]
    rows[:, matrix.fitted_source == BLOCK] = 0.0
    tied = np.abs(matrix.null[matrix.fitted_source == BLOCK]).max(axis=0) > 1e-9
    lost = sorted(set(matrix.source[~matrix.kept][tied].tolist()))
    covariance = (
        rows @ scale @ rows.T if len(cells) <= MOST_CELLS else ((rows @ scale) * rows).sum(axis=1)
    )
    return Estimates(cells, counts, rows @ coef, np.asarray(covariance), tuple(lost))


def _complete(group: Ints, block: Ints) -> bool:
    """Whether every block holds every cell equally often."""
    shape = (int(block.max()) + 1, int(group.max()) + 1)
    table = np.bincount(block * shape[1] + group, minlength=shape[0] * shape[1]).reshape(shape)
    return bool((table == table[:, :1]).all())


def level_best(
    fit: LevelFit, goal: str, alpha: float, back: Callable[[Floats], Floats]
) -> LevelBest:
    """Rank the configurations by their means, blocks taken out, best first.

    Intervals hold for all configurations at once, so also for the one that comes out best
    (maximum modulus); Hsu's bounds are those of `doe.analysis.hsu`. `back` takes means and their
    intervals to the response scale.
    """
    layout = fit.matrix.layout
    estimates = cell_estimates(fit)
    means = estimates.means
    order, reach, low, high, among, critical = ranked(fit, estimates, goal, alpha)
    values, *ends = (back(fit.shift + fit.unit * u) for u in (means, means - reach, means + reach))
    ci_low, ci_high, mcb_low, mcb_high = map(plain, (*ends, fit.unit * low, fit.unit * high))
    rows = tuple(
        CellRow(
            config=layout.config(int(estimates.cells[i])),
            levels=layout.cell_levels(int(estimates.cells[i])),
            n=int(estimates.counts[i]),
            mean=float(values[i]),
            ci_low=ci_low[i],
            ci_high=ci_high[i],
            mcb_low=mcb_low[i],
            mcb_high=mcb_high[i],
            among_best=bool(among[i]),
        )
        for i in order
    )
    names = tuple(row.config for row in rows if row.among_best)
    assumed = tuple(fit.matrix.name(mask) for mask in estimates.assumed)
    return LevelBest(
        goal=goal,
        cells=rows,
        critical=critical,
        among_best=names,
        assumed=assumed,
        sentence=best_sentence(names, rows[0].config, len(means), critical, assumed),
    )


def with_geometric(best: LevelBest, logs: LevelBest) -> LevelBest:
    """The means with geometric means beside them, and with their intervals, from logarithms."""
    rows = {row.levels: row for row in logs.cells}
    cells = []
    for cell in best.cells:
        row = rows[cell.levels]
        cells.append(
            structs.replace(cell, geometric=row.mean, ci_low=row.ci_low, ci_high=row.ci_high)
        )
    return structs.replace(best, cells=tuple(cells))
