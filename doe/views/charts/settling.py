"""Estimates of a study under way, replicate by replicate."""

from __future__ import annotations

from doe.results.report import Report
from doe.views.charts import alt
from doe.views.charts.model import ChartData, Record, StudyChart
from doe.views.charts.shared import hover, panels
from doe.views.charts.theme import PLAIN
from doe.views.words import quantity

HEIGHT = 110
LABELS = 60
"""Room left of the panels for the values, in pixels."""


def draw() -> alt.TopLevelMixin:
    """An effect with its band against the replicates so far, a panel for each factor."""
    base = alt.Chart().encode(
        x=alt.X("replicates:O", title=None, axis=alt.Axis(labelAngle=0)),
        tooltip=hover("row", "effect", "ci_low", "ci_high"),
    )
    y = alt.Y("effect:Q", title=None)
    return panels(
        "effects",
        "row",
        alt.Chart().mark_rule().encode(y="mean(none):Q"),
        base.mark_area(opacity=0.25, color=PLAIN).encode(y="ci_low:Q", y2="ci_high:Q"),
        base.mark_line(color=PLAIN).encode(y=y),
        base.mark_circle(color=PLAIN, size=36, opacity=1).encode(y=y),
        height=HEIGHT,
    )


def data(report: Report) -> ChartData | None:
    """Main effects on the first response that a report begins with."""
    names = [
        name for name in report.headline_responses if name in {s.response for s in report.settling}
    ]
    if not names:
        return None
    analysis = report.analyses[names[0]]
    factors = {factor.key: factor.name or factor.key for factor in analysis.factors}
    rows: list[Record] = [
        {
            "row": factors[s.factor],
            "rank": list(factors).index(s.factor),
            "replicates": s.replicates,
            "effect": s.effect,
            "ci_low": s.effect if s.ci_low is None else s.ci_low,
            "ci_high": s.effect if s.ci_high is None else s.ci_high,
            "none": 0.0,
        }
        for s in report.settling
        if s.response == names[0]
    ]
    shown = len({row["row"] for row in rows})
    columns = shown if shown < 5 else min(-(-shown // 2), 5)
    title = f"Effect on {quantity(analysis)} after 1, 2, … replicates"
    words: dict[str, str | int | list[str] | list[float]] = {
        "mean": title,
        "columns": columns,
        "width": 150,
        "labels": LABELS,
        "legend": 4,
    }
    return ChartData({"effects": rows}, words) if rows else None


CHART = StudyChart(
    6,
    "first",
    "settling",
    "How the estimates settle",
    "Each main effect with its interval after one, two and more replicates of a study that is "
    "under way.",
    draw,
    data,
)
