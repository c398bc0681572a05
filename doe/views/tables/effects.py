"""Effects ranked by magnitude."""

from __future__ import annotations

from collections.abc import Sequence

from doe.analysis.analyze import Analysis
from doe.analysis.effects import Effect
from doe.analysis.pvalues import significant
from doe.errors import counted
from doe.numbers import cell_text, confidence
from doe.views.table import Column, Mark, Row, Table, starred
from doe.views.tables import ResponseTable
from doe.views.words import LOOKS, MARKS, helps, quantity


def effects_table(analysis: Analysis, top: int | None = None) -> Table:
    """Effects ranked by magnitude, with a bar, the interval, tests and adjusted p values."""
    ranked = sorted(analysis.effects, key=lambda e: -abs(e.effect))
    ratio = analysis.transform.scale.ratio
    back = {e.term: e for e in analysis.response_scale}
    columns = (
        Column("term", "Term"),
        Column("effect", "Effect", "signed"),
        Column("size", "", "bar"),
        Column("ci_low", f"{confidence(analysis.alpha)} low", "num"),
        Column("ci_high", "high", "num"),
        *([Column("back", "Ratio" if ratio else "Response scale", "num")] if back else []),
        Column("p", "p", "p"),
        Column("stars", "", "stars"),
        Column("p_holm", "p Holm", "p", keep=False),
        Column("p_bh", "p BH", "p", keep=False),
        Column("percent", "Share", "percent", keep=False),
        Column("t", "t", "num", keep=False),
        Column("se", "SE", "num", keep=False),
        Column("coef", "Coef", "signed", keep=False),
        Column("ss", "SS", "num", keep=False),
    )
    block = f", blocks: {analysis.block}" if analysis.block else ""
    rows = tuple(
        Row(
            (
                *(e.term, e.effect, abs(e.effect), e.ci_low, e.ci_high),
                *([back[e.term].value] if back else []),
                *(e.p, starred(e.p), e.p_holm, e.p_bh, e.percent, e.t, e.se, e.coef, e.ss),
            ),
            marks=_marks(e, analysis),
        )
        for e in ranked[:top]
    )
    return Table(
        name=f"effects {analysis.response}",
        title=f"Effects on {quantity(analysis)}, {counted(analysis.n, 'run')}{block}",
        columns=columns,
        rows=rows,
        notes=_effect_notes(analysis, ranked[len(rows) :]),
    )


def _marks(effect: Effect, analysis: Analysis) -> dict[str, Mark]:
    if not significant(effect.p_holm, analysis.alpha):
        return {}
    mark = MARKS[helps(effect.effect, analysis.goal)]
    return {"effect": mark, "size": mark, "term": "strong"}


def _effect_notes(analysis: Analysis, rest: Sequence[Effect]) -> tuple[str, ...]:
    goal = "No goal was said, so that no effect is called good or bad."
    if analysis.goal is not None:
        helping = "positive" if analysis.goal == "max" else "negative"
        goal = f"Goal: {analysis.goal}, so that {helping} effects help."
    notes = [
        "*** ** * . at .001 .01 .05 .1; bold: significant after Holm's adjustment. "
        f"Effect = mean at high − mean at low = 2 × coefficient. {goal}"
    ]
    if analysis.sigma is not None:
        notes.append(
            f"t on {counted(analysis.df_error, 'degree')} of freedom, {analysis.anova.error} "
            f"σ = {cell_text(analysis.sigma, 'short')}, "
            f"R² = {cell_text(analysis.r2 or 0.0, 'fixed4')}."
        )
    elif analysis.lenth is not None:
        notes.append("No error to test against: p is Lenth's, simulated.")
    if analysis.looks:
        notes.append(LOOKS)
    if analysis.transform.scale.ratio:
        notes.append("Ratio: geometric mean at high over that at low, on the response scale.")
    if rest:
        largest = cell_text(abs(rest[0].effect), "short")
        notes.append(
            f"{counted(len(rest), 'smaller effect')} left out, at most {largest} in size "
            f"({rest[0].term}); all of them with --csv or --json."
        )
    return tuple(notes)


ENTRY = ResponseTable(10, effects_table, on_screen=20, files="paper")
