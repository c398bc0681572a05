"""What the effects of a fraction stand for."""

from __future__ import annotations

from doe.analysis.analyze import Analysis
from doe.views.table import Column, Row, Table
from doe.views.tables import ResponseTable


def chains_table(analysis: Analysis, top: int | None = None) -> Table | None:
    """What each effect of a fraction stands for, sign and all."""
    chains = [chain.partition(" = ") for chain in analysis.aliases]
    if not chains:
        return None
    rows = tuple(Row((term, "= " + others)) for term, _, others in chains[:top])
    notes = ["An effect is that of its term plus or minus those beside it, by their signs."]
    if len(chains) > len(rows):
        notes.append(f"{len(chains) - len(rows)} further chains with --json.")
    columns = (Column("term", "Estimated"), Column("aliases", "Cannot be told from"))
    return Table(f"aliases {analysis.response}", "Alias chains", columns, rows, tuple(notes))


ENTRY = ResponseTable(15, chains_table, on_screen=20)
