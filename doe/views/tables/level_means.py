"""Means of the levels of each factor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from doe.views.table import Column, Row, Table
from doe.views.tables import ResponseTable
from doe.views.words import mean_word, unit_text

if TYPE_CHECKING:
    from doe.analysis.levels.analyze import LevelAnalysis


def level_means_table(analysis: LevelAnalysis, _top: int | None = None) -> Table:
    """The mean of each level with its interval, every cell of the other factors weighted alike."""
    word = mean_word(analysis)
    columns = (
        Column("factor", "Factor"),
        Column("level", "Level"),
        Column("mean", word, "num"),
        Column("ci_low", "low", "num"),
        Column("ci_high", "high", "num"),
        Column("n", "n", "int"),
        Column("se", "SE", "num", keep=False),
    )
    rows = tuple(
        Row((m.factor, m.level, m.mean, m.ci_low, m.ci_high, m.n, m.se)) for m in analysis.levels
    )
    partial = [m for m in analysis.levels if m.cells < m.of]
    notes = ["Every combination of the other factors weighted alike."]
    if partial:
        names = ", ".join(f"{m.factor} {m.level} ({m.cells} of {m.of})" for m in partial[:4])
        notes.append(f"Averaged over the combinations that ran: {names}.")
    title = f"{word} {analysis.response}{unit_text(analysis.unit)} at each level"
    return Table(f"levels {analysis.response}", title, columns, rows, tuple(notes))


ENTRY = ResponseTable(12, level_means_table, files="paper", levels=True)
