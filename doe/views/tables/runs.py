"""The factors, what failed, and where the results come from."""

from __future__ import annotations

from doe.results.origins import shared_facts
from doe.results.report import Report
from doe.views.status_tables import failure_table
from doe.views.table import Column, Row, Table
from doe.views.tables import StudyTables


def run_tables(report: Report) -> list[Table]:
    """Tables about the runs themselves."""
    failures = [failure_table(report.state, named=None)] if report.state.failures else []
    return [*failures, provenance_table(report)]


def provenance_table(report: Report) -> Table:
    """Each fact about the runs' origin, with the number of runs that share it."""
    columns = (Column("fact", "Fact"), Column("value", "Value"), Column("runs", "Runs", "int"))
    rows = tuple(
        Row((name, value, count))
        for name, values in shared_facts(report.state.statuses).items()
        for value, count in values
    )
    return Table("provenance", "Where the results come from", columns, rows)


ENTRY = StudyTables(30, "runs", run_tables)
