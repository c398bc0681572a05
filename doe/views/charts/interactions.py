"""The strongest interactions as lines between means."""

from __future__ import annotations

import altair as alt

from doe.analysis.analyze import Analysis
from doe.terms import parse_term
from doe.views.charts.model import ChartData, Record, ResponseChart, of_analysis
from doe.views.charts.shared import coefficients, hover, mean_by_level
from doe.views.charts.theme import BLUE, ORANGE
from doe.views.words import quantity

PAIRS = 6
"""Interactions that get a panel."""


def draw() -> alt.TopLevelMixin:
    """Lines that are not parallel: the effect of one factor depends on the other."""
    base = mean_by_level().encode(
        color=alt.Color(
            "other:N",
            title="second factor",
            scale=alt.Scale(domain=["low", "high"], range=[BLUE, ORANGE]),
            legend=alt.Legend(symbolType="stroke", symbolSize=200),
        ),
        tooltip=hover("pair", "first", "second", "mean"),
    )
    dashes = alt.StrokeDash(
        "other:N",
        title="second factor",
        scale=alt.Scale(domain=["low", "high"], range=[[1, 0], [5, 3]]),
    )
    return (
        alt.layer(base.mark_line().encode(strokeDash=dashes), base.mark_circle(size=36))
        .properties(width=84, height=84)
        .facet(
            data=alt.NamedData("pairs"),
            facet=alt.Facet("pair:N", title=None, sort=alt.EncodingSortField("rank", op="min")),
            columns=3,
            spacing=14,
        )
    )


def interaction_data(analysis: Analysis) -> ChartData | None:
    """Means of the four combinations for the strongest two-factor interactions."""
    coef = coefficients(analysis)
    keys = [factor.key for factor in analysis.factors]
    levels = {factor.key: {-1: factor.low, 1: factor.high} for factor in analysis.factors}
    pairs = [e for e in analysis.effects if parse_term(e.term, keys).bit_count() == 2]
    pairs.sort(key=lambda effect: (-abs(effect.effect), effect.term))
    rows: list[Record] = []
    for rank, effect in enumerate(pairs[:PAIRS]):
        mask = parse_term(effect.term, keys)
        a, b = (key for i, key in enumerate(keys) if mask >> i & 1)
        for x, y in ((-1, -1), (1, -1), (-1, 1), (1, 1)):
            shift = x * coef.get(a, 0.0) + y * coef.get(b, 0.0) + x * y * effect.coef
            rows.append(
                {
                    "rank": rank,
                    "pair": f"{a} × {b}",
                    "level": "high" if x > 0 else "low",
                    "other": "high" if y > 0 else "low",
                    "first": f"{a} = {levels[a][x]}",
                    "second": f"{b} = {levels[b][y]}",
                    "mean": analysis.mean + shift,
                }
            )
    return ChartData({"pairs": rows}, {"mean": f"Mean {quantity(analysis)}"}) if rows else None


CHART = ResponseChart(
    40,
    "interactions",
    "Strongest interactions",
    "Lines that are not parallel: the effect of the first factor (x axis) depends on the "
    "level of the second (colour).",
    draw,
    of_analysis(interaction_data),
)
