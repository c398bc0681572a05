"""Differences between levels with Tukey's intervals."""

from __future__ import annotations

from doe.analysis.analyze import Analysis
from doe.analysis.pvalues import significant
from doe.views.charts import alt
from doe.views.charts.model import ChartData, Record, ResponseChart, of_analysis
from doe.views.charts.shared import hover, word
from doe.views.charts.theme import FIT, FULL, NEITHER, PLAIN, STEP
from doe.views.words import effect_on

PAIRS = 24
"""Pairs in the chart."""
GROUPS = ("differ", "not shown to differ")


def draw() -> alt.TopLevelMixin:
    """A pair in each line, with its interval against the line of no difference."""
    base = alt.Chart(alt.NamedData("pairs")).encode(
        y=alt.Y("pair:N", title=None, sort=None, axis=alt.Axis(labelLimit=200)),
        tooltip=hover("pair", "difference", "ci_low", "ci_high", "p_tukey"),
    )
    colour = alt.Color(
        "group:N", title=None, scale=alt.Scale(domain=list(GROUPS), range=[PLAIN, NEITHER])
    )
    none = alt.Chart(alt.NamedData("none")).mark_rule(strokeDash=[4, 3]).encode(x="at:Q")
    return alt.layer(
        none,
        base.mark_rule(strokeWidth=1.4).encode(
            x=alt.X("ci_low:Q", title="{difference}"), x2="ci_high:Q", color=colour
        ),
        base.mark_circle(size=34, opacity=1).encode(x="difference:Q", color=colour),
        width=FULL,
        height=word("height"),
        autosize=FIT,
    )


def pairs_data(analysis: Analysis) -> ChartData | None:
    """All pairs of levels of factors with more than two; ratios where the scale is log."""
    ratio = analysis.transform.scale.ratio
    several = {factor.key for factor in analysis.factors if len(factor.levels) > 2}
    rows: list[Record] = []
    for d in [d for d in analysis.differences if d.factor in several][:PAIRS]:
        value, low, high = d.difference, d.ci_low, d.ci_high
        if ratio:
            value, low, high = d.ratio, d.ratio_low, d.ratio_high
        if value is None or low is None or high is None:
            continue
        rows.append(
            {
                "pair": f"{d.factor}: {d.level} {'/' if ratio else '−'} {d.other}",
                "difference": value,
                "ci_low": low,
                "ci_high": high,
                "p_tukey": d.p_tukey,
                "group": GROUPS[0] if significant(d.p_tukey, analysis.alpha) else GROUPS[1],
            }
        )
    if not rows:
        return None
    kind = f"Ratio: {ratio}, " if ratio else "Difference in "
    name = analysis.response if ratio else effect_on(analysis)
    none: Record = {"at": 1.0 if ratio else 0.0}
    return ChartData(
        {"pairs": rows, "none": [none]},
        {"difference": kind + name, "height": STEP * max(len(rows), 3)},
    )


CHART = ResponseChart(
    33,
    "level-pairs",
    "Pairs of levels",
    "Intervals hold for all pairs of a factor at once (Tukey); those off the dashed line differ.",
    draw,
    of_analysis(pairs_data),
)
