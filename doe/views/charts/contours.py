"""Contour maps of a response surface with the runs on them, and slices with their bands."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, pairwise

import numpy as np

from doe.analysis.analyze import Analysis
from doe.analysis.dataset import FactorColumn
from doe.analysis.polynomial import Polynomial
from doe.numbers import cell_text, drawn
from doe.views.charts import alt
from doe.views.charts.model import ChartData, Record, ResponseChart, of_analysis
from doe.views.charts.shared import word
from doe.views.charts.theme import DIVERGING, HEIGHT, INK, PAPER, WIDTH
from doe.views.words import mean_text

CELLS = 64
"""Cells of a map across and up."""
BANDS = 10
"""Steps of the response that are told apart by colour."""
MOST_MAPS = 3
EDGE = 1.04
"""Half of what an axis shows, of positions that go from -1 to 1."""


def draw() -> alt.TopLevelMixin:
    """A panel for each two factors; ticks are data, for every panel has scales of its own."""
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
    faceted = alt.layer(cells, *marks, width=word("width"), height=word("height")).facet(
        data=alt.NamedData("map"),
        facet=alt.Facet(
            "pair:N", title=None, sort=alt.EncodingSortField("rank", op="min"), header=alt.Header()
        ),
        columns=word("columns"),
        spacing=44,
    )
    made: alt.TopLevelMixin = faceted
    return made


def contour_data(analysis: Analysis, chosen: Sequence[str] = ()) -> ChartData | None:
    """Maps of the chosen two factors, or of the pairs that the response depends on most."""
    surface = analysis.surface
    if surface is None or len(surface.polynomial.factors) < 2:
        return None
    shape = surface.polynomial
    keys = [analysis.factors[i].key for i in shape.factors]
    pairs = list(combinations(range(len(keys)), 2))
    if chosen:
        pairs = [(keys.index(chosen[0]), keys.index(chosen[1]))]
    maps = [_map(analysis, shape, pair) for pair in pairs]
    maps.sort(key=lambda found: -found[0])
    rows = [{**row, "rank": n} for n, (_, found) in enumerate(maps[:MOST_MAPS]) for row in found]
    columns = min(len(maps), 2)
    size = {"columns": columns, "width": WIDTH // columns - 20, "height": HEIGHT - 50 * columns}
    less = analysis.goal == "min"
    return ChartData({"map": rows}, {"mean": mean_text(analysis), "less": less, **size})


def _map(
    analysis: Analysis, shape: Polynomial, pair: tuple[int, int]
) -> tuple[float, list[Record]]:
    """How much the response varies over two factors, and the marks of their map."""
    step = 2.0 / CELLS
    grid = shape.grid(pair, CELLS)
    unit = np.array(shape.unit)
    inner = 1.0 - step / 2.0
    grid[:, list(pair)] *= inner  # cells by their middles
    mean = analysis.transform.scale.back(shape.at(grid)[0]).reshape(CELLS, CELLS)
    low, high = float(mean.min()), float(mean.max())
    band = np.minimum(((mean - low) / (high - low or 1.0) * BANDS).astype(int), BANDS - 1)
    across, up = (analysis.factors[shape.factors[i]] for i in pair)
    name = f"{up.key} (up) by {across.key}"
    rows: list[Record] = []
    for line in range(CELLS):  # cells of one band that stand together are one mark
        ends = [0, *(np.flatnonzero(np.diff(band[:, line])) + 1).tolist(), CELLS]
        for first, last in pairwise(ends):
            middle = low + (float(band[first, line]) + 0.5) / BANDS * (high - low)
            x, y = (drawn(-1.0 + step * number) for number in (first, line))
            x2, y2 = (drawn(-1.0 + step * number) for number in (last, line + 1))
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
    """Both ends and the middle of a range, as positions with their values."""
    return [(z, cell_text(factor.value_at(z), "level")) for z in (-1.0, 0.0, 1.0)]


CHART = ResponseChart(
    32,
    "contours",
    "Contour maps",
    "Each colour is a step of the predicted response, blue for the better; other factors are at "
    "the optimum. Circles are runs, the diamond is the optimum, and dashes surround where it may "
    "lie.",
    draw,
    of_analysis(contour_data),
)
