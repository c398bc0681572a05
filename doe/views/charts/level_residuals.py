"""Residuals of factors with levels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from doe.views.charts import alt
from doe.views.charts.model import ChartData, Record, ResponseChart, of_levels
from doe.views.charts.shared import hover
from doe.views.charts.theme import HEIGHT, PLAIN, WIDTH
from doe.views.words import quantity

if TYPE_CHECKING:
    from doe.analysis.levels.analyze import LevelAnalysis


def draw() -> alt.TopLevelMixin:
    """Residual against fitted value, a point per run."""
    zero = alt.Chart(alt.NamedData("zero")).mark_rule(strokeDash=[4, 3]).encode(y="at:Q")
    points = alt.Chart(alt.NamedData("residuals")).mark_circle(size=30, color=PLAIN, opacity=0.75)
    return alt.layer(
        zero,
        points.encode(
            x=alt.X("fitted:Q", title="{fitted}", scale=alt.Scale(zero=False)),
            y=alt.Y("residual:Q", title="Residual"),
            tooltip=hover("fitted", "residual"),
        ),
    ).properties(width=WIDTH, height=HEIGHT)


def residuals_data(analysis: LevelAnalysis) -> ChartData | None:
    """None in a saturated design, where nothing is left."""
    if analysis.df_error == 0:
        return None
    rows: list[Record] = [
        {"fitted": fitted, "residual": residual}
        for fitted, residual in zip(analysis.fitted, analysis.residuals, strict=True)
    ]
    return ChartData(
        {"residuals": rows, "zero": [{"at": 0.0}]}, {"fitted": f"Fitted {quantity(analysis)}"}
    )


CHART = ResponseChart(
    61,
    "level-residuals",
    "Residuals against fitted values",
    "A funnel means that the spread grows with the mean: try the log scale.",
    draw,
    of_levels(residuals_data),
)
