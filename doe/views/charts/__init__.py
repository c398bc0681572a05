"""Every chart, one module each: its data, its drawing, and ``CHART``, its catalogue entry."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from doe.results.report import Report
from doe.views.charts.model import Chart, ChartData, ResponseChart, StudyChart, filled, spec
from doe.views.figures import Spec


@cache
def catalogue() -> tuple[Chart, ...]:
    """All charts in the order of reading."""
    modules = [import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__)]
    charts = [module.CHART for module in modules if hasattr(module, "CHART")]
    return tuple(sorted(charts, key=lambda chart: (isinstance(chart, StudyChart), chart.position)))


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
    drawings = {chart.name: spec(chart) for chart in catalogue()}
    charts = {name: filled(drawings[name], data) for name, data in study_charts(report).items()}
    for response in responses:
        for name, data in response_charts(report, response).items():
            charts[f"{response}-{name}"] = filled(drawings[name], data)
    return charts
