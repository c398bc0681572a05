"""The files of a report: the page, the tables for a paper, the figures."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from doe.results.report import Report
from doe.store.files import write_atomic
from doe.views import csv, html, latex
from doe.views.page import response_tables, study_tables, tables_of_paper
from doe.views.report_charts import save_charts
from doe.views.table import Table

REPORTS = Path("reports")
"""Where reports go unless said otherwise."""
PAGE = "index.html"
IN_LATEX = ("effects", "anova", "lenth", "robust", "best")
"""Tables of a response that are written for a paper, by the first word of their name."""


class Written(NamedTuple):
    """Where the parts of a report are."""

    page: Path
    tables: tuple[Path, ...]
    figures: tuple[Path, ...]


def write_report(report: Report, out: Path, figures: tuple[str, ...]) -> Written:
    """Write the page, every table as LaTeX and CSV, and the charts of some responses."""
    tables = tuple(_write_tables(report, out / "tables"))
    drawn = tuple(save_charts(report, figures, out / "figures"))
    page = out / PAGE
    write_atomic(page, html.render(report, now()))
    return Written(page, tables, drawn)


def now() -> str:
    """The date and time of writing, in UTC."""
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")


def latex_tables(report: Report) -> list[Table]:
    """The paper's tables, then of every response what goes beyond the paper."""
    tables = [*tables_of_paper(report), *study_tables(report)]
    for name in report.analyses:
        tables += [t for t in response_tables(report, name) if t.name.split()[0] in IN_LATEX]
    if not report.provisional:
        return tables
    done, planned = report.state.counts["done"], len(report.state.statuses)
    note = f"Provisional: {done} of {planned} runs are done."
    return [table._replace(notes=(note, *table.notes)) for table in tables]


def _write_tables(report: Report, folder: Path) -> list[Path]:
    names = []
    for table in latex_tables(report):
        name = latex.slug(table.name)
        write_atomic(folder / f"{name}.tex", latex.render(table))
        write_atomic(folder / f"{name}.csv", csv.render(table))
        names.append(name)
    whole = folder / "all.tex"
    write_atomic(whole, latex.document(names))
    return [whole, *(folder / f"{name}.tex" for name in names)]
