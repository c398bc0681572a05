"""The analysis of variance of factors with levels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from doe.analysis.pvalues import significant
from doe.errors import counted
from doe.numbers import cell_text
from doe.views.table import Column, Row, Table, starred
from doe.views.tables import ResponseTable
from doe.views.tables.anova import SHARED
from doe.views.words import quantity

if TYPE_CHECKING:
    from doe.analysis.levels.analyze import LevelAnalysis


def level_anova_table(analysis: LevelAnalysis, top: int | None = None) -> Table:
    """Terms with their degrees of freedom, F tests, adjusted p values and shares of variation."""
    table = analysis.anova
    tests = {test.term: test for test in analysis.tests}
    robust = any(test.p_hc3 is not None for test in analysis.tests)
    permutations, blocks = analysis.permutations, analysis.random_blocks
    exchanged = {} if permutations is None else {test.term: test.p for test in permutations.tests}
    random = {} if blocks is None else {term.term: term.p for term in blocks.terms}
    further = [
        *([Column("p_hc3", "p HC3", "p")] if robust else []),
        *([Column("p_permuted", "p perm.", "p")] if exchanged else []),
        *([Column("p_random", "p random", "p")] if random else []),
    ]
    columns = (
        Column("source", "Source"),
        Column("df", "df", "int"),
        Column("ss", "SS", "num"),
        Column("ms", "MS", "num", keep=False),
        Column("f", "F", "num"),
        Column("p", "p", "p"),
        Column("stars", "", "stars"),
        Column("p_holm", "p Holm", "p"),
        *further,
        Column("p_bh", "p BH", "p", keep=False),
        Column("percent", "Share", "percent", keep=False),
    )
    rows = []
    for row in table.rows:
        test = tests.get(row.source)
        more = {
            "p_hc3": None if test is None else test.p_hc3,
            "p_permuted": exchanged.get(row.source),
            "p_random": random.get(row.source),
        }
        rows.append(
            Row(
                (
                    *(row.source, row.df, row.ss, row.ms, row.f, row.p, starred(row.p)),
                    None if test is None else test.p_holm,
                    *(more[column.key] for column in further),
                    None if test is None else test.p_bh,
                    None if test is None else test.percent,
                ),
                style="total" if row.source == "Total" else "plain",
                marks={"source": "strong"} if significant(row.p, analysis.alpha) else {},
            )
        )
    kind = "" if table.balanced else f", type {table.kind}"
    return Table(
        f"anova {analysis.response}",
        f"Analysis of variance of {quantity(analysis)}{kind}, {analysis.n} runs",
        columns,
        tuple(rows),
        _notes(analysis),
    )


def _notes(analysis: LevelAnalysis) -> tuple[str, ...]:
    notes = ["*** ** * . at .001 .01 .05 .1; Holm and BH over the terms."]
    if analysis.sigma is not None and analysis.r2 is not None:
        degrees = counted(analysis.df_error, "degree")
        notes.append(
            f"F against the {analysis.anova.error} on {degrees} of freedom, "
            f"σ = {cell_text(analysis.sigma, 'short')}, R² = {cell_text(analysis.r2, 'fixed4')}."
        )
    if analysis.variation is not None:
        notes.append(f"The error is that {SHARED}")
    if analysis.anova.type3 is not None:
        tested = [
            f"{r.source} {cell_text(r.p, 'p')}" for r in analysis.anova.type3 if r.f is not None
        ]
        notes.append(f"p of type III: {', '.join(tested)}.")
    if analysis.random_blocks is not None:
        notes.append(analysis.random_blocks.sentence)
    if analysis.permutations is not None:
        how = analysis.permutations
        notes.append(f"p perm.: {how.permutations} exchanges within blocks, {how.method}.")
    return tuple(notes)


ENTRY = ResponseTable(11, level_anova_table, files="paper", levels=True)
