"""The strongest interactions as lines between means."""

from __future__ import annotations

from doe.analysis.analyze import Analysis
from doe.analysis.means import Interaction
from doe.terms import factors_in
from doe.views.charts import alt
from doe.views.charts.model import ChartData, Record, ResponseChart, of_analysis
from doe.views.charts.shared import (
    hover,
    level_layout,
    mean_by_level,
    mean_record,
    panel_layout,
    panels,
    staggered,
)
from doe.views.charts.theme import SEVERAL
from doe.views.words import mean_text

LONG = 14
"""Letters above a panel from which on two stand in a row instead of three."""


def draw() -> alt.TopLevelMixin:
    """Means along the levels of one factor, a line for each level of the other."""
    base = mean_by_level().encode(
        color=alt.Color("line:N", scale=alt.Scale(range=list(SEVERAL)), legend=None),
        tooltip=hover("pair", "first", "second", "mean", "ci_low", "ci_high"),
    )
    dashes = alt.StrokeDash("line:N", legend=None)
    interval = base.mark_rule(strokeWidth=1.2).encode(y="ci_low:Q", y2="ci_high:Q")
    points = base.mark_circle(size=36, opacity=1)
    line = base.mark_line().encode(strokeDash=dashes)
    names = [
        mean_by_level()
        .transform_filter(f"datum.named == '{end} {side}'")
        .mark_text(align=end, dx=4 if end == "left" else -4, dy=dy)
        .encode(text="name:N")
        for end in ("left", "right")
        for side, dy in (("above", -9), ("below", 10))
    ]
    return panels("pairs", "pair", line, interval, points, *names, spacing=12)


def interaction_data(analysis: Analysis) -> ChartData | None:
    """Means of the combinations of levels for the strongest two-factor interactions."""
    pairs = analysis.interactions
    if not pairs:
        return None
    if analysis.two_level:
        longest = max(len(pair.factor + pair.other) + 3 for pair in pairs)
        layout = panel_layout(len(pairs), 3 if longest <= LONG else 2)
    else:
        layout = level_layout(len(pairs), max(len(factor.levels) for factor in analysis.factors))
    rows: list[Record] = []
    for rank, pair in enumerate(pairs):
        rows += _panel(analysis, pair, rank, layout["room"])
    return ChartData({"pairs": rows}, {"mean": mean_text(analysis), **layout}) if rows else None


def _panel(analysis: Analysis, pair: Interaction, rank: int, room: int) -> list[Record]:
    """The acting factor across, a line for each level of the other."""
    factors = {factor.key: factor for factor in analysis.factors}
    across, other = factors[pair.factor], factors[pair.other]
    numbers = [analysis.keys.index(key) for key in (pair.factor, pair.other)]
    turned = factors_in(pair.mask) != numbers
    short = len(across.key + other.key) <= LONG - 3
    given = staggered(across.labels, room)
    rows: list[Record] = []
    for m in analysis.combinations:
        if m.factor != pair.term or m.mean is None:
            continue
        x, y = m.at[::-1] if turned else m.at
        record: Record = {
            "rank": rank,
            "pair": f"{across.key} ×{' ' if short else chr(10)}{other.key}",
            "given": given[x],
            "line": str(y),
            "name": f"{other.key} {other.labels[y]}" if short else other.labels[y],
            "x": x,
            "first": f"{across.key} = {across.labels[x]}",
            "second": f"{other.key} = {other.labels[y]}",
        }
        rows.append(record | mean_record(m.mean, m.ci_low, m.ci_high))
    return _named(rows, len(across.levels) - 1)


def _named(rows: list[Record], last: int) -> list[Record]:
    """Mark where each line is named: at the end where the lines are farther apart, the upper one
    above it and every other below.
    """
    ends = {
        end: sorted(float(row["mean"] or 0) for row in rows if row["x"] == x)
        for end, x in (("left", 0), ("right", last))
    }
    gaps = {end: means[-1] - means[0] if means else -1.0 for end, means in ends.items()}
    end = max(gaps, key=lambda name: gaps[name])
    at = 0 if end == "left" else last
    for row in rows:
        side = "above" if row["mean"] == ends[end][-1] else "below"
        row["named"] = f"{end} {side}" if row.pop("x") == at else ""
    return rows


CHART = ResponseChart(
    4,
    "interactions",
    "Strongest interactions",
    "Lines that are not parallel: the effect of the first factor (x axis) depends on the "
    "level of the second, named beside each line.",
    draw,
    of_analysis(interaction_data),
)
