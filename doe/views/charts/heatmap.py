"""Effects over all responses in one picture."""

from __future__ import annotations

import altair as alt

from doe.results.report import Report
from doe.views.charts.model import ChartData, Record, StudyChart
from doe.views.charts.shared import below, hover
from doe.views.charts.theme import DIVERGING

HEAT_TERMS = 24
"""Terms in the heatmap."""


def draw() -> alt.TopLevelMixin:
    """Terms × responses; colour is the effect relative to the response's largest one."""
    base = alt.Chart(alt.NamedData("cells")).encode(
        x=alt.X("response:N", title=None, sort=None, axis=alt.Axis(labelAngle=-50, orient="top")),
        y=alt.Y("term:N", title=None, sort=None),
        tooltip=hover("term", "response", "effect", "p", "p_bh"),
    )
    colour = alt.Color(
        "relative:Q",
        title="effect / largest of the response",
        scale=alt.Scale(domain=[-1, 1], range=list(DIVERGING), interpolate="lab"),
        legend=alt.Legend(orient="bottom", gradientLength=160, gradientThickness=8, tickCount=3),
    )
    marks = base.transform_filter("datum.found").mark_point(
        shape="circle", filled=True, size=14, color="#111111", opacity=1
    )
    return alt.layer(base.mark_rect(stroke=None).encode(color=colour), marks).properties(
        width=alt.Step(17), height=alt.Step(13)
    )


def data(report: Report) -> ChartData | None:
    """The strongest terms over all responses; a dot where the false discovery rate is met."""
    across = report.across
    if across is None or len(report.analyses) < 2:
        return None
    cells: list[Record] = [
        {
            "term": row.term,
            "response": response,
            "effect": row.effects[j],
            "relative": row.relative[j],
            "p": row.p[j],
            "p_bh": row.p_bh[j],
            "found": below(row.p_bh[j], report.options.alpha),
        }
        for row in across.strongest[:HEAT_TERMS]
        for j, response in enumerate(across.responses)
    ]
    return ChartData({"cells": cells})


CHART = StudyChart(
    10,
    "all",
    "heatmap",
    "Effects over all responses",
    "Blue lowers a response, orange raises it, relative to the response's largest effect. "
    "Dots pass the false discovery rate over all terms and responses.",
    draw,
    data,
)
