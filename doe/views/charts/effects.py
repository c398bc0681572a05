"""Effects by size: half-normal plots and the Pareto chart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

from doe.analysis.analyze import Analysis
from doe.analysis.effects import HalfNormal
from doe.analysis.lenth import Lenth
from doe.analysis.pvalues import significant
from doe.errors import plural
from doe.numbers import confidence
from doe.views.charts import alt
from doe.views.charts.labels import (
    LINE,
    TERM,
    Box,
    in_lines,
    lines_height,
    place_labels,
    row_labels,
    term_labels,
    text_width,
)
from doe.views.charts.model import ChartData, Record, ResponseChart, of_analysis
from doe.views.charts.shared import (
    LINES,
    NO_DIRECTION,
    OTHERS,
    direction,
    direction_of,
    direction_words,
    effect_record,
    hover,
    word,
)
from doe.views.charts.theme import FIT, FULL, GREY, HEIGHT, STEP, WIDTH
from doe.views.words import effect_on

MOST_LABELS = 18
MARGIN_TEXT = {"ME": 0.0, "SME": LINE}
"""Positions of the names of the two lines, in pixels from the top: the lines may be close."""
SIDES: dict[str, dict[str, Any]] = {
    "left": {"align": "right", "dx": -5, "baseline": "middle"},
    "right": {"align": "left", "dx": 5, "baseline": "middle"},
    "above": {"baseline": "bottom", "dy": -5},
    "below": {"baseline": "top", "dy": 5},
}
"""Position of a label beside its point or the end of its line, however wide the chart is."""


def draw_half_normal() -> alt.TopLevelMixin:
    """Draw half-normal quantiles against |effect|, with ME, SME and the line of inert effects."""
    x = alt.X("magnitude:Q", title="{magnitude}", scale=alt.Scale(nice=False, zero=True))
    y = alt.Y("quantile:Q", title="Half-normal quantile", scale=alt.Scale(nice=False, zero=True))
    frame = alt.Chart(alt.NamedData("frame")).mark_point(opacity=0).encode(x=x, y=y)
    line = alt.Chart(alt.NamedData("reference")).mark_line(strokeWidth=1, color=GREY)
    margins = alt.Chart(alt.NamedData("margins"))
    rules = margins.mark_rule(strokeDash=[4, 3]).encode(x="magnitude:Q")
    names = margins.mark_text(align="left", dx=3, baseline="top")
    leaders = alt.Chart(alt.NamedData("labels")).mark_rule(strokeWidth=0.6)
    labels = alt.Chart(alt.NamedData("labels"))
    points = alt.Chart(alt.NamedData("points")).mark_circle(size=34, opacity=0.95)
    return alt.layer(
        frame,
        line.encode(x=x, y=y),
        rules,
        names.transform_filter("datum.name == 'ME'").encode(
            x="magnitude:Q", y=alt.value(MARGIN_TEXT["ME"]), text="name:N"
        ),
        names.transform_filter("datum.name == 'SME'").encode(
            x="magnitude:Q", y=alt.value(MARGIN_TEXT["SME"]), text="name:N"
        ),
        leaders.encode(x="from_x:Q", y="from_y:Q", x2="at_x:Q", y2="at_y:Q"),
        points.encode(
            x=x,
            y=y,
            color=direction(),
            tooltip=hover("term", "effect", "p", "p_holm"),
        ),
        *(
            labels.mark_text(lineBreak="\n", lineHeight=LINE, **look).encode(
                x="at_x:Q",
                y="at_y:Q",
                text=alt.condition(f"datum.side == '{side}'", "term:N", alt.value("")),
            )
            for side, look in SIDES.items()
        ),
    ).properties(width=WIDTH, height=HEIGHT)


def half_normal_data(analysis: Analysis) -> ChartData | None:
    """Return the contrasts of single runs, or of all where there is one error."""
    return stratum_data(analysis, analysis.half_normal)


def stratum_data(analysis: Analysis, plot: HalfNormal) -> ChartData | None:
    """Points, margins and placed labels; None where there are too few contrasts for Lenth.

    Each degree of freedom is a point: of a two-level term its effect, of others a contrast of
    levels on the same scale.
    """
    if plot.lenth is None:
        return None
    points = contrast_records(analysis, plot.lenth, plot)
    word = "effect" if analysis.two_level else "contrast"
    labels = [point.term for point in plot.lenth.points]
    short = {label: in_lines(label, TERM, " ") for label in labels}
    if analysis.two_level:
        short = term_labels(labels, analysis.keys)
    return plot_data(points, plot.lenth, f"|{word}| on {_effect_between(analysis, plot)}", short)


def _effect_between(analysis: Analysis, plot: HalfNormal) -> str:
    between = f" between {plural(plot.stratum)}" if plot.stratum else ""
    return f"{effect_on(analysis)}{between}"


def contrast_records(analysis: Analysis, lenth: Lenth, plot: HalfNormal) -> list[Record]:
    """Return each contrast with its direction and what its term is tested by, the smallest
    first.
    """
    effects = {effect.term: effect for effect in analysis.effects}
    tests = {test.term: test for test in analysis.tests}
    contrasts = {contrast.label: contrast for contrast in plot.contrasts}
    points: list[Record] = []
    for point in lenth.points:
        contrast = contrasts[point.term]
        axes: Record = {"magnitude": point.magnitude, "quantile": point.quantile}
        if effect := effects.get(point.term):
            found = direction_of(effect, analysis)
            points.append(effect_record(effect) | axes | {"direction": found})
            continue
        test = tests.get(contrast.term)
        strong = test is not None and significant(test.p_holm, analysis.alpha)
        record: Record = {
            "term": point.term,
            "effect": contrast.value,
            "p": contrast.p if test is None else test.p,
            "p_holm": None if test is None else test.p_holm,
            "direction": NO_DIRECTION if strong else OTHERS,
        }
        points.append(record | axes)
    return points


def plot_data(
    points: list[Record], lenth: Lenth, magnitude: str, short: Mapping[str, str]
) -> ChartData:
    """Return the points with their margins, reference line and placed labels, `short` for each
    term.
    """
    largest = max((point.magnitude for point in lenth.points), default=0.0)
    right = 1.06 * max(largest, lenth.sme) or 1.0
    top = 1.08 * max(point.quantile for point in lenth.points)
    end = min(right, top * lenth.pse) if lenth.pse > 0 else 0.0
    reference = [(0.0, 0.0), (end, end / lenth.pse if lenth.pse > 0 else top)]
    margins = {"ME": lenth.me, "SME": lenth.sme}
    return ChartData(
        {
            "points": points,
            "frame": [_xy(0.0, 0.0), _xy(right, top)],
            "reference": [_xy(x, y) for x, y in reference],
            "margins": [{"name": name, "magnitude": x} for name, x in margins.items()],
            "labels": _label_records(points, short, margins, right, top),
        },
        {"magnitude": magnitude, **direction_words(points)},
    )


def _xy(x: float, y: float) -> Record:
    return {"magnitude": x, "quantile": y}


def _label_records(
    points: Sequence[Record],
    short: Mapping[str, str],
    margins: Mapping[str, float],
    right: float,
    top: float,
) -> list[Record]:
    """Labels of the effects beyond ME, the largest first, and always of the largest three."""
    at = [
        (float(p["magnitude"] or 0) / right * WIDTH, (1 - float(p["quantile"] or 0) / top) * HEIGHT)
        for p in points
    ]
    texts = [short[str(p["term"])] for p in points]
    falling = list(reversed(range(len(points))))
    beyond = [float(p["magnitude"] or 0) > margins["ME"] for p in points]
    wanted = [i for k, i in enumerate(falling) if k < 3 or beyond[i]]
    names = [
        Box(x, MARGIN_TEXT[name], x + 4 + text_width(name), MARGIN_TEXT[name] + LINE)
        for name, x in ((name, margin / right * WIDTH) for name, margin in margins.items())
    ]
    records: list[Record] = []
    for label in place_labels(at, texts, wanted[:MOST_LABELS], WIDTH, HEIGHT, names):
        point, (x, y) = points[label.point], at[label.point]
        ends: Record = {"from_x": point["magnitude"], "from_y": point["quantile"]}
        side = "left" if label.x < x else "right"
        tied: Record = {"at_x": ends["from_x"], "at_y": ends["from_y"]}
        if label.led:
            half = text_width(texts[label.point]) / 2
            edge = label.x + half if side == "left" else label.x - half
            tied = {"at_x": edge / WIDTH * right, "at_y": (1 - label.y / HEIGHT) * top}
        elif label.x == x:
            side = "above" if label.y < y else "below"
        records.append({"term": texts[label.point], "side": side, **ends, **tied})
    return records


HALF_NORMAL = ResponseChart(
    10,
    "half-normal",
    "Half-normal plot",
    "Effects off the line and beyond ME exceed the noise; beyond SME even among this many. Colours "
    "and lines may differ: Holm's adjustment, which colours the points, tests against the error of "
    "the analysis, if there is one; Lenth's ME and SME take the error from the many small effects.",
    draw_half_normal,
    of_analysis(half_normal_data),
)


def groups_data(analysis: Analysis, number: int = 0) -> ChartData | None:
    """Return the contrasts of a stratum that has enough of them, the coarsest first; None where
    there are no more.
    """
    plots = (stratum_data(analysis, plot) for plot in analysis.half_normal.further)
    return next(islice((data for data in plots if data is not None), number, None), None)


GROUPS = (
    "Terms that vary only between whole plots, or between other groups of runs, have an error of "
    "their own, and so a plot, a line and margins of their own."
)
HALF_NORMAL_GROUPS, HALF_NORMAL_FINER = (
    ResponseChart(
        11 + number,
        f"half-normal-{name}",
        f"Half-normal plot between {title}",
        GROUPS,
        draw_half_normal,
        of_analysis(partial(groups_data, number=number)),
    )
    for number, (name, title) in enumerate(
        (("groups", "groups of runs"), ("finer", "finer groups of runs"))
    )
)


# Pareto chart -------------------------------------------------------------------------------------


BARS, TALLEST = 16, 400
"""Terms in the Pareto chart, fewer where the names of several lines would make it taller."""


def draw_pareto() -> alt.TopLevelMixin:
    """Draw bars of |effect|, the largest first, by whether they help."""
    order = alt.EncodingSortField("magnitude", order="descending")
    bars = alt.Chart(alt.NamedData("bars"))
    margin = alt.Chart(alt.NamedData("margins"))
    return alt.layer(
        bars.mark_bar(height=8).encode(
            x=alt.X("magnitude:Q", title="{magnitude}", axis=alt.Axis(titleAnchor="end")),
            y=alt.Y(
                "short:N",
                sort=order,
                title=None,
                axis=alt.Axis(labelLimit=300, labelExpr=LINES),
            ),
            color=direction(),
            tooltip=hover("term", "effect", "ci_low", "ci_high", "p", "p_holm", "percent"),
        ),
        margin.mark_rule(strokeDash=[4, 3]).encode(x="magnitude:Q"),
        width=FULL,
        height=word("height"),
        autosize=FIT,
    )


def pareto_data(analysis: Analysis) -> ChartData:
    """Return the largest effects, and the margin beyond which one is significant by itself.

    Where factors have more than two levels or a model has squares, the contrasts of the half-normal
    plot.
    """
    plot = analysis.half_normal
    effects = {effect.term for effect in analysis.effects}
    if plot.lenth is not None and not {contrast.label for contrast in plot.contrasts} <= effects:
        records = contrast_records(analysis, plot.lenth, plot)[::-1][:BARS]
        bars = [record | {"short": in_lines(str(record["term"]), TERM, " ")} for record in records]
        bars = bars[: int(TALLEST // (STEP + lines_height(str(bar["short"]) for bar in bars)))]
        margin = [("ME", plot.lenth.me)] if analysis.sigma is None else []
        return _pareto(bars, f"|contrast| on {_effect_between(analysis, plot)}", margin)
    ranked = sorted(analysis.effects, key=lambda e: (-abs(e.effect), e.term))[:BARS]
    short = row_labels([effect.term for effect in ranked], analysis.keys)
    bars = [
        effect_record(effect)
        | {
            "short": short[effect.term],
            "magnitude": abs(effect.effect),
            "direction": direction_of(effect, analysis),
        }
        for effect in ranked
    ]
    return _pareto(bars, f"|effect| on {effect_on(analysis)}", _margin(analysis))


def _pareto(bars: list[Record], magnitude: str, margin: list[tuple[str, float]]) -> ChartData:
    labels = [str(bar["short"]) for bar in bars]
    widest = max(map(text_width, labels))
    margin_text = "".join(f"; dashed: {name}" for name, _ in margin)
    return ChartData(
        # Vega warns of an empty data set; a line at zero lies on the axis.
        {"bars": bars, "margins": [{"magnitude": at} for _, at in margin or [("", 0.0)]]},
        {
            "magnitude": magnitude + margin_text,
            "labels": round(widest),
            **direction_words(bars, FULL - widest),
            "height": (STEP + lines_height(labels)) * max(len(bars), 3),
        },
    )


def _margin(analysis: Analysis) -> list[tuple[str, float]]:
    """Half the width of the interval of an effect where all share it, else Lenth's ME."""
    widths = [(e.ci_high or 0) - (e.ci_low or 0) for e in analysis.effects if e.ci_low is not None]
    if widths and max(widths) - min(widths) < 1e-6 * max(widths):
        return [(f"{confidence(analysis.alpha)} margin", widths[0] / 2)]
    if not widths and analysis.lenth is not None:
        return [("ME", analysis.lenth.me)]
    return []


PARETO = ResponseChart(
    20,
    "pareto",
    "Pareto chart of effects",
    "The largest effects. Grey ones are not significant after Holm's adjustment for the number of "
    "terms; a dashed line is the margin of a single effect, so that a grey bar may cross it.",
    draw_pareto,
    of_analysis(pareto_data),
)

CHARTS = (HALF_NORMAL, HALF_NORMAL_GROUPS, HALF_NORMAL_FINER, PARETO)
