"""Learning curves of the configurations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from doe.results.report import Report
from doe.views.charts import alt
from doe.views.charts.model import ChartData, Record, ResponseChart
from doe.views.charts.shared import chosen_scale, hover, scale_type, word
from doe.views.charts.short import config_labels
from doe.views.charts.theme import BEST, GREY, HEIGHT, WIDTH
from doe.views.words import unit_text

DASHES = ([1, 0], [6, 2], [2, 2], [8, 2, 2, 2], [4, 3])
NAMED = len(BEST)
"""Configurations whose curves are coloured and named."""
SHORT = 18
"""Letters of a configuration up to which two stand in a line of the legend."""
MOST_STEPS = 40
"""Points of a curve; longer ones are thinned."""


def draw() -> alt.TopLevelMixin:
    """A response by epoch or step, a line per configuration; the best ones are coloured."""
    colour = alt.Color(
        "short:N",
        title=None,
        sort=None,
        scale=alt.Scale(range=list(BEST)),
        legend=alt.Legend(
            columns=word("columns"), symbolType="stroke", orient="bottom", labelLimit=WIDTH - 30
        ),
    )
    dashes = alt.StrokeDash(
        "short:N", title=None, sort=None, scale=alt.Scale(range=[list(d) for d in DASHES])
    )
    x = alt.X("epoch:Q", title="Epoch or step", axis=alt.Axis(tickMinStep=1))
    y = alt.Y("value:Q", title="{value}", scale=chosen_scale())
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
    """The first step of each curve, shown where it is the only one and a line shows nothing.

    Those of longer curves stay, unseen: a scale is made of the data of every layer, and a layer
    without any makes none.
    """
    begun = curves.transform_joinaggregate(
        steps="count()", first="min(epoch)", groupby=["config"]
    ).transform_filter("datum.epoch == datum.first")
    return begun.encode(opacity=alt.condition("datum.steps == 1", alt.value(1), alt.value(0)))


def data(report: Report, response: str) -> ChartData | None:
    """Curves of all configurations, the best ones by name; None without two steps or a best one."""
    curves, analysis = report.curves.get(response, {}), report.analyses.get(response)
    if not any(len(curve) > 1 for curve in curves.values()):
        return None
    ranked = () if analysis is None or analysis.best is None else analysis.best.cells
    best = [cell.config for cell in ranked if cell.config in curves][:NAMED]
    if not best:
        return None
    rest = [config for config in curves if config not in best]
    label = f"{response}{unit_text(report.subject.responses.unit_of(response))}"
    short = config_labels(best)
    columns = 2 if max(map(len, short.values()), default=0) <= SHORT else 1
    return ChartData(
        {"named": _points(curves, short), "others": _points(curves, {c: c for c in rest})},
        {
            "value": label,
            "scale": scale_type([y for curve in curves.values() for _, y in curve]),
            "columns": columns,
            "height": HEIGHT - 12 * -(-len(best) // columns) + 11,
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
    """At most so many points at even steps, the last one kept."""
    step = -(-len(curve) // most)
    return list(curve)[::-1][:: max(step, 1)][::-1]


CHART = ResponseChart(
    70,
    "learning-curves",
    "Learning curves",
    "What runs reported on the way, mean of the replicates; the best configurations are blue.",
    draw,
    data,
)
