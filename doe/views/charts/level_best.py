"""The best configurations of factors with levels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from doe.views.charts.cell_means import CELLS, cell_records, cells_word, draw
from doe.views.charts.model import ChartData, ResponseChart, of_levels
from doe.views.words import unit_text

if TYPE_CHECKING:
    from doe.analysis.levels.analyze import LevelAnalysis


def best_data(analysis: LevelAnalysis) -> ChartData | None:
    """Configurations by their levels; None where no goal is known."""
    if analysis.best is None:
        return None
    names = " · ".join(factor.key for factor in analysis.factors)
    word = cells_word(analysis.best.cells, analysis)
    label = f"{word} {analysis.response}{unit_text(analysis.unit)} by {names}"
    cells = analysis.best.cells[:CELLS]
    shorts = [cell.config for cell in cells]
    return ChartData(cell_records(cells, shorts, analysis.best.critical is None), {"mean": label})


CHART = ResponseChart(
    51,
    "level-best",
    "Best configurations by level",
    "Means with intervals, the best first. Those in blue, over the band, cannot be told from the "
    "best (Hsu).",
    draw,
    of_levels(best_data),
)
