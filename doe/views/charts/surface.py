"""Contour maps of a response surface with the runs on them, and slices with their bands."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, pairwise

import numpy as np

from doe.analysis.analyze import Analysis
from doe.analysis.dataset import FactorColumn
from doe.analysis.polynomial import Polynomial
from doe.errors import DoeError
from doe.numbers import cell_text, drawn
from doe.results.report import Report
from doe.views.charts import alt
from doe.views.charts.model import ChartData, Record, ResponseChart, Word, of_analysis
from doe.views.charts.shared import panel_layout, word
from doe.views.charts.theme import DIVERGING, HEIGHT, INK, PAPER, PLAIN, WIDTH
from doe.views.words import mean_text

CELLS = 64
"""Cells of a map across and up."""
BANDS = 10
"""Steps of the response with a colour of their own."""
MOST_MAPS, PRINTED = 15, 3
"""Maps to choose from on the page, and those of a saved picture."""
OVERLAP = 0.5
"""Of a row of cells with the next one, which is drawn over it."""
EDGE = 1.04
"""Half of what an axis shows, of positions that go from -1 to 1."""


def draw_contours() -> alt.TopLevelMixin:
    """Return a panel for each two factors; ticks are data, for every panel has scales of its
    own.
    """
    base = alt.Chart()
    scale = alt.Scale(domain=[-EDGE, EDGE], nice=False, zero=False)
    hidden = alt.Axis(labels=False, ticks=False, grid=False, domain=False, title=None)
    x, y = alt.X("x:Q", scale=scale, axis=hidden), alt.Y("y:Q", scale=scale, axis=hidden)

    def only(what: str) -> alt.Chart:
        return base.transform_filter(f"datum.what == '{what}'")

    colour = alt.Color(
        "mean:Q",
        title="{mean}",
        scale=alt.Scale(range=list(DIVERGING), interpolate="rgb", reverse=word("less")),
        legend=alt.Legend(orient="bottom", gradientLength=160, gradientThickness=8, tickCount=5),
    )
    cells = only("cell").mark_rect(strokeWidth=0).encode(x=x, x2="x2", y=y, y2="y2", color=colour)
    outline = only("region").mark_line(strokeDash=[4, 3], color=INK, strokeWidth=1.2)
    runs = only("run").mark_point(filled=True, fill=PAPER, stroke=INK, size=34, opacity=1)
    best = only("optimum").mark_point(shape="diamond", filled=True, fill=INK, stroke=PAPER, size=90)
    marks = [
        outline.encode(x=x, y=y, order="order:Q"),
        runs.encode(x=x, y=y),
        best.encode(x=x, y=y),
        only("across").mark_text(baseline="top", dy=5).encode(x=x, y=y, text="text:N"),
        only("up").mark_text(align="right", dx=-4).encode(x=x, y=y, text="text:N"),
    ]
    shown = [alt.FilterTransform({"field": "rank", "lt": word("printed")})]
    layers = alt.layer(cells, *marks, width=word("width"), height=word("height"))
    faceted = layers.facet(
        data=alt.NamedData("map"),
        transform=shown,
        facet=alt.Facet(
            "pair:N", title=None, sort=alt.EncodingSortField("rank", op="min"), header=alt.Header()
        ),
        columns=word("columns"),
        spacing=44,
    )
    made: alt.TopLevelMixin = faceted
    return made


def map_data(report: Report, response: str) -> ChartData | None:
    """Maps of every two factors, those that were asked for first."""
    analysis = report.analyses.get(response)
    return None if analysis is None else contour_data(analysis, report.options.contour)


def contour_data(analysis: Analysis, chosen: Sequence[str] = ()) -> ChartData | None:
    """Maps by how much the response varies over them; of the chosen two factors before all others.

    Raises
    ------
    DoeError
        If the chosen are not two numbers of the surface.
    """
    surface = analysis.surface
    if surface is None or len(surface.polynomial.factors) < 2:
        return None
    shape = surface.polynomial
    keys = [analysis.factors[i].key for i in shape.factors]
    pairs = list(combinations(range(len(keys)), 2))
    if chosen:
        first = _chosen(chosen, keys)
        pairs = [first, *(pair for pair in pairs if set(pair) != set(first))]
    maps = [_map(analysis, shape, pair) for pair in pairs]
    top, rest = maps[: bool(chosen)], maps[bool(chosen) :]
    maps = [*top, *sorted(rest, key=lambda found: -found[0])][:MOST_MAPS]
    rows = [{**row, "rank": n} for n, (_, found) in enumerate(maps) for row in found]
    columns = 1 if chosen else min(len(maps), 2)
    size = {"columns": columns, "width": WIDTH // columns - 20, "height": HEIGHT - 50 * columns}
    words: dict[str, Word] = {"mean": mean_text(analysis)}
    words |= {"less": analysis.goal == "min", "choose": "pair"}
    return ChartData({"map": rows}, {**words, "printed": 1 if chosen else PRINTED, **size})


def _chosen(chosen: Sequence[str], keys: Sequence[str]) -> tuple[int, int]:
    if len(set(chosen)) != 2 or len(chosen) != 2 or not set(chosen) <= set(keys):
        raise DoeError(
            f"a contour map of {','.join(chosen)}: expected two of {', '.join(keys)}, the factors "
            "of the surface"
        )
    return keys.index(chosen[0]), keys.index(chosen[1])


def _map(
    analysis: Analysis, shape: Polynomial, pair: tuple[int, int]
) -> tuple[float, list[Record]]:
    """Return how much the response varies over two factors, and the marks of their map."""
    step = 2.0 / CELLS
    grid = shape.grid(pair, CELLS)
    unit = np.array(shape.unit)
    inner = 1.0 - step / 2.0
    grid[:, list(pair)] *= inner  # cells by their middles
    mean = analysis.transform.scale.back(shape.at(grid)[0]).reshape(CELLS, CELLS)
    low, high = float(mean.min()), float(mean.max())
    band = np.minimum(((mean - low) / (high - low or 1.0) * BANDS).astype(int), BANDS - 1)
    across, up = (analysis.factors[shape.factors[i]] for i in pair)
    name = f"{up.name or up.key} (up) by {across.name or across.key}"
    rows: list[Record] = []
    for line in range(CELLS):  # cells of one band that stand together are one mark
        ends = [0, *(np.flatnonzero(np.diff(band[:, line])) + 1).tolist(), CELLS]
        for first, last in pairwise(ends):
            middle = low + (float(band[first, line]) + 0.5) / BANDS * (high - low)
            x, y = (drawn(-1.0 + step * number) for number in (first, line))
            x2 = drawn(-1.0 + step * last)
            y2 = drawn(min(1.0, -1.0 + step * (line + 1 + OVERLAP)))  # no gaps between the rows
            own: Record = {"x": x, "x2": x2, "y": y, "y2": y2, "mean": drawn(middle)}
            rows.append({"what": "cell", **own})
    scaled = unit[list(pair)]
    places = {(drawn(a), drawn(b)) for a, b in np.array(shape.runs)[:, list(pair)] * scaled}
    rows += [{"what": "run", "x": a, "y": b} for a, b in sorted(places, key=str)]
    outline = shape.outline(*pair) * scaled
    rows += [
        {"what": "region", "x": drawn(a), "y": drawn(b), "order": n}
        for n, (a, b) in enumerate(outline.tolist())
    ]
    if analysis.goal is not None:
        a, b = (np.array(shape.middle)[list(pair)] * scaled).tolist()
        rows.append({"what": "optimum", "x": drawn(a), "y": drawn(b)})
    rows += [{"what": "across", "x": z, "y": -EDGE, "text": t} for z, t in ticks(across)]
    rows += [{"what": "up", "x": -EDGE, "y": z, "text": t} for z, t in ticks(up)]
    return high - low, [{"pair": name, **row} for row in rows]


def ticks(factor: FactorColumn) -> list[tuple[float, str]]:
    """Return both ends and the middle of a range, as positions with their values, whole if
    those are.
    """
    values = [factor.value_at(z) for z in (-1.0, 0.0, 1.0)]
    if all(isinstance(level, int) for level in factor.levels):
        values = [round(float(value)) for value in values]
    places = factor.position_of(np.array(values, dtype=np.float64)).tolist()
    return [(round(z, 4), cell_text(v, "short")) for z, v in zip(places, values, strict=True)]


CONTOURS = ResponseChart(
    32,
    "contours",
    "Contour maps",
    "Each colour is a step of the predicted response, blue for the better; other factors are at "
    "the optimum. Circles are runs, the diamond is the optimum, and dashes surround where it may "
    "lie.",
    draw_contours,
    map_data,
)


# Slices -------------------------------------------------------------------------------------------


CURVE_POINTS, GAP, LEAST = 41, 36, 120
"""Points of a curve, pixels between panels, and those of the narrowest."""


def draw_slices() -> alt.TopLevelMixin:
    """Return a panel for each factor; ticks are data, for every panel has a scale of its own."""
    scale = alt.Scale(domain=[-EDGE, EDGE], nice=False, zero=False)
    hidden = alt.Axis(labels=False, ticks=False, title=None, grid=False, domain=False)
    x = alt.X("x:Q", scale=scale, axis=hidden)
    y = alt.Y("mean:Q", title=None, scale=alt.Scale(zero=False, nice=True))
    base = alt.Chart()
    curve = base.transform_filter("datum.what == 'curve'")
    layers = [
        curve.mark_area(color=PLAIN, opacity=0.16).encode(
            x=x, y=alt.Y("low:Q", scale=alt.Scale(zero=False)), y2="high:Q"
        ),
        curve.mark_line(color=PLAIN).encode(x=x, y=y),
        base.transform_filter("datum.what == 'optimum'")
        .mark_rule(strokeDash=[4, 3], color=INK)
        .encode(x=x),
        base.transform_filter("datum.what == 'tick'")
        .mark_text(baseline="top", dy=5)
        .encode(x=x, y=y, text="text:N"),
    ]
    faceted = alt.layer(*layers, width=word("width"), height=word("height")).facet(
        data=alt.NamedData("slices"),
        facet=alt.Facet("factor:N", title=None, sort=alt.EncodingSortField("rank", op="min")),
        columns=word("columns"),
        spacing=GAP,
    )
    made: alt.TopLevelMixin = faceted.properties(title="{mean}")
    return made


def slice_data(analysis: Analysis) -> ChartData | None:
    """Return the response along each factor, the others at the optimum, with its band."""
    surface = analysis.surface
    if surface is None or not surface.polynomial.factors:
        return None
    shape, back = surface.polynomial, analysis.transform.scale.back
    rows: list[Record] = []
    for n, (i, unit) in enumerate(zip(shape.factors, shape.unit, strict=True)):
        factor = analysis.factors[i]
        mean, reach = shape.at(shape.grid((n,), CURVE_POINTS))
        curves = [back(mean), back(mean - reach), back(mean + reach)]
        z = np.linspace(-1.0, 1.0, CURVE_POINTS)
        for place, *values in zip(z, *curves, strict=True):
            m, low, high = (drawn(float(v)) for v in values)
            own: Record = {"what": "curve", "x": drawn(float(place)), "mean": m}
            rows.append(
                {"factor": factor.name or factor.key, "rank": n, "low": low, "high": high, **own}
            )
        if analysis.goal is not None:
            at = drawn(shape.middle[n] * unit)
            rows.append(
                {"factor": factor.name or factor.key, "rank": n, "what": "optimum", "x": at}
            )
    lowest = min(float(row["low"] or 0.0) for row in rows if row["what"] == "curve")
    for n, i in enumerate(shape.factors):
        factor = analysis.factors[i]
        for place, text in ticks(factor):
            own = {"what": "tick", "x": place, "mean": lowest, "text": text}
            rows.append({"factor": factor.name or factor.key, "rank": n, **own})
    layout = panel_layout(len(shape.factors), LEAST) | {"gap": GAP}
    return ChartData({"slices": rows}, {"mean": mean_text(analysis), **layout})


SLICES = ResponseChart(
    34,
    "slices",
    "Slices at the optimum",
    "The predicted response along each factor with the others at the optimum (dashes); the bands "
    "hold for the whole region at once.",
    draw_slices,
    of_analysis(slice_data),
)

CHARTS = (CONTOURS, SLICES)
