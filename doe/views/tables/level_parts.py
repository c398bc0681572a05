"""Linear and quadratic parts of numeric factors, and the curvature of centre runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from doe.views.table import Column, Row, Table, starred
from doe.views.tables import ResponseTable
from doe.views.words import quantity

if TYPE_CHECKING:
    from doe.analysis.levels.analyze import LevelAnalysis


def parts_table(analysis: LevelAnalysis, top: int | None = None) -> Table | None:
    """Along which line or curve numeric factors act; None where there is none of three levels."""
    curved = {part.factor for part in analysis.parts if part.part != "linear"}
    parts = [part for part in analysis.parts if part.factor in curved]
    if not parts and analysis.curvature is None:
        return None
    columns = (
        Column("factor", "Factor"),
        Column("part", "Part"),
        Column("df", "df", "int"),
        Column("estimate", "Estimate", "signed"),
        Column("ci_low", "low", "num"),
        Column("ci_high", "high", "num"),
        Column("f", "F", "num", keep=False),
        Column("p", "p", "p"),
        Column("stars", "", "stars"),
    )
    scales = {factor.key: factor.scale for factor in analysis.factors}
    rows = []
    for part in parts:
        name = f"{part.part} on {scales[part.factor]} scale"
        figures = (part.estimate, part.ci_low, part.ci_high, part.f, part.p, starred(part.p))
        rows.append(Row((part.factor, name, part.df, *figures)))
    notes = []
    if parts:
        notes.append(
            "Linear: change along the line from the least to the greatest level. Quadratic: how "
            "far the middle of the scale stands above the ends."
        )
    if (bend := analysis.curvature) is not None:
        figures = (bend.difference, bend.ci_low, bend.ci_high, bend.f, bend.p, starred(bend.p))
        rows.append(Row(("all", "curvature at the centre", 1, *figures)))
        notes.append(bend.sentence)
    title = f"Lines and curves: {quantity(analysis)}"
    return Table(f"parts {analysis.response}", title, columns, tuple(rows), tuple(notes))


ENTRY = ResponseTable(14, parts_table, files="further", levels=True)
