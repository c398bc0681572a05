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
            "numeric": factor.numeric,
            "places": _places(factor),
        }
        for factor in factors
    ]


def _places(factor: FactorColumn) -> list[float]:
    """Where the levels lie from 0 to 1: numbers on their scale, names evenly."""
    if factor.numeric and len(factor.levels) > 1:
        return [round(float(at + 1.0) / 2.0, 4) for at in factor.positions]
    return [(i + 0.5) / len(factor.levels) for i in range(len(factor.levels))]


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
        "places": _named_places(subject, analysis),
        "centre": _centre(subject.factors, analysis, [at for at in cells if min(at.levels) < 0]),
    }


def _named_places(subject: Subject, analysis: Analysis) -> list[tuple[str, tuple[int, ...]]]:
    """Configurations worth a button, each with its levels."""
    places = []
    if analysis.best is not None:
        observed = [cell.levels for cell in analysis.best.cells if min(cell.levels) >= 0]
        places += [("best observed", levels) for levels in observed[:1]]
        places.append(("model optimum", analysis.best.reduced.best.levels))
    by_config = {at.config: at.levels for at in analysis.predictions}
    baseline = by_config.get(subject.data[analysis.response].baseline, (0,) * len(subject.factors))
    return [(name, at) for name, at in [*places, ("baseline", baseline)] if min(at) >= 0]


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
