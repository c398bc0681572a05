"""The strongest interactions as lines between means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import altair as alt

from doe.analysis.analyze import Analysis
from doe.analysis.estimators.means import SIGNS, Means
from doe.views.charts.model import ChartData, Record, ResponseChart, of_analysis
from doe.views.charts.shared import hover, mean_by_level, mean_record, panel_layout, word
from doe.views.charts.theme import LEVELS
from doe.views.words import mean_word, unit_text

LONG = 14
"""Letters of a pair's name from which on two panels stand in a row instead of three."""


def draw() -> alt.TopLevelMixin:
    """Lines that are not parallel: the effect of one factor depends on the other."""
    domain = ["{low}", "{high}"]
    base = mean_by_level(word("room")).encode(
        color=alt.Color(
            "other:N",
            title="second factor",
            scale=alt.Scale(domain=domain, range=list(LEVELS)),
            legend=alt.Legend(symbolType="stroke", symbolSize=200),
        ),
        tooltip=hover("pair", "first", "second", "mean", "ci_low", "ci_high"),
    )
    dashes = alt.StrokeDash(
        "other:N",
        title="second factor",
        scale=alt.Scale(domain=domain, range=[[5, 3], [1, 0]]),
    )
    interval = base.mark_rule(strokeWidth=1.2).encode(y="ci_low:Q", y2="ci_high:Q")
    points = base.mark_circle(size=36, opacity=1)
    layers = (base.mark_line().encode(strokeDash=dashes), interval, points)
    panels = alt.layer(*layers, width=word("width"), height=word("height")).facet(
        data=alt.NamedData("pairs"),
        facet=alt.Facet("pair:N", title=None, sort=alt.EncodingSortField("rank", op="min")),
        columns=word("columns"),
        spacing=12,
    )
    drawn: alt.FacetChart = panels.resolve_scale(x="independent").properties(title="{mean}")
    return drawn


def interaction_data(analysis: Analysis) -> ChartData | None:
    """Means of the four combinations for the strongest two-factor interactions."""
    means = analysis.get(Means)
    if means is None or not means.interactions:
        return None
    levels = {factor.key: {-1: factor.low, 1: factor.high} for factor in analysis.factors}
    low, high = _second_levels([levels[pair.other] for pair in means.interactions])
    rows: list[Record] = []
    for rank, pair in enumerate(means.interactions):
        for (x, y), mean in zip(SIGNS, pair.means, strict=True):
            record: Record = {
                "rank": rank,
                "pair": f"{pair.factor} × {pair.other}",
                "given": levels[pair.factor][x],
                "other": high if y > 0 else low,
                "first": f"{pair.factor} = {levels[pair.factor][x]}",
                "second": f"{pair.other} = {levels[pair.other][y]}",
            }
            rows.append(record | mean_record(mean.mean, mean.ci_low, mean.ci_high))
    mean_text = f"{mean_word(analysis)} {analysis.response}{unit_text(analysis.unit)}"
    texts = [f"{pair.factor} × {pair.other}" for pair in means.interactions]
    layout = panel_layout(len(texts), 3 if max(map(len, texts)) <= LONG else 2)
    return ChartData({"pairs": rows}, {"mean": mean_text, "low": low, "high": high, **layout})


def _second_levels(levels: Sequence[Mapping[int, str]]) -> tuple[str, str]:
    """What the two lines of every panel are called: the names of levels that all of them share."""
    names = {(level[-1], level[1]) for level in levels}
    return names.pop() if len(names) == 1 else ("low", "high")


CHART = ResponseChart(
    40,
    "interactions",
    "Strongest interactions",
    "Lines that are not parallel: the effect of the first factor (x axis) depends on the "
    "level of the second (colour).",
    draw,
    of_analysis(interaction_data),
)
