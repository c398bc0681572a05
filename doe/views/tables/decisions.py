"""Decisions: every term of a study that may stop early, with intervals that know the looks."""

from __future__ import annotations

from doe.results.decision import Decision
from doe.results.report import Report
from doe.views.table import Column, Row, Table
from doe.views.tables import StudyTables


def decision_table(reached: Decision) -> Table:
    """A row per term and response, what is open first."""
    columns = (
        Column("response", "response"),
        Column("term", "term"),
        Column("effect", "effect", "signed"),
        Column("low", "low", "num"),
        Column("high", "high", "num"),
        Column("p", "p", "p", keep=False),
        Column("verdict", "verdict"),
        Column("at", "after", "int"),
        Column("chance", "next", "num"),
    )
    rows = tuple(
        Row(
            (
                term.response,
                term.term,
                *(term.state.effect, term.state.low, term.state.high, term.state.p),
                *(term.state.verdict, term.state.decided_at, term.chance),
            )
        )
        for term in sorted(reached.terms, key=lambda term: term.state.verdict != "open")
    )
    level = 1.0 - reached.rule.alpha
    notes = (
        f"Intervals of all looks, terms and responses hold together with {level:.0%}; "
        "effect: excludes zero; negligible: within what matters; next: chance of being decided by "
        "the next replicate.",
    )
    return Table("decisions", "Decisions", columns, rows, notes)


def decision_tables(report: Report) -> list[Table]:
    """The table of a study that declares when it may stop."""
    return [decision_table(report.decision)] if report.decision is not None else []


ENTRY = StudyTables(5, "all", decision_tables)
