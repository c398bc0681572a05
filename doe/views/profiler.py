"""The profiler of the page: what every response would be at each choice of levels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from doe.analysis.analyze import Analysis
from doe.analysis.estimators.means import Means
from doe.analysis.response import ResponseAnalysis
from doe.errors import counted
from doe.numbers import cell_text, drawn
from doe.study.levels import allowed_rows, row_of
from doe.study.values import Study
from doe.terms import level_text
from doe.views.json import Json
from doe.views.words import mean_word

if TYPE_CHECKING:
    from doe.analysis.levels.predictions import CellPrediction


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


class _Cell(NamedTuple):
    """A combination of levels, predicted and observed."""

    levels: tuple[int, ...]
    mean: float | None
    ci_low: float | None
    ci_high: float | None
    observed: float | None
    n: int


def profile_json(study: Study, analysis: ResponseAnalysis) -> Json | None:
    """Every configuration as predicted with its interval, and its observed mean.

    Configurations stand in standard order, the first factor fastest. None where there are too many
    to predict them all.
    """
    cells = _two_level_cells(analysis) if isinstance(analysis, Analysis) else analysis.predictions
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


def _two_level_cells(analysis: Analysis) -> Sequence[_Cell]:
    """Predictions of two levels with the observed means; none where the goal is not known."""
    means, best = analysis.get(Means), analysis.best
    if means is None or best is None:
        return ()
    observed = {c.coded: c for c in best.cells}
    cells = []
    for at in means.predictions:
        cell = observed.get(at.coded)
        mean_and_runs = (None, 0) if cell is None else (cell.mean, cell.n)
        levels = levels_of(at.coded)
        cells.append(_Cell(levels, at.mean, at.ci_low, at.ci_high, *mean_and_runs))
    return cells


def levels_of(coded: Sequence[int]) -> tuple[int, ...]:
    """The number of each factor's level, from 0."""
    return tuple((x + 1) // 2 for x in coded)


def _best(analysis: ResponseAnalysis) -> list[int] | None:
    """Levels of the best configuration that is no centre run; None where the goal is not known."""
    if isinstance(analysis, Analysis):
        return None if analysis.best is None else list(levels_of(analysis.best.cells[0].coded))
    cells = () if analysis.best is None else analysis.best.cells
    return next((list(cell.levels) for cell in cells if min(cell.levels) >= 0), None)


def _centre(
    study: Study, analysis: ResponseAnalysis, cells: Sequence[_Cell | CellPrediction]
) -> str:
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
