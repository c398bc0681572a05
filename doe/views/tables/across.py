"""Terms by responses."""

from __future__ import annotations

from collections.abc import Sequence

from doe.analysis.across import Across
from doe.analysis.analyze import Analysis
from doe.analysis.pvalues import significant
from doe.analysis.response import ResponseAnalysis
from doe.results.report import Report
from doe.views.table import Column, Mark, Row, Table
from doe.views.tables import MOST_ROWS, StudyTables
from doe.views.words import MARKS, helps


def across_table(
    across: Across, analyses: Sequence[ResponseAnalysis], top: int | None = None
) -> Table:
    """Terms by responses, those that stand out most first.

    Of factors with levels adjusted p stand in the place of effects: a term of several degrees of
    freedom has no single one.
    """
    two_level = all(isinstance(analysis, Analysis) for analysis in analyses)
    alpha = analyses[0].alpha
    rows = []
    for row in across.rows[:top]:
        marks: dict[str, Mark] = {}
        for a, effect, p in zip(analyses, row.effects, row.p_bh, strict=True):
            if significant(p, alpha) and not two_level:
                marks[a.response] = "strong"
            elif significant(p, alpha) and effect is not None:
                marks |= {"term": "strong", a.response: MARKS[helps(effect, a.goal)]}
        rows.append(Row((row.term, *(row.effects if two_level else row.p_bh)), marks=marks))
    columns = (
        Column("term", "Term"),
        *(
            Column(name, name, "signed2" if two_level else "p", keep=i < 6)
            for i, name in enumerate(across.responses)
        ),
    )
    title = "Effects by response" if two_level else "Terms by response, adjusted p"
    notes = [
        f"Ranked by {across.ranked_by}. Marked: significant at {alpha:g} with the false discovery "
        f"rate controlled over all {across.tests} tests."
    ]
    if top is not None and len(across.rows) > top:
        notes.append(f"{len(across.rows) - top} further terms with --csv or --json.")
    return Table("effects", title, columns, tuple(rows), tuple(notes))


def _tables(report: Report) -> list[Table]:
    if report.across is None or len(report.analyses) < 2:
        return []
    return [across_table(report.across, list(report.analyses.values()), MOST_ROWS)]


ENTRY = StudyTables(20, "all", _tables, files="paper")
