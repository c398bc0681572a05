"""The best configuration: cell means with intervals, and Hsu's comparisons with the best."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from doe.analysis.best import MOST_CELLS
from doe.analysis.contrasts import Floats
from doe.analysis.fit import without_blocks
from doe.analysis.hsu import with_the_best
from doe.analysis.levels.fit import LevelFit
from doe.analysis.pvalues import t_critical


class CellRow(Struct, frozen=True, gc=False):
    """One configuration on the analysed scale."""

    config: str  # 0.01 · adam · off, or centre
    levels: tuple[int, ...]  # number of the level of each factor, -1 at the centre
    n: int
    mean: float
    ci_low: float | None
    ci_high: float | None
    mcb_low: float | None  # Hsu: this mean minus the best of the others
    mcb_high: float | None
    among_best: bool  # cannot be told from the best


class LevelBest(Struct, frozen=True):
    """Configurations ranked, the best first."""

    goal: str
    cells: tuple[CellRow, ...]  # at most 1024
    critical: float | None  # Hsu's d, for the cell that is best
    among_best: tuple[str, ...]
    sentence: str


def level_best(fit: LevelFit, goal: str, alpha: float = 0.05) -> LevelBest:
    """Rank the configurations by the mean of their runs, blocks taken out, best first.

    Bounds are Hsu's (see `doe.analysis.hsu`) with the error's mean square.
    """
    layout = fit.matrix.layout
    unique, cells, counts = np.unique(layout.cells, return_inverse=True, return_counts=True)
    means = np.bincount(cells, weights=without_blocks(fit.u, cells, layout.block)) / counts
    sign = 1.0 if goal == "max" else -1.0
    order = np.argsort(-sign * means, kind="stable")
    reach, low, high = np.full((3, len(means)), np.nan)
    among = np.zeros(len(means), dtype=bool)
    among[order[0]] = True
    critical = None
    if fit.df_error > 0:
        sigma = float(np.sqrt(fit.ms_error))
        reach = t_critical(alpha, fit.df_error) * sigma / np.sqrt(counts)
        if 1 < len(means) <= MOST_CELLS and sigma > 0:
            lower, upper, d = with_the_best(sign * means, counts, sigma, fit.df_error, alpha)
            low, high = (lower, upper) if sign > 0 else (-upper, -lower)
            among, critical = upper > 0, float(d[order[0]])
    places = [fit.shift + fit.unit * v for v in (means, means - reach, means + reach)]
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
    return LevelBest(
        goal, rows, critical, names, _sentence(rows[0].config, names, len(means), critical)
    )


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
