"""What changes the spread between replicates."""

from __future__ import annotations

from doe.analysis.analyze import Analysis
from doe.analysis.estimators.dispersion import Dispersion
from doe.views.table import Column, Row, Table, starred
from doe.views.tables import ResponseTable


def dispersion_table(analysis: Analysis, top: int | None = None) -> Table | None:
    """Effects on ln s², ranked."""
    dispersion = analysis.get(Dispersion)
    if dispersion is None:
        return None
    ranked = sorted(dispersion.effects, key=lambda e: -abs(e.effect))[:top]
    columns = (
        Column("term", "Term"),
        Column("effect", "Effect on ln s²", "signed"),
        Column("ratio", "Variance ratio", "num"),
        Column("p", "p", "p"),
        Column("stars", "", "stars"),
        Column("p_holm", "p Holm", "p"),
    )
    rows = tuple(Row((e.term, e.effect, e.ratio, e.p, starred(e.p), e.p_holm)) for e in ranked)
    notes = [dispersion.sentence]
    if dispersion.skipped:
        notes.append(f"Without a spread, and left out: {', '.join(dispersion.skipped[:6])}.")
    between = "between replicates" if dispersion.replicates > 1 else "of the residuals"
    title = f"Dispersion: what changes the spread {between}"
    return Table(f"dispersion {analysis.response}", title, columns, rows, tuple(notes))


ENTRY = ResponseTable(70, dispersion_table, on_screen=6)
