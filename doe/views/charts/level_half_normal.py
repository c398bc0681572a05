"""Half-normal plot over single-degree contrasts of factors with levels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from doe.views.charts import alt
from doe.views.charts.half_normal import drawing, plot_data
from doe.views.charts.model import ChartData, Record, ResponseChart, of_levels
from doe.views.charts.theme import NEITHER, PLAIN
from doe.views.words import quantity

if TYPE_CHECKING:
    from doe.analysis.levels.analyze import LevelAnalysis

OUTSIDE, INSIDE = "beyond ME", "within ME"


def draw() -> alt.TopLevelMixin:
    """The plot of two-level effects, without a direction: a contrast of levels has none."""
    scale = alt.Scale(domain=[OUTSIDE, INSIDE], range=[PLAIN, NEITHER])
    return drawing(alt.Color("direction:N", title=None, scale=scale))


def contrasts_data(analysis: LevelAnalysis) -> ChartData | None:
    """Every degree of freedom as one contrast on the scale of a two-level effect."""
    lenth = analysis.lenth
    if lenth is None:
        return None
    contrasts = {contrast.label: contrast for contrast in analysis.half_normal.contrasts}
    points: list[Record] = [
        {
            "term": point.term,
            "effect": contrasts[point.term].value,
            "p": contrasts[point.term].p,
            "p_holm": None,
            "magnitude": point.magnitude,
            "quantile": point.quantile,
            "direction": OUTSIDE if point.magnitude > lenth.me else INSIDE,
        }
        for point in lenth.points
    ]
    same = {contrast: contrast for contrast in contrasts}
    return plot_data(points, lenth, f"|contrast| on {quantity(analysis)}", same)


CHART = ResponseChart(
    11,
    "level-half-normal",
    "Half-normal plot of contrasts",
    "Each degree of freedom is one contrast of levels; those off the line and beyond ME stand out "
    "from the noise.",
    draw,
    of_levels(contrasts_data),
)
