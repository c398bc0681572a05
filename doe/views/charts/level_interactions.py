"""Interactions of factors with levels as lines between means."""

from __future__ import annotations

from typing import TYPE_CHECKING

from doe.terms import parse_term
from doe.views.charts import alt
from doe.views.charts.model import ChartData, Record, ResponseChart, of_levels
from doe.views.charts.shared import hover, level_layout, mean_by_level, panels
from doe.views.charts.theme import SEVERAL
from doe.views.words import mean_text

if TYPE_CHECKING:
    from doe.analysis.levels.analyze import LevelAnalysis

SHOWN = 4
"""Interactions in the chart, those with the smallest p."""


def draw() -> alt.TopLevelMixin:
    """Means along the levels of one factor, a line for each level of the other."""
    base = mean_by_level().encode(
        color=alt.Color(
            "second:N",
            title=None,
            sort=None,
            scale=alt.Scale(range=list(SEVERAL)),
            legend=alt.Legend(orient="bottom", columns=3),
        ),
        tooltip=hover("pair", "given", "second", "mean", "ci_low", "ci_high"),
    )
    return panels("cells", "pair", base.mark_line(), base.mark_circle(size=40, opacity=1))


def interactions_data(analysis: LevelAnalysis) -> ChartData | None:
    """Means of the combinations of two factors' levels; the factor with more levels across."""
    keys = [factor.key for factor in analysis.factors]
    p = {test.term: test.p for test in analysis.tests}
    terms = list(dict.fromkeys(m.factor for m in analysis.combinations))
    shown = sorted(terms, key=lambda term: (p.get(term) is None, p.get(term) or 0.0))[:SHOWN]
    rows: list[Record] = []
    for term in shown:
        mask = parse_term(term, keys)
        pair = [factor for i, factor in enumerate(analysis.factors) if mask >> i & 1]
        turned = len(pair[1].levels) > len(pair[0].levels)
        for m in analysis.combinations:
            if m.factor != term or m.mean is None:
                continue
            at = m.at[::-1] if turned else m.at
            across, other = pair[::-1] if turned else pair
            rows.append(
                {
                    "pair": f"{across.name} × {other.name}",
                    "given": across.labels[at[0]],
                    "second": f"{other.key} {other.labels[at[1]]}",
                    "rank": shown.index(term),
                    "mean": m.mean,
                    "ci_low": m.ci_low,
                    "ci_high": m.ci_high,
                }
            )
    if not rows:
        return None
    widest = max(len(factor.levels) for factor in analysis.factors)
    return ChartData(
        {"cells": rows}, {"mean": mean_text(analysis), **level_layout(len(shown), widest)}
    )


CHART = ResponseChart(
    32,
    "level-interactions",
    "Interactions of levels",
    "Lines that are not parallel mean that what one factor does depends on the other.",
    draw,
    of_levels(interactions_data),
)
