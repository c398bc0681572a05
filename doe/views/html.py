"""The page: one file that holds all it needs and asks no network for anything.

Texts go into its template, what its script draws goes in as JSON; no number is computed here.
"""

from __future__ import annotations

import gzip
import json
import math
import re
import shlex
from base64 import b64encode
from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from itertools import product
from typing import Any

import jinja2
from markupsafe import Markup

from doe.analysis.dataset import FactorColumn
from doe.analysis.scales import choices
from doe.errors import counted
from doe.numbers import Spread, Value, cell_text, confidence, drawn, duration_text
from doe.results.origins import commits
from doe.results.report import Report
from doe.results.status import Overview
from doe.results.subject import Subject, report_responses
from doe.terms import config_label
from doe.views import latex
from doe.views.charts import catalogue, drawings, response_charts, study_charts
from doe.views.charts.model import ChartData, Record
from doe.views.charts.theme import ON_DARK, RANKS, STATES, config
from doe.views.figures import cached
from doe.views.first_screen import card, caveats, leads
from doe.views.headlines import headlines
from doe.views.json import Json
from doe.views.profiler import (
    axes_json,
    cards_json,
    factors_json,
    front_json,
    profile_factors,
    profile_json,
)
from doe.views.status_tables import running_table
from doe.views.table import Column, Row, Table
from doe.views.tables import response_tables, study_tables

VEGA_GLOBALS = "window.vegaEmbed = vegaEmbed;"
"""What the page's own script needs of the bundle."""
SCRIPTS = ("base", "charts", "tables", "grid", "profiler", "tradeoff", "page")
"""The parts of the page's script, which share one scope."""
SECTIONS = (
    ("s-findings", "Findings"),
    ("s-profiler", "What if"),
    ("s-response", "Response"),
    ("s-all", "All responses"),
    ("s-design", "Design"),
    ("s-checks", "Checks"),
    ("s-tables", "Tables"),
    ("s-runs", "Runs"),
    ("s-reproduce", "Reproduce"),
)
INTERVAL = "{:g} % confidence interval of the mean, which holds for all choices at once"
"""Name of the interval in the profiler."""
LEVEL = 5
"""Of compression: a tenth larger than at most, in a fifth of the time."""
SQUARE_FACTORS = 10
GRID_COLUMNS, NAMED_COLUMNS = 32, 16


def render(report: Report, written: str, version: str = "") -> str:
    """Return the page of a study; `written` is the one date on it.

    A page with a version, which a server sends, also asks that server for a newer one.
    """
    templates = jinja2.Environment(
        loader=jinja2.PackageLoader("doe.views", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters["sentence"] = sentence
    return templates.get_template("page.html").render(
        **_texts(report),
        written=written,
        version=version,
        sections=SECTIONS,
        css=Markup(_source(templates, "page.css")),
        script=Markup(_script(templates, (*SCRIPTS, "live") if version else SCRIPTS)),
        vega=Markup(vega_bundle()),
        data=packed(payload(report)),
    )


def _source(templates: jinja2.Environment, name: str) -> str:
    assert templates.loader is not None
    return templates.loader.get_source(templates, name)[0]


def _script(templates: jinja2.Environment, parts: Sequence[str]) -> str:
    sources = "\n".join(_source(templates, f"{part}.js") for part in parts)
    return f'"use strict";\n(async () => {{\n{sources}\n}})();'


OPTION = re.compile(rf"((?<=Try: )doe .+$|--[a-z][a-z-]*(?: (?:{'|'.join(choices())}))?)")


def sentence(text: str) -> Markup:
    """Return a sentence in which a command, or its options, are code."""
    parts = OPTION.split(text)
    marked = (Markup("<code>{}</code>").format(p) if i % 2 else p for i, p in enumerate(parts))
    return Markup("").join(marked)


def packed(value: Any) -> str:
    """JSON, compressed, in characters that mean nothing in a page."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return b64encode(gzip.compress(text.encode(), LEVEL, mtime=0)).decode()


@cache
def vega_bundle() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script, kept since it takes seconds to make."""

    def bundled() -> str:
        import vl_convert

        return vl_convert.javascript_bundle(VEGA_GLOBALS).replace("</script", "<\\/script")

    return cached(f"vega-{version('vl-convert-python')}.js", bundled)


# Texts of the template ----------------------------------------------------------------------------


def _texts(report: Report) -> dict[str, Any]:
    subject = report.subject
    return {
        "name": subject.name,
        "description": subject.description,
        "facts": [
            counted(len(subject.factors), "factor").split(),
            counted(len(subject.cells), "configuration").split(),
            counted(len(subject.runs), "run").split(),
        ],
        "done": subject.done,
        "provisional": report.provisional,
        **(moment_texts(subject.state) if subject.state else {}),
        "decision": report.decision.sentences if report.decision else (),
        "lost": _lost(report),
        "leads": leads(report),
        "cards": [made for name in report.headline_responses if (made := card(report, name))],
        "caveats": caveats(report),
        "design": _design(subject),
        "model": "fitted surface"
        if profile_factors(report) is not subject.factors
        else "model of the significant effects",
        "interval": INTERVAL.format(100 * (1 - report.options.alpha)),
        "confidence": confidence(report.options.alpha),
        "warnings": subject.warnings,
        "commands": commands(report),
    }


def moment_texts(state: Overview) -> dict[str, Any]:
    """Return how far a study is, which a served page asks for every few seconds."""
    done = f"{state.counts['done']} of {counted(len(state.statuses), 'run')} are done"
    others = [f"{n} {name}" for name, n in state.counts.items() if n and name != "done"]
    return {
        "progress": f"{', '.join([done, *others])}.",
        "done": state.counts["done"],
        "left": f"Time left: {duration_text(state.left)}." if state.running else "",
        "bars": [(name, count, STATES[name]) for name, count in state.counts.items()],
    }


def moment(state: Overview) -> dict[str, Any]:
    """Return the progress for the live page: the runs under way and the state of each run."""
    table = running_table(state)
    return {
        **moment_texts(state),
        "columns": [column.title for column in table.columns],
        "running": [[str(value) for value in row.values] for row in table.rows],
        "states": {status.run.run_id: status.state for status in state.statuses},
    }


def _design(subject: Subject) -> str:
    half = (len(subject.keys) + 1) // 2
    across, down = ", ".join(subject.keys[:half]), ", ".join(subject.keys[half:])
    order = f"{across} change across, {down or 'nothing'} down"
    return (
        f"{subject.design}, {counted(subject.replicates, 'replicate')}. Each field is a "
        "configuration and each mark in it a run, replicates from left to right; "
        f"{order if _is_square(subject) else 'in the order of the plan'}."
    )


def _lost(report: Report) -> str:
    """Runs that failed or diverged, by reason; empty if there are none."""
    parts = [f"{len(runs)} × {reason}" for reason, runs in report.subject.failures.items()]
    if not parts:
        return ""
    return f"{'; '.join(parts)}. They are named under Runs; effects are those of the other runs."


def commands(report: Report) -> list[tuple[str, str]]:
    """Purpose and command line of each step that leads to this page; a DataFrame has none."""
    subject, path, options = report.subject, report.subject.path, report.options
    further = f" --transform {shlex.quote(options.transform)}" if options.transform else ""
    further += f" --terms {shlex.quote(','.join(options.terms))}" if options.terms else ""
    further += " --random-blocks" if options.random_blocks else ""
    first = (*report.headline_responses, *report_responses(subject.responses))[0]
    analysed = f"--response {shlex.quote(first)}{further} --robust --json"
    if subject.state is None:
        source = _table_options(subject)
        responses = shlex.quote(",".join(subject.responses.metrics))
        steps = [
            ("The numbers on this page", f"doe analyze {source} {analysed}"),
            ("This page", f"doe report {source} --response {responses}{further}"),
        ]
        return steps if path.is_file() else []
    place = path.as_posix() if not path.is_absolute() else f"runs/{path.name}"
    file, source = shlex.quote(f"{place}/study.toml"), f"--study {shlex.quote(place)}"
    drop = report.section.drop
    left_out = "" if drop == subject.section.drop else f" --drop {shlex.quote(','.join(drop))}"
    states_of_code = commits(subject.statuses)
    checkout = [("The code of the runs", f"git checkout {commit}") for commit in states_of_code]
    return [
        *(checkout if len(checkout) == 1 else []),
        ("The same design anew", f"doe plan {file} --out runs/again"),
        ("Its runs", "doe run --study runs/again"),
        ("The numbers on this page", f"doe analyze {source} {analysed}"),
        ("This page", f"doe report {source}{further}{left_out}"),
    ]


def _table_options(subject: Subject) -> str:
    """Return the options that name a table and say what its columns are."""
    path, table = subject.path, subject.table
    assert table is not None
    named = {
        "table": path.name if path.is_absolute() else path.as_posix(),
        "factors": ",".join(subject.keys),
        "low": ",".join(f"{key}={level}" for key, level in table.low.items()),
        "scale": ",".join(f"{key}={scale}" for key, scale in table.scale.items()),
        "of": ",".join(f"{key}={items}" for key, items in table.of.items()),
        "goal": table.goal,
        "block": table.block,
        "whole-plot": ",".join(table.whole_plot),
        "covariate": ",".join(table.covariates),
    }
    return " ".join(f"--{name} {shlex.quote(text)}" for name, text in named.items() if text)


# What the script draws ----------------------------------------------------------------------------


def payload(report: Report) -> Json:
    """Everything that the page's script draws, without a number that was not computed before."""
    names = report_responses(report.subject.responses)
    factors = profile_factors(report)
    by_response = {name: _response(report, name, factors) for name in names}
    sections = {chart.name: chart.section for chart in catalogue()}
    of_study = {
        name: chart_json(data)
        for name, data in study_charts(report).items()
        if sections[name] != "files"
    }
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
                "section": chart.section,
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
        "factors": factors_json(factors),
        "excluded": report.subject.excluded,
        "interval": f"{confidence(report.options.alpha)} CI",
        "front": front_json(report, factors),
        "grid": grid(report),
        "cards": cards_json(report, factors),
        "option": OPTION.pattern,
        "latex": latex.SPECIAL,
        "axes": axes_json(report),
    }


def _response(report: Report, name: str, factors: Sequence[FactorColumn]) -> Json:
    analysis = report.analyses.get(name)
    charts = response_charts(report, name)
    return {
        "title": report.subject.responses.title_of(name),
        "unit": report.subject.responses.unit_of(name),
        "refused": report.refused.get(name, ""),
        "charts": {key: chart_json(data) for key, data in charts.items()},
        "tables": [] if analysis is None else [table_json(t) for t in response_tables(analysis)],
        "headlines": None if analysis is None else headlines(analysis)._asdict(),
        "profile": None if analysis is None else profile_json(report, analysis, factors),
    }


def _is_square(subject: Subject) -> bool:
    """Return whether every configuration has levels of the factors, few enough to be shown in a
    square.
    """
    every = math.prod(subject.sizes)
    few = len(subject.keys) <= SQUARE_FACTORS and every <= 1 << SQUARE_FACTORS
    return few and max((run.row for run in subject.runs), default=0) < every


def grid(report: Report) -> Json:
    """Return the design as a square: the first half of the factors across, the others down.

    A design too large to be looked at so is a plain block of its configurations in standard order.
    """
    subject = report.subject
    across = (len(subject.keys) + 1) // 2
    wide, square = math.prod(subject.sizes[:across]), _is_square(subject)
    index = {row: i for i, row in enumerate(sorted({run.row for run in subject.runs}))}

    def position(row: int) -> tuple[int, int]:
        return divmod(row, wide)[::-1] if square else divmod(index[row], GRID_COLUMNS)[::-1]

    runs = [
        {
            "id": run.run_id,
            "x": position(run.row)[0],
            "y": position(run.row)[1],
            "config": run.config,
            "state": run.state,
            "reason": run.reason,
        }
        for run in subject.runs
    ]
    tall = -(-len(index) // GRID_COLUMNS)
    plain = [""] * min(GRID_COLUMNS, len(index))
    if len(index) <= NAMED_COLUMNS:
        named = {run.row: run.config for run in subject.runs}
        plain = [named[row] for row in index]
    return {
        "columns": _headings(subject.factors[:across]) if square else plain,
        "rows": _headings(subject.factors[across:]) if square else [""] * tall,
        "runs": runs,
        "values": {name: list(values) for name, values in subject.values.items()},
        "texts": {
            name: [cell_text(value, "num") for value in values]
            for name, values in subject.values.items()
        },
        "states": STATES,
    }


def _headings(factors: tuple[FactorColumn, ...]) -> list[str]:
    """Labels of all combinations of some factors, in standard order."""
    labels = [tuple(enumerate(factor.labels)) for factor in reversed(factors)]
    keys = [factor.key for factor in factors]
    return [config_label(keys, levels[::-1]) for levels in product(*labels)] if factors else [""]


def table_json(table: Table) -> Json:
    """Return a table with its written cells and, for sorting, its raw values."""
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
    """Return a chart's data by column, half the size of a list of records."""
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
