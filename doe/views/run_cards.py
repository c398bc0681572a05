"""The runs of a study on its page: a card for each, and the axes that they lie across."""

from __future__ import annotations

from collections.abc import Sequence

from doe.numbers import cell_text, drawn, duration_text
from doe.results.details import RunDetail
from doe.results.origins import machine_text
from doe.results.report import Report
from doe.store.scan import RunStatus
from doe.study.values import Study
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
    details = report.details
    return [_card(report.study, s, details.get(s.run.run_id)) for s in report.state.statuses]


def _card(study: Study, status: RunStatus, detail: RunDetail | None) -> Json:
    run = status.run
    given = [level_text(run.levels[key]) for key in study.keys]
    names = [[level_text(level) for level in factor.levels] for factor in study.factors]
    numbers = [n.index(x) if x in n else None for n, x in zip(names, given, strict=True)]
    card: Json = {"levels": numbers, "given": given, "facts": _facts(status)}
    if detail is None:
        return card
    return card | {
        "error": detail.error,
        "log": detail.log,
        "curves": [_curve(name, curve) for name, curve in detail.curves.items()],
    }


def _facts(status: RunStatus) -> list[tuple[str, str]]:
    """Whatever else is known of a run, each with its name."""
    took = "" if status.seconds is None else duration_text(status.seconds)
    name, _, text = status.run.seed_text.partition(" ")
    facts = [
        ("replicate", str(status.run.replicate)),
        (name, text),
        ("took", took),
        ("on", machine_text(status)),
        ("started", str(status.provenance.get("start", ""))[:16].replace("T", " ")),
    ]
    return [(name, text) for name, text in facts if text]


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
    """Response -> its axis: what its ends are, and whether it is logarithmic."""
    axes: Json = {}
    for name, values in report.values.items():
        known = [value for value in values if value is not None]
        if not known:
            continue
        low, high = min(known), max(known)
        axes[name] = {
            "low": drawn(low),
            "high": drawn(high),
            "texts": [cell_text(low, "num"), cell_text(high, "num")],
            "log": low > 0 and high > WIDE * low,
            "goal": report.study.responses.goal_of(name),
        }
    return axes
