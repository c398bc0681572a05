"""Main effects as lines between means."""

from __future__ import annotations

from doe.analysis.analyze import Analysis
from doe.analysis.estimators.means import Means
from doe.views.charts import alt
from doe.views.charts.model import ChartData, Record, ResponseChart, of_analysis
from doe.views.charts.shared import mean_panels, mean_record, panel_layout
from doe.views.words import mean_text

FACTORS = 6
"""Factors in a row, where their names and levels are short; else half as many."""
SHORT = 6
"""Letters of a name or a level that is short."""


def draw() -> alt.TopLevelMixin:
    """Means at the two levels of each factor."""
    return mean_panels("main")


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
    short = max(len(text) for f in analysis.factors for text in (f.key, f.low, f.high)) <= SHORT
    layout = panel_layout(len(means.main), FACTORS if short else FACTORS // 2)
    return ChartData({"main": rows}, {"mean": mean_text(analysis), **layout})


CHART = ResponseChart(
    30,
    "main-effects",
    "Main effects",
    "Mean at either level of each factor with its interval; dashed: the mean of the study.",
    draw,
    of_analysis(main_data),
)
