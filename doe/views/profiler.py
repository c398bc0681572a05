"""The profiler of the page: what every response would be at each choice of levels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from doe.analysis.analyze import Analysis
from doe.analysis.estimators.means import Means
from doe.analysis.response import ResponseAnalysis
from doe.study.levels import row_of
from doe.study.values import Study
from doe.terms import level_text
from doe.views.numbers import cell_text, drawn

Json = dict[str, Any]


def factors_json(study: Study) -> list[Json]:
    """Factors with the names of their levels, in the order that `level_numbers` counts in."""
    return [
        {
            "key": factor.key,
            "name": factor.name or factor.key,
            "levels": [level_text(level) for level in factor.levels],
        }
        for factor in study.factors
    ]


def level_numbers(coded: Sequence[int]) -> tuple[int, ...]:
    """The number of each factor's level, from 0."""
    return tuple((x + 1) // 2 for x in coded)


def profile_json(study: Study, analysis: ResponseAnalysis) -> Json | None:
    """Every configuration as predicted with its interval, and its observed mean.

    Configurations stand in standard order, the first factor fastest. None where there are too many
    to predict them all.
    """
    if not isinstance(analysis, Analysis):
        return None
    means = analysis.get(Means)
    best = analysis.best
    if means is None or not means.predictions or best is None:
        return None
    sizes = study.sizes
    observed = {row_of(level_numbers(c.coded), sizes): c for c in best.cells}
    rows: list[list[Any]] = [[] for _ in range(math.prod(sizes))]
    for at in means.predictions:
        position = row_of(level_numbers(at.coded), sizes)
        cell = observed.get(position)
        rows[position] = [
            *(drawn(value) for value in (at.mean, at.ci_low, at.ci_high)),
            None if cell is None else drawn(cell.mean),
            cell_text(at.mean, "num"),
            _interval(at.ci_low, at.ci_high),
            "" if cell is None else cell_text(cell.mean, "num"),
            0 if cell is None else cell.n,
        ]
    return {
        "rows": rows,
        "best": list(level_numbers(best.cells[0].coded)),
        "goal": analysis.goal,
    }


def _interval(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return ""
    return f"{cell_text(low, 'num')} to {cell_text(high, 'num')}"
