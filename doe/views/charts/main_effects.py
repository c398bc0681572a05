"""Main effects as lines between the means of levels."""

from __future__ import annotations

from doe.analysis.analyze import Analysis
from doe.views.charts import alt
from doe.views.charts.model import ChartData, Record, ResponseChart, of_analysis
from doe.views.charts.shared import (
    level_layout,
    mean_panels,
    mean_record,
    panel_layout,
    staggered,
)
from doe.views.words import mean_text

FACTORS = 6
"""Two-level factors in a row, where their names and levels are short; else half as many."""
SHORT = 4
"""Letters of a name or a level that is short."""


def draw() -> alt.TopLevelMixin:
    """Means at the levels of each factor."""
    return mean_panels("main")


def main_data(analysis: Analysis) -> ChartData | None:
    """The mean of each level; one that no run has is left out."""
    keys = list(dict.fromkeys(mean.factor for mean in analysis.levels))
    if not keys:
        return None
    texts = [text for f in analysis.factors for text in (f.key, *f.labels)]
    short = max(map(len, texts)) <= SHORT
    layout = panel_layout(len(keys), FACTORS if short else FACTORS // 2)
    if not analysis.two_level:
        layout = level_layout(len(keys), max(len(factor.levels) for factor in analysis.factors))
    shown = {
        (factor.key, label): text
        for factor in analysis.factors
        for label, text in zip(factor.labels, staggered(factor.labels, layout["room"]), strict=True)
    }
    rows: list[Record] = []
    for m in analysis.levels:
        if m.mean is not None:
            record: Record = {
                "factor": m.factor,
                "given": shown[m.factor, m.level],
                "grand": analysis.mean.mean,
            }
            rank = {"rank": keys.index(m.factor)}
            rows.append(record | rank | mean_record(m.mean, m.ci_low, m.ci_high))
    if not rows:
        return None
    return ChartData({"main": rows}, {"mean": mean_text(analysis), **layout})


CHART = ResponseChart(
    30,
    "main-effects",
    "Main effects",
    "Mean at each level of each factor with its own 95 % interval, all combinations of the others "
    "weighted alike; dashed: the mean of the study.",
    draw,
    of_analysis(main_data),
)
