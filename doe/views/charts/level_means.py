"""Means of the levels of each factor with their intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from doe.views.charts import alt
from doe.views.charts.model import ChartData, Record, ResponseChart, of_levels
from doe.views.charts.shared import hover, level_layout, mean_by_level, mean_record, word
from doe.views.charts.theme import PLAIN
from doe.views.words import mean_word, unit_text

if TYPE_CHECKING:
    from doe.analysis.levels.analyze import LevelAnalysis


def draw() -> alt.TopLevelMixin:
    """Means at the levels of each factor, side by side on one scale."""
    base = mean_by_level(word("room")).encode(
        tooltip=hover("factor", "given", "mean", "ci_low", "ci_high")
    )
    grand = alt.Chart().mark_rule(strokeDash=[2, 3]).encode(y="grand:Q")
    interval = base.mark_rule(strokeWidth=1.4, color=PLAIN).encode(y="ci_low:Q", y2="ci_high:Q")
    drawn: alt.FacetChart = (
        alt.layer(
            grand,
            base.mark_line(color=PLAIN),
            interval,
            base.mark_circle(color=PLAIN, size=40, opacity=1),
            width=word("width"),
            height=word("height"),
        )
        .facet(
            data=alt.NamedData("levels"),
            facet=alt.Facet("factor:N", title=None, sort=alt.EncodingSortField("rank", op="min")),
            columns=word("columns"),
            spacing=6,
        )
        .resolve_scale(x="independent")
        .properties(title="{mean}")
    )
    return drawn


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
    label = f"{mean_word(analysis)} {analysis.response}{unit_text(analysis.unit)}"
    widest = max(len(factor.levels) for factor in analysis.factors)
    panels = len({mean.factor for mean in analysis.levels})
    return ChartData({"levels": rows}, {"mean": label, **level_layout(panels, widest)})


CHART = ResponseChart(
    31,
    "level-means",
    "Level means",
    "Mean at each level of each factor with its interval, all combinations of the others weighted "
    "alike; dashed: the mean of the study.",
    draw,
    of_levels(levels_data),
)
