"""Analysis of variance, the lines and curves of numbers, and where variation comes from."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from doe.analysis.analyze import Analysis
from doe.analysis.anova import AnovaRow
from doe.analysis.effects import TermTest
from doe.analysis.pvalues import significant
from doe.analysis.streams import REST
from doe.errors import counted
from doe.numbers import cell_text, confidence
from doe.views.table import Column, Mark, Row, Table, rows_of, starred
from doe.views.tables import ResponseTable
from doe.views.tables.effects import stratum_columns, stratum_text
from doe.views.words import LOOKS, curvature_text, effect_on, quantity

FIXED = {"Block", "Curvature", "Lack of fit", "Error", "Total"}
"""Sources that are not terms; always shown."""
SHARED = (
    "which averaging over replicates that share seeds does not reduce; it is not the line Error."
)
"""What an error over seeds is, beside the line of the table that it is not."""
SKEWED = (
    "The intervals assume normal variation over seeds, and a check indicates otherwise: their "
    "coverage may be 90 % instead of 95 %. Try --transform log."
)


def anova_table(analysis: Analysis, top: int | None = None) -> Table:
    """Sources of variation with F tests and adjusted p; beyond `top` the smallest are left out."""
    table = analysis.anova
    terms = [row for row in table.rows if row.source not in FIXED]
    kept = sorted(terms, key=lambda row: -row.ss)[:top]
    names = {row.source for row in kept} | FIXED
    tests = {test.term: test for test in analysis.tests}
    blocks = analysis.random_blocks
    random = {} if blocks is None else {term.term: term.p for term in blocks.terms}
    columns = (
        Column("source", "Source"),
        Column("df", "df", "int"),
        Column("ss", "SS", "num"),
        Column("ms", "MS", "num", keep=analysis.strata is None),
        Column("f", "F", "num"),
        Column("p", "p", "p"),
        Column("stars", "", "stars"),
        *stratum_columns(analysis),
        *([Column("p_random", "p random", "p")] if random else []),
        Column("p_holm", "p Holm", "p", keep=False),
        Column("p_bh", "p BH", "p", keep=False),
        Column("percent", "Share", "percent", keep=False),
    )

    def marks(row: AnovaRow) -> dict[str, Mark]:
        test = tests.get(row.source)
        return {"source": "strong"} if test and significant(test.p_holm, analysis.alpha) else {}

    rows = rows_of(
        columns,
        (row for row in table.rows if row.source in names),
        marks,
        stratum=stratum_text,
        p_random=lambda row: random.get(row.source),
        **{key: partial(_of_test, tests, key) for key in ("p_holm", "p_bh", "percent")},
    )
    rows = tuple(row._replace(style="total") if row.values[0] == "Total" else row for row in rows)
    kind = "" if table.balanced else f", type {table.kind}"
    return Table(
        name=f"anova {analysis.response}",
        title=f"Analysis of variance of {quantity(analysis)}{kind}",
        columns=columns,
        rows=rows,
        notes=_notes(analysis, len(terms) - len(kept)),
    )


def _of_test(tests: Mapping[str, TermTest], key: str, row: AnovaRow) -> float | None:
    """Columns that the test of a term adds to its line; lines that are not terms have nothing."""
    found: float | None = getattr(tests.get(row.source), key, None)
    return found


def _notes(analysis: Analysis, left_out: int) -> tuple[str, ...]:
    table = analysis.anova
    notes = [LOOKS] if analysis.looks else []
    if left_out:
        notes.append(f"{left_out} terms with smaller sums of squares are not shown.")
    if table.r2_adjusted is not None and table.r2 is not None:
        predicted = table.r2_predicted
        notes.append(
            f"R² {cell_text(table.r2, 'fixed3')}, adjusted {cell_text(table.r2_adjusted, 'fixed3')}"
            + (f", predicted {cell_text(predicted, 'fixed3')}." if predicted is not None else ".")
        )
    if analysis.strata is not None:
        notes.append(analysis.strata.sentence)
    elif analysis.sigma is not None:
        degrees = counted(analysis.df_error, "degree")
        shared = f", {SHARED}" if analysis.variation is not None else "."
        notes.append(f"F against the {table.error} on {degrees} of freedom{shared}")
    if table.type2 is not None:
        pairs = zip(table.rows, table.type2, strict=True)
        other = [f"{b.source} {cell_text(b.p, 'p')}" for a, b in pairs if b.f is not None]
        notes.append(f"p of type II, after all terms that do not contain it: {', '.join(other)}.")
    blocks = (analysis.random_blocks, table.blocking)
    return (*notes, *(part.sentence for part in blocks if part is not None))


def parts_table(analysis: Analysis, top: int | None = None) -> Table | None:
    """Along which line or curve numeric factors act; None where there is none of three levels."""
    curved = {part.factor for part in analysis.parts if part.part != "linear"}
    parts = [part for part in analysis.parts if part.factor in curved]
    if not parts and analysis.curvature is None:
        return None
    columns = (
        Column("factor", "Factor"),
        Column("part", "Part"),
        Column("df", "df", "int"),
        Column("estimate", "Estimate", "signed"),
        Column("ci_low", f"{confidence(analysis.alpha)} low", "num"),
        Column("ci_high", "high", "num"),
        Column("f", "F", "num", keep=False),
        Column("p", "p", "p"),
        Column("stars", "", "stars"),
    )
    scales = {factor.key: factor.scale for factor in analysis.factors}
    rows = []
    for part in parts:
        name = f"{part.part} on {scales[part.factor]} scale"
        figures = (part.estimate, part.ci_low, part.ci_high, part.f, part.p, starred(part.p))
        rows.append(Row((part.factor, name, part.df, *figures)))
    notes = []
    if parts:
        notes.append(
            "Linear: change along the line from the least to the greatest level. Quadratic: how "
            "far the middle of the scale lies above the ends. Intervals are of single lines."
        )
    if (bend := analysis.curvature) is not None:
        f = None if bend.t is None else bend.t**2
        figures = (bend.difference, bend.ci_low, bend.ci_high, f, bend.p, starred(bend.p))
        rows.append(Row(("all", "curvature at the centre", 1, *figures)))
        notes.append(curvature_text(analysis))
    title = f"Lines and curves: {effect_on(analysis)}"
    return Table(f"parts {analysis.response}", title, columns, tuple(rows), tuple(notes))


def variation_table(analysis: Analysis, _top: int | None = None) -> Table | None:
    """Return the variance between runs of one configuration by stream; None with one stream
    alone.
    """
    variation = analysis.variation
    if variation is None:
        return None
    columns = (
        Column("stream", "Stream"),
        Column("seeds", "Seeds", "int"),
        Column("variance", "Variance", "num"),
        Column("share", "Share, %", "int"),
        Column("share_low", f"{confidence(analysis.alpha)} low", "int"),
        Column("share_high", "high", "int"),
        Column("common", "common to all", "num", keep=False),
        Column("variance_low", "Variance low", "num", keep=False),
        Column("variance_high", "high", "num", keep=False),
    )
    rows = rows_of(
        columns,
        variation.components,
        stream=lambda c: c.name,
        seeds=lambda c: None if c.stream == REST else c.seeds,
        share=lambda c: 100.0 * c.share,
        share_low=lambda c: 100.0 * c.share_low,
        share_high=lambda c: 100.0 * c.share_high,
    )
    notes = [
        variation.sentence,
        f"From {variation.configurations} configurations with a value in each of "
        f"{variation.replicates} replicates; effects are tested against what their mean over these "
        "seeds leaves uncertain.",
    ]
    if doubted(analysis):
        notes.append(SKEWED)
    title = f"Where the variation of {analysis.response} comes from"
    return Table(f"variation {analysis.response}", title, columns, rows, tuple(notes))


def strata_table(analysis: Analysis, _top: int | None = None) -> Table | None:
    """Return the error of each stratum and what is tested against it; None where there is but
    one.
    """
    if analysis.strata is None:
        return None
    columns = (
        Column("stratum", "Error of"),
        Column("groups", "Groups", "int"),
        Column("df", "df", "int"),
        Column("ms", "MS", "num"),
        Column("variance", "Variance", "num"),
        Column("terms", "Terms tested against it"),
    )
    rows = rows_of(
        columns,
        analysis.strata.strata,
        stratum=lambda line: line.name,
        terms=lambda line: (
            ", ".join(line.terms) + " (no error left)" * (line.lacking and bool(line.terms))
        ),
    )
    title = f"Errors of {analysis.response}, by stratum"
    return Table(f"strata {analysis.response}", title, columns, rows, (analysis.strata.sentence,))


def doubted(analysis: Analysis) -> bool:
    """Return whether the check of normality raises an alarm."""
    return any(f.check == "normality" and not f.ok for f in analysis.diagnostics.findings)


ENTRIES = (
    ResponseTable(20, anova_table, on_screen=10, files="paper"),
    ResponseTable(22, strata_table, files="further"),
    ResponseTable(23, parts_table, files="further"),
    ResponseTable(25, variation_table, files="further"),
)
