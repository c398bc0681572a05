"""Differences between the levels of each factor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from doe.analysis.pvalues import significant
from doe.numbers import confidence
from doe.views.table import Column, Row, Table, starred
from doe.views.tables import ResponseTable
from doe.views.words import quantity

if TYPE_CHECKING:
    from doe.analysis.levels.analyze import LevelAnalysis


def differences_table(analysis: LevelAnalysis, top: int | None = None) -> Table:
    """Every pair of a factor's levels with Tukey's intervals; ratios where the scale is log."""
    ratio = analysis.transform.scale.ratio
    value = "Ratio" if ratio else "Difference"
    columns = (
        Column("factor", "Factor"),
        Column("pair", "Levels"),
        Column("value", value, "num" if ratio else "signed"),
        Column("low", "low", "num"),
        Column("high", "high", "num"),
        Column("p_tukey", "p Tukey", "p"),
        Column("stars", "", "stars"),
        Column("p", "p alone", "p", keep=False),
        Column("se", "SE", "num", keep=False),
    )
    rows = []
    for d in analysis.differences[:top]:
        figures = (d.difference, d.ci_low, d.ci_high)
        if ratio:
            figures = (d.ratio, d.ratio_low, d.ratio_high)
        pair = f"{d.level} {'/' if ratio else '−'} {d.other}"
        rows.append(
            Row(
                (d.factor, pair, *figures, d.p_tukey, starred(d.p_tukey), d.p, d.se),
                marks={"pair": "strong"} if significant(d.p_tukey, analysis.alpha) else {},
            )
        )
    level = confidence(analysis.alpha)
    notes = [f"Intervals hold for all pairs of a factor at once ({level}, Tukey)."]
    if ratio:
        notes.append("Ratio: geometric mean of the first level over that of the second.")
    if any(d.cells < d.of for d in analysis.differences):
        notes.append("Levels that never met in some combinations are compared over the others.")
    if top is not None and len(analysis.differences) > top:
        notes.append(f"{len(analysis.differences) - top} further pairs with --json.")
    title = f"Pairs of levels: {quantity(analysis)}"
    return Table(f"pairs {analysis.response}", title, columns, tuple(rows), tuple(notes))


ENTRY = ResponseTable(13, differences_table, on_screen=15, files="further", levels=True)
