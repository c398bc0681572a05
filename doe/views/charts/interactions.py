"""The strongest interactions as lines between means."""

from __future__ import annotations

from collections.abc import Mapping

from doe.analysis.analyze import Analysis
from doe.analysis.estimators.means import SIGNS, Means
from doe.views.charts import alt
from doe.views.charts.model import ChartData, Record, ResponseChart, of_analysis
from doe.views.charts.shared import hover, mean_by_level, mean_record, panel_layout, panels
from doe.views.charts.short import abbreviated, room_for_each
from doe.views.charts.theme import LEVELS
from doe.views.words import mean_text

SIDES = ["low", "high"]
"""The lines of every panel; above it they have the names of its second factor's levels."""
LONG, LEVELS_ROOM = 14, 22
"""Letters above a panel from which on two stand in a row instead of three, and letters for the
names of two levels.
"""
STROKES = 4
"""Letters that are as wide as what stands before and between the two names."""


def draw() -> alt.TopLevelMixin:
    """Lines that are not parallel: the effect of one factor depends on the other."""
    base = mean_by_level().encode(
        color=alt.Color("other:N", scale=alt.Scale(domain=SIDES, range=list(LEVELS)), legend=None),
        tooltip=hover("pair", "first", "second", "mean", "ci_low", "ci_high"),
    )
    dashes = alt.StrokeDash(
        "other:N", scale=alt.Scale(domain=SIDES, range=[[5, 3], [1, 0]]), legend=None
    )
    interval = base.mark_rule(strokeWidth=1.2).encode(y="ci_low:Q", y2="ci_high:Q")
    points = base.mark_circle(size=36, opacity=1)
    line = base.mark_line().encode(strokeDash=dashes)
    return panels("pairs", "panel", line, interval, points, spacing=12)


def interaction_data(analysis: Analysis) -> ChartData | None:
    """Means of the four combinations for the strongest two-factor interactions."""
    means = analysis.get(Means)
    if means is None or not means.interactions:
        return None
    levels = {factor.key: {-1: factor.low, 1: factor.high} for factor in analysis.factors}
    names = [f"{pair.factor} × {pair.other}" for pair in means.interactions]
    seconds = [_short(levels[pair.other]) for pair in means.interactions]
    rows: list[Record] = []
    for rank, pair in enumerate(means.interactions):
        low, high = seconds[rank]
        for (x, y), mean in zip(SIGNS, pair.means, strict=True):
            record: Record = {
                "rank": rank,
                "panel": f"{names[rank]}\n- - {low}, — {high}",
                "pair": names[rank],
                "given": levels[pair.factor][x],
                "other": SIDES[y > 0],
                "first": f"{pair.factor} = {levels[pair.factor][x]}",
                "second": f"{pair.other} = {levels[pair.other][y]}",
            }
            rows.append(record | mean_record(mean.mean, mean.ci_low, mean.ci_high))
    letters = [*map(len, names), *(len(low) + len(high) + STROKES for low, high in seconds)]
    layout = panel_layout(len(names), 3 if max(letters) <= LONG else 2)
    return ChartData({"pairs": rows}, {"mean": mean_text(analysis), **layout})


def _short(levels: Mapping[int, str]) -> tuple[str, str]:
    """The names of two levels, so that both fit above a panel."""
    names = (levels[-1], levels[1])
    short = abbreviated(names, room_for_each([*map(len, names)], LEVELS_ROOM))
    return short[names[0]], short[names[1]]


CHART = ResponseChart(
    40,
    "interactions",
    "Strongest interactions",
    "Lines that are not parallel: the effect of the first factor (x axis) depends on the "
    "level of the second (dashed or not).",
    draw,
    of_analysis(interaction_data),
)
