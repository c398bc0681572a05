"""The Box-Cox profile of the response."""

from __future__ import annotations

import math

from doe.analysis.analyze import Analysis
from doe.views.charts import alt
from doe.views.charts.model import ChartData, Record, ResponseChart, of_analysis
from doe.views.charts.shared import hover
from doe.views.charts.theme import GREY, HEIGHT, PLAIN, WIDTH


def draw() -> alt.TopLevelMixin:
    """Profile log-likelihood of the exponent, its interval, and the best value."""
    profile = alt.Chart(alt.NamedData("profile")).mark_line(color=PLAIN)
    span = alt.Chart(alt.NamedData("span"))
    return alt.layer(
        span.mark_rect(color=PLAIN, opacity=0.13).encode(x="low:Q", x2="high:Q"),
        profile.encode(
            x=alt.X(
                "exponent:Q",
                title="Exponent λ (0 is the logarithm, 1 no transformation)",
                axis=alt.Axis(tickCount=5),
            ),
            y=alt.Y("loglik:Q", title="Log-likelihood", scale=alt.Scale(zero=False)),
            tooltip=hover("exponent", "loglik"),
        ),
        span.mark_rule(color=GREY).encode(x="exponent:Q"),
    ).properties(width=WIDTH, height=HEIGHT)


def box_cox_data(analysis: Analysis) -> ChartData | None:
    """The profile; None where the response is not positive or was transformed already."""
    profile = analysis.diagnostics.boxcox
    if profile is None:
        return None
    curve: list[Record] = [
        {"exponent": x, "loglik": y}
        for x, y in zip(profile.grid, profile.loglik, strict=True)
        if math.isfinite(y)
    ]
    span: list[Record] = [{"exponent": profile.exponent, "low": profile.low, "high": profile.high}]
    return ChartData({"profile": curve, "span": span})


CHART = ResponseChart(
    90,
    "box-cox",
    "Box–Cox profile",
    "The likeliest power of the response with its interval (shaded).",
    draw,
    of_analysis(box_cox_data),
    "checks",
)
