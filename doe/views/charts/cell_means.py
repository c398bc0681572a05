"""The best configurations with their intervals."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

from doe.analysis.analyze import Analysis
from doe.analysis.best import RankedCell
from doe.results.report import Report
from doe.terms import BETWEEN, config_header
from doe.views.charts import alt
from doe.views.charts.model import ChartData, Record, ResponseChart
from doe.views.charts.shared import hover, word
from doe.views.charts.short import config_labels
from doe.views.charts.theme import FIT, FULL, HELPS, NEITHER, STEP
from doe.views.words import mean_word, unit_text

CELLS = 20
"""Configurations shown with their names, the best ones first."""
LINE = 56
"""Letters of the axis's title in a line."""


def draw() -> alt.TopLevelMixin:
    """Means of the best configurations with intervals, over the band of the best."""
    base = alt.Chart(alt.NamedData("cells")).encode(
        y=alt.Y("short:N", title=None, sort=None, axis=alt.Axis(labelLimit=190)),
        tooltip=hover("config", "mean", "ci_low", "ci_high", "runs"),
    )
    colour = alt.Color(
        "group:N",
        title=None,
        scale=alt.Scale(domain=["among the best", "worse"], range=[HELPS, NEITHER]),
        legend=alt.Legend(columns=1),  # long names leave little room beside it
    )
    band = alt.Chart(alt.NamedData("band")).mark_rect(color=HELPS, opacity=0.14)
    return alt.layer(
        band.encode(x="from:Q", x2="to:Q"),
        base.mark_rule(strokeWidth=1.4).encode(
            x=alt.X(
                "from:Q",
                title="{mean}",
                scale=alt.Scale(zero=False),
                axis=alt.Axis(titleAnchor="end"),
            ),
            x2="to:Q",
            color=colour,
        ),
        base.mark_circle(size=34, opacity=1).encode(x="mean:Q", color=colour),
        width=FULL,
        height=word("height"),
        autosize=FIT,
    )


def data(report: Report, response: str) -> ChartData | None:
    """The best configurations on the response scale; those not told from the best make the band.

    Without an error estimate there are no intervals, and none can be told from the best.
    """
    analysis = report.analyses.get(response)
    if analysis is None or analysis.best is None:
        return None
    cells = analysis.best.cells
    names = config_header([factor.key for factor in analysis.factors], "")
    label = f"{cells_word(cells, analysis)} {response}{unit_text(analysis.unit)}"
    short = config_labels([cell.config for cell in cells[:CELLS]])
    named = f"{label} by {names}".replace(BETWEEN, f"\u00a0{BETWEEN[1:]}") if names else label
    mean = textwrap.wrap(named, LINE)
    made = cell_records(cells, short, analysis.best.critical is None)
    return ChartData(made, {"mean": mean, "height": STEP * max(len(made["cells"]), 3)})


def _centre(cell: RankedCell) -> float:
    """What the interval is about: the mean, or the geometric mean."""
    return cell.mean if cell.geometric is None else cell.geometric


def cells_word(cells: Sequence[RankedCell], analysis: Analysis) -> str:
    """What the means of the configurations are."""
    logged = any(cell.geometric is not None for cell in cells)
    return "Geometric mean" if logged else mean_word(analysis)


def cell_records(
    cells: Sequence[RankedCell], short: Mapping[str, str], untold: bool
) -> dict[str, list[Record]]:
    """The first configurations with their intervals, and the band of those among the best."""
    among = [_centre(cell) for cell in cells if cell.among_best or untold]
    rows: list[Record] = [
        {
            "config": cell.config,
            "short": short[cell.config],
            "mean": _centre(cell),
            "ci_low": cell.ci_low,
            "ci_high": cell.ci_high,
            "from": _centre(cell) if cell.ci_low is None else cell.ci_low,
            "to": _centre(cell) if cell.ci_high is None else cell.ci_high,
            "runs": cell.n,
            "group": "among the best" if cell.among_best or untold else "worse",
        }
        for cell in cells[:CELLS]
    ]
    shown = [_centre(cell) for cell in cells[:CELLS]]
    reach = [m for m in among if min(shown) <= m <= max(shown)] if shown else []
    band: list[Record] = [{"from": min(reach), "to": max(reach)}] if reach else []
    return {"cells": rows, "band": band}


CHART = ResponseChart(
    50,
    "cell-means",
    "Best configurations",
    "Means with intervals that hold for all at once, the best first. Those in blue, over the band, "
    "cannot be told from the best (Hsu).",
    draw,
    data,
)
