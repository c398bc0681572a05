"""Configurations, the best first."""

from __future__ import annotations

from doe.analysis.analyze import Analysis
from doe.analysis.best import ReducedModel
from doe.views.numbers import cell_text
from doe.views.table import Column, Row, Table
from doe.views.tables import ResponseTable

GEOMETRIC = (
    "Intervals are those of the geometric mean, from logarithms: one of the mean would reach below "
    "0, where no value is."
)
INTERVALS = "Intervals hold for all configurations at once, the selected ones included."


def best_table(analysis: Analysis, top: int | None = None) -> Table | None:
    """Configurations, the best first, with Hsu's comparisons; None where no goal is known."""
    best = analysis.best
    if best is None:
        return None
    logged = any(cell.geometric is not None for cell in best.cells)
    columns = (
        Column("config", "Configuration"),
        Column("n", "n", "int"),
        Column("mean", "Mean", "num"),
        *([Column("geometric", "Geom. mean", "num")] if logged else []),
        Column("ci_low", "low", "num"),
        Column("ci_high", "high", "num"),
        Column("among", "among the best"),
        Column("mcb_low", "Hsu low", "num", keep=False),
        Column("mcb_high", "Hsu high", "num", keep=False),
    )
    rows = tuple(
        Row(
            (
                *(c.config, c.n, c.mean),
                *([c.geometric] if logged else []),
                *(c.ci_low, c.ci_high),
                None if best.critical is None else c.among_best,
                *(c.mcb_low, c.mcb_high),
            ),
            marks={"config": "strong"} if c.among_best else {},
        )
        for c in best.cells[:top]
    )
    intervals = [INTERVALS] if best.critical is not None else []
    intervals += [GEOMETRIC] if logged else []
    notes = (best.sentence, _reduced_text(best.reduced), *intervals)
    title = f"Configurations by {analysis.response}, the best first"
    return Table(f"best {analysis.response}", title, columns, rows, notes)


def _reduced_text(reduced: ReducedModel) -> str:
    if not reduced.terms:
        return "No term is active, so that no configuration is predicted to differ from the mean."
    mean, low, high = (
        cell_text(value, "short")
        for value in (reduced.best.mean, reduced.best.ci_low, reduced.best.ci_high)
    )
    prediction = f"{reduced.best.config} at {mean}"
    if reduced.best.ci_low is not None:
        prediction += f" ({low} to {high})"
    terms = " ".join(reduced.terms)
    return f"Reduced model ({terms}) predicts the best: {prediction}; what is not named is open."


ENTRY = ResponseTable(30, best_table, on_screen=6, files="further")
