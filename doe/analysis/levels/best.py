"""The best configuration: cell means with intervals, and Hsu's comparisons with the best."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from msgspec import Struct, structs

from doe.analysis.best import MOST_CELLS
from doe.analysis.contrasts import MOST_COLUMNS, Floats, Ints
from doe.analysis.hsu import maximum_modulus, with_the_best
from doe.analysis.levels.fit import LevelFit, least_squares
from doe.analysis.levels.model import BLOCK, model_matrix, terms_of_order


class CellRow(Struct, frozen=True, gc=False):
    """One configuration on the response scale; Hsu's bounds are on the analysed one."""

    config: str  # 0.01 · adam · off, or centre
    levels: tuple[int, ...]  # number of the level of each factor, -1 at the centre
    n: int
    mean: float
    ci_low: float | None  # intervals hold for all configurations at once
    ci_high: float | None
    mcb_low: float | None  # Hsu: this mean minus the best of the others
    mcb_high: float | None
    among_best: bool  # cannot be told from the best
    geometric: float | None = None  # the geometric mean, where the interval is that one's


class LevelBest(Struct, frozen=True):
    """Configurations ranked, the best first."""

    goal: str
    cells: tuple[CellRow, ...]  # at most 1024
    critical: float | None  # Hsu's d, for the cell that is best
    among_best: tuple[str, ...]
    assumed: tuple[str, ...]  # terms taken as zero, because blocks stand in for them
    sentence: str


class CellEstimates(NamedTuple):
    """Means of the configurations of u after blocks, and their covariance over σ²."""

    cells: Ints
    counts: Ints
    means: Floats
    covariance: Floats  # 1/n of each where means are independent, else a matrix
    assumed: tuple[str, ...]  # terms taken as zero, because blocks stand in for them

    @property
    def variance(self) -> Floats:
        """Variance of each mean over σ²."""
        return self.covariance if self.covariance.ndim == 1 else np.diag(self.covariance)


def cell_estimates(fit: LevelFit) -> CellEstimates:
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
        return CellEstimates(cells, counts, means, 1.0 / counts, ())
    matrix = fit.matrix
    if math.prod(layout.sizes) <= MOST_COLUMNS:
        every = range(1, len(layout.factors) + 1)
        masks = [m for order in every for m in terms_of_order(len(layout.factors), order)]
        matrix = model_matrix(layout, masks)
    coef, scale, _, _ = least_squares(matrix, fit.u)
    at = matrix.fitted_columns[first]
    at[:, matrix.fitted_source == BLOCK] = 0.0
    tied = np.abs(matrix.null[matrix.fitted_source == BLOCK]).max(axis=0) > 1e-9
    lost = sorted(set(matrix.source[~matrix.kept][tied].tolist()))
    assumed = tuple(matrix.name(source) for source in lost)
    covariance = at @ scale @ at.T if len(cells) <= MOST_CELLS else ((at @ scale) * at).sum(axis=1)
    return CellEstimates(cells, counts, at @ coef, np.asarray(covariance), assumed)


def _complete(group: Ints, block: Ints) -> bool:
    """Whether every block holds every cell equally often."""
    shape = (int(block.max()) + 1, int(group.max()) + 1)
    table = np.bincount(block * shape[1] + group, minlength=shape[0] * shape[1]).reshape(shape)
    return bool((table == table[:, :1]).all())


def _told_apart(covariance: Floats) -> bool:
    """Whether every two means differ by something that the runs estimate."""
    if covariance.ndim == 1:
        return True
    own = np.diag(covariance)
    variance = own[:, None] + own[None, :] - 2.0 * covariance
    return bool((variance[~np.eye(len(own), dtype=bool)] > 1e-9 * own.max()).all())


def level_best(
    fit: LevelFit, goal: str, alpha: float = 0.05, back: Callable[[Floats], Floats] = np.asarray
) -> LevelBest:
    """Rank the configurations by their means, blocks taken out, best first.

    Intervals hold for all configurations at once, so also for the one that comes out best
    (maximum modulus); Hsu's bounds are those of `doe.analysis.hsu`.
    """
    layout = fit.matrix.layout
    unique, counts, means, covariance, assumed = estimates = cell_estimates(fit)
    k = len(means)
    sign = 1.0 if goal == "max" else -1.0
    order = np.argsort(-sign * means, kind="stable")
    reach = low = high = np.full(k, np.nan)
    among = np.zeros(k, dtype=bool)
    among[order[0]] = True
    critical = None
    if fit.df_error > 0:
        sigma = float(np.sqrt(fit.ms_error))
        reach = maximum_modulus(k, fit.df_error, alpha) * sigma * np.sqrt(estimates.variance)
        if 1 < k <= MOST_CELLS and _told_apart(covariance):
            lower, upper, d = with_the_best(sign * means, covariance, sigma, fit.df_error, alpha)
            low, high = (lower, upper) if sign > 0 else (-upper, -lower)
            among, critical = upper > 0, float(d[order[0]])
    places = [back(fit.shift + fit.unit * v) for v in (means, means - reach, means + reach)]
    columns = [_optional(v) for v in (*places[1:], fit.unit * low, fit.unit * high)]
    rows = tuple(
        CellRow(
            config=layout.config(int(unique[i])),
            levels=layout.cell_levels(int(unique[i])),
            n=int(counts[i]),
            mean=float(places[0][i]),
            ci_low=columns[0][i],
            ci_high=columns[1][i],
            mcb_low=columns[2][i],
            mcb_high=columns[3][i],
            among_best=bool(among[i]),
        )
        for i in order[:MOST_CELLS].tolist()
    )
    names = tuple(row.config for row in rows if row.among_best)
    sentence = _sentence(rows[0].config, names, k, critical)
    return LevelBest(goal, rows, critical, names, assumed, sentence)


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


def _optional(values: Floats) -> list[float | None]:
    return [None if value != value else value for value in values.tolist()]


def _sentence(first: str, among: tuple[str, ...], cells: int, critical: float | None) -> str:
    if critical is None:
        return f"{first} has the best mean; there is nothing to judge by how much."
    if len(among) == 1:
        return f"{first} is the best of {cells} configurations."
    return (
        f"{first} has the best mean; {len(among) - 1} of the other {cells - 1} configurations"
        " cannot be told from it."
    )
