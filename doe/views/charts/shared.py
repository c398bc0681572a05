"""What several charts share: names of scales, hover text, colours of direction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from doe.analysis.values import Analysis, Effect
from doe.views.charts.model import Record
from doe.views.charts.theme import HARMS, HELPS
from doe.views.table import cell_text


def scale_name(analysis: Analysis) -> str:
    """The response with its unit, as analysed: "loss (nats)" or "log loss"."""
    unit = f" ({analysis.unit})" if analysis.unit else ""
    match analysis.transform.name:
        case "none":
            return f"{analysis.response}{unit}"
        case "log":
            return f"log {analysis.response}"
        case _:
            power = cell_text(analysis.transform.exponent, "fixed2")
            return f"{analysis.response}, Box–Cox λ = {power}"


def better(effect: float, goal: str) -> str:
    """Whether an effect helps, by the goal of the study."""
    return "better" if (effect > 0) == (goal == "max") else "worse"


def effect_record(effect: Effect) -> Record:
    """An effect's figures for a chart's data and hover."""
    return {
        "term": effect.term,
        "effect": effect.effect,
        "ci_low": effect.ci_low,
        "ci_high": effect.ci_high,
        "p": effect.p,
        "p_holm": effect.p_holm,
        "percent": effect.percent,
    }


def coefficients(analysis: Analysis) -> Mapping[str, float]:
    return {effect.term: effect.coef for effect in analysis.effects}


def below(p: float | None, alpha: float) -> bool:
    return p is not None and p <= alpha


def helps() -> alt.Color:
    return alt.Color(
        "direction:N", title=None, scale=alt.Scale(domain=["better", "worse"], range=[HELPS, HARMS])
    )


TEXT_FIELDS = frozenset(
    ("term", "factor", "response", "pair", "first", "second", "config", "run", "slot", "state")
)


def hover(*fields: str) -> list[alt.Tooltip]:
    """Hover text; numbers to four significant figures as in the tables."""
    titles = {"ci_low": "interval from", "ci_high": "to", "p_holm": "p (Holm)", "p_bh": "p (FDR)"}
    return [
        alt.Tooltip(f"{field}:N", title=titles.get(field, field))
        if field in TEXT_FIELDS
        else alt.Tooltip(f"{field}:Q", title=titles.get(field, field), format=".4~g")
        for field in fields
    ]


def scale_type(values: Sequence[object]) -> str:
    """Logarithmic where every value is positive, else linear."""
    positive = all(isinstance(value, (int, float)) and value > 0 for value in values)
    return "log" if positive else "linear"


def chosen_scale() -> alt.Scale:
    """A scale whose type is chosen with the data, by the word "scale"."""
    word: Any = "{scale}"
    return alt.Scale(type=word)
