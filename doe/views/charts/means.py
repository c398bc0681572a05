"""Means of levels and of their combinations, and differences between levels."""

from __future__ import annotations

from collections.abc import Mapping

from doe.analysis.analyze import Analysis
from doe.analysis.dataset import FactorColumn
from doe.analysis.means import Interaction
from doe.analysis.pvalues import significant
from doe.terms import factors_in
from doe.views.charts import alt
from doe.views.charts.labels import LINE, text_width, wrapped
from doe.views.charts.model import ChartData, Record, ResponseChart, of_analysis
from doe.views.charts.shared import (
    hover,
    mean_by_level,
    mean_panels,
    mean_record,
    panel_layout,
    panel_title,
    panels,
    staggered,
    word,
)
from doe.views.charts.theme import FIT, FULL, NEITHER, PLAIN, SEVERAL, STEP
from doe.views.words import effect_on, mean_text

LEAST_MAIN, LEAST_LEVEL, MOST_LEVEL = 84, 34, 48
"""Pixels of a panel, and from one level to the next: wider names stand every other a line lower."""


def draw_main_effects() -> alt.TopLevelMixin:
    """Draw means at the levels of each factor."""
    return mean_panels("main")


def main_data(analysis: Analysis) -> ChartData | None:
    """Return the mean of each level that has runs; None where slices show how they bend."""
    if analysis.surface is not None and analysis.surface.kind is not None:
        return None
    keys = list(dict.fromkeys(mean.factor for mean in analysis.levels))
    if not keys:
        return None
    most = max(len(factor.levels) for factor in analysis.factors)
    widest = max(text_width(label) for factor in analysis.factors for label in factor.labels)
    step = widest if widest <= MOST_LEVEL else widest / 2
    layout = panel_layout(len(keys), max(LEAST_MAIN, most * max(LEAST_LEVEL, step)))
    given = {
        (factor.key, label): text
        for factor in analysis.factors
        for label, text in zip(
            factor.labels, staggered(factor.labels, layout["least"] // most), strict=True
        )
    }
    titles = {f.key: wrapped(panel_title(f), layout["width"]) for f in analysis.factors}
    rows: list[Record] = []
    for m in analysis.levels:
        if m.mean is not None:
            record: Record = {
                "factor": titles[m.factor],
                "given": given[m.factor, m.level],
                "grand": analysis.mean.mean,
            }
            rank = {"rank": keys.index(m.factor)}
            rows.append(record | rank | mean_record(m.mean, m.ci_low, m.ci_high))
    if not rows:
        return None
    return ChartData({"main": rows}, {"mean": mean_text(analysis), "titles": "factor", **layout})


MAIN_EFFECTS = ResponseChart(
    30,
    "main-effects",
    "Main effects",
    "Mean at each level of each factor with its own 95 % interval, all combinations of the others "
    "weighted equally; dashed: the mean of the study.",
    draw_main_effects,
    of_analysis(main_data),
)


# Interactions -------------------------------------------------------------------------------------


GAP = 7
"""Pixels from the end of a line to its name."""
LEAST_STEP = 36
"""Pixels from one level to the next."""


def draw_interactions() -> alt.TopLevelMixin:
    """Draw means along the levels of one factor, a line for each level of the other."""
    base = mean_by_level().encode(
        color=alt.Color("line:N", scale=alt.Scale(range=list(SEVERAL)), legend=None),
        tooltip=hover("pair", "first", "second", "mean", "ci_low", "ci_high"),
    )
    interval = base.mark_rule(strokeWidth=1.2).encode(y="ci_low:Q", y2="ci_high:Q")
    points = base.mark_circle(size=36, opacity=1)
    line = base.mark_line().encode(strokeDash=alt.StrokeDash("line:N", legend=None))
    names = mean_by_level().mark_text(align="left", dx=GAP).encode(y="label:Q", text="name:N")
    return panels("pairs", "pair", line, interval, points, names, spacing=12)


def interaction_data(analysis: Analysis) -> ChartData | None:
    """Means of the combinations of levels for the strongest two-factor interactions."""
    pairs = analysis.interactions
    if not pairs:
        return None
    layout = panel_layout(len(pairs), max(_least_width(analysis, pair) for pair in pairs))
    made = [_panel(analysis, p, rank, layout) for rank, p in enumerate(pairs)]
    ends = [
        float(row[key] or 0) for panel in made for row in panel for key in ("ci_low", "ci_high")
    ]
    line = LINE * (max(ends, default=1.0) - min(ends, default=0.0)) / layout["height"]
    rows = [row for panel in made for row in (*panel, *_names(panel, line))]
    return (
        ChartData({"pairs": rows}, {"mean": mean_text(analysis), "titles": "pair", **layout})
        if rows
        else None
    )


def _parts(analysis: Analysis, pair: Interaction) -> tuple[FactorColumn, FactorColumn]:
    """Return the factor that acts, and the one on whose level it depends."""
    factors = {factor.key: factor for factor in analysis.factors}
    return factors[pair.factor], factors[pair.other]


def _line_name(other: FactorColumn, level: int) -> str:
    """Return a line by its level, with the factor's key where that is a letter: "C true"."""
    label = other.labels[level]
    return f"{other.key} {label}" if len(other.key) == 1 else label


def _least_width(analysis: Analysis, pair: Interaction) -> float:
    """Pixels in which the names of the lines stand right of them, half a level left of them."""
    across, other = _parts(analysis, pair)
    names = [text_width(_line_name(other, i)) for i in range(len(other.levels))]
    step = max(LEAST_STEP, max(map(text_width, across.labels)) / 2)
    return step * (len(across.levels) - 0.5) + GAP + max(names)


def _panel(
    analysis: Analysis, pair: Interaction, rank: int, layout: Mapping[str, int]
) -> list[Record]:
    """Return the acting factor across, a line for each level of the other."""
    across, other = _parts(analysis, pair)
    numbers = [analysis.keys.index(key) for key in (pair.factor, pair.other)]
    turned = factors_in(pair.mask) != numbers
    given = staggered(across.labels, round(layout["least"] / (len(across.levels) + 0.5)))
    title = wrapped(f"{panel_title(across)}\u00a0× {panel_title(other)}", layout["width"])
    rows: list[Record] = []
    for m in analysis.combinations:
        if m.factor != pair.term or m.mean is None:
            continue
        x, y = m.at[::-1] if turned else m.at
        last = x == len(across.levels) - 1
        record: Record = {
            "rank": rank,
            "pair": title,
            "given": given[x],
            "line": str(y),
            "name": _line_name(other, y) if last else "",
            "label": m.mean,
            "first": f"{across.key} = {across.labels[x]}",
            "second": f"{other.key} = {other.labels[y]}",
        }
        rows.append(record | mean_record(m.mean, m.ci_low, m.ci_high))
    return rows


def _names(rows: list[Record], line: float) -> list[Record]:
    """Move the names of the lines apart, at least a `line`; and make room for them: one more level
    across, which has no name and no mean.
    """
    named = sorted((row for row in rows if row["name"]), key=lambda row: -float(row["mean"] or 0))
    means = [float(row["mean"] or 0) for row in named]
    places = list(means)
    for i in range(1, len(places)):
        places[i] = min(places[i], places[i - 1] - line)
    shift = sum(m - p for m, p in zip(means, places, strict=True)) / max(len(means), 1)
    for row, place in zip(named, places, strict=True):
        row["label"] = place + shift
    empty = dict.fromkeys(("mean", "ci_low", "ci_high"))
    return [{**row, **empty, "given": "", "name": ""} for row in named[:1]]


INTERACTIONS = ResponseChart(
    4,
    "interactions",
    "Strongest interactions",
    "Lines that are not parallel: the effect of the first factor (x axis) depends on the "
    "level of the second, named beside each line.",
    draw_interactions,
    of_analysis(interaction_data),
)


# Pairs of levels ----------------------------------------------------------------------------------


PAIRS = 24
"""Pairs in the chart."""
GROUPS = ("differ", "not shown to differ")


def draw_level_pairs() -> alt.TopLevelMixin:
    """Return a pair in each line, with its interval against the line of no difference."""
    base = alt.Chart(alt.NamedData("pairs")).encode(
        y=alt.Y("pair:N", title=None, sort=None, axis=alt.Axis(labelLimit=200)),
        tooltip=hover("pair", "difference", "ci_low", "ci_high", "p_tukey"),
    )
    colour = alt.Color(
        "group:N", title=None, scale=alt.Scale(domain=list(GROUPS), range=[PLAIN, NEITHER])
    )
    none = alt.Chart(alt.NamedData("none")).mark_rule(strokeDash=[4, 3]).encode(x="at:Q")
    return alt.layer(
        none,
        base.mark_rule(strokeWidth=1.4).encode(
            x=alt.X("ci_low:Q", title="{difference}"), x2="ci_high:Q", color=colour
        ),
        base.mark_circle(size=34, opacity=1).encode(x="difference:Q", color=colour),
        width=FULL,
        height=word("height"),
        autosize=FIT,
    )


def pairs_data(analysis: Analysis) -> ChartData | None:
    """Return all pairs of levels of factors with more than two; ratios where the scale is log."""
    ratio = analysis.transform.scale.ratio
    several = {factor.key for factor in analysis.factors if len(factor.levels) > 2}
    rows: list[Record] = []
    for d in [d for d in analysis.differences if d.factor in several][:PAIRS]:
        value, low, high = d.difference, d.ci_low, d.ci_high
        if ratio:
            value, low, high = d.ratio, d.ratio_low, d.ratio_high
        if value is None or low is None or high is None:
            continue
        rows.append(
            {
                "pair": f"{d.factor}: {d.level} {'/' if ratio else '−'} {d.other}",
                "difference": value,
                "ci_low": low,
                "ci_high": high,
                "p_tukey": d.p_tukey,
                "group": GROUPS[0] if significant(d.p_tukey, analysis.alpha) else GROUPS[1],
            }
        )
    if not rows:
        return None
    kind = f"Ratio: {ratio}, " if ratio else "Difference in "
    name = analysis.response if ratio else effect_on(analysis)
    none: Record = {"at": 1.0 if ratio else 0.0}
    return ChartData(
        {"pairs": rows, "none": [none]},
        {"difference": kind + name, "height": STEP * max(len(rows), 3)},
    )


LEVEL_PAIRS = ResponseChart(
    33,
    "level-pairs",
    "Pairs of levels",
    "Intervals hold for all pairs of a factor at once (Tukey); those off the dashed line differ.",
    draw_level_pairs,
    of_analysis(pairs_data),
)

CHARTS = (MAIN_EFFECTS, INTERACTIONS, LEVEL_PAIRS)
