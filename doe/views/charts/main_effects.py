"""Main effects as lines between means."""

from __future__ import annotations

import altair as alt

from doe.analysis.analyze import Analysis
from doe.views.charts.model import ChartData, Record, ResponseChart, of_analysis
from doe.views.charts.shared import coefficients, hover, mean_by_level
from doe.views.charts.theme import BLUE
from doe.views.words import quantity


def draw() -> alt.TopLevelMixin:
    """Means at the two levels of each factor, side by side on one scale."""
    base = mean_by_level().encode(
        tooltip=[*hover("factor"), alt.Tooltip("given:N", title="level"), *hover("mean")],
    )
    grand = alt.Chart().mark_rule(strokeDash=[2, 3]).encode(y="grand:Q")
    return (
        alt.layer(grand, base.mark_line(color=BLUE), base.mark_circle(color=BLUE, size=40))
        .properties(width=44, height=150)
        .facet(
            data=alt.NamedData("main"),
            column=alt.Column("factor:N", title=None, sort=None),
            spacing=6,
        )
    )


def main_data(analysis: Analysis) -> ChartData:
    """Means at low and high: the mean of the study minus and plus the coefficient."""
    coef = coefficients(analysis)
    rows: list[Record] = []
    for factor in analysis.factors:
        for level, given, sign in (("low", factor.low, -1), ("high", factor.high, 1)):
            if factor.key in coef:
                rows.append(
                    {
                        "factor": factor.key,
                        "level": level,
                        "given": given,
                        "mean": analysis.mean + sign * coef[factor.key],
                        "grand": analysis.mean,
                    }
                )
    return ChartData({"main": rows}, {"mean": f"Mean {quantity(analysis)}"})


CHART = ResponseChart(
    30,
    "main-effects",
    "Main effects",
    "Mean at the low and high level of each factor; the dashed line is the mean of the study.",
    draw,
    of_analysis(main_data),
)
