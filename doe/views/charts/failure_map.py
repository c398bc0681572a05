"""Which levels and pairs of levels lose runs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from doe.results.report import Report
from doe.results.subject import RunRecord
from doe.terms import level_text
from doe.views.charts import alt
from doe.views.charts.model import ChartData, Record, StudyChart
from doe.views.charts.shared import hover, word
from doe.views.charts.theme import DIVERGING, FULL, INK, PAPER, STATES, STEP

LOST = ("failed", "diverged")
MOST_LEVELS = 40
"""Levels of all factors up to which the map is drawn."""


def draw() -> alt.TopLevelMixin:
    """Levels by levels: the share of runs without a result; alone on the diagonal."""
    base = alt.Chart(alt.NamedData("pairs")).encode(
        x=alt.X(
            "across:N",
            title=None,
            sort=None,
            axis=alt.Axis(orient="top", labelAngle=-90, labelLimit=300),
        ),
        y=alt.Y("down:N", title=None, sort=None, axis=alt.Axis(labelLimit=300)),
        tooltip=hover("pair", "failed", "diverged", "runs"),
    )
    colour = alt.Color(
        "share:Q",
        scale=alt.Scale(range=[DIVERGING[2], STATES["failed"]], domain=[0, 1], interpolate="rgb"),
        legend=None,
    )
    ink = alt.condition("datum.share > 0.45", alt.value(PAPER), alt.value(INK))
    return alt.layer(
        base.mark_rect(stroke=None).encode(color=colour),
        base.mark_text(baseline="middle").encode(text="text:N", color=ink),
        width=FULL,
        height=word("height"),
    )


def data(report: Report) -> ChartData | None:
    """Runs that ended, by every level and every pair of levels; None where all went well."""
    subject = report.subject
    ended = [run for run in subject.runs if run.state in ("done", *LOST)]
    names = {factor.key: factor.name or factor.key for factor in subject.factors}
    levels = [(f.key, label) for f in subject.factors for label in f.labels]
    if all(run.state == "done" for run in ended) or len(levels) > MOST_LEVELS:
        return None
    rows: list[Record] = []
    for first, second in _pairs(levels):
        runs = [run for run in ended if _has(run, first) and _has(run, second)]
        if not runs:
            continue
        lost = {state: sum(run.state == state for run in runs) for state in LOST}
        parts = [f"{names[key]} {label}" for key, label in dict.fromkeys((first, second))]
        count = sum(lost.values())
        rows.append(
            {
                "down": f"{names[first[0]]} {first[1]}",
                "across": f"{names[second[0]]} {second[1]}",
                "pair": ", ".join(parts),
                "share": count / len(runs),
                "text": f"{count}/{len(runs)}" if count else "",
                "runs": len(runs),
                **lost,
            }
        )
    return ChartData({"pairs": rows}, {"height": (STEP + 8) * len(levels), "columns": len(levels)})


def _pairs(levels: list[tuple[str, str]]) -> Iterator[tuple[tuple[str, str], tuple[str, str]]]:
    """Every level with itself and with those of later factors."""
    for level in levels:
        yield level, level
    yield from ((a, b) for a, b in combinations(levels, 2) if a[0] != b[0])


def _has(run: RunRecord, level: tuple[str, str]) -> bool:
    return level_text(run.levels[level[0]]) == level[1]


CHART = StudyChart(
    8,
    "failures",
    "failure-map",
    "Where runs fail or diverge",
    "Runs without a result of those that ended, at each pair of levels, and on the diagonal at "
    "each level; the deeper, the larger the share.",
    draw,
    data,
)
