"""The profiler of the page: what every response would be at each choice of levels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from doe.analysis.analyze import Analysis
from doe.analysis.best import Prediction
from doe.analysis.dataset import FactorColumn
from doe.errors import counted
from doe.numbers import cell_text, drawn
from doe.results.subject import Subject
from doe.study.levels import row_of
from doe.terms import level_text
from doe.views.json import Json
from doe.views.words import mean_word


def factors_json(factors: Sequence[FactorColumn]) -> list[Json]:
    """Factors with the names of their levels, in the order of their numbers."""
    return [
        {
            "key": factor.key,
            "name": factor.name,
            "levels": factor.labels,
        }
        for factor in factors
    ]


def profile_json(subject: Subject, analysis: Analysis) -> Json | None:
    """Every configuration as predicted with its interval, and its observed mean.

    Configurations stand in standard order, the first factor fastest. None where there are too many
    to predict them all.
    """
    cells = analysis.predictions
    if not cells:
        return None
    rows: list[list[Any]] = [[] for _ in range(math.prod(subject.sizes))]
    for at in cells:
        if min(at.levels) >= 0 and not (at.mean is None and at.observed is None):
            rows[row_of(at.levels, subject.sizes)] = [
                *(drawn(value) for value in (at.mean, at.ci_low, at.ci_high, at.observed)),
                "" if at.mean is None else cell_text(at.mean, "num"),
                _interval(at),
                "" if at.observed is None else cell_text(at.observed, "num"),
                at.n,
            ]
    return {
        "rows": rows,
        "best": _best(analysis),
        "goal": analysis.goal,
        "centre": _centre(subject.factors, analysis, [at for at in cells if min(at.levels) < 0]),
    }


def _best(analysis: Analysis) -> list[int] | None:
    """Levels of the best configuration that is no centre run; None where the goal is not known."""
    cells = () if analysis.best is None else analysis.best.cells
    return next((list(cell.levels) for cell in cells if min(cell.levels) >= 0), None)


def _centre(
    factors: Sequence[FactorColumn], analysis: Analysis, cells: Sequence[Prediction]
) -> str:
    """What the centre runs gave; empty where there are none."""
    means = []
    for cell in cells:
        at = [
            f"{f.key} {cell_text(f.value_at(0.0), 'short') if i < 0 else level_text(f.levels[i])}"
            for f, i in zip(factors, cell.levels, strict=True)
        ]
        mean = f"{cell_text(cell.observed, 'num')} of {counted(cell.n, 'run')}"
        means.append(f"{mean} at {', '.join(at)}")
    word = f"{mean_word(analysis).lower()} {analysis.response}"
    return f"Centre runs: {word} {'; '.join(means)}." if means else ""


def _interval(at: Prediction) -> str:
    """The interval of a prediction, marked where it leaves out the observed mean."""
    if at.ci_low is None or at.ci_high is None:
        return ""
    text = f"{cell_text(at.ci_low, 'num')} to {cell_text(at.ci_high, 'num')}"
    return f"{text}, not the observed mean" if at.outside else text
