"""Terms by responses."""

from __future__ import annotations

from collections.abc import Sequence

from doe.analysis.analyze import Analysis
from doe.analysis.effects_by_response import EffectsByResponse
from doe.analysis.pvalues import significant
from doe.results.report import Report
from doe.terms import order
from doe.views.table import Column, Mark, Row, Table
from doe.views.tables import MOST_ROWS, StudyTables
from doe.views.words import MARKS, helps


def by_response_table(
    table: EffectsByResponse, analyses: Sequence[Analysis], top: int | None = None
) -> Table:
    """Terms by responses, those that stand out most first.

    Where a term has several degrees of freedom, and so no single effect, adjusted p stand in the
    place of effects.
    """
    single = all(effect is not None for row in table.rows for effect in row.effects)
    alpha = analyses[0].alpha
    rows = []
    for row in table.rows[:top]:
        marks: dict[str, Mark] = {}
        for a, effect, p in zip(analyses, row.effects, row.p_bh, strict=True):
            if significant(p, alpha):
                directed = single and effect is not None and order(row.mask) == 1
                helping = helps(effect or 0.0, a.goal) if directed else None
                marks |= {"term": "strong", a.response: MARKS[helping]}
        rows.append(Row((row.term, *(row.effects if single else row.p_bh)), marks=marks))
    columns = (
        Column("term", "Term"),
        *(
            Column(name, name, "signed2" if single else "p", keep=i < 6)
            for i, name in enumerate(table.responses)
        ),
    )
    title = "Effects by response" if single else "Terms by response, adjusted p"
    notes = [
        f"Ranked by {table.ranked_by}. Marked: significant at {alpha:g} with the false discovery "
        f"rate controlled over all {table.tests} tests."
    ]
    if top is not None and len(table.rows) > top:
        notes.append(f"{len(table.rows) - top} further terms with --csv or --json.")
    return Table("effects", title, columns, tuple(rows), tuple(notes))


def _tables(report: Report) -> list[Table]:
    if report.effects_by_response is None or len(report.analyses) < 2:
        return []
    return [
        by_response_table(report.effects_by_response, list(report.analyses.values()), MOST_ROWS)
    ]


ENTRIES = (StudyTables(20, "all", _tables, files="paper"),)
