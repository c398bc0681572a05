"""The half-normal plot of what varies between whole plots or other groups of runs."""

from __future__ import annotations

from doe.analysis.analyze import Analysis
from doe.views.charts.half_normal import draw, stratum_data
from doe.views.charts.model import ChartData, ResponseChart, of_analysis


def groups_data(analysis: Analysis) -> ChartData | None:
    """Contrasts of the coarsest stratum that has enough of them; None where there is one error."""
    plots = (stratum_data(analysis, plot) for plot in analysis.half_normal.further)
    return next((data for data in plots if data is not None), None)


CHART = ResponseChart(
    11,
    "half-normal-groups",
    "Half-normal plot between groups of runs",
    "Terms that vary only between whole plots, or between other groups of runs, have an error of "
    "their own, and so a plot, a line and margins of their own.",
    draw,
    of_analysis(groups_data),
)
