"""Effects: by size, negligible, adjusted, aliased, on two scales, and by response."""

from __future__ import annotations

from collections.abc import Sequence

from doe.analysis.analyze import Analysis
from doe.analysis.anova import AnovaRow
from doe.analysis.both_scales import TermOnScales
from doe.analysis.effects import Effect
from doe.analysis.effects_by_response import EffectsByResponse
from doe.analysis.estimators.covariates import Covariates
from doe.analysis.estimators.equivalence import Equivalence
from doe.analysis.pvalues import significant
from doe.errors import counted
from doe.numbers import about, cell_text, confidence
from doe.results.report import Report
from doe.terms import order
from doe.views.table import Column, Mark, Row, Table, rows_of
from doe.views.tables import MOST_ROWS, ResponseTable, StudyTables
from doe.views.words import LOOKS, MARKS, effect_on, helps


def effects_table(analysis: Analysis, top: int | None = None) -> Table | None:
    """Effects of two-level terms by size, with a bar, the interval, tests and adjusted p values.

    None where no factor has two levels.
    """
    if not analysis.effects:
        return None
    ranked = sorted(analysis.effects, key=lambda e: -abs(e.effect))
    ratio = analysis.transform.scale.ratio
    back = {e.term: e for e in analysis.response_scale}
    columns = (
        Column("term", "Term"),
        Column("effect", "Effect", "signed"),
        Column("size", "", "bar", keep=analysis.strata is None),
        Column("ci_low", f"{confidence(analysis.alpha)} low", "num"),
        Column("ci_high", "high", "num"),
        *([Column("back", "Ratio" if ratio else "Response scale", "num")] if back else []),
        Column("p", "p", "p"),
        Column("stars", "", "stars"),
        *stratum_columns(analysis),
        Column("p_holm", "p Holm", "p", keep=False),
        Column("p_bh", "p BH", "p", keep=False),
        Column("percent", "Share", "percent", keep=False),
        Column("t", "t", "num", keep=False),
        Column("se", "SE", "num", keep=False),
        Column("coef", "Coef", "signed", keep=False),
        Column("ss", "SS", "num", keep=False),
    )
    block = f", blocks: {analysis.block}" if analysis.block else ""
    rows = rows_of(
        columns,
        ranked[:top],
        lambda e: _marks(e, analysis),
        size=lambda e: e.effect,
        back=lambda e: back[e.term].value,
        stratum=stratum_text,
    )
    return Table(
        name=f"effects {analysis.response}",
        title=f"Effects on {effect_on(analysis)}, {counted(analysis.n, 'run')}{block}",
        columns=columns,
        rows=rows,
        notes=_effect_notes(analysis, ranked[len(rows) :]),
    )


def stratum_columns(analysis: Analysis) -> tuple[Column, ...]:
    """Against which error and on how many degrees of freedom, where there are several."""
    if analysis.strata is None:
        return ()
    return (Column("stratum", "Error, df"), Column("df_error", "df error", "num", keep=False))


def stratum_text(tested: Effect | AnovaRow) -> str:
    """Return the stratum whose error a term is tested against, with its degrees of freedom."""
    df = "" if tested.df_error is None else f", {cell_text(tested.df_error, 'short')}"
    return f"{tested.stratum}{df}"


def _marks(effect: Effect, analysis: Analysis) -> dict[str, Mark]:
    if not significant(effect.p_holm, analysis.alpha):
        return {}
    if order(effect.mask) > 1:  # which way an interaction points depends on how levels are coded
        return {"term": "strong"}
    mark = MARKS[helps(effect.effect, analysis.goal)]
    return {"effect": mark, "size": mark, "term": "strong"}


def _effect_notes(analysis: Analysis, rest: Sequence[Effect]) -> tuple[str, ...]:
    goal = "No goal is set, so no effect is called good or bad."
    if analysis.goal is not None:
        helping = "positive" if analysis.goal == "max" else "negative"
        goal = f"Goal: {analysis.goal}, so {helping} main effects help."
    notes = [
        "*** ** * . at .001 .01 .05 .1; bold: significant after Holm's adjustment. "
        f"Effect = mean at high − mean at low = 2 × coefficient. {goal}"
    ]
    if analysis.strata is not None:
        notes.append(analysis.strata.sentence)
    elif analysis.sigma is not None:
        notes.append(
            f"t on {counted(analysis.df_error, 'degree')} of freedom, {analysis.anova.error} "
            f"σ = {about(analysis.sigma)}, "
            f"R² = {cell_text(analysis.r2 or 0.0, 'fixed3')}. Intervals are of single effects."
        )
    elif analysis.lenth is not None:
        notes.append("No error to test against: p is Lenth's, simulated.")
    if analysis.looks:
        notes.append(LOOKS)
    if word := analysis.transform.scale.ratio:
        notes.append(f"Ratio: {word} at high over {word} at low, on the response scale.")
    if rest:
        largest = about(abs(rest[0].effect))
        notes.append(
            f"{counted(len(rest), 'smaller effect')} left out, at most {largest} in size "
            f"({rest[0].term}); all of them with --csv or --json."
        )
    return tuple(notes)


def chains_table(analysis: Analysis, top: int | None = None) -> Table | None:
    """Return the alias chain of each effect of a fraction, with signs."""
    chains = analysis.aliases
    if not chains:
        return None
    rows = tuple(Row((term, " = ".join(("", *others)).strip())) for term, *others in chains[:top])
    notes = ["An effect is that of its term plus or minus those beside it, by their signs."]
    if len(chains) > len(rows):
        notes.append(f"{len(chains) - len(rows)} further chains with --json.")
    columns = (Column("term", "Estimated"), Column("aliases", "Aliased with"))
    return Table(f"aliases {analysis.response}", "Alias chains", columns, rows, tuple(notes))


def scales_table(analysis: Analysis, top: int | None = None) -> Table | None:
    """Return every term on both scales; those that only one of them calls significant come
    first.
    """
    both = analysis.scales
    if both is None:
        return None
    alpha = analysis.alpha
    ranked = sorted(
        both.terms, key=lambda t: (agree(t, alpha), -max(t.percent, t.log_percent), t.term)
    )
    columns = (
        Column("term", "Term"),
        Column("effect", "Raw: effect", "signed"),
        Column("p_holm", "p Holm", "p"),
        Column("percent", "share", "percent"),
        Column("ratio", "Log: ratio", "num"),
        Column("ratio_low", f"{confidence(alpha)} low", "num"),
        Column("ratio_high", "high", "num"),
        Column("log_p_holm", "p Holm", "p"),
        Column("log_percent", "share", "percent"),
    )
    rows = rows_of(columns, ranked[:top], lambda t: _scale_marks(t, alpha))
    notes = (
        both.sentence,
        f"R² is {cell_text(both.r2, 'fixed3')} on the raw scale and "
        f"{cell_text(both.log_r2, 'fixed3')} on the log scale. Effect: mean at high − mean at low. "
        "Ratio: geometric mean at high over that at low. Share: of the variation on that scale.",
    )
    title = f"{analysis.response} on the raw and on the log scale, side by side"
    return Table(f"scales {analysis.response}", title, columns, rows, notes)


def agree(term: TermOnScales, alpha: float) -> bool:
    """Return whether both scales call a term significant, or neither does."""
    return significant(term.p_holm, alpha) == significant(term.log_p_holm, alpha)


def _scale_marks(term: TermOnScales, alpha: float) -> dict[str, Mark]:
    marks: dict[str, Mark] = {}
    if significant(term.p_holm, alpha):
        marks |= {"effect": "strong", "p_holm": "strong"}
    if significant(term.log_p_holm, alpha):
        marks |= {"ratio": "strong", "log_p_holm": "strong"}
    return marks | ({"term": "strong"} if marks else {})


def equivalence_table(analysis: Analysis, top: int | None = None) -> Table | None:
    """Effects beside what matters, those that are known to be negligible first."""
    tested = analysis.get(Equivalence)
    if tested is None:
        return None
    columns = (
        Column("term", "Term"),
        Column("effect", "Effect", "signed"),
        Column("low", "low", "short"),
        Column("high", "high", "short"),
        Column("p", "p", "p"),
        Column("p_all", "p, all terms", "p"),
        Column("within", "negligible"),
    )
    ranked = sorted(tested.rows, key=lambda r: r.p or 0.0)[:top]
    rows = rows_of(columns, ranked, within=lambda r: "yes" if r.within else "not shown")
    number = sum(row.within for row in tested.rows)
    notes = (
        f"{number} of {len(tested.rows)} effects lie within ± {cell_text(tested.matters, 'short')}"
        f" {analysis.unit}".rstrip()
        + f": two one-sided tests, together with {confidence(analysis.alpha)}. "
        "An effect that is not shown to be negligible may still not matter."
        + " Tested on the analysed scale; all sizes are differences of the response around its "
        "mean there."
        * (tested.scale != "none")
        + " The other rows with --csv." * (len(rows) < len(tested.rows)),
    )
    return Table(f"equivalence {analysis.response}", "Negligible effects", columns, rows, notes)


def covariates_table(analysis: Analysis, top: int | None = None) -> Table | None:
    """Return the slope of each covariate, and what the adjustment gains."""
    adjusted = analysis.get(Covariates)
    if adjusted is None:
        return None
    columns = (
        Column("name", "Covariate"),
        Column("slope", "Slope", "signed"),
        Column("se", "SE", "num"),
        Column("p", "p", "p"),
    )
    rows = rows_of(columns, adjusted.rows[:top])
    notes = (adjusted.sentence, "Effects and means are those of runs with the mean covariate.")
    return Table(f"covariates {analysis.response}", "Covariates", columns, rows, notes)


# Several responses --------------------------------------------------------------------------------


def by_response_table(
    table: EffectsByResponse, analyses: Sequence[Analysis], top: int | None = None
) -> Table:
    """Terms by responses, the most significant first.

    Where a term has several degrees of freedom, and so no single effect, adjusted p stand in the
    place of effects.
    """
    single = all(effect is not None for row in table.rows for effect in row.effects)
    alpha = analyses[0].alpha
    rows = []
    for row in table.rows[:top]:
        marks: dict[str, Mark] = {}
        for a, effect, p in zip(analyses, row.effects, row.p_bh, strict=True):
            if significant(p, alpha):
                directed = single and effect is not None and order(row.mask) == 1
                helping = helps(effect or 0.0, a.goal) if directed else None
                marks |= {"term": "strong", a.response: MARKS[helping]}
        rows.append(Row((row.term, *(row.effects if single else row.p_bh)), marks=marks))
    columns = (
        Column("term", "Term"),
        *(
            Column(name, name, "signed2" if single else "p", keep=i < 6)
            for i, name in enumerate(table.responses)
        ),
    )
    title = "Effects by response" if single else "Terms by response, adjusted p"
    notes = [
        f"Ranked by {table.ranked_by}. Marked: significant at {alpha:g} with the false discovery "
        f"rate controlled over all {table.tests} tests."
    ]
    if top is not None and len(table.rows) > top:
        notes.append(f"{len(table.rows) - top} further terms with --csv or --json.")
    return Table("effects", title, columns, tuple(rows), tuple(notes), essence=True)


def _family_tables(report: Report) -> list[Table]:
    if report.effects_by_response is None or len(report.analyses) < 2:
        return []
    return [
        by_response_table(report.effects_by_response, list(report.analyses.values()), MOST_ROWS)
    ]


ENTRIES = (
    ResponseTable(10, effects_table, on_screen=20, files="paper"),
    ResponseTable(12, equivalence_table, on_screen=20, asked=True),
    ResponseTable(14, covariates_table, files="further"),
    ResponseTable(15, chains_table, on_screen=20),
    ResponseTable(16, scales_table, screen="never"),
    StudyTables(20, "all", _family_tables, files="paper"),
)
