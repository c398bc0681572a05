"""The prediction variance of a design over its region, known before anything runs."""

from __future__ import annotations

from doe.design.efficiency import design_efficiency
from doe.design.runs import Design
from doe.numbers import drawn
from doe.results.report import Report
from doe.views.charts import alt
from doe.views.charts.model import ChartData, StudyChart
from doe.views.charts.theme import HEIGHT, PLAIN, WIDTH


def draw() -> alt.TopLevelMixin:
    """Variance of the predicted mean against the share of the region that stays below it."""
    curve = alt.Chart(alt.NamedData("variance")).mark_line(color=PLAIN)
    made: alt.TopLevelMixin = curve.encode(
        x=alt.X("share:Q", title="Share of the region", axis=alt.Axis(format="%", tickCount=5)),
        y=alt.Y("variance:Q", title="Prediction variance per variance of a run"),
    ).properties(width=WIDTH, height=HEIGHT)
    return made


def data(report: Report) -> ChartData | None:
    """The curve of a design with a model of its own; None of a factorial and of a table."""
    state = report.subject.state
    if state is None or not (state.study.design or state.study.augment):
        return None
    runs = tuple(status.run for status in state.statuses)
    profile = design_efficiency(state.study, Design(state.study.keys, runs)).profile
    if not profile:
        return None
    last = len(profile) - 1
    rows = [{"share": drawn(n / last), "variance": drawn(v)} for n, v in enumerate(profile)]
    return ChartData({"variance": [dict(row) for row in rows]})


CHART = StudyChart(
    30,
    "runs",
    "prediction-variance",
    "Prediction variance of the design",
    "How uncertain predictions are over the region, known before anything runs: flat and low is "
    "good; a steep end is a corner that the design hardly sees.",
    draw,
    data,
)
