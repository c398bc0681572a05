"""Configurations of factors with levels, the best first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from doe.views.table import Column, Row, Table
from doe.views.tables import ResponseTable
from doe.views.words import mean_word

if TYPE_CHECKING:
    from doe.analysis.levels.analyze import LevelAnalysis

OPTIMISTIC = "The best of many is optimistic: run it again with fresh seeds before relying on it."


def level_best_table(analysis: LevelAnalysis, top: int | None = None) -> Table | None:
    """Configurations by their levels, with Hsu's comparisons; None where no goal is known."""
    best = analysis.best
    if best is None:
        return None
    columns = (
        Column("config", " · ".join(factor.key for factor in analysis.factors)),
        Column("n", "n", "int"),
        Column("mean", mean_word(analysis), "num"),
        Column("among", "among the best"),
        Column("mcb_low", "Hsu low", "num", keep=False),
        Column("mcb_high", "Hsu high", "num", keep=False),
    )
    rows = tuple(
        Row(
            (
                *(c.config, c.n, c.mean),
                None if best.critical is None else c.among_best,
                *(c.mcb_low, c.mcb_high),
            ),
            marks={"config": "strong"} if c.among_best else {},
        )
        for c in best.cells[:top]
    )
    title = f"Configurations by {analysis.response}, the best first (goal {best.goal})"
    return Table(f"best {analysis.response}", title, columns, rows, (best.sentence, OPTIMISTIC))


ENTRY = ResponseTable(30, level_best_table, on_screen=6, files="further", levels=True)
