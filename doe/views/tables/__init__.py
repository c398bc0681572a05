"""Every table of results, one module each, in one order for terminal, page and files.

A module of this package lists its tables in ``ENTRIES``; nothing else needs to know it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, Literal, NamedTuple

from doe.analysis.analyze import Analysis
from doe.results.report import Report
from doe.views.table import Table, slug

MOST_ROWS = 500
"""Rows of a table on the page and in print, the largest or best; CSV files have them all."""


Files = Literal["", "paper", "further"]
"""Written for a paper; written for those who want to know more; not written."""


class ResponseTable(NamedTuple):
    """A table of one response."""

    position: int
    """Order of tables everywhere."""
    make: Callable[[Any, int | None], Table | None]
    """The table with at most so many rows; None where the analysis has nothing to fill it."""
    on_screen: int | None = None
    """Rows on the terminal, where a table is a summary."""
    files: Files = ""
    """Whether it is written as LaTeX and CSV beside the page, and in which document."""
    screen: Literal["always", "saturated", "never"] = "always"
    """Whether the terminal shows it: always, for saturated designs alone, or never."""
    asked: bool = False
    """Whether an option asks for it, so that the terminal shows it beside the first table."""

    def on_terminal(self, analysis: Analysis) -> bool:
        """Return whether the terminal shows it for this analysis."""
        return self.screen == "always" or (self.screen == "saturated" and analysis.df_error == 0)


class StudyTables(NamedTuple):
    """Tables of a whole study."""

    position: int
    section: Literal["all", "paper", "runs"]
    """Section of the page."""
    make: Callable[[Report], Sequence[Table]]
    files: Files = ""


@cache
def catalogue() -> tuple[tuple[ResponseTable, ...], tuple[StudyTables, ...]]:
    """Tables of a response and of the study, each in the order of reading."""
    modules = [import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__)]
    entries = [entry for module in modules for entry in getattr(module, "ENTRIES", ())]
    entries.sort(key=lambda entry: entry.position)
    return (
        tuple(entry for entry in entries if isinstance(entry, ResponseTable)),
        tuple(entry for entry in entries if isinstance(entry, StudyTables)),
    )


def response_tables(analysis: Analysis) -> list[Table]:
    """Return the tables of one response for the page."""
    made = (entry.make(analysis, MOST_ROWS) for entry in catalogue()[0])
    return [table for table in made if table is not None]


def screen_tables(analysis: Analysis, *, complete: bool = False) -> list[Table]:
    """Return the tables of one response that the terminal shows, in short or with all rows."""
    shown = (entry for entry in catalogue()[0] if entry.on_terminal(analysis))
    made = (entry.make(analysis, None if complete else entry.on_screen) for entry in shown)
    return [table for table in made if table is not None]


def first_table(analysis: Analysis, rows: int) -> list[Table]:
    """Return the first table of one response for the terminal, with at most so many rows, and those
    that an option asked for.
    """
    shown = [entry for entry in catalogue()[0] if entry.on_terminal(analysis)]
    made = [(entry.asked, entry.make(analysis, rows)) for entry in shown]
    tables = [(asked, table) for asked, table in made if table is not None]
    return [table for i, (asked, table) in enumerate(tables) if not i or asked]


def paper_tables(analysis: Analysis) -> list[Table]:
    """Return the tables of one response that a paper needs."""
    made = (entry.make(analysis, None) for entry in catalogue()[0] if entry.files == "paper")
    return [table for table in made if table is not None]


def study_tables(report: Report, section: str) -> list[Table]:
    """Return the tables of a section of the page."""
    return [
        table.first(MOST_ROWS, f"tables/{slug(table.name)}.csv" if entry.files else "doe status")
        for entry in catalogue()[1]
        if entry.section == section
        for table in entry.make(report)
    ]


def file_tables(report: Report) -> tuple[list[Table], list[Table]]:
    """Tables that are written as files: what a paper needs, and all others.

    A paper needs its own tables, and effects and analysis of variance of what it begins with.
    """
    paper: list[Table] = []
    further: list[Table] = []
    for entry in catalogue()[1]:
        paper += entry.make(report) if entry.files == "paper" else ()
    for name, analysis in report.analyses.items():
        for table in (e for e in catalogue()[0] if e.files):
            made = table.make(analysis, MOST_ROWS)
            first = table.files == "paper" and name in report.headline_responses
            (paper if first else further).extend([made] if made is not None else [])
    note = (f"Provisional: {report.progress}",) if report.provisional else ()
    titles = report.subject.responses.titles
    paper, further = (
        [_titled(table, titles)._replace(notes=(*note, *table.notes)) for table in tables]
        for tables in (paper, further)
    )
    return paper, further


def _titled(table: Table, titles: Mapping[str, str]) -> Table:
    """Return a table that calls responses what the study file calls them."""
    columns = (
        column._replace(title=titles.get(column.title, column.title)) for column in table.columns
    )
    words = re.sub(r"\w+", lambda word: titles.get(word[0], word[0]), table.title)
    return table._replace(title=words, columns=tuple(columns))
