"""Worked examples as tables, and shorthands to analyse them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from doe.analysis.analyze import Analysis, analyze
from doe.analysis.dataset import Dataset, FactorColumn, Runs
from doe.analysis.effects import Effect
from doe.analysis.fit import Fit, fit
from doe.analysis.model import make_model
from doe.analysis.options import AnalysisOptions
from doe.analysis.tables import TableOptions, table_dataset, table_runs
from doe.terms import terms_up_to

PLASMA = [550, 669, 633, 642, 1037, 749, 1075, 729, 604, 650, 601, 635, 1052, 868, 1063, 860]
FILTRATION = [45, 71, 48, 65, 68, 60, 80, 65, 43, 100, 45, 104, 75, 86, 70, 96]
THREE_BLOCKS = [28, 36, 18, 31, 25, 32, 19, 30, 27, 32, 23, 29]
PILOT = [60, 72, 54, 68, 52, 83, 45, 80]
# Box, Hunter and Hunter, Statistics for Experimenters (Reactor.data of the R package BsMD).
REACTOR = [61, 53, 63, 61, 53, 56, 54, 61, 69, 61, 94, 93, 66, 60, 95, 98]
REACTOR += [56, 63, 70, 65, 59, 55, 67, 65, 44, 45, 78, 77, 49, 42, 81, 82]
# Tensile strength of welds, nine factors A to I in 16 runs, the low level of each as 0 (data set
# welding of the R package statmod; Box and Meyer's example of dispersion without replicates).
WELDS = """
000000000 43.7  001111001 40.2  011000010 42.4  010111011 44.7
011001101 42.4  010110100 45.9  000001111 42.2  001110110 40.6
111010001 42.4  110101000 45.5  100010011 43.6  101101010 40.6
100011100 44.0  101100101 40.2  111011110 42.5  110100111 46.5
"""
# Shrinkage in injection moulding, E = ABC and F = BCD (Montgomery, example 8.4; data set Table8.10
# of the R package MontgomeryDAE).
MOULDED = [6, 10, 32, 60, 4, 15, 26, 60, 8, 12, 34, 60, 16, 5, 37, 52]
# Oxide thickness of four wafers in each of 16 runs (Montgomery, example 6.5; Table6.18 there).
OXIDE = [
    *(378, 376, 379, 379, 415, 416, 416, 417, 380, 379, 382, 383, 450, 446, 449, 447),
    *(375, 371, 373, 369, 391, 390, 388, 391, 384, 385, 386, 385, 426, 433, 430, 431),
    *(381, 381, 375, 383, 416, 420, 412, 412, 371, 372, 371, 370, 445, 448, 443, 448),
    *(377, 377, 379, 379, 391, 391, 386, 400, 375, 376, 376, 377, 430, 430, 428, 428),
]
# Distance of a catapult's ball by height, start angle, bands, length and stop angle in run order,
# with four runs at the middle of all but the bands (NIST/SEMATECH e-Handbook, 5.4.7.2).
CATAPULT = """
28 3.25 0 1 0 80       99 4 10 2 2 62         126.5 4.75 20 2 4 80   126.5 4.75 0 2 4 45
45 3.25 20 2 4 45      35 4.75 0 1 0 45       45 4 10 1 2 62         28.25 4.75 20 1 0 80
85 4.75 0 1 4 80       8 3.25 20 1 0 45       36.5 4.75 20 1 4 45    33 3.25 0 1 4 45
84.5 4 10 2 2 62       28.5 4.75 20 2 0 45    33.5 3.25 0 2 0 45     36 3.25 20 2 0 80
84 4.75 0 2 0 80       45 3.25 20 1 4 80      37.5 4 10 1 2 62       106 3.25 0 2 4 80
"""


def table(keys: str, y: Sequence[float], rows: Sequence[int] | None = None) -> pd.DataFrame:
    """A table in standard order, repeated as often as there are responses."""
    size = 1 << len(keys)
    cells = list(rows) if rows is not None else [i % size for i in range(len(y))]
    frame = pd.DataFrame({key: [c >> i & 1 for c in cells] for i, key in enumerate(keys)})
    frame["day"] = [i // size + 1 for i in range(len(y))]
    frame["y"] = np.asarray(y, dtype=float)
    return frame


def study(
    frame: pd.DataFrame, keys: str, block: str | None = None, goal: str = "min", **options: object
) -> Analysis:
    """Analyse column y of a table."""
    chosen = TableOptions(factors=tuple(keys), block=block, goal=goal)
    return analyze(dataset(frame, chosen), AnalysisOptions(**options))  # type: ignore[arg-type]


def dataset(frame: pd.DataFrame, options: TableOptions) -> Dataset:
    """Column y of a table."""
    return table_dataset(frame, table_runs(frame, options), "y", options)


def two_level_runs(cells: Sequence[int], factors: int, block: np.ndarray | None = None) -> Runs:
    """Runs of factors A, B, ... with levels 0 and 1, by their cell in standard order."""
    columns = tuple(FactorColumn(key, key, (0, 1)) for key in "ABCDEFGH"[:factors])
    index = np.asarray(cells, np.int64)[:, None] >> np.arange(factors) & 1
    return Runs(columns, index, block=block)


def two_level_fit(
    y: Sequence[float],
    cells: Sequence[int],
    factors: int,
    block: np.ndarray | None = None,
    order: int | None = None,
) -> Fit:
    """Least squares of y on all terms up to an order."""
    runs = two_level_runs(cells, factors, block)
    return fit(np.asarray(y, dtype=float), make_model(runs, terms_up_to(factors, order)))


def by_term(analysis: Analysis) -> dict[str, Effect]:
    """Effects by name."""
    return {effect.term: effect for effect in analysis.effects}
