"""The profiler of the page: what every response would be at each choice of levels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from doe.analysis.analyze import Analysis
from doe.analysis.best import Prediction
from doe.errors import counted
from doe.numbers import cell_text, drawn
from doe.study.levels import allowed_rows, row_of
from doe.study.values import Study
from doe.terms import level_text
from doe.views.json import Json
from doe.views.words import mean_word


def factors_json(study: Study) -> list[Json]:
    """Factors with the names of their levels, in the order of their numbers."""
    return [
        {
            "key": factor.key,
            "name": factor.name or factor.key,
            "levels": [level_text(level) for level in factor.levels],
        }
        for factor in study.factors
    ]


def profile_json(study: Study, analysis: Analysis) -> Json | None:
    """Every configuration as predicted with its interval, and its observed mean.

    Configurations stand in standard order, the first factor fastest. None where there are too many
    to predict them all.
    """
    cells = analysis.predictions
    if not cells:
        return None
    rows: list[list[Any]] = [[] for _ in range(math.prod(study.sizes))]
    for at in cells:
        if min(at.levels) >= 0 and not (at.mean is None and at.observed is None):
            rows[row_of(at.levels, study.sizes)] = [
                *(drawn(value) for value in (at.mean, at.ci_low, at.ci_high, at.observed)),
                "" if at.mean is None else cell_text(at.mean, "num"),
                _interval(at.ci_low, at.ci_high),
                "" if at.observed is None else cell_text(at.observed, "num"),
                at.n,
            ]
    return {
        "rows": rows,
        "best": _best(analysis),
        "goal": analysis.goal,
        "centre": _centre(study, analysis, [at for at in cells if min(at.levels) < 0]),
    }


def _best(analysis: Analysis) -> list[int] | None:
    """Levels of the best configuration that is no centre run; None where the goal is not known."""
    cells = () if analysis.best is None else analysis.best.cells
    return next((list(cell.levels) for cell in cells if min(cell.levels) >= 0), None)


def _centre(study: Study, analysis: Analysis, cells: Sequence[Prediction]) -> str:
    """What the centre runs gave; empty where there are none."""
    means = []
    for cell in cells:
        at = [
            f"{f.key} {cell_text(f.centre, 'short') if i < 0 else level_text(f.levels[i])}"
            for f, i in zip(study.factors, cell.levels, strict=True)
        ]
        mean = f"{cell_text(cell.observed, 'num')} of {counted(cell.n, 'run')}"
        means.append(f"{mean} at {', '.join(at)}")
    word = f"{mean_word(analysis).lower()} {analysis.response}"
    return f"Centre runs: {word} {'; '.join(means)}." if means else ""


def _interval(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return ""
    return f"{cell_text(low, 'num')} to {cell_text(high, 'num')}"


def excluded_json(study: Study) -> list[int]:
    """Combinations that the study says cannot run, by their place in the standard order."""
    if not study.exclude:
        return []
    allowed = set(allowed_rows(study))
    return [row for row in range(math.prod(study.sizes)) if row not in allowed]
