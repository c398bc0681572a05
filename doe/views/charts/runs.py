"""Charts of the runs themselves: learning curves and the timeline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import altair as alt

from doe.views.charts.model import ChartData, Drawing, Record
from doe.views.charts.shared import chosen_scale, hover, scale_type
from doe.views.charts.theme import CATEGORIES, GREY, HEIGHT, STATES, WIDTH

NAMED = 5
"""Configurations whose curves are coloured and named."""
MOST_STEPS = 40
"""Points of a curve; longer ones are thinned."""


def draw_curves() -> alt.TopLevelMixin:
    """Validation by epoch, a line per configuration; the best ones are coloured."""
    colour = alt.Color(
        "config:N",
        title=None,
        sort=None,
        scale=alt.Scale(range=list(CATEGORIES)),
        legend=alt.Legend(columns=2, symbolType="stroke", orient="bottom"),
    )
    x = alt.X("epoch:Q", title="Epoch", axis=alt.Axis(tickMinStep=1))
    y = alt.Y("value:Q", title="{value}", scale=chosen_scale())
    others = alt.Chart(alt.NamedData("others")).mark_line(color=GREY, opacity=0.35, strokeWidth=0.7)
    named = alt.Chart(alt.NamedData("named")).mark_line(strokeWidth=1.8)
    what = hover("config", "epoch", "value")
    return alt.layer(
        others.encode(x=x, y=y, detail="config:N", tooltip=what),
        named.encode(x=x, y=y, color=colour, tooltip=what),
    ).properties(width=WIDTH, height=HEIGHT - 20)


def curve_data(
    label: str, curves: Mapping[str, Sequence[tuple[float, float]]], ranked: Sequence[str]
) -> ChartData | None:
    """Curves of all configurations, the first of the ranked ones by name."""
    if not curves:
        return None
    best = [config for config in ranked if config in curves][:NAMED]
    rest = [config for config in curves if config not in best]
    return ChartData(
        {"named": _points(curves, best), "others": _points(curves, rest)},
        {"value": label, "scale": scale_type([y for curve in curves.values() for _, y in curve])},
    )


def _points(
    curves: Mapping[str, Sequence[tuple[float, float]]], configs: Sequence[str]
) -> list[Record]:
    return [
        {"config": config, "epoch": x, "value": y}
        for config in configs
        for x, y in thinned(curves[config])
    ]


def thinned(curve: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """At most `MOST_STEPS` points at even steps, the last one kept."""
    step = -(-len(curve) // MOST_STEPS)
    return list(curve)[::-1][:: max(step, 1)][::-1]


def draw_timeline() -> alt.TopLevelMixin:
    """When each slot ran what, coloured by how it ended."""
    bars = alt.Chart(alt.NamedData("runs")).mark_bar(height=9, stroke="white", strokeWidth=0.4)
    colour = alt.Color(
        "state:N",
        title=None,
        scale=alt.Scale(domain=list(STATES)[:3], range=list(STATES.values())[:3]),
    )
    drawn: alt.Chart = bars.encode(
        x=alt.X("start:Q", title="{elapsed}"),
        x2="end:Q",
        y=alt.Y("slot:N", title=None, sort=None),
        color=colour,
        tooltip=hover("run", "config", "slot", "state", "seconds"),
    )
    return drawn.properties(width=WIDTH, height=alt.Step(15))


def timeline_data(runs: Sequence[Record]) -> ChartData | None:
    """Runs with start and end in seconds since the first start, on a readable unit of time."""
    if not runs:
        return None
    last = max(float(run["end"] or 0) for run in runs)
    unit, size = next(
        ((unit, size) for unit, size in (("Hours", 3600.0), ("Minutes", 60.0)) if last > 2 * size),
        ("Seconds", 1.0),
    )
    rows: list[Record] = [
        run
        | {
            "start": float(run["start"] or 0) / size,
            "end": float(run["end"] or 0) / size,
            "seconds": float(run["end"] or 0) - float(run["start"] or 0),
        }
        for run in sorted(runs, key=lambda run: (str(run["slot"]), float(run["start"] or 0)))
    ]
    return ChartData({"runs": rows}, {"elapsed": f"{unit} since the first start"})


CURVES = Drawing(
    "learning-curves",
    "Learning curves",
    "Validation over the epochs, mean of the replicates; the best configurations are coloured.",
    draw_curves,
)
TIMELINE = Drawing("timeline", "Timeline", "Which slot ran what, and how it ended.", draw_timeline)
