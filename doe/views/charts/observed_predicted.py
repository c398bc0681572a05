"""Observed means against what the model predicts."""

from __future__ import annotations

from doe.results.report import Report
from doe.views.charts import alt
from doe.views.charts.model import ChartData, Record, ResponseChart
from doe.views.charts.shared import chosen_scale, hover, scale_type
from doe.views.charts.theme import GREY, HEIGHT, PLAIN, WIDTH
from doe.views.words import unit_text


def draw() -> alt.TopLevelMixin:
    """A dot for each configuration; on the line both are equal."""
    x = alt.X("predicted:Q", title="Predicted", scale=chosen_scale())
    y = alt.Y("observed:Q", title="{observed}", scale=chosen_scale())
    points = alt.Chart(alt.NamedData("configs"))
    return alt.layer(
        alt.Chart(alt.NamedData("equal")).mark_line(color=GREY, strokeWidth=1).encode(x=x, y=y),
        points.mark_circle(size=34, color=PLAIN, opacity=0.8).encode(
            x=x, y=y, tooltip=hover("config", "predicted", "observed", "runs")
        ),
    ).properties(width=WIDTH, height=HEIGHT)


def data(report: Report, response: str) -> ChartData | None:
    """The configurations that have run and have a prediction."""
    analysis = report.analyses.get(response)
    rows: list[Record] = [
        {"config": at.config, "predicted": at.mean, "observed": at.observed, "runs": at.n}
        for at in (() if analysis is None else analysis.predictions)
        if at.mean is not None and at.observed is not None
    ]
    if len(rows) < 2:
        return None
    values = [float(row[key] or 0.0) for row in rows for key in ("predicted", "observed")]
    equal: list[Record] = [
        {"predicted": end, "observed": end} for end in (min(values), max(values))
    ]
    unit = unit_text(report.subject.responses.unit_of(response))
    words = {"observed": f"Observed mean {response}{unit}", "scale": scale_type(values)}
    return ChartData({"configs": rows, "equal": equal}, words)


CHART = ResponseChart(
    55,
    "observed-predicted",
    "Observed against predicted",
    "Each dot is a configuration: its mean against the prediction of the model of significant "
    "effects; on the line both are equal.",
    draw,
    data,
)
