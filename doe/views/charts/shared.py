"""What several charts share: axes, hover text, colours of direction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from doe.analysis.effects import Effect
from doe.analysis.estimators.means import Mean
from doe.views.charts.model import Record
from doe.views.charts.theme import HARMS, HELPS
from doe.views.words import helps


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


def below(p: float | None, alpha: float) -> bool:
    """Whether a test is significant at a level."""
    return p is not None and p <= alpha


DIRECTIONS = {True: "better", False: "worse", None: "no goal"}


def direction_of(effect: float, goal: str | None) -> str:
    """Whether an effect is for the better or for the worse, where the goal is known."""
    return DIRECTIONS[helps(effect, goal)]


def direction() -> alt.Color:
    """Colours of effects for the better and for the worse."""
    return alt.Color(
        "direction:N", title=None, scale=alt.Scale(domain=["better", "worse"], range=[HELPS, HARMS])
    )


TEXT_FIELDS = frozenset(
    (
        "term",
        "factor",
        "response",
        "pair",
        "first",
        "second",
        "config",
        "run",
        "slot",
        "state",
        "given",
    )
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


def mean_by_level(label: str = "given") -> alt.Chart:
    """Axes of main effects and interactions: the two levels across, the mean up, not from zero."""
    return alt.Chart().encode(
        x=alt.X(
            f"{label}:O",
            title=None,
            sort=None,
            axis=alt.Axis(labelAngle=0, labelFontSize=9, labelLimit=44, labelOverlap=False),
        ),
        y=alt.Y("mean:Q", title="{mean}", scale=alt.Scale(zero=False)),
    )


def mean_record(mean: Mean) -> Record:
    """A mean with its interval; without one the interval has no length."""
    low = mean.mean if mean.ci_low is None else mean.ci_low
    high = mean.mean if mean.ci_high is None else mean.ci_high
    return {"mean": mean.mean, "ci_low": low, "ci_high": high}
