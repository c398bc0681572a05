"""The terms on the raw scale and on the log scale, side by side."""

from __future__ import annotations

from doe.analysis.both_scales import TermOnScales
from doe.analysis.pvalues import significant
from doe.analysis.response import ResponseAnalysis
from doe.numbers import cell_text, confidence
from doe.views.table import Column, Mark, Row, Table
from doe.views.tables import ResponseTable


def scales_table(analysis: ResponseAnalysis, top: int | None = None) -> Table | None:
    """Every term on both scales; those that only one of them calls significant come first."""
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
    rows = tuple(
        Row(
            (
                *(t.term, t.effect, t.p_holm, t.percent),
                *(t.ratio, t.ratio_low, t.ratio_high, t.log_p_holm, t.log_percent),
            ),
            marks=_marks(t, alpha),
        )
        for t in ranked[:top]
    )
    notes = (
        both.sentence,
        f"R² is {cell_text(both.r2, 'fixed4')} on the raw scale and "
        f"{cell_text(both.log_r2, 'fixed4')} on the log scale. Effect: mean at high − mean at low. "
        "Ratio: geometric mean at high over that at low. Share: of the variation on that scale.",
    )
    title = f"{analysis.response} on the raw and on the log scale, side by side"
    return Table(f"scales {analysis.response}", title, columns, rows, notes)


def agree(term: TermOnScales, alpha: float) -> bool:
    """Whether both scales call a term significant, or neither does."""
    return significant(term.p_holm, alpha) == significant(term.log_p_holm, alpha)


def _marks(term: TermOnScales, alpha: float) -> dict[str, Mark]:
    marks: dict[str, Mark] = {}
    if significant(term.p_holm, alpha):
        marks |= {"effect": "strong", "p_holm": "strong"}
    if significant(term.log_p_holm, alpha):
        marks |= {"ratio": "strong", "log_p_holm": "strong"}
    return marks | ({"term": "strong"} if marks else {})


ENTRY = ResponseTable(15, scales_table, screen="never", levels=None)
