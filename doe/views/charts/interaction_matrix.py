"""All interactions of two factors at a glance, shaded by strength."""

from __future__ import annotations

import math

from doe.analysis.analyze import Analysis
from doe.analysis.pvalues import significant
from doe.terms import factors_in, order
from doe.views.charts import alt
from doe.views.charts.model import ChartData, Record, ResponseChart, of_analysis
from doe.views.charts.shared import hover, word
from doe.views.charts.theme import DIVERGING, FULL, INK, LEVELS, PAPER, STEP

FEWEST, MOST = 3, 24
"""Factors of which a matrix is drawn."""
STRONG = 0.6
"""Share of the largest strength above which a cell is dark."""


def draw() -> alt.TopLevelMixin:
    """Factors by factors; the deeper the colour, the stronger; a dot where significant."""
    base = alt.Chart(alt.NamedData("pairs")).encode(
        x=alt.X(
            "across:N",
            title=None,
            sort=None,
            axis=alt.Axis(orient="top", labelAngle=-90, labelLimit=300, ticks=False),
        ),
        y=alt.Y("down:N", title=None, sort=None, axis=alt.Axis(labelLimit=300, ticks=False)),
        tooltip=hover("pair", "percent", "p", "p_holm"),
    )
    colour = alt.Color(
        "strength:Q",
        scale=alt.Scale(range=[DIVERGING[2], LEVELS[1]], domainMin=0, interpolate="rgb"),
        legend=None,
    )
    ink = alt.condition(f"datum.share > {STRONG}", alt.value(PAPER), alt.value(INK))
    return alt.layer(
        base.mark_rect(stroke=None).encode(color=colour),
        base.mark_text(baseline="middle").encode(text="mark:N", color=ink),
        width=FULL,
        height=word("height"),
    )


def matrix_data(analysis: Analysis) -> ChartData | None:
    """The strength √F of every pair, without an error the root of its mean square."""
    names = [factor.name or factor.key for factor in analysis.factors]
    tests = [t for t in analysis.tests if order(t.mask) == 2 and t.mask.bit_count() == 2]
    if not tests or not FEWEST <= len(names) <= MOST:
        return None
    strengths = [math.sqrt(max(t.ss / t.df if t.f is None else t.f, 0.0)) for t in tests]
    largest = max(strengths) or 1.0
    rows: list[Record] = []
    for test, strength in zip(tests, strengths, strict=True):
        first, second = factors_in(test.mask)
        shown: Record = {
            "down": names[first],
            "across": names[second],
            "pair": f"{names[first]} × {names[second]}",
            "strength": strength,
            "share": strength / largest,
            "percent": test.percent,
            "p": test.p,
            "p_holm": test.p_holm,
            "mark": "●" if significant(test.p_holm, analysis.alpha) else "",
        }
        rows.append(shown)
    rows.sort(key=lambda row: names.index(str(row["down"])))
    return ChartData({"pairs": rows}, {"height": 2 * STEP * (len(names) - 1)})


CHART = ResponseChart(
    2,
    "interaction-matrix",
    "Interactions",
    "The deeper a field, the stronger the two factors interact (√F); a dot: significant after "
    "Holm's adjustment.",
    draw,
    of_analysis(matrix_data),
)
