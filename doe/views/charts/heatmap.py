"""Effects over all responses in one picture."""

from __future__ import annotations

from doe.analysis.pvalues import significant
from doe.results.report import Report
from doe.views.charts import alt
from doe.views.charts.model import ChartData, Record, StudyChart
from doe.views.charts.shared import hover, word
from doe.views.charts.short import term_labels
from doe.views.charts.theme import DIVERGING, INK, PAPER
from doe.views.words import helps

HEAT_TERMS = 24
"""Terms in the heatmap."""
LARGEST = 8
"""|t| from which on the colour does not deepen."""


def draw() -> alt.TopLevelMixin:
    """Terms × responses; colour is t, towards better or worse."""
    base = alt.Chart(alt.NamedData("cells")).encode(
        x=alt.X("response:N", title=None, sort=None, axis=alt.Axis(labelAngle=-40, orient="top")),
        y=alt.Y("short:N", title=None, sort=None),
        tooltip=hover("term", "response", "effect", "t", "p", "p_bh"),
    )
    colour = alt.Color(
        "towards:Q",
        title="t, worse to better",
        scale=alt.Scale(
            domain=[-LARGEST, LARGEST], clamp=True, range=list(DIVERGING), interpolate="rgb"
        ),
        legend=alt.Legend(orient="bottom", gradientLength=160, gradientThickness=8, tickCount=5),
    )
    marks = base.transform_filter("datum.mark != ''").mark_text(fontSize=11, baseline="middle")
    # On a deep colour a mark is pale.
    ink = alt.condition(f"abs(datum.towards) > {0.75 * LARGEST}", alt.value(PAPER), alt.value(INK))
    return alt.layer(
        base.mark_rect(stroke=None).encode(color=colour),
        marks.encode(text="mark:N", color=ink),
        width=alt.Step(30),
        height=word("height"),
    )


def data(report: Report) -> ChartData | None:
    """The strongest terms over all responses; a mark where the false discovery rate is met."""
    family = report.effects_by_response
    if family is None or len(report.analyses) < 2:
        return None
    rows = [row for row in family.rows if None not in row.effects]  # others have no direction
    short = term_labels([row.term for row in rows[:HEAT_TERMS]], report.subject.keys)
    cells: list[Record] = []
    for row in rows[:HEAT_TERMS]:
        for response, effect, t, p, p_bh in zip(
            family.responses, row.effects, row.t, row.p, row.p_bh, strict=True
        ):
            goal = report.analyses[response].goal
            towards = None if t is None or goal is None else abs(t) * (1 if helps(t, goal) else -1)
            cells.append(
                {
                    "term": row.term,
                    "short": short[row.term],
                    "response": response,
                    "effect": effect,
                    "t": t,
                    "towards": towards,
                    "p": p,
                    "p_bh": p_bh,
                    "mark": ("▲" if (towards or 0) > 0 else "▼")
                    if significant(p_bh, report.options.alpha)
                    else "",
                }
            )
    return ChartData({"cells": cells}, {"height": 14 * len(short)}) if cells else None


CHART = StudyChart(
    10,
    "all",
    "heatmap",
    "Effects over all responses",
    "Blue is for the better, orange for the worse; the deeper, the larger t, up to 8. "
    "▲ (better) and ▼ (worse) pass the false discovery rate over all terms and responses.",
    draw,
    data,
)
