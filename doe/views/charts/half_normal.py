"""The half-normal plot of effects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from doe.analysis.analyze import Analysis
from doe.analysis.effects import HalfNormal
from doe.analysis.lenth import Lenth
from doe.analysis.pvalues import significant
from doe.views.charts import alt
from doe.views.charts.labels import LINE, Box, place_labels, text_width
from doe.views.charts.model import ChartData, Record, ResponseChart, of_analysis
from doe.views.charts.shared import (
    NO_DIRECTION,
    OTHERS,
    direction,
    direction_of,
    effect_record,
    hover,
)
from doe.views.charts.short import term_labels
from doe.views.charts.theme import GREY, HEIGHT, WIDTH
from doe.views.words import effect_on

MOST_LABELS = 18
MARGIN_TEXT = {"ME": 0.0, "SME": LINE}
"""Where the names of the two lines stand, in pixels from the top: the lines may be close."""


def draw() -> alt.TopLevelMixin:
    """|effect| on x, half-normal quantile on y, ME and SME, the line of inert effects."""
    x = alt.X("magnitude:Q", title="{magnitude}", scale=alt.Scale(nice=False, zero=True))
    y = alt.Y("quantile:Q", title="Half-normal quantile", scale=alt.Scale(nice=False, zero=True))
    frame = alt.Chart(alt.NamedData("frame")).mark_point(opacity=0).encode(x=x, y=y)
    line = alt.Chart(alt.NamedData("reference")).mark_line(strokeWidth=1, color=GREY)
    margins = alt.Chart(alt.NamedData("margins"))
    rules = margins.mark_rule(strokeDash=[4, 3]).encode(x="magnitude:Q")
    names = margins.mark_text(align="left", dx=3, baseline="top")
    leaders = alt.Chart(alt.NamedData("labels")).mark_rule(strokeWidth=0.6)
    labels = alt.Chart(alt.NamedData("labels")).mark_text(baseline="middle")
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
        leaders.encode(x="from_x:Q", y="from_y:Q", x2="to_x:Q", y2="to_y:Q"),
        points.encode(
            x=x,
            y=y,
            color=direction(),
            tooltip=hover("term", "effect", "p", "p_holm"),
        ),
        labels.encode(x="at_x:Q", y="at_y:Q", text="term:N"),
    ).properties(width=WIDTH, height=HEIGHT)


def half_normal_data(analysis: Analysis) -> ChartData | None:
    """The contrasts of single runs, or of all where there is one error."""
    return stratum_data(analysis, analysis.half_normal)


def stratum_data(analysis: Analysis, plot: HalfNormal) -> ChartData | None:
    """Points, margins and placed labels; None where there are too few contrasts for Lenth.

    Each degree of freedom is a point: of a two-level term its effect, of others a contrast of
    levels on the same scale.
    """
    lenth = plot.lenth
    if lenth is None:
        return None
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
    word = "effect" if analysis.two_level else "contrast"
    labels = [point.term for point in lenth.points]
    short = term_labels(labels, analysis.keys) if analysis.two_level else {x: x for x in labels}
    between = f" between {plot.stratum}s" if plot.stratum else ""
    return plot_data(points, lenth, f"|{word}| on {effect_on(analysis)}{between}", short)


def plot_data(
    points: list[Record], lenth: Lenth, magnitude: str, short: Mapping[str, str]
) -> ChartData:
    """The points with their margins, reference line and placed labels, `short` for each term."""
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
        {"magnitude": magnitude},
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
        text = texts[label.point]
        x, y = label.x / WIDTH * right, (1 - label.y / HEIGHT) * top
        record: Record = {"term": text, "at_x": x, "at_y": y}
        point = points[label.point]
        record |= {"from_x": point["magnitude"], "from_y": point["quantile"]}
        # Without a line to its point, a label has one of no length.
        edge = _edge(label.x, at[label.point][0], text) / WIDTH * right
        ends = (edge, y) if label.led else (point["magnitude"], point["quantile"])
        records.append(record | {"to_x": ends[0], "to_y": ends[1]})
    return records


def _edge(label: float, point: float, text: str) -> float:
    """The end of a label that faces its point."""
    half = text_width(text) / 2
    return label + half if label < point else label - half


CHART = ResponseChart(
    10,
    "half-normal",
    "Half-normal plot",
    "Effects off the line and beyond ME stand out from the noise, beyond SME even among this many. "
    "Colours and lines may differ: Holm's adjustment, which colours the points, tests against the "
    "error between replicates where there are any; Lenth's ME and SME take the error from the many "
    "small effects.",
    draw,
    of_analysis(half_normal_data),
)
