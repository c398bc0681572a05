"""Effects of the terms of two-level factors, beside factors with more levels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from doe.analysis.pvalues import significant
from doe.views.table import Column, Row, Table, starred
from doe.views.tables import ResponseTable
from doe.views.words import MARKS, helps, quantity

if TYPE_CHECKING:
    from doe.analysis.levels.analyze import LevelAnalysis


def level_effects_table(analysis: LevelAnalysis, top: int | None = None) -> Table | None:
    """Mean at the second level minus mean at the first; None where no factor has two."""
    if not analysis.effects:
        return None
    ratio = {e.term: e for e in analysis.response_scale}
    columns = (
        Column("term", "Term"),
        Column("effect", "Effect", "signed"),
        Column("ci_low", "low", "num"),
        Column("ci_high", "high", "num"),
        *([Column("ratio", "Ratio", "num")] if ratio else []),
        Column("p", "p", "p"),
        Column("stars", "", "stars"),
        Column("p_holm", "p Holm", "p", keep=False),
        Column("t", "t", "num", keep=False),
        Column("se", "SE", "num", keep=False),
    )
    rows = []
    for e in sorted(analysis.effects, key=lambda e: -abs(e.effect))[:top]:
        strong = significant(e.p, analysis.alpha)
        mark = MARKS[helps(e.effect, analysis.goal)]
        back = [ratio[e.term].value] if ratio else []
        rows.append(
            Row(
                (
                    *(e.term, e.effect, e.ci_low, e.ci_high, *back),
                    *(e.p, starred(e.p), e.p_holm, e.t, e.se),
                ),
                marks={"term": "strong", "effect": mark} if strong else {},
            )
        )
    title = f"Effects of two-level terms on {quantity(analysis)}"
    notes = ("Effect = mean at the second level − mean at the first.",)
    return Table(f"effects {analysis.response}", title, columns, tuple(rows), notes)


ENTRY = ResponseTable(15, level_effects_table, on_screen=10, files="paper", levels=True)
