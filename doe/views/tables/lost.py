"""Lost runs by level, what they could change, and tables of limits."""

from __future__ import annotations

from doe.analysis.analyze import Analysis
from doe.analysis.censored import CensoredAnalysis
from doe.errors import listed
from doe.numbers import cell_text
from doe.views.table import Column, Row, Table, starred
from doe.views.tables import ResponseTable
from doe.views.words import unit_text


def rates_table(analysis: Analysis, top: int | None = None) -> Table | None:
    """Lost runs by factor level."""
    missing = analysis.missing
    if missing is None or not missing.rates:
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
                *(r.p_exact, r.log_odds, r.p_firth, starred(r.p_firth), r.p_holm),
            )
        )
        for r in missing.rates[:top]
    )
    runs = [f"{run} ({state})" for run, state in zip(missing.runs, missing.states, strict=True)]
    notes = (missing.sentence, f"Without a value: {listed(runs, 6)}.")
    return Table(f"lost {analysis.response}", "Lost runs by factor", columns, rows, notes)


def bounds_table(analysis: Analysis, top: int | None = None) -> Table | None:
    """Effects with the lost values anywhere in the observed range."""
    missing = analysis.missing
    if missing is None or not missing.bounds:
        return None
    ranked = sorted(missing.bounds, key=lambda b: -abs(b.effect or 0.0))[:top]
    columns = (
        Column("term", "Term"),
        Column("effect", "Complete cases", "signed"),
        Column("low", "Worst case low", "signed"),
        Column("high", "high", "signed"),
        Column("sign", "Sign"),
    )
    rows = tuple(Row((b.term, b.effect, b.low, b.high, b.sign)) for b in ranked)
    note = (
        f"Every lost value anywhere between {cell_text(missing.bound_low, 'short')} and "
        f"{cell_text(missing.bound_high, 'short')}, the range of the values that are there."
    )
    title = "What the lost runs could change"
    return Table(f"worst case {analysis.response}", title, columns, rows, (note,))


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
    title = f"Effects on {bounds.label}{unit_text(bounds.unit)} as intervals"
    return Table(f"bounds {bounds.response}", title, columns, rows, tuple(notes))


ENTRIES = (
    ResponseTable(80, rates_table),
    ResponseTable(90, bounds_table, on_screen=6),
)
