"""Every chart: its data, its drawing, and its entry in the ``CHARTS`` of its module."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from pkgutil import iter_modules

from doe.results.report import Report
from doe.views.charts.model import Chart, ChartData, ResponseChart, StudyChart, filled, spec
from doe.views.figures import Spec, cached


@cache
def catalogue() -> tuple[Chart, ...]:
    """Return all charts in the order of reading."""
    modules = [import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__)]
    charts = [chart for module in modules for chart in vars(module).get("CHARTS", ())]
    return tuple(sorted(charts, key=lambda chart: (isinstance(chart, StudyChart), chart.position)))


@cache
def drawings() -> dict[str, Spec]:
    """Return the drawing of every chart, kept for as long as nothing that draws has changed."""
    texts = [path.read_bytes() for folder in __path__ for path in sorted(Path(folder).glob("*.py"))]
    digest = hashlib.sha256(b"".join((version("altair").encode(), *texts))).hexdigest()[:16]
    made: dict[str, Spec] = json.loads(
        cached(f"charts-{digest}.json", lambda: json.dumps({c.name: spec(c) for c in catalogue()}))
    )
    return made


def response_charts(report: Report, response: str) -> dict[str, ChartData]:
    """Chart name -> data, for the charts that a response has."""
    charts = [chart for chart in catalogue() if isinstance(chart, ResponseChart)]
    made = {chart.name: chart.data(report, response) for chart in charts}
    return {name: data for name, data in made.items() if data is not None}


def study_charts(report: Report) -> dict[str, ChartData]:
    """Chart name -> data, for the charts of the whole study."""
    charts = [chart for chart in catalogue() if isinstance(chart, StudyChart)]
    made = {chart.name: chart.data(report) for chart in charts}
    return {name: data for name, data in made.items() if data is not None}


def figures(report: Report, responses: tuple[str, ...]) -> dict[str, Spec]:
    """Name of a file -> filled chart, for the charts of the study and of the named responses."""
    drawn = drawings()
    charts = {name: filled(drawn[name], data) for name, data in study_charts(report).items()}
    for response in responses:
        for name, data in response_charts(report, response).items():
            charts[f"{response}-{name}"] = filled(drawn[name], data)
    return charts
