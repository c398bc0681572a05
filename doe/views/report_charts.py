"""Which charts a report has, and the data that fill them."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from doe.results.report import Report
from doe.store.scan import RunStatus
from doe.views.charts import BY_RESPONSE, OF_STUDY
from doe.views.charts.across import HEATMAP, heatmap_data
from doe.views.charts.effects import HALF_NORMAL, PARETO, half_normal_data, pareto_data
from doe.views.charts.fitted import (
    BOX_COX,
    CELL_MEANS,
    RESIDUALS,
    SPREAD,
    box_cox_data,
    cells_data,
    residual_data,
    spread_data,
)
from doe.views.charts.means import INTERACTIONS, MAIN, interaction_data, main_data
from doe.views.charts.model import ChartData, Record, filled, save, spec
from doe.views.charts.runs import CURVES, TIMELINE, curve_data, timeline_data


def response_charts(report: Report, name: str) -> dict[str, ChartData]:
    """Chart name -> data, for the charts that a response has."""
    analysis = report.analyses.get(name)
    unit = report.study.responses.unit_of(name)
    spreads = {cell.config: cell.spreads[name] for cell in report.cells if name in cell.spreads}
    ranked = [cell.config for cell in analysis.best.cells] if analysis else []
    label = f"Validation {name}{f' ({unit})' if unit else ''}"
    found = {
        SPREAD.name: spread_data(name, unit, spreads),
        CURVES.name: curve_data(label, report.curves.get(name, {}), ranked),
    }
    if analysis is not None:
        found |= {
            HALF_NORMAL.name: half_normal_data(analysis),
            PARETO.name: pareto_data(analysis),
            MAIN.name: main_data(analysis),
            INTERACTIONS.name: interaction_data(analysis),
            CELL_MEANS.name: cells_data(analysis),
            RESIDUALS.name: residual_data(analysis),
            BOX_COX.name: box_cox_data(analysis),
        }
    return {key: data for key, data in found.items() if data is not None}


def study_charts(report: Report) -> dict[str, ChartData]:
    """Chart name -> data, for the charts of the whole study."""
    found = {TIMELINE.name: timeline_data(_times(report.state.statuses))}
    if report.across is not None and len(report.analyses) > 1:
        found[HEATMAP.name] = heatmap_data(report.across, report.options.alpha)
    return {key: data for key, data in found.items() if data is not None}


def _times(views: list[RunStatus]) -> list[Record]:
    """When each run that ended began and ended, in seconds since the first began."""
    ended = []
    for seen in views:
        origin = seen.result.provenance if seen.result else {}
        if "start" in origin and "end" in origin:
            span = [datetime.fromisoformat(origin[key]).timestamp() for key in ("start", "end")]
            slot = " ".join(str(origin[k]) for k in ("host", "slot") if origin.get(k))
            ended.append((seen, span, slot))
    first = min((span[0] for _, span, _ in ended), default=0.0)
    return [
        {
            "run": seen.run.run_id,
            "config": seen.run.config,
            "slot": slot or "unnamed slot",
            "state": seen.state,
            "start": span[0] - first,
            "end": span[1] - first,
        }
        for seen, span, slot in ended
    ]


def save_charts(report: Report, names: tuple[str, ...], folder: Path) -> list[Path]:
    """Save the charts of the named responses and of the study as SVG, PDF and PNG."""
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    drawings = {drawing.name: spec(drawing) for drawing in (*BY_RESPONSE, *OF_STUDY)}
    for name, data in study_charts(report).items():
        written += save(filled(drawings[name], data), folder / name)
    for response in names:
        for name, data in response_charts(report, response).items():
            written += save(filled(drawings[name], data), folder / f"{response}-{name}")
    return written
