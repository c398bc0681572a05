"""Main effects as lines between means."""

from __future__ import annotations

from doe.analysis.analyze import Analysis
from doe.analysis.estimators.means import Means
from doe.views.charts import alt
from doe.views.charts.model import ChartData, Record, ResponseChart, of_analysis
from doe.views.charts.shared import hover, mean_by_level, mean_record, panel_layout, word
from doe.views.charts.theme import PLAIN
from doe.views.words import mean_word, unit_text

FACTORS = 6
"""Factors in a row, where their names and levels are short; else half as many."""
SHORT = 6
"""Letters of a name or a level that is short."""


def draw() -> alt.TopLevelMixin:
    """Means at the two levels of each factor with intervals, side by side on one scale."""
    base = mean_by_level(word("room")).encode(
        tooltip=[*hover("factor", "given", "mean", "ci_low", "ci_high")],
    )
    grand = alt.Chart().mark_rule(strokeDash=[2, 3]).encode(y="grand:Q")
    interval = base.mark_rule(strokeWidth=1.4, color=PLAIN).encode(y="ci_low:Q", y2="ci_high:Q")
    line = base.mark_line(color=PLAIN)
    layers = (grand, line, interval, base.mark_circle(color=PLAIN, size=40, opacity=1))
    panels = alt.layer(*layers, width=word("width"), height=word("height")).facet(
        data=alt.NamedData("main"),
        facet=alt.Facet("factor:N", title=None, sort=alt.EncodingSortField("rank", op="min")),
        columns=word("columns"),
        spacing=8,
    )
    drawn: alt.FacetChart = panels.resolve_scale(x="independent").properties(title="{mean}")
    return drawn


def main_data(analysis: Analysis) -> ChartData | None:
    """Means at low and high on the response scale."""
    means = analysis.get(Means)
    if means is None or not means.main:
        return None
    levels = {factor.key: (factor.low, factor.high) for factor in analysis.factors}
    rows: list[Record] = []
    for rank, factor in enumerate(means.main):
        for given, mean in zip(levels[factor.factor], (factor.low, factor.high), strict=True):
            record: Record = {"factor": factor.factor, "given": given, "grand": means.grand}
            rows.append(record | {"rank": rank} | mean_record(mean.mean, mean.ci_low, mean.ci_high))
    mean_text = f"{mean_word(analysis)} {analysis.response}{unit_text(analysis.unit)}"
    short = max(len(text) for f in analysis.factors for text in (f.key, f.low, f.high)) <= SHORT
    layout = panel_layout(len(means.main), FACTORS if short else FACTORS // 2)
    return ChartData({"main": rows}, {"mean": mean_text, **layout})


CHART = ResponseChart(
    30,
    "main-effects",
    "Main effects",
    "Mean at either level of each factor with its interval; dashed: the mean of the study.",
    draw,
    of_analysis(main_data),
)
