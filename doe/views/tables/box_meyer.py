"""Posterior probabilities of the factors."""

from __future__ import annotations

from doe.analysis.analyze import Analysis
from doe.analysis.estimators.box_meyer import BoxMeyer
from doe.numbers import share_text
from doe.views.table import Column, Row, Table
from doe.views.tables import ResponseTable

SETS = 4
"""Sets of factors that are named."""


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
    rows = tuple(Row((f.factor, f.probability, f.probability)) for f in ranked[:top])
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


ENTRY = ResponseTable(100, box_meyer_table, screen="saturated")
