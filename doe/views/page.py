"""What the page shows, as plain data: texts for its template, JSON for its script."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence

from doe.design.runs import configuration_of
from doe.numbers import Spread, Value, cell_text, drawn
from doe.results.origins import commits
from doe.results.report import Report, report_responses
from doe.results.table_report import BLOCK_SETTING, TABLE
from doe.study.values import Factor
from doe.views.charts import catalogue, drawings, response_charts, study_charts
from doe.views.charts.model import ChartData, Record, StudyChart
from doe.views.charts.theme import ON_DARK, RANKS, STATES, config
from doe.views.headlines import headlines
from doe.views.json import Json
from doe.views.profiler import excluded_json, factors_json, profile_json
from doe.views.run_cards import axes_json, cards_json
from doe.views.table import Column, Row, Table
from doe.views.tables import response_tables, study_tables

SQUARE_FACTORS = 10
GRID_COLUMNS = 32


def payload(report: Report) -> Json:
    """Everything that the page's script draws, without a number that was not computed before."""
    names = report_responses(report.study)
    by_response = {name: _response(report, name) for name in names}
    of_study = {name: chart_json(data) for name, data in study_charts(report).items()}
    shown = {*of_study, *(name for made in by_response.values() for name in made["charts"])}
    return {
        "responses": names,
        "selected": (*report.headline_responses, *report.analyses, *names)[0],
        "headlines": list(report.headline_responses),
        "themes": {
            "light": config(dark=False),
            "dark": config(dark=True),
            "onDark": ON_DARK,
            "ranks": RANKS,
        },
        "drawings": {
            chart.name: {
                "title": chart.title,
                "caption": chart.caption,
                "section": chart.section if isinstance(chart, StudyChart) else "response",
                "spec": drawings()[chart.name],
            }
            for chart in catalogue()
            if chart.name in shown
        },
        "byResponse": by_response,
        "study": {
            "charts": of_study,
            "tables": {
                section: [table_json(table) for table in study_tables(report, section)]
                for section in ("all", "paper", "runs")
            },
        },
        "factors": factors_json(report.study),
        "excluded": excluded_json(report.study),
        "grid": grid(report),
        "cards": cards_json(report),
        "axes": axes_json(report),
    }


def _response(report: Report, name: str) -> Json:
    analysis = report.analyses.get(name)
    charts = response_charts(report, name)
    return {
        "unit": report.study.responses.unit_of(name),
        "refused": report.refused.get(name, ""),
        "charts": {key: chart_json(data) for key, data in charts.items()},
        "tables": [] if analysis is None else [table_json(t) for t in response_tables(analysis)],
        "headlines": None if analysis is None else headlines(analysis)._asdict(),
        "profile": None if analysis is None else profile_json(report.study, analysis),
    }


def grid(report: Report) -> Json:
    """The design as a square: the first half of the factors across, the others down.

    A design too large to be looked at so is a plain block of its configurations in standard order.
    """
    study, statuses = report.study, report.state.statuses
    across = (len(study.keys) + 1) // 2
    wide = math.prod(study.sizes[:across])
    square = len(study.keys) <= SQUARE_FACTORS and math.prod(study.sizes) <= 1 << SQUARE_FACTORS
    square = square and not study.centre
    index = {row: i for i, row in enumerate(sorted({status.run.row for status in statuses}))}

    def position(row: int) -> tuple[int, int]:
        return divmod(row, wide)[::-1] if square else divmod(index[row], GRID_COLUMNS)[::-1]

    runs = [
        {
            "id": status.run.run_id,
            "x": position(status.run.row)[0],
            "y": position(status.run.row)[1],
            "config": status.run.config,
            "state": status.state,
            "reason": status.reason,
        }
        for status in statuses
    ]
    tall = -(-len(index) // GRID_COLUMNS)
    return {
        "columns": _headings(study.factors[:across])
        if square
        else [""] * min(GRID_COLUMNS, len(index)),
        "rows": _headings(study.factors[across:]) if square else [""] * tall,
        "runs": runs,
        "values": {name: list(values) for name, values in report.values.items()},
        "texts": {
            name: [cell_text(value, "num") for value in values]
            for name, values in report.values.items()
        },
        "states": STATES,
    }


def _headings(factors: tuple[Factor, ...]) -> list[str]:
    """Labels of all combinations of some factors, in standard order."""
    rows = range(math.prod(len(factor.levels) for factor in factors))
    return [configuration_of(factors, row).label for row in rows]


def commands(report: Report) -> list[tuple[str, str]]:
    """Purpose and command line of each step that leads to this page."""
    directory = report.state.directory
    shown = directory.as_posix() if not directory.is_absolute() else f"runs/{directory.name}"
    study = shlex.quote(shown)
    file = shlex.quote(f"{shown}/study.toml")
    options = report.options
    chosen = f" --transform {shlex.quote(options.transform)}" if options.transform else ""
    chosen += f" --terms {shlex.quote(','.join(options.terms))}" if options.terms else ""
    chosen += " --random-blocks" if options.random_blocks else ""
    dropped = ",".join(report.section.drop)
    first = (*report.headline_responses, *report_responses(report.study))[0]
    if report.study.backend == TABLE and not directory.is_file():  # a DataFrame has no command
        return []
    if report.study.backend == TABLE:
        lows = ",".join(f"{factor.key}={factor.low}" for factor in report.study.factors)
        given = f"--table {study} --factors {shlex.quote(','.join(report.study.keys))}"
        given += f" --low {shlex.quote(lows)} --goal {report.study.responses.goal}"
        if block := report.study.settings[BLOCK_SETTING]:
            given += f" --block {shlex.quote(block)}"
        return [
            (
                "The numbers on this page",
                f"doe analyze {given} --response {shlex.quote(first)}{chosen} --robust --json",
            ),
            ("This page", f"doe report {given}{chosen}"),
        ]
    made_by = commits(report.state.statuses)
    steps = [("The code of the runs", f"git checkout {made_by[0]}")] if len(made_by) == 1 else []
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
    return {
        "keys": keys,
        "rows": [[_plotted(record.get(key)) for key in keys] for record in records],
    }


def _plotted(value: Value) -> str | int | float | bool | None:
    return drawn(value) if isinstance(value, float) else _raw(value)
