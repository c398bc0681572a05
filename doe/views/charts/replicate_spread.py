"""The spread between replicates against the mean."""

from __future__ import annotations

from doe.results.report import Report
from doe.views.charts import alt
from doe.views.charts.model import ChartData, Record, ResponseChart
from doe.views.charts.shared import chosen_scale, hover, scale_type
from doe.views.charts.theme import HEIGHT, PLAIN, WIDTH
from doe.views.words import unit_text


def draw() -> alt.TopLevelMixin:
    """Standard deviation between replicates against the mean, a point per configuration."""
    points = alt.Chart(alt.NamedData("spread")).mark_circle(size=34, color=PLAIN, opacity=0.75)
    drawn: alt.Chart = points.encode(
        x=alt.X("mean:Q", title="{mean}", scale=chosen_scale()),
        y=alt.Y("std:Q", title="{std}", scale=chosen_scale()),
        tooltip=hover("config", "mean", "std"),
    )
    return drawn.properties(width=WIDTH, height=HEIGHT)


def data(report: Report, response: str) -> ChartData | None:
    """Mean and standard deviation of each configuration that has two runs or more."""
    unit = unit_text(report.subject.responses.unit_of(response))
    spreads = {c.config: c.spreads[response] for c in report.subject.cells if response in c.spreads}
    rows: list[Record] = [
        {"config": config, "mean": spread.mean, "std": spread.std}
        for config, spread in spreads.items()
        if spread.std is not None
    ]
    words = {
        "mean": f"Mean {response}{unit}",
        "std": f"Replicate std{unit}",
        "scale": scale_type([row["mean"] for row in rows] + [row["std"] for row in rows]),
    }
    return ChartData({"spread": rows}, words) if rows else None


CHART = ResponseChart(
    80,
    "replicate-spread",
    "Spread between replicates",
    "Configurations high up differ most from seed to seed.",
    draw,
    data,
    "checks",
)
