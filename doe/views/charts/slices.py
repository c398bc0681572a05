"""Slices through a response surface at its optimum, with bands."""

from __future__ import annotations

import numpy as np

from doe.analysis.analyze import Analysis
from doe.numbers import drawn
from doe.views.charts import alt
from doe.views.charts.contours import EDGE, ticks
from doe.views.charts.model import ChartData, Record, ResponseChart, of_analysis
from doe.views.charts.shared import panel_layout, word
from doe.views.charts.theme import INK, PLAIN
from doe.views.words import mean_text

POINTS = 41


def draw() -> alt.TopLevelMixin:
    """A panel for each factor; ticks are data, for every panel has a scale of its own."""
    scale = alt.Scale(domain=[-EDGE, EDGE], nice=False, zero=False)
    hidden = alt.Axis(labels=False, ticks=False, title=None, grid=False, domain=False)
    x = alt.X("x:Q", scale=scale, axis=hidden)
    y = alt.Y("mean:Q", title=None, scale=alt.Scale(zero=False, nice=True))
    base = alt.Chart()
    curve = base.transform_filter("datum.what == 'curve'")
    layers = [
        curve.mark_area(color=PLAIN, opacity=0.16).encode(
            x=x, y=alt.Y("low:Q", scale=alt.Scale(zero=False)), y2="high:Q"
        ),
        curve.mark_line(color=PLAIN).encode(x=x, y=y),
        base.transform_filter("datum.what == 'optimum'")
        .mark_rule(strokeDash=[4, 3], color=INK)
        .encode(x=x),
        base.transform_filter("datum.what == 'tick'")
        .mark_text(baseline="top", dy=5)
        .encode(x=x, y=y, text="text:N"),
    ]
    faceted = alt.layer(*layers, width=word("width"), height=word("height")).facet(
        data=alt.NamedData("slices"),
        facet=alt.Facet("factor:N", title=None, sort=alt.EncodingSortField("rank", op="min")),
        columns=word("columns"),
        spacing=26,
    )
    made: alt.TopLevelMixin = faceted.properties(title="{mean}")
    return made


def slice_data(analysis: Analysis) -> ChartData | None:
    """The response along each factor, the others at the optimum, with its band."""
    surface = analysis.surface
    if surface is None or not surface.polynomial.factors:
        return None
    shape, back = surface.polynomial, analysis.transform.scale.back
    rows: list[Record] = []
    for n, (i, unit) in enumerate(zip(shape.factors, shape.unit, strict=True)):
        factor = analysis.factors[i]
        mean, reach = shape.at(shape.grid((n,), POINTS))
        curves = [back(mean), back(mean - reach), back(mean + reach)]
        z = np.linspace(-1.0, 1.0, POINTS)
        for place, *values in zip(z, *curves, strict=True):
            m, low, high = (drawn(float(v)) for v in values)
            own: Record = {"what": "curve", "x": drawn(float(place)), "mean": m}
            rows.append({"factor": factor.key, "rank": n, "low": low, "high": high, **own})
        if analysis.goal is not None:
            at = drawn(shape.middle[n] * unit)
            rows.append({"factor": factor.key, "rank": n, "what": "optimum", "x": at})
    lowest = min(float(row["low"] or 0.0) for row in rows if row["what"] == "curve")
    for n, i in enumerate(shape.factors):
        factor = analysis.factors[i]
        for place, text in ticks(factor):
            own = {"what": "tick", "x": place, "mean": lowest, "text": text}
            rows.append({"factor": factor.key, "rank": n, **own})
    layout = panel_layout(len(shape.factors), min(len(shape.factors), 2))
    return ChartData({"slices": rows}, {"mean": mean_text(analysis), **layout})


CHART = ResponseChart(
    34,
    "slices",
    "Slices at the optimum",
    "The predicted response along each factor with the others at the optimum (dashes); the bands "
    "hold for the whole region at once.",
    draw,
    of_analysis(slice_data),
)
