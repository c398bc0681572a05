"""Configurations of factors with levels, the best first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from doe.views.table import Table
from doe.views.tables import ResponseTable
from doe.views.tables.best import ranking

if TYPE_CHECKING:
    from doe.analysis.levels.analyze import LevelAnalysis

OPTIMISTIC = "The best of many is optimistic: run it again with fresh seeds before relying on it."


def level_best_table(analysis: LevelAnalysis, top: int | None = None) -> Table | None:
    """Configurations by their levels, with Hsu's comparisons; None where no goal is known."""
    best = analysis.best
    if best is None:
        return None
    columns, rows = ranking(analysis, best, top)
    title = f"Configurations by {analysis.response}, the best first (goal {best.goal})"
    return Table(f"best {analysis.response}", title, columns, rows, (best.sentence, OPTIMISTIC))


ENTRY = ResponseTable(30, level_best_table, on_screen=6, files="further", levels=True)
