"""Configurations, the best first."""

from __future__ import annotations

from doe.analysis.analyze import Analysis
from doe.analysis.best import ReducedModel
from doe.analysis.response import ResponseAnalysis
from doe.numbers import cell_text
from doe.terms import BETWEEN, config_header
from doe.views.table import Column, Row, Table
from doe.views.tables import ResponseTable
from doe.views.words import mean_word

BEFORE = "Before confirmation: the best of many is optimistic; doe plan --confirm N runs it again."
OPTIMISTIC = "The best of many is optimistic: run it again with fresh seeds before relying on it."


def best_table(analysis: ResponseAnalysis, top: int | None = None) -> Table | None:
    """Configurations, the best first, with Hsu's comparisons; None where no goal is known."""
    best = analysis.best
    if best is None:
        return None
    columns = (
        Column("config", config_header([factor.key for factor in analysis.factors])),
        Column("n", "n", "int"),
        Column("mean", mean_word(analysis), "num"),
        Column("among", "among the best"),
        Column("mcb_low", "Hsu low", "num", keep=False),
        Column("mcb_high", "Hsu high", "num", keep=False),
    )
    rows = tuple(
        Row(
            (
                *(c.config, c.n, c.mean),
                None if best.critical is None else c.among_best,
                *(c.mcb_low, c.mcb_high),
            ),
            marks={"config": "strong"} if c.among_best else {},
        )
        for c in best.cells[:top]
    )
    title = f"Configurations by {analysis.response}, the best first"
    notes = (best.sentence, *_notes(analysis))
    return Table(f"best {analysis.response}", title, columns, rows, notes)


def _notes(analysis: ResponseAnalysis) -> tuple[str, ...]:
    """What is predicted to be best, and that the best was chosen for its luck as well."""
    if not isinstance(analysis, Analysis):
        return (OPTIMISTIC,)
    predicted = () if analysis.best is None else (_reduced_text(analysis.best.reduced),)
    return predicted if analysis.confirmation is not None else (*predicted, BEFORE)


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
    rest = "" if BETWEEN in reduced.best.config else "; what is not named is open"
    return f"Reduced model ({terms}) predicts the best: {prediction}{rest}."


ENTRY = ResponseTable(30, best_table, on_screen=6, files="further", levels=None)
