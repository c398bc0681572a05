"""Terms by responses."""

from __future__ import annotations

from collections.abc import Sequence

from doe.analysis.across import Across
from doe.analysis.analyze import Analysis
from doe.analysis.response import ResponseAnalysis
from doe.results.report import Report
from doe.views.table import Column, Mark, Row, Table
from doe.views.tables import MOST_ROWS, StudyTables
from doe.views.words import MARKS, helps


def across_table(
    across: Across, analyses: Sequence[ResponseAnalysis], top: int | None = None
) -> Table:
    """Terms by responses, those that stand out most first."""
    if not all(isinstance(analysis, Analysis) for analysis in analyses):
        return _tests_table(across, analyses, top)
    columns = (
        Column("term", "Term"),
        *(Column(name, name, "signed2", keep=i < 6) for i, name in enumerate(across.responses)),
    )
    alpha = analyses[0].alpha
    rows = []
    for row in across.rows[:top]:
        marks: dict[str, Mark] = {}
        for a, effect, p in zip(analyses, row.effects, row.p_bh, strict=True):
            if effect is not None and p is not None and p < alpha:
                marks |= {"term": "strong", a.response: MARKS[helps(effect, a.goal)]}
        rows.append(Row((row.term, *row.effects), marks=marks))
    notes = [
        f"Ranked by {across.ranked_by}. Marked: significant at {alpha:g} with the false discovery "
        f"rate controlled over all {across.tests} tests."
    ]
    if top is not None and len(across.rows) > top:
        notes.append(f"{len(across.rows) - top} further terms with --csv or --json.")
    return Table("effects", "Effects by response", columns, tuple(rows), tuple(notes))


def _tests_table(across: Across, analyses: Sequence[ResponseAnalysis], top: int | None) -> Table:
    """Adjusted p of every term: one of several degrees of freedom has no single effect."""
    names = across.responses
    columns = (
        Column("term", "Term"),
        *(Column(name, name, "p", keep=i < 6) for i, name in enumerate(names)),
    )
    alpha = analyses[0].alpha
    rows = []
    for row in across.rows[:top]:
        marks: dict[str, Mark] = {
            name: "strong"
            for name, p in zip(names, row.p_bh, strict=True)
            if p is not None and p < alpha
        }
        rows.append(Row((row.term, *row.p_bh), marks=marks))
    note = (
        f"Ranked by {across.ranked_by}; p adjusted for the false discovery rate over all "
        f"{across.tests} tests."
    )
    return Table("effects", "Terms by response, adjusted p", columns, tuple(rows), (note,))


def _tables(report: Report) -> list[Table]:
    if report.across is None or len(report.analyses) < 2:
        return []
    return [across_table(report.across, list(report.analyses.values()), MOST_ROWS)]


ENTRY = StudyTables(20, "all", _tables, files="paper")
