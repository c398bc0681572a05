"""Lost runs by level, what they could change, and tables of limits."""

from __future__ import annotations

from doe.analysis.analyze import Analysis
from doe.analysis.censored import CensoredAnalysis
from doe.errors import listed
from doe.numbers import about
from doe.views.table import Column, Table, rows_of, starred
from doe.views.tables import ResponseTable
from doe.views.words import difference_unit, quantity, unit_text


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
    rows = rows_of(
        columns,
        missing.rates[:top],
        lambda r: {"factor": "strong"} if r.p_holm <= analysis.alpha else {},
        lost=lambda r: ", ".join(f"{at.level}: {at.lost} of {at.n}" for at in r.levels),
        stars=lambda r: starred(r.p_holm),
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
    rows = rows_of(
        columns,
        missing.pairs[:top],
        lambda r: {"pair": "strong"} if r.p_holm <= analysis.alpha else {},
        pair=lambda r: ", ".join(f"{k} = {v}" for k, v in zip(r.factors, r.levels, strict=True)),
        stars=lambda r: starred(r.p_holm),
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
    rows = rows_of(
        columns, ranked, beyond=lambda b: beyond[b.term].sign if b.term in beyond else "?"
    )
    low, high = (about(end) for end in (missing.range_low, missing.range_high))
    notes = [
        f"In range: every lost value of {quantity(analysis)} somewhere between {low} and {high}, "
        "the range of those observed. A run that diverged would have ended beyond it."
    ]
    if beyond:
        notes.append("Beyond: every diverged value anywhere past the worse end of that range.")
    title = "What the lost runs could change"
    return Table(f"lost values {analysis.response}", title, columns, rows, tuple(notes))


def worst_ranks_table(analysis: Analysis, top: int | None = None) -> Table | None:
    """Tests of the terms on ranks, every diverged run in the worst one."""
    missing = analysis.missing
    if missing is None or not missing.worst_rank:
        return None
    columns = (
        Column("term", "Term"),
        Column("df", "df", "int"),
        Column("f", "F", "num"),
        Column("p", "p", "p"),
        Column("p_holm", "p Holm", "p"),
        Column("stars", "", "stars"),
    )
    rows = rows_of(
        columns,
        sorted(missing.worst_rank, key=lambda r: r.p)[:top],
        lambda r: {"term": "strong"} if r.p_holm <= analysis.alpha else {},
        stars=lambda r: starred(r.p_holm),
    )
    notes = ("F tests of the same model on the ranks of all runs that ended (Lachin 1999).",)
    title = f"Ranks of {analysis.response}, every diverged run last"
    return Table(f"worst ranks {analysis.response}", title, columns, rows, notes)


def censored_table(bounds: CensoredAnalysis, top: int | None = None) -> Table:
    """Effects of a published table as intervals, surest first."""
    ranked = sorted(bounds.effects, key=lambda e: -max(e.low, -e.high))[:top]
    columns = (
        Column("term", "Term"),
        Column("low", "Effect at least", "signed2"),
        Column("high", "at most", "signed2"),
        Column("sign", "Sign"),
    )
    rows = rows_of(columns, ranked, lambda e: {} if e.sign == "?" else {"term": "strong"})
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
    ResponseTable(88, worst_ranks_table, on_screen=6),
    ResponseTable(90, bounds_table, on_screen=6),
)
