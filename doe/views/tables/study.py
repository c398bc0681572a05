"""Tables of decisions, of failures, and of where the results come from."""

from __future__ import annotations

from doe.numbers import confidence
from doe.results.decision import Decision
from doe.results.origins import shared_facts
from doe.results.report import Report
from doe.views.status_tables import failure_table
from doe.views.table import Column, Row, Table
from doe.views.tables import StudyTables


def decision_table(reached: Decision) -> Table:
    """Return a row per term and response, in their order; what is the same everywhere has no
    column.
    """
    several = len({term.response for term in reached.terms}) > 1
    to_come = any(term.chance is not None for term in reached.terms)
    columns = (
        *((Column("response", "response"),) if several else ()),
        Column("term", "term"),
        Column("effect", "effect", "signed"),
        Column("low", "low", "short"),
        Column("high", "high", "short"),
        Column("p", "p", "p", keep=False),
        Column("verdict", "verdict"),
        Column("at", "after", "short"),
        *((Column("chance", "next", "short"),) if to_come else ()),
    )
    rows = tuple(
        Row(
            (
                *((term.response,) if several else ()),
                term.term,
                *(term.state.effect, term.state.low, term.state.high, term.state.p),
                *(term.state.verdict, term.state.decided_at),
                *((term.chance,) if to_come else ()),
            )
        )
        for term in reached.terms
    )
    chance = "; next: chance of being decided by the next look" if to_come else ""
    notes = (
        f"All decisions, over all looks, terms and responses, hold simultaneously with "
        f"{confidence(reached.rule.alpha)}. effect: the interval excluded zero after so many "
        f"replicates; negligible: two one-sided tests put it within the smallest effect that "
        f"matters, and the interval is theirs{chance}.",
    )
    return Table("decisions", "Decisions", columns, rows, notes)


def decision_tables(report: Report) -> list[Table]:
    """Return the table of a study that declares when it may stop."""
    return [decision_table(report.decision)] if report.decision and report.decision.terms else []


def run_tables(report: Report) -> list[Table]:
    """Tables about the runs themselves."""
    subject, tables = report.subject, []
    if subject.failures:
        tables.append(failure_table(subject.failures, named=None, logged=subject.state is not None))
    if subject.state is not None:
        tables.append(provenance_table(report))
    return tables


def provenance_table(report: Report) -> Table:
    """Return each fact about the runs' origin, with the number of runs that share it."""
    columns = (Column("fact", "Fact"), Column("value", "Value"), Column("runs", "Runs", "int"))
    rows = tuple(
        Row((name, value, count))
        for name, values in shared_facts(report.subject.statuses).items()
        for value, count in values
    )
    return Table("provenance", "Where the results come from", columns, rows)


ENTRIES = (
    StudyTables(5, "all", decision_tables),
    StudyTables(30, "runs", run_tables),
)
