"""Two responses against each other: configurations, the front, and what is uncertain of it."""

from __future__ import annotations

from typing import Any

from doe.analysis.goals import GoalMean, ParetoPoint
from doe.goals import parse_constraint
from doe.results.report import Report
from doe.views.charts import alt
from doe.views.charts.labels import config_labels
from doe.views.charts.model import ChartData, Record, StudyChart
from doe.views.charts.shared import FEW_LABELS, hover, word
from doe.views.charts.theme import GREY, HELPS, NEITHER, PLAIN, WIDTH
from doe.views.words import unit_text

NAME = "trade-off"
HEIGHT = 260
PLACES = {"front": "on the front", "undecided": "undecided", "dominated": "dominated"}
COLOURS = (HELPS, PLAIN, NEITHER)
SHAPES, SIZE = ("circle", "diamond", "square"), 60
FEW = 20
"""Configurations up to which intervals are drawn strongly."""
MOST_LABELS = 8
"""Configurations on the front that are named beside their points."""


def draw_trade_off() -> alt.TopLevelMixin:
    """Draw means with intervals by their place, seeds as faint dots, the front as a line."""
    few = alt.Axis(tickCount=8, labelExpr=word("x_ticks"))
    x = alt.X("x:Q", title="{x}", scale=_axis_scale("x"), axis=few)
    y = alt.Y("y:Q", title="{y}", scale=_axis_scale("y"), axis=alt.Axis(labelExpr=word("y_ticks")))
    names, legend = list(PLACES.values()), alt.Legend(symbolOpacity=1)
    colours = alt.Scale(domain=names, range=list(COLOURS))
    place = alt.Color("place:N", title=None, scale=colours, legend=legend)
    shape = alt.Shape("place:N", title=None, scale=alt.Scale(domain=names, range=list(SHAPES)))
    seeds = alt.Chart(alt.NamedData("seeds")).mark_circle(size=12, opacity=0.35, color=PLAIN)
    points = alt.Chart(alt.NamedData("points")).encode(x=x, y=y, color=place)
    across = points.mark_rule(opacity=word("faint")).encode(x="x_low:Q", x2="x_high:Q")
    up = points.mark_rule(opacity=word("faint")).encode(y="y_low:Q", y2="y_high:Q")
    front = alt.Chart(alt.NamedData("front"))
    line = front.mark_line(color=HELPS, strokeDash=[4, 3], strokeWidth=1, opacity=0.7)
    limits = alt.Chart(alt.NamedData("limits")).mark_rule(color=GREY, strokeDash=[2, 2])
    marks = points.mark_point(filled=True, opacity=1, size=SIZE).encode(
        shape=shape,
        tooltip=hover("config", "place", "x", "x_low", "x_high", "y", "y_low", "y_high"),
    )
    text = front.mark_text(align=word("side"), dx=word("dx"), dy=word("dy"), fontSize=11)
    drawn = alt.layer(
        seeds.encode(x=x, y=y, tooltip=hover("config", "x", "y")),
        line.encode(x=x, y=y, order="rank:Q"),
        limits.encode(x="x:Q"),
        limits.encode(y="y:Q"),
        across,
        up,
        marks,
        text.encode(x=x, y=y, text="label:N"),
    )
    return drawn.properties(width=WIDTH, height=HEIGHT)


def _axis_scale(axis: str) -> alt.Scale:
    """Return a scale from the least value to the largest; `zero` is not for log scales."""
    kind: Any = word(f"{axis}_scale")
    ends: Any = word(f"{axis}_ends")
    return alt.Scale(type=kind, domain=ends, nice=False, padding=10, clamp=True)


def pair_data(report: Report, across: str, up: str) -> ChartData | None:
    """Fill the chart for two responses; None where they were not weighed against each other."""
    trade = report.trade_off
    if trade is None or not {across, up} <= set(trade.responses):
        return None
    i, j = trade.responses.index(across), trade.responses.index(up)
    points = [_point(point, i, j) for point in trade.pareto]
    front = sorted(
        (record for record, p in zip(points, trade.pareto, strict=True) if p.estimated),
        key=lambda record: float(record["x"] or 0.0),
    )
    labels = config_labels([point.config for point in trade.pareto])
    certain = [str(record["config"]) for record in front if record["place"] == PLACES["front"]]
    named = certain if len(certain) <= MOST_LABELS else []
    subject = report.subject
    seeds: list[Record] = [
        {"config": run.config, "x": x, "y": y}
        for run, x, y in zip(subject.runs, subject.values[across], subject.values[up], strict=True)
        if x is not None and y is not None
    ]
    texts = dict.fromkeys(limit for best in trade.within_limits for limit in best.constraints)
    limits: list[Record] = [
        {{across: "x", up: "y"}[limit.response]: limit.limit}
        for limit in map(parse_constraint, texts)
        if limit.response in (across, up)
    ]
    line: list[Record] = [
        {
            "x": record["x"],
            "y": record["y"],
            "rank": rank,
            "label": labels[str(record["config"])] if record["config"] in named else "",
        }
        for rank, record in enumerate(front)
    ]
    return ChartData(
        {"points": points, "seeds": seeds, "front": line, "limits": limits},
        {
            "x": _title(report, across),
            "y": _title(report, up),
            **_axis([*points, *seeds], "x"),
            **_axis([*points, *seeds], "y"),
            "faint": 0.55 if len(points) <= FEW else 0.2,
            # Names stand where nothing is better.
            "side": "left" if trade.goals[i] == "max" else "right",
            "dx": 9 if trade.goals[i] == "max" else -9,
            "dy": -9 if trade.goals[j] == "max" else 13,
        },
    )


def _point(point: ParetoPoint, i: int, j: int) -> Record:
    return {
        "config": point.config,
        "place": PLACES[point.place],
        **_ends("x", point.means[i]),
        **_ends("y", point.means[j]),
    }


def _ends(axis: str, mean: GoalMean) -> Record:
    low = mean.mean if mean.ci_low is None else mean.ci_low
    high = mean.mean if mean.ci_high is None else mean.ci_high
    return {axis: mean.mean, f"{axis}_low": low, f"{axis}_high": high}


def _title(report: Report, response: str) -> str:
    responses = report.subject.responses
    return f"{responses.title_of(response)}{unit_text(responses.unit_of(response))}"


def _axis(records: list[Record], axis: str) -> dict[str, str | list[float]]:
    """Scale and ends: logarithmic where values are positive and span a factor of ten.

    An interval that reaches to zero has no end on such a scale, and ends with the picture.
    """
    values = [float(v) for r in records if (v := r[axis]) is not None] or [0.0, 1.0]
    ends = [float(v) for r in records for k, v in r.items() if k.startswith(axis) and v is not None]
    log = 0.0 < 10.0 * min(values) < max(values)
    least = 0.8 * min(values) if log else min([*values, *ends])
    return {
        f"{axis}_scale": "log" if log else "linear",
        f"{axis}_ends": [least, max([*values, *ends])],
        f"{axis}_ticks": FEW_LABELS if log else "datum.label",
    }


def trade_off_data(report: Report) -> ChartData | None:
    """Fill the chart for the first two responses that are weighed, the second across."""
    trade = report.trade_off
    return None if trade is None else pair_data(report, trade.responses[1], trade.responses[0])


TRADE_OFF = StudyChart(
    5,
    "files",
    NAME,
    "Trade-off and Pareto front",
    "Means with simultaneous intervals; small dots are single runs. On the front: no other "
    "configuration is better in both responses; dominated: some other is; undecided: the runs do "
    "not show which. The dashed line joins those that no other mean beats.",
    draw_trade_off,
    trade_off_data,
)

CHARTS = (TRADE_OFF,)
