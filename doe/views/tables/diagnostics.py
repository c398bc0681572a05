"""What the checks of the model say, and what to do."""

from __future__ import annotations

from doe.analysis.analyze import Analysis
from doe.views.table import Column, Row, Table
from doe.views.tables import ResponseTable
from doe.views.words import advice_text


def findings_table(analysis: Analysis, top: int | None = None) -> Table:
    """The checks and what to do."""
    rows = tuple(
        Row(
            (f.check, "ok" if f.ok else "look", f.p, advice_text(f)),
            marks={} if f.ok else {"ok": "bad", "check": "strong"},
        )
        for f in analysis.diagnostics.findings[:top]
    )
    columns = (
        Column("check", "Check"),
        Column("ok", ""),
        Column("p", "p", "p"),
        Column("advice", "What to do"),
    )
    return Table(f"diagnostics {analysis.response}", "Diagnostics", columns, rows)


ENTRY = ResponseTable(40, findings_table)
