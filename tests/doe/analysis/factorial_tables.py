"""Worked examples as tables, and shorthands to analyse them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from doe.analysis.analyze import Analysis, analyze
from doe.analysis.case import AnalysisOptions
from doe.analysis.effects import Effect
from doe.analysis.tables import observe, table_runs

PLASMA = [550, 669, 633, 642, 1037, 749, 1075, 729, 604, 650, 601, 635, 1052, 868, 1063, 860]
FILTRATION = [45, 71, 48, 65, 68, 60, 80, 65, 43, 100, 45, 104, 75, 86, 70, 96]
THREE_BLOCKS = [28, 36, 18, 31, 25, 32, 19, 30, 27, 32, 23, 29]
PILOT = [60, 72, 54, 68, 52, 83, 45, 80]
# Box, Hunter and Hunter, Statistics for Experimenters (Reactor.data of the R package BsMD).
REACTOR = [61, 53, 63, 61, 53, 56, 54, 61, 69, 61, 94, 93, 66, 60, 95, 98]
REACTOR += [56, 63, 70, 65, 59, 55, 67, 65, 44, 45, 78, 77, 49, 42, 81, 82]


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
    runs = table_runs(frame, list(keys), block=block)
    return analyze(observe(frame, runs, "y", goal=goal), AnalysisOptions(**options))  # type: ignore[arg-type]


def by_term(analysis: Analysis) -> dict[str, Effect]:
    """Effects by name."""
    return {effect.term: effect for effect in analysis.effects}
