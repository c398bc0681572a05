"""The files of a report: the page, the tables for a paper, the figures."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from doe.errors import DoeError, nearest
from doe.results.report import Report
from doe.store.files import write_atomic
from doe.study.values import Responses
from doe.views import csv, html, latex
from doe.views.charts import figures
from doe.views.figures import save_figures
from doe.views.table import significant_rows, slug
from doe.views.tables import MOST_ROWS, file_tables

REPORTS = Path("reports")
"""Where reports go unless said otherwise."""
PAGE, FIGURES = "index.html", "figures"


class ReportFiles(NamedTuple):
    """Paths of the parts of a report."""

    page: Path
    tables: tuple[Path, ...]
    """Each table in LaTeX; its CSV is beside it."""


def write_report(report: Report, out: Path, every_term: bool = False) -> ReportFiles:
    """Write the page, and every table as LaTeX and CSV.

    LaTeX has the significant terms alone, or every term if asked for; CSV has them all.
    """
    tables = tuple(_write_tables(report, out / "tables", every_term))
    page = out / PAGE
    write_atomic(page, html.render(report, now()), durable=False)  # a report can be made again
    return ReportFiles(page, tables)


def figure_responses(responses: Responses, names: tuple[str, ...]) -> tuple[str, ...]:
    """Responses whose charts are saved, known before anything is computed.

    Raises
    ------
    DoeError
        If one is neither a response nor "all" nor "averages".
    """
    groups: dict[tuple[str, ...], tuple[str, ...]] = {
        ("all",): responses.names,
        ("averages",): responses.headline,
    }
    for name in () if names in groups else names:
        if name not in responses.names:
            raise DoeError(
                f"figures of {name!r}: no such response{nearest(name, responses.names)}; "
                f"the responses are {', '.join(responses.names)}"
            )
    return groups.get(names, names)


def write_figures(
    report: Report, out: Path, responses: tuple[str, ...]
) -> tuple[list[Path], list[Path]]:
    """Write the charts of the study and of some responses; all files, and those drawn anew."""
    return save_figures(figures(report, responses), out / FIGURES)


def now() -> str:
    """Return the date and time of writing, in UTC."""
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")


def _write_tables(report: Report, folder: Path, every_term: bool) -> list[Path]:
    """Write every table, a document of those that a paper needs, and one of all others."""
    documents = dict(zip(("paper.tex", "all.tex"), file_tables(report), strict=True))
    written = []
    for document, tables in documents.items():
        names = [slug(table.name) for table in tables]
        write_atomic(folder / document, latex.document(names), durable=False)
        for name, table in zip(names, tables, strict=True):
            shown = table if every_term else significant_rows(table, report.options.alpha)
            printed = latex.render(shown.first(MOST_ROWS, f"{name}.csv"))
            write_atomic(folder / f"{name}.tex", printed, durable=False)
            write_atomic(folder / f"{name}.csv", csv.render(table), durable=False)
        written += [folder / f"{name}.tex" for name in names]
    return written
