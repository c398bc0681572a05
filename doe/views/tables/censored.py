"""Effects of a published table as intervals."""

from __future__ import annotations

from doe.analysis.censored import CensoredAnalysis
from doe.views.table import Column, Row, Table
from doe.views.words import unit_text


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
