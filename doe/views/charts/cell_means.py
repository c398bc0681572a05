"""The best configurations and the baseline, seed by seed."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Mapping, Sequence

from doe.analysis.analyze import Analysis
from doe.analysis.best import RankedCell
from doe.results.report import Report
from doe.terms import BETWEEN, config_header
from doe.views.charts import alt
from doe.views.charts.labels import in_lines
from doe.views.charts.model import ChartData, Record, ResponseChart, Word
from doe.views.charts.shared import LINES, hover, scale_words, word
from doe.views.charts.theme import FIT, FULL, HELPS, NEITHER, PLAIN, STEP
from doe.views.words import mean_word, unit_text

CELLS, FEWER = 14, 8
"""Configurations shown with their names, the best ones first; fewer whose names are long."""
LABEL = 26
"""Letters of a configuration in a line."""
LINE = 56
"""Letters of the axis's title in a line."""


REACH = 0.6
"""Of the span of means and runs, what intervals may take beyond them."""

LARGEST = sys.float_info.max


def draw_cell_means() -> alt.TopLevelMixin:
    """Draw runs as dots, those of one seed joined, over means, intervals and the band of the
    best.
    """
    base = alt.Chart(alt.NamedData("cells")).encode(
        y=alt.Y(
            "short:N",
            title=None,
            sort=None,
            axis=alt.Axis(labelLimit=300, labelExpr=LINES),
        ),
        tooltip=hover("config", "mean", "ci_low", "ci_high", "runs"),
    )
    colour = alt.Color(
        "group:N",
        title=None,
        scale=alt.Scale(domain=["among the best", "worse"], range=[HELPS, NEITHER]),
        legend=alt.Legend(columns=word("legend")),
    )
    scale = alt.Scale(type=word("scale"), domain=word("ends"), nice=False, padding=8)
    seeds = alt.Chart(alt.NamedData("seeds")).encode(
        y=alt.Y("short:N", sort=None),
        x=alt.X("value:Q", scale=scale),
        color=alt.value(PLAIN),
        tooltip=hover("config", "run", "value"),
    )
    band = alt.Chart(alt.NamedData("band")).mark_rect(color=HELPS, opacity=0.14)
    return alt.layer(
        band.encode(x=alt.X("from:Q", scale=scale), x2="to:Q"),
        base.mark_rule(strokeWidth=1.4, clip=True).encode(
            x=alt.X(
                "from:Q",
                title="{mean}",
                scale=scale,
                axis=alt.Axis(titleAnchor="end", tickCount=6, labelExpr=word("ticks")),
            ),
            x2="to:Q",
            color=colour,
        ),
        base.mark_tick(thickness=3, size=12, opacity=1).encode(
            x=alt.X("mean:Q", scale=scale), color=colour
        ),
        seeds.mark_line(strokeWidth=0.7, opacity=0.7).encode(detail="seed:N", order="rank:Q"),
        seeds.mark_circle(size=14, opacity=0.8),
        width=FULL,
        height=word("height"),
        autosize=FIT,
    )


def cell_means_data(report: Report, response: str) -> ChartData | None:
    """Return the best configurations on the response scale; those tied with the best make the band.

    Without an error estimate there are no intervals, and all are tied with the best.
    """
    analysis = report.analyses.get(response)
    if analysis is None or analysis.best is None:
        return None
    ranked, base = analysis.best.cells, _baseline(report, response)
    most = CELLS if all(len(cell.config) <= LABEL for cell in ranked) else FEWER
    cells = [*ranked[:most], *(cell for cell in ranked[most:] if cell.config == base)]
    names = config_header([factor.key for factor in analysis.factors], "")
    label = f"{cells_word(cells, analysis)} {response}{unit_text(analysis.unit)}"
    short = {cell.config: in_lines(cell.config, LABEL, BETWEEN) for cell in cells}
    if base in short:
        short[base] = "baseline" if "\n" in short[base] else f"baseline {short[base]}"
    named = f"{label} by {names}".replace(BETWEEN, f"\u00a0{BETWEEN[1:]}") if names else label
    mean = textwrap.wrap(named, LINE)
    made = cell_records(cells, short, analysis.best.critical is None)
    made["seeds"] = _seeds(report, response, short)
    breaks = max(text.count("\n") for text in short.values())
    words: dict[str, Word] = {
        "mean": mean,
        "height": (STEP + 2 + 13 * breaks) * max(len(short), 3),
        "legend": 1 if breaks else 2,
        **_ends(made, any(cell.geometric is not None for cell in cells)),
    }
    return ChartData(made, words)


def _ends(made: Mapping[str, Sequence[Record]], logged: bool) -> dict[str, Word]:
    """Return the axis: the means and runs, and of the intervals what leaves these readable."""
    shown = [row["mean"] for row in made["cells"]] + [row["value"] for row in made["seeds"]]
    values = [float(value or 0.0) for value in shown]
    ends = [float(row[key] or 0.0) for row in made["cells"] for key in ("from", "to")]
    least, most = min(values), max(values)
    log = logged and least > 0.0
    reach = (most / least) ** REACH if log else REACH * (most - least) or abs(most) or 1.0
    low, high = (least / reach, most * reach) if log else (least - reach, most + reach)
    span = [max(low, min(least, *ends), -LARGEST), min(high, max(most, *ends), LARGEST)]
    return {**scale_words(span if log else [0.0]), "ends": span}


def _baseline(report: Report, response: str) -> str:
    """Return the configuration that others are compared with: by the study, else every first
    level.
    """
    given = report.subject.data[response].baseline
    first = (0,) * len(report.subject.factors)
    analysis = report.analyses[response]
    return given or next((at.config for at in analysis.predictions if at.levels == first), "")


def _seeds(report: Report, response: str, short: Mapping[str, str]) -> list[Record]:
    """Return the runs of some configurations, each with its replicate, in the order of the rows."""
    ranks = {config: rank for rank, config in enumerate(short)}
    rows: list[Record] = [
        {
            "config": run.config,
            "short": short[run.config],
            "rank": ranks[run.config],
            "run": run.run_id,
            "seed": dict(run.facts).get("replicate", run.run_id),
            "value": value,
        }
        for run, value in zip(report.subject.runs, report.subject.values[response], strict=True)
        if run.config in short and value is not None
    ]
    return sorted(rows, key=lambda row: ranks[str(row["config"])])


def _centre(cell: RankedCell) -> float:
    """Return what the interval is about: the mean, or the geometric mean."""
    return cell.mean if cell.geometric is None else cell.geometric


def cells_word(cells: Sequence[RankedCell], analysis: Analysis) -> str:
    """Return what the means of the configurations are."""
    logged = any(cell.geometric is not None for cell in cells)
    return "Geometric mean" if logged else mean_word(analysis)


def cell_records(
    cells: Sequence[RankedCell], short: Mapping[str, str], untold: bool
) -> dict[str, list[Record]]:
    """Return the first configurations with their intervals, and the band of those among the
    best.
    """
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
        for cell in cells
    ]
    shown = [_centre(cell) for cell in cells]
    reach = [m for m in among if min(shown) <= m <= max(shown)] if shown else []
    band: list[Record] = [{"from": min(reach), "to": max(reach)}] if reach else []
    return {"cells": rows, "band": band}


CELL_MEANS = ResponseChart(
    6,
    "cell-means",
    "Best configurations",
    "Bars are means with intervals that hold for all at once, the best first; those in blue, over "
    "the band, are tied with the best (Hsu). Dots are runs; a line joins those of one seed. The "
    "baseline is named.",
    draw_cell_means,
    cell_means_data,
)

CHARTS = (CELL_MEANS,)
