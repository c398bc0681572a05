"""Tables of an analysis: every number comes from the frozen values, nothing is computed here."""

from __future__ import annotations

from collections.abc import Sequence

from doe.analysis.across import Across
from doe.analysis.analyze import Analysis
from doe.analysis.anova import AnovaRow
from doe.analysis.best import ReducedModel
from doe.analysis.censored import CensoredAnalysis
from doe.analysis.diagnostics import Finding
from doe.analysis.effects import Effect
from doe.analysis.estimators.dispersion import Dispersion
from doe.views.table import Column, Mark, Row, Table, Value, minus

TOP = 20
"""Rows of a ranked table on the terminal."""


def effects_table(analysis: Analysis, top: int | None = None) -> Table:
    """Effects ranked by magnitude, with a bar, the interval, tests and adjusted p values."""
    ranked = sorted(analysis.effects, key=lambda e: -abs(e.effect))
    shown = ranked[:top]
    columns = [
        Column("term", "Term"),
        Column("effect", "Effect", "signed"),
        Column("size", "", "bar"),
        Column("ci_low", "95% low" if analysis.alpha == 0.05 else "Low", "num"),
        Column("ci_high", "high", "num"),
        Column("p", "p", "p"),
        Column("stars", "", "stars"),
    ]
    further = [
        Column("p_holm", "p Holm", "p", keep=False),
        Column("p_bh", "p BH", "p", keep=False),
        Column("percent", "Share", "percent", keep=False),
        Column("t", "t", "num", keep=False),
        Column("se", "SE", "num", keep=False),
        Column("coef", "Coef", "signed", keep=False),
        Column("ss", "SS", "num", keep=False),
    ]
    back = {e.term: e for e in analysis.response_scale}
    if back:
        ratio = analysis.transform.scale.ratio
        columns.insert(5, Column("back", "Ratio" if ratio else "Response scale", "num"))
    rows = []
    for e in shown:
        values: list[Value] = [e.term, e.effect, abs(e.effect), e.ci_low, e.ci_high, e.p, e.p]
        if back:
            values.insert(5, back[e.term].value)
        more = (e.p_holm, e.p_bh, e.percent, e.t, e.se, e.coef, e.ss)
        rows.append(Row((*values, *more), marks=_marks(e, analysis)))
    return Table(
        name=f"effects {analysis.response}",
        title=f"Effects on {_quantity(analysis)}, {_model_text(analysis)}",
        columns=(*columns, *further),
        rows=tuple(rows),
        notes=_effect_notes(analysis, ranked[len(shown) :]),
    )


def _quantity(analysis: Analysis) -> str:
    unit = f" [{analysis.unit}]" if analysis.unit else ""
    return analysis.transform.label(analysis.response) + unit


def _model_text(analysis: Analysis) -> str:
    block = f", blocks: {analysis.block}" if analysis.block else ""
    return f"{analysis.n} runs{block}"


def _marks(effect: Effect, analysis: Analysis) -> dict[str, Mark]:
    if effect.p is None or effect.p > analysis.alpha:
        return {}
    helps = (effect.effect > 0) == (analysis.goal == "max")
    mark: Mark = "good" if helps else "bad"
    return {"effect": mark, "size": mark, "term": "strong"}


def _effect_notes(analysis: Analysis, rest: Sequence[Effect]) -> tuple[str, ...]:
    helping = "positive" if analysis.goal == "max" else "negative"
    notes = [
        "*** ** * . at .001 .01 .05 .1. Effect = mean at high − mean at low = 2 × coefficient. "
        f"Goal: {analysis.goal}, so that {helping} effects help."
    ]
    if analysis.sigma is not None:
        notes.append(
            f"t on {analysis.df_error} degrees of freedom, {analysis.anova.error} "
            f"σ = {analysis.sigma:.4g}, R² = {analysis.r2 or 0.0:.4f}."
        )
    elif analysis.lenth is not None:
        notes.append("No error to test against: p is Lenth's, simulated.")
    if analysis.transform.scale.ratio:
        notes.append("Ratio: geometric mean at high over that at low, on the response scale.")
    if rest:
        notes.append(
            f"{len(rest)} smaller effects follow, at most {abs(rest[0].effect):.3g} in size "
            f"({rest[0].term}); all of them with --csv or --json."
        )
    return tuple(notes)


def anova_table(
    analysis: Analysis, top: int | None = None, rows: Sequence[AnovaRow] | None = None
) -> Table:
    """Analysis of variance; beyond `top` terms the smallest are left to the full table."""
    rows = analysis.anova.rows if rows is None else rows
    fixed = {"Block", "Lack of fit", "Error", "Total"}
    terms = [row for row in rows if row.source not in fixed]
    kept = sorted(terms, key=lambda row: -row.ss)[:top]
    names = {row.source for row in kept} | fixed
    second = rows is analysis.anova.type2
    kind = "" if analysis.anova.balanced else ", type II" if second else ", type III"
    notes = []
    if len(kept) < len(terms):
        notes.append(f"{len(terms) - len(kept)} terms with smaller sums of squares are not shown.")
    if analysis.anova.r2_adjusted is not None and analysis.anova.r2 is not None:
        predicted = analysis.anova.r2_predicted
        notes.append(
            f"R² {analysis.anova.r2:.4f}, adjusted {analysis.anova.r2_adjusted:.4f}"
            + (f", predicted {predicted:.4f}." if predicted is not None else ".")
        )
    if analysis.anova.blocking is not None:
        notes.append(analysis.anova.blocking.sentence)
    return Table(
        name=f"anova {analysis.response}{' type 2' if second else ''}",
        title=f"Analysis of variance of {_quantity(analysis)}{kind}",
        columns=(
            Column("source", "Source"),
            Column("df", "df", "int"),
            Column("ss", "SS", "num"),
            Column("ms", "MS", "num"),
            Column("f", "F", "num"),
            Column("p", "p", "p"),
            Column("stars", "", "stars"),
        ),
        rows=tuple(
            Row(
                (
                    row.source,
                    row.df,
                    row.ss,
                    row.ms,
                    row.f,
                    row.p,
                    row.p if row.p is not None else "",
                ),
                style="total" if row.source == "Total" else "plain",
            )
            for row in rows
            if row.source in names
        ),
        notes=tuple(notes),
    )


def lenth_table(analysis: Analysis) -> Table | None:
    """Lenth's margins by both critical values."""
    found = analysis.lenth
    if found is None:
        return None
    columns = (
        Column("critical", "Critical values"),
        Column("s0", "s0", "num"),
        Column("pse", "PSE", "num"),
        Column("me", "ME", "num"),
        Column("sme", "SME", "num"),
        Column("beyond", "beyond ME"),
    )
    used = "simulated (used for p)" if analysis.df_error == 0 else "simulated"
    margins = ((used, found.me, found.sme), ("t, m/3 df", found.me_t, found.sme_t))
    rows = tuple(
        Row((name, found.s0, found.pse, me, sme, _beyond(analysis, me)))
        for name, me, sme in margins
    )
    title = f"Lenth's method on {found.m} effects"
    return Table(f"lenth {analysis.response}", title, columns, rows)


def _beyond(analysis: Analysis, margin: float) -> str:
    """Terms whose effect exceeds a margin, the largest first."""
    assert analysis.lenth is not None
    names = [p.term for p in reversed(analysis.lenth.points) if p.magnitude > margin]
    return " ".join(names[:8]) + (f" +{len(names) - 8}" if len(names) > 8 else "") or "none"


def alias_table(analysis: Analysis, top: int | None = None) -> Table | None:
    """What each effect of a fraction stands for, sign and all."""
    chains = [chain.partition(" = ") for chain in analysis.aliases]
    if not chains:
        return None
    rows = tuple(Row((term, "= " + others)) for term, _, others in chains[:top])
    more = len(chains) - len(rows)
    notes = ["An effect is that of its term plus or minus those beside it, by their signs."]
    if more:
        notes.append(f"{more} further chains with --json.")
    columns = (Column("term", "Estimated"), Column("aliases", "Cannot be told from"))
    return Table(f"aliases {analysis.response}", "Alias chains", columns, rows, tuple(notes))


def advice_text(finding: Finding) -> str:
    """What to do, with the options that do it."""
    options = ", ".join(f"--{remedy.replace('=', ' ')}" for remedy in finding.remedies)
    return f"{finding.advice} ({options})" if options else finding.advice


def findings_table(analysis: Analysis) -> Table:
    """The checks and what to do."""
    rows = tuple(
        Row(
            (f.check, "ok" if f.ok else "look", f.p, advice_text(f)),
            marks={} if f.ok else {"ok": "bad", "check": "strong"},
        )
        for f in analysis.diagnostics.findings
    )
    columns = (
        Column("check", "Check"),
        Column("ok", ""),
        Column("p", "p", "p"),
        Column("advice", "What to do"),
    )
    return Table(f"diagnostics {analysis.response}", "Diagnostics", columns, rows)


def dispersion_table(analysis: Analysis, top: int | None = None) -> Table | None:
    """Effects on ln s², ranked."""
    found = analysis.get(Dispersion)
    if found is None:
        return None
    ranked = sorted(found.effects, key=lambda e: -abs(e.effect))[:top]
    columns = (
        Column("term", "Term"),
        Column("effect", "Effect on ln s²", "signed"),
        Column("ratio", "Variance ratio", "num"),
        Column("p", "p", "p"),
        Column("stars", "", "stars"),
        Column("p_holm", "p Holm", "p"),
    )
    rows = tuple(Row((e.term, e.effect, e.ratio, e.p, e.p, e.p_holm)) for e in ranked)
    notes = [found.sentence]
    if found.skipped:
        notes.append(f"Without a spread, and left out: {', '.join(found.skipped[:6])}.")
    title = "Dispersion: what changes the spread between replicates"
    return Table(f"dispersion {analysis.response}", title, columns, rows, tuple(notes))


INTERVALS = "Intervals hold for all configurations at once, the selected ones included."


def _reduced_text(reduced: ReducedModel) -> str:
    if not reduced.terms:
        return "No term is active, so that no configuration is predicted to differ from the mean."
    prediction = f"{reduced.best.config} at {minus(f'{reduced.best.mean:.4g}')}"
    if reduced.best.ci_low is not None and reduced.best.ci_high is not None:
        low, high = (minus(f"{end:.4g}") for end in (reduced.best.ci_low, reduced.best.ci_high))
        prediction += f" ({low} to {high})"
    terms = " ".join(reduced.terms)
    return f"Reduced model ({terms}) predicts the best: {prediction}; what is not named is open."


def best_table(analysis: Analysis, top: int | None = None) -> Table:
    """Configurations, the best first, with Hsu's comparisons."""
    found = analysis.best
    columns = (
        Column("config", "Configuration"),
        Column("n", "n", "int"),
        Column("mean", "Mean", "num"),
        Column("ci_low", "low", "num"),
        Column("ci_high", "high", "num"),
        Column("among", "among the best"),
        Column("mcb_low", "Hsu low", "num", keep=False),
        Column("mcb_high", "Hsu high", "num", keep=False),
    )
    rows = tuple(
        Row(
            (
                *(c.config, c.n, c.mean, c.ci_low, c.ci_high),
                None if found.critical is None else c.among_best,
                *(c.mcb_low, c.mcb_high),
            ),
            marks={"config": "strong"} if c.among_best else {},
        )
        for c in found.cells[:top]
    )
    notes = (found.sentence, _reduced_text(found.reduced), INTERVALS)
    title = f"Configurations by {analysis.response}, the best first"
    return Table(f"best {analysis.response}", title, columns, rows, notes)


def across_table(found: Across, analyses: Sequence[Analysis], top: int | None = None) -> Table:
    """Terms by responses, ranked by the magnitude of the average effect."""
    columns = (
        Column("term", "Term"),
        Column("average", "Avg", "signed2"),
        *(Column(name, name, "signed2", keep=i < 6) for i, name in enumerate(found.responses)),
    )
    alpha = analyses[0].alpha
    rows = []
    for row in found.rows[:top]:
        marks: dict[str, Mark] = {"term": "strong"}
        for a, effect, p in zip(analyses, row.effects, row.p_bh, strict=True):
            if effect is not None and p is not None and p < alpha:
                marks[a.response] = "good" if (effect > 0) == (a.goal == "max") else "bad"
        rows.append(Row((row.term, row.average, *row.effects), marks=marks))
    notes = [
        f"Ranked by |average effect|. Marked: significant at {alpha:g} with the false discovery "
        f"rate controlled over all {found.tests} tests."
    ]
    if top is not None and len(found.rows) > top:
        notes.append(f"{len(found.rows) - top} further terms with --csv or --json.")
    return Table("effects", "Effects by response", columns, tuple(rows), tuple(notes))


def censored_table(found: CensoredAnalysis, top: int | None = None) -> Table:
    """Effects of a published table as intervals, surest first."""
    ranked = sorted(found.effects, key=lambda e: -max(e.low, -e.high))[:top]
    columns = (
        Column("term", "Term"),
        Column("low", "Effect at least", "signed2"),
        Column("high", "at most", "signed2"),
        Column("sign", "Sign"),
    )
    rows = tuple(
        Row((e.term, e.low, e.high, e.sign), marks={} if e.sign == "?" else {"term": "strong"})
        for e in ranked
    )
    ceiling = "no ceiling" if found.ceiling is None else f"ceiling {found.ceiling:g}"
    notes = [
        f"{found.censored} of {found.n} cells are limits ({ceiling}); the others may be off by "
        "half of their last digit. Each effect lies somewhere in its interval."
    ]
    unit = f" [{found.unit}]" if found.unit else ""
    title = f"Effects on {found.label}{unit} as intervals"
    return Table(f"bounds {found.response}", title, columns, rows, tuple(notes))
