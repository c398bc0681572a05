"""What the page shows, as plain data: texts for its template, JSON for its script."""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from doe.design import level_text
from doe.report import Report
from doe.scan import Seen
from doe.study import Study
from doe.views import analysis_tables, doubt_tables
from doe.views.charts import BY_RESPONSE, OF_STUDY
from doe.views.charts.model import ChartData, Record, spec
from doe.views.charts.theme import ON_DARK, STATES, config
from doe.views.headlines import headlines
from doe.views.paper_tables import paper_tables
from doe.views.plan_tables import factors_table
from doe.views.report_charts import response_charts, study_charts
from doe.views.table import Column, Row, Spread, Table, Value, cell_text

Json = dict[str, Any]
SQUARE_FACTORS = 10
BLOCK = 32
MOST_ROWS = 500
"""Rows of a table on the page and in print; `doe analyze --csv` has them all."""


def payload(report: Report) -> Json:
    """Everything that the page's script draws, without a number that was not computed before."""
    names = report_responses(report.study)
    return {
        "responses": names,
        "selected": (*report.headline_responses, *report.analyses, *names)[0],
        "headlines": list(report.headline_responses),
        "themes": {"light": config(dark=False), "dark": config(dark=True), "onDark": ON_DARK},
        "drawings": {
            drawing.name: {
                "title": drawing.title,
                "caption": drawing.caption,
                "spec": spec(drawing),
            }
            for drawing in (*BY_RESPONSE, *OF_STUDY)
        },
        "byResponse": {name: _response(report, name) for name in names},
        "study": {
            "charts": {name: chart_json(data) for name, data in study_charts(report).items()},
            "tables": [table_json(table) for table in study_tables(report)],
            "paper": [table_json(table) for table in tables_of_paper(report)],
            "runs": [table_json(table) for table in run_tables(report)],
        },
        "grid": grid(report),
    }


def report_responses(study: Study) -> list[str]:
    """All responses, those that summarise first."""
    answers = study.responses
    return [*answers.averages, *answers.metrics, *answers.further]


def _response(report: Report, name: str) -> Json:
    analysis = report.analyses.get(name)
    charts = response_charts(report, name)
    return {
        "unit": report.study.responses.unit_of(name),
        "refused": report.refused.get(name, ""),
        "charts": {key: chart_json(data) for key, data in charts.items()},
        "tables": [table_json(table) for table in response_tables(report, name)],
        "headlines": None if analysis is None else headlines(analysis)._asdict(),
    }


def response_tables(report: Report, name: str) -> list[Table]:
    """Every table of one response."""
    analysis = report.analyses.get(name)
    if analysis is None:
        return []
    tables = [
        analysis_tables.effects_table(analysis, MOST_ROWS),
        analysis_tables.alias_table(analysis, MOST_ROWS),
        analysis_tables.anova_table(analysis, MOST_ROWS),
        analysis_tables.best_table(analysis, MOST_ROWS),
        analysis_tables.findings_table(analysis),
        doubt_tables.robust_table(analysis, MOST_ROWS),
        analysis_tables.lenth_table(analysis),
        analysis_tables.dispersion_table(analysis, MOST_ROWS),
        doubt_tables.rates_table(analysis),
        doubt_tables.bounds_table(analysis, MOST_ROWS),
        doubt_tables.box_meyer_table(analysis),
    ]
    return [table for table in tables if table is not None]


def tables_of_paper(report: Report) -> tuple[Table, ...]:
    """The tables of the paper from the runs that there are."""
    return paper_tables(report.study, report.layout, report.cells, report.group_effects)


def study_tables(report: Report) -> list[Table]:
    """Tables over all responses."""
    if report.across is None or len(report.analyses) < 2:
        return []
    analyses = list(report.analyses.values())
    return [analysis_tables.across_table(report.across, analyses, MOST_ROWS)]


# Runs -------------------------------------------------------------------------------------------


def run_tables(report: Report) -> list[Table]:
    """The factors, what failed, and where the results come from."""
    tables = [factors_table(report.study)]
    if report.state.failures:
        tables.append(_failure_table(report))
    return [*tables, provenance_table(report.state.views)]


def _failure_table(report: Report) -> Table:
    columns = (
        Column("runs", "Runs", "int"),
        Column("reason", "Reason"),
        Column("which", "Which"),
    )
    rows = tuple(
        Row((len(runs), reason, ", ".join(runs))) for reason, runs in report.state.failures.items()
    )
    return Table("failures", "Failed and diverged runs", columns, rows)


def provenance_table(views: Sequence[Seen]) -> Table:
    """Each fact about the runs' origin, with the number of runs that share it."""
    facts: dict[str, Counter[str]] = {}
    for seen in views:
        origin = seen.result.provenance if seen.result else {}
        for name, value in _facts(origin):
            facts.setdefault(name, Counter())[value] += 1
    columns = (Column("fact", "Fact"), Column("value", "Value"), Column("runs", "Runs", "int"))
    rows = tuple(
        Row((name, value, count))
        for name, counter in facts.items()
        for value, count in sorted(counter.items(), key=lambda item: (-item[1], item[0]))
    )
    return Table("provenance", "Where the results come from", columns, rows)


def _facts(origin: Mapping[str, Any]) -> list[tuple[str, str]]:
    if not origin:
        return []
    dirty = " with uncommitted changes" if origin.get("dirty") else ""
    facts = [("commit", f"{origin.get('commit') or 'none'}{dirty}")]
    machine = ("host", "hardware", "device", "driver")
    facts += [(name, str(origin[name])) for name in machine if origin.get(name)]
    versions = origin.get("versions") or {}
    facts += [(f"version of {name}", str(versions[name])) for name in versions]
    if origin.get("attempt"):
        facts.append(("attempt", str(origin["attempt"])))
    return facts


def grid(report: Report) -> Json:
    """The design as a square: the first half of the factors across, the others down.

    A design too large to be looked at so is a plain block of its configurations in standard order.
    """
    study, views = report.study, report.state.views
    across = (len(study.keys) + 1) // 2
    square = len(study.keys) <= SQUARE_FACTORS
    index = {row: i for i, row in enumerate(sorted({seen.run.row for seen in views}))}

    def place(row: int) -> tuple[int, int]:
        return (row % (1 << across), row >> across) if square else divmod(index[row], BLOCK)[::-1]

    runs = [
        {
            "id": seen.run.run_id,
            "x": place(seen.run.row)[0],
            "y": place(seen.run.row)[1],
            "config": seen.run.config,
            "state": seen.state,
            "reason": seen.reason,
        }
        for seen in views
    ]
    wide, tall = min(BLOCK, len(index)), -(-len(index) // BLOCK)
    return {
        "columns": _headings(study, study.keys[:across]) if square else [""] * wide,
        "rows": _headings(study, study.keys[across:]) if square else [""] * tall,
        "runs": runs,
        "values": {name: list(values) for name, values in report.values.items()},
        "texts": {
            name: [cell_text(value, "num") for value in values]
            for name, values in report.values.items()
        },
        "states": STATES,
    }


def _headings(study: Study, keys: Sequence[str]) -> list[str]:
    """Labels of all combinations of some factors, in standard order."""
    factors = {factor.key: factor for factor in study.factors}
    single = all(len(key) == 1 for key in study.keys)
    labels = []
    for row in range(1 << len(keys)):
        high = [row >> i & 1 for i in range(len(keys))]
        if single:
            labels.append("".join(f"{key}{x}" for key, x in zip(keys, high, strict=True)))
        else:
            levels = [
                f"{key}={level_text(factors[key].high if x else factors[key].low)}"
                for key, x in zip(keys, high, strict=True)
            ]
            labels.append(", ".join(levels))
    return labels


def commands(report: Report) -> list[tuple[str, str]]:
    """Purpose and command line of each step that leads to this page."""
    directory = report.state.directory
    place = directory.as_posix() if not directory.is_absolute() else f"runs/{directory.name}"
    study = shlex.quote(place)
    file = shlex.quote(f"{place}/study.toml")
    options = report.options
    chosen = "" if options.transform == "none" else f" --transform {shlex.quote(options.transform)}"
    dropped = ",".join(report.layout.drop)
    first = (*report.headline_responses, *report_responses(report.study))[0]
    origins = [seen.result.provenance for seen in report.state.views if seen.result]
    commits = sorted({str(origin.get("commit") or "") for origin in origins} - {""})
    steps = [("The code of the runs", f"git checkout {commits[0]}")] if len(commits) == 1 else []
    return [
        *steps,
        ("The same design anew", f"doe plan {file} --out runs/again"),
        ("Its runs", "doe run --study runs/again"),
        (
            "The numbers on this page",
            f"doe analyze --study {study} --response {shlex.quote(first)}{chosen} --robust --json",
        ),
        ("This page", f"doe report --study {study}{chosen} --drop {shlex.quote(dropped)}"),
    ]


# Plain forms ------------------------------------------------------------------------------------


def table_json(table: Table) -> Json:
    """A table with its written cells and, for sorting, its raw values."""
    return {
        "name": table.name,
        "title": table.title,
        "columns": [
            {"key": c.key, "title": c.title, "numeric": c.numeric, "bar": c.format == "bar"}
            for c in table.columns
        ],
        "rows": [_row_json(table.columns, row) for row in table.rows],
        "notes": list(table.notes),
    }


def _row_json(columns: Sequence[Column], row: Row) -> Json:
    if row.style == "section":
        return {"style": "section", "text": [str(row.values[0])], "raw": []}
    pairs = list(zip(row.values, columns, strict=True))
    return {
        "style": row.style,
        "text": ["" if c.format == "bar" else cell_text(v, c.format) for v, c in pairs],
        "raw": [_raw(value) for value, _ in pairs],
        "marks": dict(row.marks),
    }


def _raw(value: Value) -> str | int | float | bool | None:
    if isinstance(value, Spread):
        return _raw(value.mean)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def chart_json(data: ChartData) -> Json:
    """A chart's data by column, half the size of a list of records."""
    return {
        "words": dict(data.words),
        "datasets": {name: _by_column(records) for name, records in data.datasets.items()},
    }


def _by_column(records: Sequence[Record]) -> Json:
    keys = list(dict.fromkeys(key for record in records for key in record))
    return {"keys": keys, "rows": [[_raw(record.get(key)) for key in keys] for record in records]}
