"""The profiler of the page: what every response would be at each choice of levels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

import msgspec
import numpy as np

from doe.analysis.analyze import Analysis
from doe.analysis.best import Prediction
from doe.analysis.dataset import FactorColumn, Level
from doe.errors import counted
from doe.numbers import cell_text, drawn, to_figures
from doe.results.curves import RunDetail
from doe.results.report import Report
from doe.results.subject import RunRecord, Subject
from doe.study.levels import row_of
from doe.terms import level_text
from doe.views.charts.runs import thinned
from doe.views.charts.shared import scale_type
from doe.views.json import Json
from doe.views.words import mean_word

MOST_ROWS = 5000
"""Configurations of a surface in the profiler."""
BETWEEN_ENDS = ((-0.5, 0.0, 0.5), (0.0,), ())
"""Positions of a surface that are shown beside the ends of a range, as far as there is room."""
SAME = 1e-3
"""Positions on a scale that are the same but for rounding."""


def profile_factors(report: Report) -> tuple[FactorColumn, ...]:
    """Return the factors with what the profiler offers: on a surface, values between the ends."""
    factors = report.subject.factors
    surfaces = [analysis.surface for analysis in report.analyses.values()]
    if report.subject.excluded or not all(
        surface is not None and surface.kind is not None and len(surface.at) < 1
        for surface in surfaces
    ):
        return factors
    headlines = [report.analyses[name].surface for name in report.headline_responses]
    shapes = [surface.polynomial for surface in headlines if surface is not None]
    marks = [np.array(shape.middle) * np.array(shape.unit) for shape in shapes]
    if (at := _desired_values(report)) is not None:
        pairs = zip(factors, at, strict=True)
        marks.append(np.array([f.position_of(np.array([v]))[0] for f, v in pairs]))
    ran = shapes[0].runs if shapes else ()
    placed = np.array(ran) * np.array(shapes[0].unit) if shapes else np.empty((0, len(factors)))
    for between in BETWEEN_ENDS:
        for own in (placed, placed[:0]):
            found = tuple(
                _with_levels(factor, [*between, *own[:, i], *(mark[i] for mark in marks)])
                for i, factor in enumerate(factors)
            )
            if math.prod(len(factor.levels) for factor in found) <= MOST_ROWS:
                return found
    return factors


def _with_levels(factor: FactorColumn, positions: Sequence[float]) -> FactorColumn:
    """Return a factor with levels at further positions, to three figures."""
    known = list(factor.positions)
    levels = list(factor.levels)
    whole = any(isinstance(level, int) for level in levels)
    for position in sorted(set(positions)):
        level = float(to_figures(factor.value_at(float(position)), 3))
        at = float(factor.position_of(np.array([level]))[0])
        if abs(at) <= 1 and min(abs(at - other) for other in known) > 10 * SAME:
            known.append(at)
            levels.append(int(level) if whole and level.is_integer() else level)
    order = np.argsort(known)
    return msgspec.structs.replace(factor, levels=tuple(levels[i] for i in order))


def level_number(factor: FactorColumn, value: object) -> int | None:
    """Return the index of a factor's level; None if it is not one."""
    if level_text(value) in factor.labels:
        return factor.labels.index(level_text(value))
    if not factor.numeric or not isinstance(value, (int, float)):
        return None
    away = np.abs(factor.positions - factor.position_of(np.array([float(value)])))
    return int(away.argmin()) if away.min() < 10 * SAME else None


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
    """Return where the levels lie from 0 to 1: numbers on their scale, names evenly."""
    if factor.numeric and len(factor.levels) > 1:
        return [round(float(at + 1.0) / 2.0, 4) for at in factor.positions]
    return [(i + 0.5) / len(factor.levels) for i in range(len(factor.levels))]


def profile_json(
    report: Report, analysis: Analysis, factors: Sequence[FactorColumn]
) -> Json | None:
    """Return every configuration as predicted with its interval, and its observed mean.

    Configurations are in standard order, the first factor fastest. None where there are too many
    to predict them all.
    """
    subject = report.subject
    on_surface = factors is not subject.factors
    cells = _surface_predictions(subject, analysis, factors) if on_surface else analysis.predictions
    if not cells:
        return None
    sizes = [len(factor.levels) for factor in factors]
    rows: list[list[Any]] = [[] for _ in range(math.prod(sizes))]
    for at in cells:
        if min(at.levels) >= 0 and not (at.mean is None and at.observed is None):
            row = [
                *(drawn(value) for value in (at.mean, at.ci_low, at.ci_high, at.observed)),
                "" if at.mean is None else cell_text(at.mean, "brief"),
                _interval(at),
                "" if at.observed is None else cell_text(at.observed, "brief"),
                at.n,
            ]
            for levels in _at_any(at.levels, factors):
                rows[row_of(levels, sizes)] = row
    return {
        "rows": rows,
        "places": _named_places(report, analysis, factors, cells),
        "centre": _centre(subject.factors, analysis, [at for at in cells if min(at.levels) < 0]),
    }


def _at_any(levels: Sequence[int], factors: Sequence[FactorColumn]) -> Iterable[tuple[int, ...]]:
    """Return the levels of a configuration at every level of a random condition."""
    own = zip(levels, factors, strict=True)
    return product(*(range(len(f.levels)) if f.random else (level,) for level, f in own))


def front_json(report: Report, factors: Sequence[FactorColumn]) -> Json:
    """Return where the configurations that ran stand among the goals, with their intervals, by
    position.

    Empty where nothing was weighed.
    """
    trade = report.trade_off
    if trade is None:
        return {"responses": [], "at": {}}
    sizes = [len(factor.levels) for factor in factors]
    rows = {}
    for run in report.subject.runs:
        at = tuple(level_number(factor, run.levels[factor.key]) for factor in factors)
        if None not in at:
            rows[run.config] = row_of([number or 0 for number in at], sizes)
    return {
        "responses": trade.responses,
        "at": {
            rows[point.config]: [
                point.place,
                [[drawn(mean.ci_low), drawn(mean.ci_high)] for mean in point.means],
            ]
            for point in trade.pareto
            if point.config in rows
        },
    }


def _surface_predictions(
    subject: Subject, analysis: Analysis, factors: Sequence[FactorColumn]
) -> tuple[Prediction, ...]:
    """Return what the fitted surface predicts at every choice of levels, with its band."""
    assert analysis.surface is not None
    shape, scale = analysis.surface.polynomial, analysis.transform.scale
    places = list(product(*(range(len(factor.levels)) for factor in factors)))
    columns = [factor.positions[[at[i] for at in places]] for i, factor in enumerate(factors)]
    mean, reach = shape.at(np.column_stack(columns) / np.array(shape.unit))
    ends = (scale.back(mean), scale.back(mean - reach), scale.back(mean + reach))
    ran: dict[tuple[int | None, ...], list[float]] = {}
    for run, value in zip(subject.runs, subject.values[analysis.response], strict=True):
        at = tuple(level_number(factor, run.levels[factor.key]) for factor in factors)
        ran.setdefault(at, []).extend([] if value is None else [value])
    found = []
    for at, *texts in zip(places, *(end.tolist() for end in ends), strict=True):
        values = ran.get(at, [])
        observed = float(scale.back(scale.forward(np.array(values)).mean())) if values else None
        m, low, high = (value if math.isfinite(value) else None for value in texts)
        banded = (low, high) if float(reach.max()) > 0 else (None, None)
        found.append(Prediction("", at, m, *banded, observed, len(values)))
    return tuple(found)


def _named_places(
    report: Report,
    analysis: Analysis,
    factors: Sequence[FactorColumn],
    cells: Sequence[Prediction],
) -> list[tuple[str, Sequence[int]]]:
    """Configurations worth a button, each with its levels."""
    subject, places = report.subject, list[tuple[str, Sequence[int] | None]]()
    best, on_surface = analysis.best, factors is not subject.factors
    sign = 1.0 if analysis.goal == "min" else -1.0
    ran = [(sign * at.observed, at.levels) for at in cells if at.observed is not None]
    if best is not None and on_surface:
        assert analysis.surface is not None
        shape = analysis.surface.polynomial
        optimum = np.array(shape.middle) * np.array(shape.unit)
        pairs = zip(factors, optimum, strict=True)
        near = [int(np.abs(factor.positions - z).argmin()) for factor, z in pairs]
        places += [("best observed", min(ran)[1] if ran else None), ("model optimum", near)]
    elif best is not None:
        seen = [cell.levels for cell in best.cells if min(cell.levels) >= 0]
        places += [("best observed", levels) for levels in seen[:1]]
        places.append(("model optimum", best.reduced.best.levels))
    by_config = {at.config: at.levels for at in analysis.predictions if min(at.levels) >= 0}
    pairs = zip(factors, subject.factors, strict=True)
    lowest = [factor.labels.index(own.labels[0]) for factor, own in pairs]
    at = by_config.get(subject.data[analysis.response].baseline)
    places.append(("baseline", lowest if at is None or on_surface else at))
    if (values := _desired_values(report)) is not None:
        numbers = [level_number(f, value) for f, value in zip(factors, values, strict=True)]
        known = [number for number in numbers if number is not None]
        places.append(("desirability optimum", known if len(known) == len(numbers) else None))
    return [(name, at) for name, at in places if at is not None and min(at) >= 0]


def _desired_values(report: Report) -> tuple[Level, ...] | None:
    """Levels with the largest overall desirability, of runs or of the model."""
    wanted = report.trade_off.desirability if report.trade_off else None
    if wanted is None:
        return None
    best = filter(None, (wanted.configs[0], wanted.model))
    return max(best, key=lambda at: at.overall).levels


def _centre(
    factors: Sequence[FactorColumn], analysis: Analysis, cells: Sequence[Prediction]
) -> str:
    """Return what the centre runs gave; empty where there are none."""
    means = []
    for cell in cells:
        at = [
            f"{f.key} {cell_text(f.value_at(0.0), 'short') if i < 0 else level_text(f.levels[i])}"
            for f, i in zip(factors, cell.levels, strict=True)
        ]
        mean = f"{cell_text(cell.observed, 'brief')} of {counted(cell.n, 'run')}"
        means.append(f"{mean} at {', '.join(at)}")
    word = f"{mean_word(analysis).lower()} {analysis.response}"
    return f"Centre runs: {word} {'; '.join(means)}." if means else ""


def _interval(at: Prediction) -> str:
    """Return the interval of a prediction, marked where it leaves out the observed mean."""
    if at.ci_low is None or at.ci_high is None:
        return ""
    text = f"{cell_text(at.ci_low, 'brief')} to {cell_text(at.ci_high, 'brief')}"
    text += ", geometric means" * at.geometric
    return f"{text}, not the observed mean" if at.outside else text


# Cards of runs ------------------------------------------------------------------------------------


CARD_STEPS = 30
"""Points of a curve on a card."""
WIDE = 10.0
"""A response that spans more than this factor lies on a logarithmic axis."""


def cards_json(report: Report, factors: Sequence[FactorColumn]) -> list[Json]:
    """Return what opens when a run is chosen, in run order."""
    subject, details = report.subject, report.details
    return [_card(factors, run, details.get(run.run_id)) for run in subject.runs]


def _card(factors: Sequence[FactorColumn], run: RunRecord, detail: RunDetail | None) -> Json:
    given = [level_text(run.levels[factor.key]) for factor in factors]
    numbers = [level_number(factor, run.levels[factor.key]) for factor in factors]
    card: Json = {"levels": numbers, "given": given, "facts": run.facts}
    if detail is None:
        return card
    return card | {
        "error": detail.error,
        "log": detail.log,
        "curves": [_card_curve(name, curve) for name, curve in detail.curves.items()],
    }


def _card_curve(name: str, curve: Sequence[tuple[float, float]]) -> Json:
    values = [value for _, value in curve]
    first, last = cell_text(values[0], "num"), cell_text(values[-1], "num")
    end = cell_text(curve[-1][0], "int")
    text = (
        f"{first} to {last}, the last at step {end}" if len(curve) > 1 else f"{last} at step {end}"
    )
    return {
        "name": name,
        "text": f"{name}: {text}",
        "log": scale_type(values) == "log",
        "points": [[drawn(x), drawn(y)] for x, y in thinned(curve, CARD_STEPS)],
    }


def axes_json(report: Report) -> Json:
    """Response -> its goal, and whether it spans so much that its axis is logarithmic."""
    axes: Json = {}
    for name, values in report.subject.values.items():
        known = [value for value in values if value is not None]
        low, high = min(known, default=0.0), max(known, default=0.0)
        axes[name] = {
            "log": low > 0 and high > WIDE * low,
            "goal": report.subject.responses.goal_of(name),
        }
    return axes
