"""What the checks of the model say, and what to do."""

from __future__ import annotations

from doe.analysis.analyze import Analysis
from doe.analysis.diagnostics import Finding
from doe.views.table import Column, Row, Table
from doe.views.tables import ResponseTable
from doe.views.words import advice_text


def findings_table(analysis: Analysis, top: int | None = None) -> Table:
    """The checks and what to do."""
    rows = tuple(
        Row(
            (f.check, _verdict(f), f.p, advice_text(f)),
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


def _verdict(finding: Finding) -> str | None:
    """What a check says; nothing where it could not be made."""
    if not finding.ok:
        return "look"
    return None if finding.statistic is None else "ok"


ENTRY = ResponseTable(40, findings_table)
