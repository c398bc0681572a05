"""Lost runs by level, what they could change, and tables of limits."""

from __future__ import annotations

from doe.analysis.analyze import Analysis
from doe.analysis.censored import CensoredAnalysis
from doe.errors import listed
from doe.numbers import cell_text
from doe.views.table import Column, Row, Table, starred
from doe.views.tables import ResponseTable
from doe.views.words import difference_unit, unit_text


def rates_table(analysis: Analysis, top: int | None = None) -> Table | None:
    """Lost runs by factor level."""
    missing = analysis.missing
    if missing is None or not missing.rates:
        return None
    columns = (
        Column("factor", "Factor"),
        Column("lost", "Lost at each level"),
        Column("p_exact", "p exact", "p"),
        Column("p_firth", "p Firth", "p"),
        Column("p_holm", "p Holm", "p"),
        Column("stars", "", "stars"),
        Column("log_odds", "log odds", "signed", keep=False),
    )
    rows = tuple(
        Row(
            (
                r.factor,
                ", ".join(f"{level.level}: {level.lost} of {level.n}" for level in r.levels),
                *(r.p_exact, r.p_firth, r.p_holm, starred(r.p_holm), r.log_odds),
            ),
            marks={"factor": "strong"} if r.p_holm <= analysis.alpha else {},
        )
        for r in missing.rates[:top]
    )
    runs = [f"{run} ({state})" for run, state in zip(missing.runs, missing.states, strict=True)]
    notes = (missing.sentence, f"Without a value: {listed(runs, 6)}.")
    return Table(f"lost {analysis.response}", "Lost runs by factor", columns, rows, notes)


def pairs_table(analysis: Analysis, top: int | None = None) -> Table | None:
    """Pairs of levels that lose runs, the surest first."""
    missing = analysis.missing
    if missing is None or not missing.pairs:
        return None
    columns = (
        Column("pair", "Levels"),
        Column("lost", "Lost", "int"),
        Column("n", "of", "int"),
        Column("p", "p exact", "p"),
        Column("p_holm", "p Holm", "p"),
        Column("stars", "", "stars"),
    )
    rows = tuple(
        Row(
            (
                ", ".join(f"{k} = {v}" for k, v in zip(r.factors, r.levels, strict=True)),
                *(r.lost, r.n, r.p, r.p_holm, starred(r.p_holm)),
            ),
            marks={"pair": "strong"} if r.p_holm <= analysis.alpha else {},
        )
        for r in missing.pairs[:top]
    )
    title = "Lost runs by pairs of levels"
    return Table(f"lost pairs {analysis.response}", title, columns, rows)


def bounds_table(analysis: Analysis, top: int | None = None) -> Table | None:
    """Effects if the lost values lay in the observed range, or anywhere beyond its worse end."""
    missing = analysis.missing
    if missing is None or not missing.in_range:
        return None
    beyond = {bound.term: bound for bound in missing.beyond}
    ranked = sorted(missing.in_range, key=lambda b: -abs(b.effect or 0.0))[:top]
    columns = (
        Column("term", "Term"),
        Column("effect", "Observed runs", "signed"),
        Column("low", "In range: low", "signed"),
        Column("high", "high", "signed"),
        Column("sign", "Sign"),
        *([Column("beyond", "Sign beyond")] if beyond else []),
    )
    rows = tuple(
        Row(
            (
                *(b.term, b.effect, b.low, b.high, b.sign),
                *([beyond[b.term].sign if b.term in beyond else "?"] if beyond else []),
            )
        )
        for b in ranked
    )
    low, high = (cell_text(end, "short") for end in (missing.range_low, missing.range_high))
    notes = [
        f"In range: every lost value somewhere between {low} and {high}, the range of the values "
        "observed. A run that diverged would have ended beyond it."
    ]
    if beyond:
        notes.append("Beyond: every lost value anywhere past the worse end of that range.")
    title = "What the lost runs could change"
    return Table(f"lost values {analysis.response}", title, columns, rows, tuple(notes))


def censored_table(bounds: CensoredAnalysis, top: int | None = None) -> Table:
    """Effects of a published table as intervals, surest first."""
    ranked = sorted(bounds.effects, key=lambda e: -max(e.low, -e.high))[:top]
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
    ceiling = "no ceiling" if bounds.ceiling is None else f"ceiling {bounds.ceiling:g}"
    notes = [
        f"{bounds.censored} of {bounds.n} cells are limits ({ceiling}); the others may be off by "
        "half of their last digit. Each effect lies somewhere in its interval."
    ]
    title = f"Effects on {bounds.label}{unit_text(difference_unit(bounds.unit))} as intervals"
    return Table(f"bounds {bounds.response}", title, columns, rows, tuple(notes))


ENTRIES = (
    ResponseTable(80, rates_table),
    ResponseTable(85, pairs_table, on_screen=6),
    ResponseTable(90, bounds_table, on_screen=6),
)
