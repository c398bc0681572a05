"""The analysis of variance."""

from __future__ import annotations

from doe.analysis.analyze import Analysis
from doe.errors import counted
from doe.numbers import cell_text
from doe.views.table import Column, Row, Table, starred
from doe.views.tables import ResponseTable
from doe.views.words import LOOKS, quantity

SHARED = "which replicates that share seeds do not average out; the line Error is not it."
"""What an error over seeds is, beside the line of the table that it is not."""


def anova_table(analysis: Analysis, top: int | None = None) -> Table:
    """Analysis of variance; beyond `top` terms the smallest are left to the full table."""
    rows = analysis.anova.rows
    fixed = {"Block", "Lack of fit", "Error", "Total"}
    terms = [row for row in rows if row.source not in fixed]
    kept = sorted(terms, key=lambda row: -row.ss)[:top]
    names = {row.source for row in kept} | fixed
    kind = "" if analysis.anova.balanced else ", type III"
    notes = [LOOKS] if analysis.looks else []
    if len(kept) < len(terms):
        notes.append(f"{len(terms) - len(kept)} terms with smaller sums of squares are not shown.")
    if analysis.anova.r2_adjusted is not None and analysis.anova.r2 is not None:
        predicted = analysis.anova.r2_predicted
        notes.append(
            f"R² {cell_text(analysis.anova.r2, 'fixed4')}, "
            f"adjusted {cell_text(analysis.anova.r2_adjusted, 'fixed4')}"
            + (f", predicted {cell_text(predicted, 'fixed4')}." if predicted is not None else ".")
        )
    if analysis.variation is not None:
        degrees, error = counted(analysis.df_error, "degree"), analysis.anova.error
        notes.append(f"F on {degrees} of freedom against the {error}, {SHARED}")
    if analysis.anova.blocking is not None:
        notes.append(analysis.anova.blocking.sentence)
    return Table(
        name=f"anova {analysis.response}",
        title=f"Analysis of variance of {quantity(analysis)}{kind}",
        columns=(
            Column("source", "Source"),
            Column("df", "df", "int"),
            Column("ss", "SS", "num"),
            Column("ms", "MS", "num"),
            Column("f", "F", "num"),
            Column("p", "p", "p"),
            Column("stars", "", "stars"),
        ),
        rows=tuple(
            Row(
                (row.source, row.df, row.ss, row.ms, row.f, row.p, starred(row.p)),
                style="total" if row.source == "Total" else "plain",
            )
            for row in rows
            if row.source in names
        ),
        notes=tuple(notes),
    )


ENTRY = ResponseTable(20, anova_table, on_screen=10, files="paper")
