"""Means of the levels of each factor, and differences between them."""

from __future__ import annotations

from doe.analysis.analyze import Analysis
from doe.analysis.pvalues import significant
from doe.numbers import confidence
from doe.views.table import Column, Row, Table, starred
from doe.views.tables import ResponseTable
from doe.views.words import effect_on, mean_word, survivors, unit_text


def level_means_table(analysis: Analysis, _top: int | None = None) -> Table | None:
    """The mean of each level with its interval, every cell of the other factors weighted alike.

    None where all factors have two levels, whose effects say as much.
    """
    if analysis.two_level:
        return None
    word = mean_word(analysis)
    columns = (
        Column("factor", "Factor"),
        Column("level", "Level"),
        Column("mean", word, "num"),
        Column("ci_low", f"{confidence(analysis.alpha)} low", "num"),
        Column("ci_high", "high", "num"),
        Column("n", "n", "int"),
        Column("se", "SE", "num", keep=False),
    )
    rows = tuple(
        Row((m.factor, m.level, m.mean, m.ci_low, m.ci_high, m.n, m.se)) for m in analysis.levels
    )
    partial = [m for m in analysis.levels if m.cells < m.of]
    notes = [
        "Every combination of the other factors weighted alike; intervals are of single means."
    ]
    notes += survivors(analysis)
    if partial:
        names = ", ".join(f"{m.factor} {m.level} ({m.cells} of {m.of})" for m in partial[:4])
        notes.append(f"Averaged over the combinations that ran: {names}.")
    title = f"{word} {analysis.response}{unit_text(analysis.unit)} at each level"
    return Table(f"levels {analysis.response}", title, columns, rows, tuple(notes))


def differences_table(analysis: Analysis, top: int | None = None) -> Table | None:
    """Every pair of levels with Tukey's intervals; ratios where the scale is log.

    None where all factors have two levels, whose effects say as much.
    """
    several = {factor.key for factor in analysis.factors if len(factor.levels) > 2}
    differences = [d for d in analysis.differences if d.factor in several]
    if not differences:
        return None
    ratio = analysis.transform.scale.ratio
    value = "Ratio" if ratio else "Difference"
    columns = (
        Column("factor", "Factor"),
        Column("pair", "Levels"),
        Column("value", value, "num" if ratio else "signed"),
        Column("low", "low", "num"),
        Column("high", "high", "num"),
        Column("p_tukey", "p Tukey", "p"),
        Column("stars", "", "stars"),
        Column("p", "p alone", "p", keep=False),
        Column("se", "SE", "num", keep=False),
    )
    rows = []
    for d in differences[:top]:
        figures = (d.difference, d.ci_low, d.ci_high)
        if ratio:
            figures = (d.ratio, d.ratio_low, d.ratio_high)
        pair = f"{d.level} {'/' if ratio else '−'} {d.other}"
        rows.append(
            Row(
                (d.factor, pair, *figures, d.p_tukey, starred(d.p_tukey), d.p, d.se),
                marks={"pair": "strong"} if significant(d.p_tukey, analysis.alpha) else {},
            )
        )
    level = confidence(analysis.alpha)
    notes = [f"Intervals hold for all pairs of a factor at once ({level}, Tukey)."]
    if ratio:
        notes.append(f"Ratio: {ratio} of the first level over that of the second.")
    if any(d.cells < d.of for d in differences):
        notes.append("Levels that never met in some combinations are compared over the others.")
    if top is not None and len(differences) > top:
        notes.append(f"{len(differences) - top} further pairs with --json.")
    title = f"Pairs of levels: {effect_on(analysis)}"
    return Table(f"pairs {analysis.response}", title, columns, tuple(rows), tuple(notes))


ENTRIES = (
    ResponseTable(11, level_means_table, files="paper"),
    ResponseTable(12, differences_table, on_screen=15, files="further"),
)
