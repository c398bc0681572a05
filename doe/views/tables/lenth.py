"""Lenth's method."""

from __future__ import annotations

from doe.analysis.analyze import Analysis
from doe.analysis.lenth import Lenth
from doe.views.table import Column, Row, Table
from doe.views.tables import ResponseTable


def lenth_table(analysis: Analysis, top: int | None = None) -> Table | None:
    """Lenth's margins by both critical values."""
    lenth = analysis.lenth
    if lenth is None:
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
    margins = ((used, lenth.me, lenth.sme), ("t, m/3 df", lenth.me_t, lenth.sme_t))
    rows = tuple(
        Row((name, lenth.s0, lenth.pse, me, sme, _beyond(lenth, me)))
        for name, me, sme in margins[:top]
    )
    title = f"Lenth's method on {lenth.m} effects"
    return Table(f"lenth {analysis.response}", title, columns, rows)


def _beyond(lenth: Lenth, margin: float) -> str:
    """Terms whose effect exceeds a margin, the largest first."""
    names = [p.term for p in reversed(lenth.points) if p.magnitude > margin]
    return " ".join(names[:8]) + (f" +{len(names) - 8}" if len(names) > 8 else "") or "none"


ENTRY = ResponseTable(60, lenth_table, files="further")
