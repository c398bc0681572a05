"""The timeline of the runs."""

from __future__ import annotations

from doe.results.origins import run_spans
from doe.results.report import Report
from doe.views.charts import alt
from doe.views.charts.model import ChartData, Record, StudyChart
from doe.views.charts.shared import hover, word
from doe.views.charts.theme import STATES, WIDTH


def draw() -> alt.TopLevelMixin:
    """When each slot ran what, coloured by how it ended."""
    bars = alt.Chart(alt.NamedData("runs")).mark_bar(height=9, stroke="white", strokeWidth=0.4)
    colour = alt.Color(
        "state:N",
        title=None,
        scale=alt.Scale(domain=list(STATES)[:3], range=list(STATES.values())[:3]),
    )
    drawn = bars.encode(
        x=alt.X("start:Q", title="{elapsed}", scale=alt.Scale(nice=False)),
        x2="end:Q",
        y=alt.Y("slot:N", title=None, sort=None),
        color=colour,
        tooltip=hover("run", "config", "slot", "state", "seconds"),
    )
    return alt.layer(drawn, width=3 * WIDTH, height=word("height"))


def data(report: Report) -> ChartData | None:
    """Runs with start and end since the first start, on a readable unit of time."""
    spans = run_spans(report.subject.statuses)
    if not spans:
        return None
    last = max(span.end for span in spans)
    unit, size = next(
        ((unit, size) for unit, size in (("Hours", 3600.0), ("Minutes", 60.0)) if last > 2 * size),
        ("Seconds", 1.0),
    )
    rows: list[Record] = [
        {
            "run": span.run_id,
            "config": span.config,
            "slot": span.slot,
            "state": span.state,
            "start": span.start / size,
            "end": span.end / size,
            "seconds": span.end - span.start,
        }
        for span in sorted(spans, key=lambda span: (span.slot, span.start))
    ]
    height = 18 * len({span.slot for span in spans})
    return ChartData({"runs": rows}, {"elapsed": f"{unit} since the first start", "height": height})


CHART = StudyChart(
    20,
    "runs",
    "timeline",
    "Timeline",
    "Which slot ran what, and how it ended.",
    draw,
    data,
)
