"""Tables of what an analysis leaves in doubt: lost runs, other methods, posterior odds."""

from __future__ import annotations

from doe.analysis.analyze import Analysis
from doe.analysis.estimators.box_meyer import BoxMeyer
from doe.analysis.estimators.robust import Robust
from doe.views.table import Column, Row, Table


def robust_table(analysis: Analysis, top: int | None = None) -> Table | None:
    """Every term by several methods; where they differ comes first."""
    found = analysis.get(Robust)
    if found is None:
        return None
    ranked = sorted(found.rows, key=lambda r: (r.agree, -abs(r.effect)))[:top]
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
    rows = tuple(
        Row(
            (
                *(r.term, r.effect, r.p, r.p_hc3, r.p_permutation, r.p_maxt, r.p_wild),
                *(r.boot_low, r.boot_high, r.trimmed, r.median, r.agree),
            ),
            marks={} if r.agree else {"agree": "bad", "term": "strong"},
        )
        for r in ranked
    )
    notes = (
        found.sentence,
        f"{found.permutations} permutations within blocks, {found.bootstraps} wild bootstraps, "
        f"seed {found.seed}; max-T and wild are adjusted for all terms.",
    )
    title = "Robust answers, terms on which methods differ first"
    return Table(f"robust {analysis.response}", title, columns, rows, notes)


def rates_table(analysis: Analysis) -> Table | None:
    """Lost runs by factor level."""
    found = analysis.missing
    if found is None or not found.rates:
        return None
    columns = (
        Column("factor", "Factor"),
        Column("low", "lost at low"),
        Column("high", "lost at high"),
        Column("p_exact", "p exact", "p"),
        Column("log_odds", "log odds", "signed"),
        Column("p_firth", "p Firth", "p"),
        Column("stars", "", "stars"),
        Column("p_holm", "p Holm", "p"),
    )
    rows = tuple(
        Row(
            (
                r.factor,
                f"{r.low_lost} of {r.low_n}",
                f"{r.high_lost} of {r.high_n}",
                *(r.p_exact, r.log_odds, r.p_firth, r.p_firth, r.p_holm),
            )
        )
        for r in found.rates
    )
    runs = [f"{run} ({state})" for run, state in zip(found.runs, found.states, strict=True)]
    more = f" and {len(runs) - 6} more" if len(runs) > 6 else ""
    notes = (found.sentence, f"Without a value: {', '.join(runs[:6])}{more}.")
    return Table(f"lost {analysis.response}", "Lost runs by factor", columns, rows, notes)


def bounds_table(analysis: Analysis, top: int | None = None) -> Table | None:
    """Effects with the lost values anywhere in the observed range."""
    found = analysis.missing
    if found is None or not found.bounds:
        return None
    ranked = sorted(found.bounds, key=lambda b: -abs(b.effect or 0.0))[:top]
    columns = (
        Column("term", "Term"),
        Column("effect", "Complete cases", "signed"),
        Column("low", "Worst case low", "signed"),
        Column("high", "high", "signed"),
        Column("sign", "Sign"),
    )
    rows = tuple(Row((b.term, b.effect, b.low, b.high, b.sign)) for b in ranked)
    note = (
        f"Every lost value anywhere between {found.bound_low:.4g} and {found.bound_high:.4g}, "
        "the range of the values that are there."
    )
    title = "What the lost runs could change"
    return Table(f"worst case {analysis.response}", title, columns, rows, (note,))


def box_meyer_table(analysis: Analysis) -> Table | None:
    """Posterior probabilities of the factors."""
    found = analysis.get(BoxMeyer)
    if found is None:
        return None
    ranked = sorted(found.factors, key=lambda f: -f.probability)
    columns = (
        Column("factor", "Factor"),
        Column("probability", "P(active)", "fixed2"),
        Column("size", "", "bar"),
    )
    rows = tuple(Row((f.factor, f.probability, f.probability)) for f in ranked)
    top = found.models[0]
    named = " or ".join("+".join(m.factors) or "none" for m in found.models[: found.tied][:4])
    if found.tied > 1:
        more = f" and {found.tied - 4} more" if found.tied > 4 else ""
        named = f"{found.tied} alike, {named}{more}, each"
    note = (
        f"Box and Meyer, prior {found.prior:g}, γ = {found.gamma:g}, interactions up to order "
        f"{found.order}. Most probable set: {named} ({100 * top.probability:.0f}%)."
    )
    title = "Probability that a factor is active"
    return Table(f"box-meyer {analysis.response}", title, columns, rows, (note,))
