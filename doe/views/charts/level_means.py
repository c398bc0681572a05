"""Means of the levels of each factor with their intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from doe.views.charts import alt
from doe.views.charts.model import ChartData, Record, ResponseChart, of_levels
from doe.views.charts.shared import level_layout, mean_panels, mean_record
from doe.views.words import mean_text

if TYPE_CHECKING:
    from doe.analysis.levels.analyze import LevelAnalysis


def draw() -> alt.TopLevelMixin:
    """Means at the levels of each factor."""
    return mean_panels("levels")


def levels_data(analysis: LevelAnalysis) -> ChartData:
    """The mean of each level; one that no run has is left out."""
    rows: list[Record] = []
    names = {factor.key: factor.name for factor in analysis.factors}
    for m in analysis.levels:
        if m.mean is None:
            continue
        record: Record = {"factor": names[m.factor], "given": m.level, "grand": analysis.mean.mean}
        rank = list(names).index(m.factor)
        rows.append(record | {"rank": rank} | mean_record(m.mean, m.ci_low, m.ci_high))
    widest = max(len(factor.levels) for factor in analysis.factors)
    panels = len({mean.factor for mean in analysis.levels})
    return ChartData(
        {"levels": rows}, {"mean": mean_text(analysis), **level_layout(panels, widest)}
    )


CHART = ResponseChart(
    31,
    "level-means",
    "Level means",
    "Mean at each level of each factor with its interval, all combinations of the others weighted "
    "alike; dashed: the mean of the study.",
    draw,
    of_levels(levels_data),
)
