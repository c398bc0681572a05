"""Lost runs by factor level."""

from __future__ import annotations

from doe.analysis.analyze import Analysis
from doe.errors import listed
from doe.views.table import Column, Row, Table, starred
from doe.views.tables import ResponseTable


def rates_table(analysis: Analysis, top: int | None = None) -> Table | None:
    """Lost runs by factor level."""
    missing = analysis.missing
    if missing is None or not missing.rates:
        return None
    columns = (
        Column("factor", "Factor"),
        Column("low", "lost at low"),
        Column("high", "lost at high"),
        Column("p_exact", "p exact", "p"),
        Column("log_odds", "log odds", "signed"),
        Column("p_firth", "p Firth", "p"),
        Column("stars", "", "stars"),
        Column("p_holm", "p Holm", "p"),
    )
    rows = tuple(
        Row(
            (
                r.factor,
                f"{r.low_lost} of {r.low_n}",
                f"{r.high_lost} of {r.high_n}",
                *(r.p_exact, r.log_odds, r.p_firth, starred(r.p_firth), r.p_holm),
            )
        )
        for r in missing.rates[:top]
    )
    runs = [f"{run} ({state})" for run, state in zip(missing.runs, missing.states, strict=True)]
    notes = (missing.sentence, f"Without a value: {listed(runs, 6)}.")
    return Table(f"lost {analysis.response}", "Lost runs by factor", columns, rows, notes)


ENTRY = ResponseTable(80, rates_table)
