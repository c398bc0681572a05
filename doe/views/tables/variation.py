"""Where variation comes from: the share of each stream of seeds."""

from __future__ import annotations

from doe.analysis.analyze import Analysis
from doe.analysis.response import ResponseAnalysis
from doe.analysis.streams import REST
from doe.views.table import Column, Row, Table
from doe.views.tables import ResponseTable

SKEWED = (
    "The intervals take seeds as normal, which a check doubts: 95 % may be 90. Try --transform log."
)


def variation_table(analysis: ResponseAnalysis, _top: int | None = None) -> Table | None:
    """The variance between runs of one configuration by stream; None with one stream alone."""
    variation = analysis.variation
    if variation is None:
        return None
    columns = (
        Column("stream", "Stream"),
        Column("seeds", "Seeds", "int"),
        Column("variance", "Variance", "num"),
        Column("share", "Share, %", "int"),
        Column("share_low", "low", "int"),
        Column("share_high", "high", "int"),
        Column("common", "common to all", "num", keep=False),
        Column("variance_low", "Variance low", "num", keep=False),
        Column("variance_high", "high", "num", keep=False),
    )
    rows = tuple(
        Row(
            (
                c.name,
                None if c.stream == REST else c.seeds,
                c.variance,
                *(100.0 * share for share in (c.share, c.share_low, c.share_high)),
                *(c.common, c.variance_low, c.variance_high),
            )
        )
        for c in variation.components
    )
    notes = [
        variation.sentence,
        f"From {variation.configurations} configurations with a value in each of "
        f"{variation.replicates} replicates; effects are tested against what their mean over these "
        "seeds leaves uncertain.",
    ]
    if doubted(analysis):
        notes.append(SKEWED)
    title = f"Where the variation of {analysis.response} comes from"
    return Table(f"variation {analysis.response}", title, columns, rows, tuple(notes))


def doubted(analysis: ResponseAnalysis) -> bool:
    """Whether the check of normality raises an alarm."""
    if not isinstance(analysis, Analysis):
        return False
    return any(f.check == "normality" and not f.ok for f in analysis.diagnostics.findings)


ENTRY = ResponseTable(25, variation_table, files="further", levels=None)
