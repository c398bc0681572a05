"""The page: one file that holds all it needs and asks no network for anything."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from typing import Any

import jinja2
from markupsafe import Markup

from doe.analysis.scales import choices
from doe.errors import counted
from doe.numbers import duration_text
from doe.results.report import Report
from doe.results.status import Overview
from doe.study.values import Study
from doe.views.charts.theme import STATES
from doe.views.headlines import headlines
from doe.views.kept import kept
from doe.views.page import commands, payload
from doe.views.status_tables import running_table

VEGA_GLOBALS = "window.vegaEmbed = vegaEmbed;"
"""What the page's own script needs of the bundle."""
SCRIPTS = ("base", "charts", "tables", "profiler", "grid", "parallel", "page")
"""The parts of the page's script, which share one scope."""
SECTIONS = (
    ("s-findings", "Findings"),
    ("s-profiler", "Profiler"),
    ("s-design", "Design"),
    ("s-response", "Response"),
    ("s-all", "All responses"),
    ("s-paper", "Paper"),
    ("s-runs", "Runs"),
    ("s-reproduce", "Reproduce"),
)


def render(report: Report, written: str, live: bool = False) -> str:
    """The page of a study; `written` is the one date on it.

    A live page, which a server sends, also asks that server whether the study has moved on.
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
        live=live,
        sections=SECTIONS,
        css=Markup(_source(templates, "page.css")),
        script=Markup(_script(templates, (*SCRIPTS, "live") if live else SCRIPTS)),
        vega=Markup(vega_bundle()),
        data=Markup(script_json(payload(report))),
    )


def _texts(report: Report) -> dict[str, Any]:
    study, counts = report.study, report.state.counts
    total = len(report.state.statuses)
    return {
        "name": study.name,
        "description": study.description,
        "facts": [
            counted(len(study.factors), "factor").split(),
            counted(len(report.cells), "configuration").split(),
            counted(total, "run").split(),
            (str(counts["done"]), "done"),
        ],
        "provisional": report.provisional,
        **moment_texts(report.state),
        "decision": report.decision.sentences if report.decision else (),
        "lost": _lost(report),
        "findings": [
            (name, study.responses.unit_of(name), headlines(report.analyses[name]))
            for name in report.headline_responses
        ],
        "design": _design(study),
        "warnings": report.state.warnings,
        "commands": commands(report),
    }


def moment_texts(state: Overview) -> dict[str, Any]:
    """How far a study is, which a served page asks for every few seconds."""
    number = [f"{count} {name}" for name, count in state.counts.items() if count]
    done = f"{state.counts['done']} of {counted(len(state.statuses), 'run')}"
    return {
        "progress": f"{done} are done: {', '.join(number)}.",
        "left": f"Time left: {duration_text(state.left)}." if state.running else "",
        "bars": [(name, count, STATES[name]) for name, count in state.counts.items()],
    }


def moment(state: Overview) -> dict[str, Any]:
    """The same with the runs under way and the state of each run."""
    table = running_table(state)
    return {
        **moment_texts(state),
        "columns": [column.title for column in table.columns],
        "running": [[str(value) for value in row.values] for row in table.rows],
        "states": {status.run.run_id: status.state for status in state.statuses},
    }


def _design(study: Study) -> str:
    kind = f"Fraction {study.fraction}" if study.fraction else "Full factorial"
    kind += f" without {'; '.join(study.exclude)}" if study.exclude else ""
    half = (len(study.keys) + 1) // 2
    across, down = ", ".join(study.keys[:half]), ", ".join(study.keys[half:])
    return (
        f"{kind}, {counted(study.replicates, 'replicate')}. Each field is a configuration and each "
        "mark in it a run, replicates from left to right; "
        f"{across} change across, {down or 'nothing'} down."
    )


def _lost(report: Report) -> str:
    """Runs that failed or diverged, by reason; empty if there are none."""
    parts = [f"{len(runs)} × {reason}" for reason, runs in report.state.failures.items()]
    if not parts:
        return ""
    return f"{'; '.join(parts)}. They are named under Runs; effects are those of the other runs."


def _source(templates: jinja2.Environment, name: str) -> str:
    assert templates.loader is not None
    return templates.loader.get_source(templates, name)[0]


def _script(templates: jinja2.Environment, parts: Sequence[str]) -> str:
    sources = "\n".join(_source(templates, f"{part}.js") for part in parts)
    return f'"use strict";\n(() => {{\n{sources}\n}})();'


OPTION = re.compile(rf"(--[a-z][a-z-]*(?: (?:{'|'.join(choices())}))?)")


def sentence(text: str) -> Markup:
    """A sentence in which the options of a command are code, which no line breaks."""
    parts = OPTION.split(text)
    marked = (Markup("<code>{}</code>").format(p) if i % 2 else p for i, p in enumerate(parts))
    return Markup("").join(marked)


def script_json(value: Any) -> str:
    """JSON that no text in it can end early, whatever a study or a run is called."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


@cache
def vega_bundle() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script, kept since it takes seconds to make."""

    def bundled() -> str:
        import vl_convert

        return vl_convert.javascript_bundle(VEGA_GLOBALS).replace("</script", "<\\/script")

    return kept(f"vega-{version('vl-convert-python')}.js", bundled)
