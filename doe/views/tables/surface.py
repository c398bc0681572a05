"""Tables of a response surface: coefficients, principal axes, the optimum, the path of ascent."""

from __future__ import annotations

from operator import attrgetter

from doe.analysis.analyze import Analysis
from doe.analysis.dataset import Level
from doe.analysis.surface import CodedUnit, Surface
from doe.errors import counted
from doe.numbers import Value, about, cell_text, confidence, with_interval
from doe.terms import level_text
from doe.views.table import Column, Row, Table, rows_of
from doe.views.tables import ResponseTable
from doe.views.words import after_number, mean_word

FAR = "Beyond the runs the path is extrapolated: run a few of its points before trusting it."
KINDS = {
    "maximum": "a maximum",
    "minimum": "a minimum",
    "saddle": "a saddle: neither the best nor the worst point",
    "ridge": "on a ridge: along a flat direction the response hardly changes",
}


def optimum_table(analysis: Analysis, _top: int | None = None) -> Table | None:
    """Return the optimum with its confidence region beside the stationary point; None without a
    goal.
    """
    surface = analysis.surface
    if surface is None or surface.optimum is None:
        return None
    region, stationary = surface.region, surface.stationary or {}
    columns = (
        Column("factor", "Factor"),
        Column("optimum", "Optimum", "level"),
        Column("low", f"{confidence(analysis.alpha)} region low", "level"),
        Column("high", "high", "level"),
        *([Column("stationary", "Stationary point", "level")] if stationary else []),
        Column("levels", "levels that may be best", keep=False),
    )
    rows = []
    for key, level in surface.optimum.levels.items():
        ends = (None, None) if region is None else (region.low.get(key), region.high.get(key))
        may = () if region is None else region.levels.get(key, ())
        own: tuple[Value, ...] = (key, _cell(level), *ends)
        own += (stationary.get(key),) if stationary else ()
        rows.append(Row((*own, ", ".join(map(level_text, may)))))
    if not any(row.values[-1] for row in rows):
        columns, rows = columns[:-1], [Row(row.values[:-1]) for row in rows]
    title = f"Optimum of {analysis.response}"
    notes = (optimum_text(analysis, surface), *_stationary_notes(surface, analysis))
    return Table(f"optimum {analysis.response}", title, columns, tuple(rows), notes)


def optimum_text(analysis: Analysis, surface: Surface) -> str:
    """Return what is predicted at the optimum: "Predicted mean 82.1 (81.9 to 82.4)"."""
    optimum = surface.optimum
    assert optimum is not None
    unit = after_number(analysis)
    span = ""
    mean, *ends = with_interval(optimum.mean, optimum.ci_low, optimum.ci_high)
    if ends:
        level, ends_text = confidence(analysis.alpha), " to ".join(ends)
        span = f" ({level} CI {ends_text}, for every point of the region at once)"
    where = "inside the region of the runs" if optimum.inside else "at the edge of the region"
    return f"Predicted: {mean_word(analysis)} {mean}{unit}{span}; it lies {where}."


def _cell(level: Level) -> Value:
    return level_text(level) if isinstance(level, bool) else level


def _stationary_notes(surface: Surface, analysis: Analysis) -> list[str]:
    if surface.kind is None:
        return []
    where = "inside" if surface.inside else "outside"
    mean = about(surface.stationary_mean)
    notes = [
        f"The stationary point is {KINDS[surface.kind]}; it lies {where} the region, at {mean}."
    ]
    unsure = [axis for axis in surface.axes if _unsure(axis.ci_low, axis.ci_high)]
    if unsure:
        which = counted(len(unsure), "eigenvalue")
        notes.append(f"The sign of {which} is uncertain, so the point may be of another kind.")
    return notes


def _unsure(low: float | None, high: float | None) -> bool:
    return low is None or high is None or low <= 0.0 <= high


def coefficients_table(analysis: Analysis, _top: int | None = None) -> Table | None:
    """Return the fitted polynomial in coded units."""
    surface = analysis.surface
    if surface is None:
        return None
    columns = (
        Column("term", "Term"),
        Column("coef", "Coefficient", "num"),
        Column("se", "SE", "num"),
        Column("low", "low", "num", keep=False),
        Column("high", "high", "num", keep=False),
        Column("t", "t", "num"),
        Column("p", "p", "p"),
    )
    rows = rows_of(
        columns,
        surface.coefficients,
        coef=attrgetter("estimate"),
        low=attrgetter("ci_low"),
        high=attrgetter("ci_high"),
    )
    held = ", ".join(f"{key} = {level_text(level)}" for key, level in surface.at.items())
    notes = [f"Coded: {', '.join(map(coding_text, surface.units))}; I is the mean at the centre."]
    notes += [f"At {held}."] if held else []
    title = f"Surface of {analysis.transform.label(analysis.response)} in coded units"
    return Table(f"surface {analysis.response}", title, columns, rows, tuple(notes))


def coding_text(unit: CodedUnit) -> str:
    """Return how a factor is coded: "Time 85 ± 5", or "lr 0.01 ×÷ 10" on a log scale."""
    sign = "×÷" if unit.log else "±"
    return f"{unit.factor} {cell_text(unit.centre, 'level')} {sign} {cell_text(unit.unit, 'level')}"


def axes_table(analysis: Analysis, _top: int | None = None) -> Table | None:
    """Eigenvalues with their directions; None where the surface has no squares."""
    surface = analysis.surface
    if surface is None or not surface.axes:
        return None
    keys = list(surface.axes[0].direction)
    columns = (
        Column("eigenvalue", "Eigenvalue", "num"),
        Column("low", f"{confidence(analysis.alpha)} low", "num"),
        Column("high", "high", "num"),
        *(Column(f"direction_{key}", key, "fixed2") for key in keys),
    )
    rows = tuple(
        Row((axis.eigenvalue, axis.ci_low, axis.ci_high, *axis.direction.values()))
        for axis in surface.axes
    )
    note = (
        "Curvature along each direction, in coded units: below zero the response falls off on both "
        "sides."
    )
    title = f"Principal axes of the surface of {analysis.response}"
    return Table(f"axes {analysis.response}", title, columns, rows, (note,))


def path_table(analysis: Analysis, _top: int | None = None) -> Table | None:
    """Return the path of steepest ascent; None where the surface bends."""
    surface = analysis.surface
    if surface is None or not surface.path:
        return None
    path = surface.path
    steps = (Column(f"step{p.step}", str(p.step), "level") for p in path)
    rows = [Row((key, *(_cell(p.levels[key]) for p in path))) for key in path[0].levels]
    predicted: dict[str, list[float | None]] = {
        f"Predicted {mean_word(analysis).lower()}": [p.mean for p in path],
        f"{confidence(analysis.alpha)} low": [p.ci_low for p in path],
        "high": [p.ci_high for p in path],
    }
    rows += [Row((name, *(cell_text(v, "short") for v in own))) for name, own in predicted.items()]
    way = "ascent" if analysis.goal == "max" else "descent"
    title = f"Path of steepest {way} of {analysis.response}"
    note = f"{FAR} Steps of one coded unit of the steepest factor."
    columns = (Column("step", "Step"), *steps)
    return Table(f"path {analysis.response}", title, columns, tuple(rows), (note,))


def surface_tables(analysis: Analysis) -> list[Table]:
    """Return all tables of a response surface."""
    made = (entry.make(analysis, None) for entry in ENTRIES)
    return [table for table in made if table is not None]


ENTRIES = (
    ResponseTable(12, optimum_table, files="paper"),
    ResponseTable(13, path_table, files="further"),
    ResponseTable(14, coefficients_table, files="paper"),
    ResponseTable(15, axes_table, files="further"),
)
