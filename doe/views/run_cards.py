"""The runs of a study on its page: a card for each, and the axes of their responses."""

from __future__ import annotations

from collections.abc import Sequence

from doe.analysis.dataset import FactorColumn
from doe.numbers import cell_text, drawn
from doe.results.details import RunDetail
from doe.results.report import Report
from doe.results.subject import RunRecord
from doe.terms import level_text
from doe.views.charts.learning_curves import thinned
from doe.views.charts.shared import scale_type
from doe.views.json import Json

CARD_STEPS = 30
"""Points of a curve on a card."""
WIDE = 10.0
"""A response that spans more than this factor lies on a logarithmic axis."""


def cards_json(report: Report) -> list[Json]:
    """What opens when a run is chosen, in run order."""
    subject, details = report.subject, report.details
    return [_card(subject.factors, run, details.get(run.run_id)) for run in subject.runs]


def _card(factors: Sequence[FactorColumn], run: RunRecord, detail: RunDetail | None) -> Json:
    given = [level_text(run.levels[factor.key]) for factor in factors]
    names = [factor.labels for factor in factors]
    numbers = [n.index(x) if x in n else None for n, x in zip(names, given, strict=True)]
    card: Json = {"levels": numbers, "given": given, "facts": run.facts}
    if detail is None:
        return card
    return card | {
        "error": detail.error,
        "log": detail.log,
        "curves": [_curve(name, curve) for name, curve in detail.curves.items()],
    }


def _curve(name: str, curve: Sequence[tuple[float, float]]) -> Json:
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
