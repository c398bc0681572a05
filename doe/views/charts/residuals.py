"""Residuals against fitted values, normal quantiles and run order."""

from __future__ import annotations

from doe.analysis.analyze import Analysis
from doe.views.charts import alt
from doe.views.charts.model import ChartData, Record, ResponseChart, of_analysis
from doe.views.charts.shared import hover
from doe.views.charts.theme import GREY, PLAIN

PANEL = (126, 100)


def draw() -> alt.TopLevelMixin:
    """Four panels: against fitted values, normal quantiles and run order, and their histogram."""
    width, height = PANEL
    base = alt.Chart(alt.NamedData("residuals")).properties(width=width, height=height)
    zero = alt.Chart(alt.NamedData("zero")).mark_rule(strokeDash=[3, 3]).encode(y="residual:Q")
    axis = alt.Axis(tickCount=5)
    y = alt.Y("residual:Q", title="Residual", axis=axis)
    tooltip = hover("run", "config", "residual", "fitted", "studentized")

    def points(field: str, title: str) -> alt.Chart:
        x = alt.X(f"{field}:Q", title=title, scale=alt.Scale(zero=False), axis=axis)
        dots = base.mark_circle(size=14, color=PLAIN, opacity=0.6)
        drawn: alt.Chart = dots.encode(x=x, y=y, tooltip=tooltip)
        return drawn

    line = alt.Chart(alt.NamedData("normal")).mark_line(color=GREY, strokeWidth=1)
    binned = base.transform_bin(["from", "to"], "residual", bin=alt.Bin(maxbins=24))
    histogram = binned.mark_bar(color=PLAIN, opacity=0.8).encode(
        x=alt.X("from:Q", title="Residual", scale=alt.Scale(zero=False), axis=axis),
        x2="to:Q",
        y=alt.Y("count()", title="Runs", axis=axis),
    )
    return alt.concat(
        alt.layer(zero, points("fitted", "Fitted")),
        alt.layer(line.encode(x="normal:Q", y="residual:Q"), points("normal", "Normal quantile")),
        alt.layer(zero, points("order", "Run order")),
        histogram,
        columns=2,
        spacing=14,
    )


def residual_data(analysis: Analysis) -> ChartData | None:
    """Residuals in run order; None in a saturated design, which has none."""
    residuals = analysis.diagnostics.residuals
    if not residuals:
        return None
    rows: list[Record] = [
        {
            "run": r.run_id,
            "config": r.config,
            "order": r.run_order,
            "fitted": r.fitted,
            "residual": r.residual,
            "normal": r.normal_quantile,
            "studentized": r.studentized,
        }
        for r in residuals
    ]
    ends = [min(r.normal_quantile for r in residuals), max(r.normal_quantile for r in residuals)]
    slope = analysis.diagnostics.spread or 0.0
    normal: list[Record] = [{"normal": x, "residual": slope * x} for x in ends]
    return ChartData({"residuals": rows, "zero": [{"residual": 0.0}], "normal": normal})


CHART = ResponseChart(
    60,
    "residuals",
    "Residuals",
    "A funnel against the fitted values asks for a transformation; a bent normal plot for robust "
    "methods; a trend over run order for a look at the machines.",
    draw,
    of_analysis(residual_data),
    "checks",
)
