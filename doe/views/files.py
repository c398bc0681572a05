"""The files of a report: the page, the tables for a paper, the figures."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from doe.results.report import Report
from doe.store.files import write_atomic
from doe.views import csv, html, latex
from doe.views.charts import save_charts
from doe.views.tables import file_tables

REPORTS = Path("reports")
"""Where reports go unless said otherwise."""
PAGE = "index.html"


class ReportFiles(NamedTuple):
    """Where the parts of a report are."""

    page: Path
    tables: tuple[Path, ...]
    figures: tuple[Path, ...]


def write_report(report: Report, out: Path, figures: tuple[str, ...]) -> ReportFiles:
    """Write the page, every table as LaTeX and CSV, and the charts of some responses."""
    tables = tuple(_write_tables(report, out / "tables"))
    charts = tuple(save_charts(report, figures, out / "figures"))
    page = out / PAGE
    write_atomic(page, html.render(report, now()))
    return ReportFiles(page, tables, charts)


def now() -> str:
    """The date and time of writing, in UTC."""
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")


def _write_tables(report: Report, folder: Path) -> list[Path]:
    names = []
    for table in file_tables(report):
        name = latex.slug(table.name)
        write_atomic(folder / f"{name}.tex", latex.render(table))
        write_atomic(folder / f"{name}.csv", csv.render(table))
        names.append(name)
    whole = folder / "all.tex"
    write_atomic(whole, latex.document(names))
    return [whole, *(folder / f"{name}.tex" for name in names)]
