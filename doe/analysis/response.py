"""One response, by the way that fits its factors: two balanced levels, or any number of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from doe.analysis.analyze import Analysis, analyze
from doe.analysis.case import AnalysisOptions
from doe.analysis.data import Observations
from doe.analysis.levels.layout import FactorColumn, LevelObservations, LevelRuns

if TYPE_CHECKING:  # least squares of many levels loads more than two levels need
    from doe.analysis.levels.analyze import LevelAnalysis

ResponseAnalysis: TypeAlias = "Analysis | LevelAnalysis"
"""What an analysis of one response may be."""


def analyze_response(
    observed: Observations | LevelObservations, options: AnalysisOptions
) -> ResponseAnalysis:
    """Analyse one response; a chosen model and random blocks go the way of any number of levels."""
    if isinstance(observed, Observations):
        if options.terms is None and not options.random_blocks:
            return analyze(observed, options)
        observed = with_levels(observed)
    from doe.analysis.levels.analyze import analyze_levels

    return analyze_levels(observed, options)


def with_levels(observed: Observations) -> LevelObservations:
    """Observations at two levels as those of factors with levels."""
    runs = observed.runs
    factors = tuple(FactorColumn(f.key, f.name or f.key, (f.low, f.high)) for f in runs.factors)
    index = (runs.coded.astype(np.int64) + 1) // 2
    layout = LevelRuns(
        *(factors, index, runs.block, runs.block_name or "block"),
        notes=runs.notes,
        seeding=runs.seeding,
    )
    return LevelObservations(
        layout, observed.response, observed.y, observed.unit, observed.goal, observed.scale
    )
