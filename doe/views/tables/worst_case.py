"""Effects with the lost values anywhere in the observed range."""

from __future__ import annotations

from doe.analysis.analyze import Analysis
from doe.numbers import cell_text
from doe.views.table import Column, Row, Table
from doe.views.tables import ResponseTable


def bounds_table(analysis: Analysis, top: int | None = None) -> Table | None:
    """Effects with the lost values anywhere in the observed range."""
    missing = analysis.missing
    if missing is None or not missing.bounds:
        return None
    ranked = sorted(missing.bounds, key=lambda b: -abs(b.effect or 0.0))[:top]
    columns = (
        Column("term", "Term"),
        Column("effect", "Complete cases", "signed"),
        Column("low", "Worst case low", "signed"),
        Column("high", "high", "signed"),
        Column("sign", "Sign"),
    )
    rows = tuple(Row((b.term, b.effect, b.low, b.high, b.sign)) for b in ranked)
    note = (
        f"Every lost value anywhere between {cell_text(missing.bound_low, 'short')} and "
        f"{cell_text(missing.bound_high, 'short')}, the range of the values that are there."
    )
    title = "What the lost runs could change"
    return Table(f"worst case {analysis.response}", title, columns, rows, (note,))


ENTRY = ResponseTable(90, bounds_table, on_screen=6)
