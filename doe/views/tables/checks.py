"""Tables of the checks of the model, and of answers under other assumptions."""

from __future__ import annotations

from doe.analysis.analyze import Analysis
from doe.analysis.diagnostics import Finding
from doe.analysis.estimators.box_meyer import BoxMeyer
from doe.analysis.estimators.dispersion import Dispersion
from doe.analysis.estimators.quasi_binomial import QuasiBinomial
from doe.analysis.estimators.robust import FEWEST_DF, Robust
from doe.analysis.lenth import Lenth
from doe.analysis.pvalues import significant
from doe.errors import plural
from doe.numbers import about, confidence, share_text
from doe.views.table import Column, Row, Table, rows_of
from doe.views.tables import ResponseTable
from doe.views.words import advice_text

NO_WILD = f"no wild bootstrap below {FEWEST_DF} residual degrees of freedom"
SETS = 4
"""Sets of factors that are named."""


def findings_table(analysis: Analysis, top: int | None = None) -> Table:
    """Return the checks and what to do."""
    columns = (
        Column("check", "Check"),
        Column("ok", ""),
        Column("p", "p", "p"),
        Column("advice", "What to do"),
    )
    rows = rows_of(
        columns,
        analysis.diagnostics.findings[:top],
        lambda f: {} if f.ok else {"ok": "bad", "check": "strong"},
        ok=_verdict,
        advice=advice_text,
    )
    found = analysis.diagnostics.findings
    adjusted = any(f.ok and significant(f.p, analysis.alpha) for f in found)
    notes = ("A check is flagged by its p value adjusted for all checks (Holm).",) * adjusted
    return Table(f"diagnostics {analysis.response}", "Diagnostics", columns, rows, notes)


def _verdict(finding: Finding) -> str | None:
    """Return what a check says; nothing where it could not be made."""
    if not finding.ok:
        return "look"
    return None if finding.statistic is None else "ok"


def robust_table(analysis: Analysis, top: int | None = None) -> Table | None:
    """Return every term by several methods; where they differ comes first."""
    robust = analysis.get(Robust)
    if robust is None:
        return None
    ranked = sorted(robust.rows, key=lambda r: (r.agree, -abs(r.effect or 0.0), r.p or 0.0))[:top]
    columns = (
        Column("term", "Term"),
        Column("effect", "Effect", "signed"),
        Column("p", "p", "p"),
        Column("p_hc3", "p HC3", "p"),
        Column("p_permutation", "p perm", "p"),
        Column("p_maxt", "p max-T", "p"),
        Column("p_wild", "p wild", "p"),
        Column("boot_low", "boot low", "num", keep=False),
        Column("boot_high", "boot high", "num", keep=False),
        Column("trimmed", "trimmed", "signed", keep=False),
        Column("median", "median", "signed", keep=False),
        Column("agree", "agree"),
    )
    rows = rows_of(columns, ranked, lambda r: {} if r.agree else {"agree": "bad", "term": "strong"})
    wild = f"{robust.bootstraps} wild bootstraps" if robust.bootstraps else NO_WILD
    within = " within blocks" if analysis.block else ""
    notes = (
        robust.sentence,
        f"{robust.permutations} permutations{within}, {wild}, seed {robust.seed}; "
        "max-T and wild are adjusted for all terms.",
    )
    title = "Robust answers, terms on which methods differ first"
    return Table(f"robust {analysis.response}", title, columns, rows, notes)


def counted_table(analysis: Analysis, top: int | None = None) -> Table | None:
    """Return every term by the count of items, the largest first; None where none were counted."""
    found = analysis.get(QuasiBinomial)
    if found is None:
        return None
    columns = (
        Column("term", "Term"),
        Column("odds_ratio", "Odds ratio", "num"),
        Column("low", f"{confidence(analysis.alpha)} low", "num"),
        Column("high", "high", "num"),
        Column("f", "F", "num"),
        Column("p", "p", "p"),
        Column("stars", "", "stars"),
        Column("p_holm", "p Holm", "p"),
        Column("df", "df", "int", keep=False),
        Column("p_bh", "p BH", "p", keep=False),
    )
    rows = rows_of(
        columns,
        sorted(found.terms, key=lambda r: -r.f)[:top],
        lambda r: {"term": "strong"} if significant(r.p_holm, analysis.alpha) else {},
    )
    notes = (
        found.sentence,
        f"Quasi-binomial model of {found.items} items per run: runs vary "
        f"{about(found.dispersion)} times as much as drawn items would; F on "
        f"{found.df} degrees of freedom. Intervals are of single terms.",
    )
    title = f"{analysis.response} by counted items"
    return Table(f"counted {analysis.response}", title, columns, rows, notes)


def lenth_table(analysis: Analysis, top: int | None = None) -> Table | None:
    """Lenth's margins by both critical values, of each stratum that has them."""
    plots = analysis.half_normal.strata
    found = [(plot.stratum, plot.lenth) for plot in plots if plot.lenth is not None]
    if not found:
        return None
    several = len(found) > 1
    columns = (
        *[Column("stratum", "Effects between")] * several,
        Column("critical", "Critical values"),
        Column("s0", "s0", "num"),
        Column("pse", "PSE", "num"),
        Column("me", "ME", "num"),
        Column("sme", "SME", "num"),
        Column("beyond", "beyond ME"),
    )
    rows = []
    for stratum, lenth in found:
        used = "simulated (used for p)" if lenth.p else "simulated"
        of = [plural(stratum)] * several
        margins = ((used, lenth.me, lenth.sme), ("t, m/3 df", lenth.me_t, lenth.sme_t))
        rows += [
            Row((*of, name, lenth.s0, lenth.pse, me, sme, _beyond(lenth, me)))
            for name, me, sme in margins[:top]
        ]
    title = f"Lenth's method on {' and '.join(str(lenth.m) for _, lenth in found)} effects"
    return Table(f"lenth {analysis.response}", title, columns, tuple(rows))


def _beyond(lenth: Lenth, margin: float) -> str:
    """Terms whose effect exceeds a margin, the largest first."""
    names = [p.term for p in reversed(lenth.points) if p.magnitude > margin]
    return " ".join(names[:8]) + (f" +{len(names) - 8}" if len(names) > 8 else "") or "none"


def dispersion_table(analysis: Analysis, top: int | None = None) -> Table | None:
    """Effects on ln s², ranked."""
    dispersion = analysis.get(Dispersion)
    if dispersion is None:
        return None
    ranked = sorted(
        dispersion.effects, key=lambda e: (e.p is None, e.p or 0.0, -abs(e.effect or 0.0))
    )[:top]
    columns = (
        Column("term", "Term"),
        Column("effect", "Effect on ln s²", "signed"),
        Column("ratio", "Variance ratio", "num"),
        Column("p", "p", "p"),
        Column("stars", "", "stars"),
        Column("p_holm", "p Holm", "p"),
    )
    rows = rows_of(columns, ranked)
    notes = [dispersion.sentence]
    if dispersion.skipped:
        notes.append(f"Without a spread, and left out: {', '.join(dispersion.skipped[:6])}.")
    between = "between replicates" if dispersion.replicates > 1 else "of the residuals"
    title = f"Dispersion: what changes the spread {between}"
    return Table(f"dispersion {analysis.response}", title, columns, rows, tuple(notes))


def box_meyer_table(analysis: Analysis, top: int | None = None) -> Table | None:
    """Posterior probabilities of the factors."""
    posterior = analysis.get(BoxMeyer)
    if posterior is None:
        return None
    ranked = sorted(posterior.factors, key=lambda f: -f.probability)
    columns = (
        Column("factor", "Factor"),
        Column("probability", "P(active)", "fixed2"),
        Column("size", "", "bar"),
    )
    rows = rows_of(columns, ranked[:top], size=lambda f: f.probability)
    likeliest = ", ".join(
        f"{'+'.join(m.factors) or 'none'} ({share_text(m.probability)})"
        for m in posterior.models[: posterior.rivals][:SETS]
    )
    more = posterior.rivals - SETS
    note = (
        f"Box and Meyer, prior {posterior.prior:g}, γ = {posterior.gamma:g}, interactions up to "
        f"order {posterior.order}. Most probable: {likeliest}"
        + (f" and {more} more sets that are at least half as probable." if more > 0 else ".")
    )
    title = "Probability that a factor is active"
    return Table(f"box-meyer {analysis.response}", title, columns, rows, (note,))


ENTRIES = (
    ResponseTable(40, findings_table),
    ResponseTable(48, counted_table, on_screen=20, files="further"),
    ResponseTable(50, robust_table, on_screen=20, files="further", asked=True),
    ResponseTable(60, lenth_table, files="further"),
    ResponseTable(70, dispersion_table, on_screen=6),
    ResponseTable(100, box_meyer_table, screen="saturated"),
)
