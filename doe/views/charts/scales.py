"""Shares of the variation on the raw scale and on the log scale."""

from __future__ import annotations

from doe.results.report import Report
from doe.views.charts import alt
from doe.views.charts.model import ChartData, Record, ResponseChart
from doe.views.charts.shared import hover
from doe.views.charts.theme import FIT, FULL, HEIGHT, PAPER, PLAIN

TERMS = 12
"""Terms in the chart, those with the largest share on either scale."""
REST = "all else"


def draw() -> alt.TopLevelMixin:
    """A line from the share on the raw scale to that on the log scale, term by term."""
    base = alt.Chart(alt.NamedData("shares")).encode(
        y=alt.Y("term:N", sort=None, title=None),
        tooltip=hover("term", "raw", "log"),
    )
    ends = alt.Chart(alt.NamedData("ends")).encode(
        y=alt.Y("term:N", sort=None, title=None),
        x=alt.X("share:Q", title="Share of the variation in %", axis=alt.Axis(titleAnchor="end")),
        fill=alt.Fill(
            "scale:N",
            title=None,
            scale=alt.Scale(domain=["raw", "log"], range=[PAPER, PLAIN]),
            legend=alt.Legend(symbolStrokeColor=PLAIN, symbolStrokeWidth=1.5),
        ),
        tooltip=hover("term", "scale", "share"),
    )
    return alt.layer(
        base.mark_rule(color=PLAIN, strokeWidth=1.4).encode(x="raw:Q", x2="log:Q"),
        ends.mark_point(shape="circle", size=50, stroke=PLAIN, strokeWidth=1.5, opacity=1),
    ).properties(width=FULL, height=HEIGHT, autosize=FIT)


def data(report: Report, response: str) -> ChartData | None:
    """The terms with the largest shares, and what they and all others leave."""
    analysis = report.analyses.get(response)
    both = None if analysis is None else analysis.scales
    if both is None:
        return None
    ranked = sorted(both.terms, key=lambda t: -max(t.percent, t.log_percent))[:TERMS]
    rows: list[Record] = [{"term": t.term, "raw": t.percent, "log": t.log_percent} for t in ranked]
    shown = [sum(t.percent for t in ranked), sum(t.log_percent for t in ranked)]
    rows.append({"term": REST, "raw": 100.0 - shown[0], "log": 100.0 - shown[1]})
    ends: list[Record] = [
        {"term": row["term"], "scale": scale, "share": row[scale]}
        for row in rows
        for scale in ("raw", "log")
    ]
    return ChartData({"shares": rows, "ends": ends})


CHART = ResponseChart(
    85,
    "scales",
    "Raw and log side by side",
    "What each term takes of the variation on the raw scale (open) and on the log scale (filled). "
    "Interactions that shrink on the log scale are factors that multiply.",
    draw,
    data,
    "checks",
)
