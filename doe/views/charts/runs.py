"""The course of the study: learning curves, estimates by replicate, the timeline, the design."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from doe.design.efficiency import design_efficiency
from doe.design.runs import Design
from doe.numbers import drawn
from doe.results.origins import run_spans
from doe.results.report import Report
from doe.terms import BETWEEN
from doe.views.charts import alt
from doe.views.charts.labels import CONFIG, in_lines
from doe.views.charts.model import ChartData, Record, ResponseChart, StudyChart
from doe.views.charts.shared import (
    LINES,
    chosen_scale,
    hover,
    panel_layout,
    panels,
    scale_words,
    word,
)
from doe.views.charts.theme import BEST, GREY, HEIGHT, PLAIN, STATES, WIDTH
from doe.views.words import quantity, unit_text

DASHES = ([1, 0], [6, 2], [2, 2], [8, 2, 2, 2], [4, 4])
NAMED = len(BEST)
"""Configurations whose curves are coloured and named."""
SHORT = 15
"""Letters of a configuration up to which the legend has two per line."""
LEGEND_LINE = 26
"""Pixels of a line in the legend, so that its dashes are seen."""
MOST_STEPS = 40
"""Points of a curve; longer ones are thinned."""


def draw_learning_curves() -> alt.TopLevelMixin:
    """Return a response by epoch or step, a line per configuration; the best ones are coloured."""
    colour = alt.Color(
        "short:N",
        title=None,
        sort=None,
        scale=alt.Scale(range=list(BEST)),
        legend=alt.Legend(
            columns=word("columns"),
            symbolType="stroke",
            symbolSize=LEGEND_LINE**2,
            symbolStrokeWidth=2,
            rowPadding=word("apart"),
            orient="bottom",
            labelLimit=WIDTH,
            labelExpr=LINES,
        ),
    )
    dashes = alt.StrokeDash(
        "short:N", title=None, sort=None, scale=alt.Scale(range=[list(d) for d in DASHES])
    )
    x = alt.X("epoch:Q", title="Epoch or step", axis=alt.Axis(tickMinStep=1))
    y = alt.Y("value:Q", title="{value}", **chosen_scale())
    tooltip = hover("config", "epoch", "value")
    others = alt.Chart(alt.NamedData("others")).encode(x=x, y=y, tooltip=tooltip)
    named = alt.Chart(alt.NamedData("named")).encode(
        x=x, y=y, color=colour, strokeDash=dashes, tooltip=tooltip
    )
    return alt.layer(
        others.mark_line(color=GREY, opacity=0.35, strokeWidth=0.7).encode(detail="config:N"),
        named.mark_line(strokeWidth=1.8),
        _single_steps(others).mark_point(filled=False, size=16, color=GREY),
        _single_steps(named).mark_point(filled=False, size=30),
        width=WIDTH,
        height=word("height"),
    )


def _single_steps(curves: alt.Chart) -> alt.Chart:
    """Return the first step of each curve, shown where it is the only one and a line shows nothing.

    Those of longer curves stay, unseen: a scale is made of the data of every layer, and a layer
    without any makes none.
    """
    begun = curves.transform_joinaggregate(
        steps="count()", first="min(epoch)", groupby=["config"]
    ).transform_filter("datum.epoch == datum.first")
    return begun.encode(opacity=alt.condition("datum.steps == 1", alt.value(1), alt.value(0)))


def curves_data(report: Report, response: str) -> ChartData | None:
    """Curves of all configurations, the best ones by name; None without two steps or a best one."""
    curves, analysis = report.curves.get(response, {}), report.analyses.get(response)
    if not any(len(curve) > 1 for curve in curves.values()):
        return None
    ranked = () if analysis is None or analysis.best is None else analysis.best.cells
    best = [cell.config for cell in ranked if cell.config in curves][:NAMED]
    if not best:
        return None
    rest = [config for config in curves if config not in best] or best  # no layer may be empty
    label = f"{response}{unit_text(report.subject.responses.unit_of(response))}"
    short = {config: in_lines(config, CONFIG, BETWEEN) for config in best}
    lines = sum(text.count("\n") + 1 for text in short.values())
    columns = 2 if max(map(len, short.values()), default=0) <= SHORT else 1
    return ChartData(
        {"named": _points(curves, short), "others": _points(curves, {c: c for c in rest})},
        {
            "value": label,
            **scale_words([y for curve in curves.values() for _, y in curve]),
            "columns": columns,
            "apart": 4 if lines > len(best) else -10,  # symbols are as tall as they are wide
            "height": HEIGHT - 12 * -(-lines // columns) + 11,
        },
    )


def _points(
    curves: Mapping[str, Sequence[tuple[float, float]]], short: Mapping[str, str]
) -> list[Record]:
    return [
        {"config": config, "short": text, "epoch": x, "value": y}
        for config, text in short.items()
        for x, y in thinned(curves[config])
    ]


def thinned(
    curve: Sequence[tuple[float, float]], most: int = MOST_STEPS
) -> list[tuple[float, float]]:
    """Return at most so many points at even steps, the last one kept."""
    step = -(-len(curve) // most)
    return list(curve)[::-1][:: max(step, 1)][::-1]


LEARNING_CURVES = ResponseChart(
    70,
    "learning-curves",
    "Learning curves",
    "Progress reported by the runs, mean of the replicates; the best configurations are blue.",
    draw_learning_curves,
    curves_data,
)


# Estimates under way ------------------------------------------------------------------------------


LEAST_PANEL = 90
"""Pixels of a panel."""


def draw_settling() -> alt.TopLevelMixin:
    """Return an effect with its band against the replicates so far, a panel for each factor."""
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
    )


def settling_data(report: Report) -> ChartData | None:
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
    title = f"Effect on {quantity(analysis)} after 1, 2, … replicates"
    layout = panel_layout(shown, LEAST_PANEL)
    return ChartData({"effects": rows}, {"mean": title, **layout}) if rows else None


SETTLING = StudyChart(
    6,
    "first",
    "settling",
    "Estimates by number of replicates",
    "Each main effect with its interval after one, two and more replicates of a study that is "
    "under way.",
    draw_settling,
    settling_data,
)


# Timeline -----------------------------------------------------------------------------------------


def draw_timeline() -> alt.TopLevelMixin:
    """Draw when each slot ran what, coloured by how it ended."""
    bars = alt.Chart(alt.NamedData("runs")).mark_bar(height=9, stroke="white", strokeWidth=0.4)
    colour = alt.Color(
        "state:N",
        title=None,
        scale=alt.Scale(domain=list(STATES)[:3], range=list(STATES.values())[:3]),
    )
    drawn = bars.encode(
        x=alt.X(
            "start:Q", title="{elapsed}", scale=alt.Scale(nice=False), axis=alt.Axis(tickCount=10)
        ),
        x2="end:Q",
        y=alt.Y("slot:N", title=None, sort=None),
        color=colour,
        tooltip=hover("run", "config", "slot", "state", "seconds"),
    )
    return alt.layer(drawn, width=3 * WIDTH, height=word("height"))


def timeline_data(report: Report) -> ChartData | None:
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


TIMELINE = StudyChart(
    20,
    "runs",
    "timeline",
    "Timeline",
    "Which slot ran what, and how it ended.",
    draw_timeline,
    timeline_data,
)


# Prediction variance ------------------------------------------------------------------------------


def draw_prediction_variance() -> alt.TopLevelMixin:
    """Draw the variance of the predicted mean against the share of the region that stays below
    it.
    """
    curve = alt.Chart(alt.NamedData("variance")).mark_line(color=PLAIN)
    made: alt.TopLevelMixin = curve.encode(
        x=alt.X("share:Q", title="Share of the region", axis=alt.Axis(format="%", tickCount=5)),
        y=alt.Y("variance:Q", title="Prediction variance per variance of a run"),
    ).properties(width=WIDTH, height=HEIGHT)
    return made


def variance_data(report: Report) -> ChartData | None:
    """Return the curve of a design with a model of its own; None of a factorial and of a table."""
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


PREDICTION_VARIANCE = StudyChart(
    30,
    "runs",
    "prediction-variance",
    "Prediction variance of the design",
    "Uncertainty of predictions over the region, known before any run: flat and low is good; a "
    "steep end is a corner that the design hardly covers.",
    draw_prediction_variance,
    variance_data,
)

CHARTS = (LEARNING_CURVES, SETTLING, TIMELINE, PREDICTION_VARIANCE)
