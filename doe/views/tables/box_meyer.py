"""Posterior probabilities of the factors."""

from __future__ import annotations

from doe.analysis.analyze import Analysis
from doe.analysis.estimators.box_meyer import BoxMeyer
from doe.views.numbers import cell_text
from doe.views.table import Column, Row, Table
from doe.views.tables import ResponseTable


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
    likeliest = posterior.models[0]
    tied = posterior.tied
    named = " or ".join("+".join(m.factors) or "none" for m in posterior.models[:tied][:4])
    if tied > 1:
        named = f"{tied} alike, {named}{f' and {tied - 4} more' if tied > 4 else ''}, each"
    share = cell_text(100 * likeliest.probability, "int")
    note = (
        f"Box and Meyer, prior {posterior.prior:g}, γ = {posterior.gamma:g}, interactions up to "
        f"order {posterior.order}. Most probable set: {named} ({share}%)."
    )
    title = "Probability that a factor is active"
    return Table(f"box-meyer {analysis.response}", title, columns, rows, (note,))


ENTRY = ResponseTable(100, box_meyer_table, only_saturated=True)
