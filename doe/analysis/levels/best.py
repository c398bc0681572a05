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
    at = matrix.fitted_columns[first]
    at[:, matrix.fitted_source == BLOCK] = 0.0
    tied = np.abs(matrix.null[matrix.fitted_source == BLOCK]).max(axis=0) > 1e-9
    lost = sorted(set(matrix.source[~matrix.kept][tied].tolist()))
    covariance = at @ scale @ at.T if len(cells) <= MOST_CELLS else ((at @ scale) * at).sum(axis=1)
    return Estimates(cells, counts, at @ coef, np.asarray(covariance), tuple(lost))


def _complete(group: Ints, block: Ints) -> bool:
    """Whether every block holds every cell equally often."""
    shape = (int(block.max()) + 1, int(group.max()) + 1)
    table = np.bincount(block * shape[1] + group, minlength=shape[0] * shape[1]).reshape(shape)
    return bool((table == table[:, :1]).all())


def level_best(
    fit: LevelFit, goal: str, alpha: float = 0.05, back: Callable[[Floats], Floats] = np.asarray
) -> LevelBest:
    """Rank the configurations by their means, blocks taken out, best first.

    Intervals hold for all configurations at once, so also for the one that comes out best
    (maximum modulus); Hsu's bounds are those of `doe.analysis.hsu`.
    """
    layout = fit.matrix.layout
    estimates = cell_estimates(fit)
    means = estimates.means
    order, reach, low, high, among, critical = ranked(fit, estimates, goal, alpha)
    places = [back(fit.shift + fit.unit * v) for v in (means, means - reach, means + reach)]
    columns = [plain(v) for v in (*places[1:], fit.unit * low, fit.unit * high)]
    rows = tuple(
        CellRow(
            config=layout.config(int(estimates.cells[i])),
            levels=layout.cell_levels(int(estimates.cells[i])),
            n=int(estimates.counts[i]),
            mean=float(places[0][i]),
            ci_low=columns[0][i],
            ci_high=columns[1][i],
            mcb_low=columns[2][i],
            mcb_high=columns[3][i],
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
