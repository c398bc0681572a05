"""Every term by several methods."""

from __future__ import annotations

from doe.analysis.analyze import Analysis
from doe.analysis.estimators.robust import FEWEST_DF, Robust
from doe.views.table import Column, Row, Table
from doe.views.tables import ResponseTable

NO_WILD = f"no wild bootstrap below {FEWEST_DF} residual degrees of freedom"


def robust_table(analysis: Analysis, top: int | None = None) -> Table | None:
    """Every term by several methods; where they differ comes first."""
    robust = analysis.get(Robust)
    if robust is None:
        return None
    ranked = sorted(robust.rows, key=lambda r: (r.agree, -abs(r.effect)))[:top]
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
    wild = f"{robust.bootstraps} wild bootstraps" if robust.bootstraps else NO_WILD
    notes = (
        robust.sentence,
        f"{robust.permutations} permutations within blocks, {wild}, seed {robust.seed}; "
        "max-T and wild are adjusted for all terms.",
    )
    title = "Robust answers, terms on which methods differ first"
    return Table(f"robust {analysis.response}", title, columns, rows, notes)


ENTRY = ResponseTable(50, robust_table, on_screen=20, files="further")
