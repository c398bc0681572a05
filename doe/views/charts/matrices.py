"""Matrices of coloured fields: effects over responses, interactions, lost runs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

from doe.analysis.analyze import Analysis
from doe.analysis.pvalues import significant
from doe.results.report import Report
from doe.results.subject import RunRecord
from doe.terms import factors_in, level_text, order
from doe.views.charts import alt
from doe.views.charts.labels import lines_height, row_labels, text_width, wrapped
from doe.views.charts.model import ChartData, Record, ResponseChart, StudyChart, Word, of_analysis
from doe.views.charts.shared import LINES, hover, word
from doe.views.charts.theme import DIVERGING, FULL, INK, LEVELS, PAPER, STATES, STEP
from doe.views.words import helps

HEAT_TERMS = 24
"""Terms in the heatmap."""
LARGEST = 8
"""|t| beyond which the colour stays the same."""
HEAT_CELL = [24.0, 90.0]
"""Least and most pixels of a column on the page."""
SLANTED = 0.7
"""How far a slanted name of a response reaches to its right, in its lengths."""
HEAT_MARKS: Mapping[bool | None, str] = {True: "▲", False: "▼", None: "●"}


def draw_heatmap() -> alt.TopLevelMixin:
    """Draw terms by responses: t of a factor towards better or worse, the strength of others."""
    base = alt.Chart(alt.NamedData("cells")).encode(
        x=alt.X(
            "response:N",
            title=None,
            sort=None,
            axis=alt.Axis(labelAngle=-40, orient="top", labelLimit=300),
        ),
        y=alt.Y("short:N", title=None, sort=None, axis=alt.Axis(labelLimit=300, labelExpr=LINES)),
        tooltip=hover("term", "response", "effect", "t", "p", "p_bh"),
    )
    legend: dict[str, Any] = {"orient": "bottom", "gradientThickness": 8, "tickCount": 5}
    towards = alt.Color(
        "towards:Q",
        title="t, worse to better",
        scale=alt.Scale(
            domain=[-LARGEST, LARGEST], clamp=True, range=list(DIVERGING), interpolate="rgb"
        ),
        legend=alt.Legend(gradientLength=160, **legend),
    )
    strength = alt.Color(
        "strength:Q",
        title="|t| or √F",
        scale=alt.Scale(
            domain=[0, LARGEST], clamp=True, range=[DIVERGING[2], LEVELS[1]], interpolate="rgb"
        ),
        legend=alt.Legend(gradientLength=100, **legend),
    )
    marks = base.transform_filter("datum.mark != ''").mark_text(fontSize=11, baseline="middle")
    # On a deep colour a mark is pale.
    ink = alt.condition(f"abs(datum.t) > {0.75 * LARGEST}", alt.value(PAPER), alt.value(INK))
    cells = base.mark_rect(stroke=None)
    layers: Any = alt.layer(
        cells.transform_filter("datum.towards !== null").encode(color=towards),
        cells.transform_filter("datum.towards === null").encode(color=strength),
        marks.encode(text="mark:N", color=ink),
        width=alt.Step(30),
        height=word("height"),
        padding={"left": 5, "top": 5, "bottom": 5, "right": word("beyond")},
    )
    drawn: alt.TopLevelMixin = layers.resolve_scale(color="independent")
    return drawn


def heatmap_data(report: Report) -> ChartData | None:
    """Return the strongest terms over all responses; a mark where the false discovery rate is
    met.
    """
    family = report.effects_by_response
    if family is None or len(report.analyses) < 2:
        return None
    rows = family.rows[:HEAT_TERMS]
    short = row_labels([row.term for row in rows], report.subject.keys)
    cells: list[Record] = []
    for row in rows:
        for response, effect, t, p, p_bh in zip(
            family.responses, row.effects, row.t, row.p, row.p_bh, strict=True
        ):
            goal = report.analyses[response].goal
            directed = effect is not None and t is not None and order(row.mask) == 1
            helping = helps(effect or 0.0, goal) if directed else None
            cells.append(
                {
                    "term": row.term,
                    "short": short[row.term],
                    "response": response,
                    "effect": effect,
                    "t": t,
                    "towards": None if helping is None else abs(t or 0.0) * (1 if helping else -1),
                    "strength": None if t is None else abs(t),
                    "p": p,
                    "p_bh": p_bh,
                    "mark": HEAT_MARKS[helping] if significant(p_bh, report.options.alpha) else "",
                }
            )
    words: dict[str, Word] = {
        "height": (STEP + lines_height(short.values())) * len(short),
        "labels": round(max(map(text_width, short.values()))),
        "beyond": round(SLANTED * text_width(family.responses[-1])),
        "columns": len(report.analyses),
        "cell": HEAT_CELL,
    }
    return ChartData({"cells": cells}, words) if cells else None


HEATMAP = StudyChart(
    10,
    "all",
    "heatmap",
    "Effects over all responses",
    "Single factors: blue for the better, orange for the worse (▲, ▼). Interactions, and factors "
    "with several levels, have no direction: violet (●). The stronger the colour, the larger t, up "
    "to 8; marks are significant with the false discovery rate over all terms and responses.",
    draw_heatmap,
    heatmap_data,
)


# Interactions of two factors ----------------------------------------------------------------------


FEWEST, MOST = 3, 24
"""Factors of which a matrix is drawn."""
STRONG = 0.6
"""Share of the largest strength above which a cell is dark."""
DEEPEST = 4.0
"""√F that has the deepest colour where none is larger, so that noise is pale."""
SQUARE = 230
"""Height of the matrix in pixels, unless its rows need more."""


def draw_interaction_matrix() -> alt.TopLevelMixin:
    """Draw a matrix of factors: the stronger the colour, the stronger they interact."""
    base = alt.Chart(alt.NamedData("pairs")).encode(
        x=alt.X(
            "across:N",
            title=None,
            sort=None,
            axis=alt.Axis(
                orient="top",
                labelAngle=word("angle"),
                labelLimit=300,
                labelExpr=LINES,
                labelBaseline="line-bottom",
                ticks=False,
            ),
        ),
        y=alt.Y("down:N", title=None, sort=None, axis=alt.Axis(labelLimit=300, ticks=False)),
        tooltip=hover("pair", "percent", "p", "p_holm"),
    )
    colour = alt.Color(
        "strength:Q",
        scale=alt.Scale(range=[DIVERGING[2], LEVELS[1]], domain=word("ends"), interpolate="rgb"),
        legend=None,
    )
    ink = alt.condition(f"datum.share > {STRONG}", alt.value(PAPER), alt.value(INK))
    return alt.layer(
        base.mark_rect(stroke=None).encode(color=colour),
        base.mark_text(baseline="middle").encode(text="mark:N", color=ink),
        width=FULL,
        height=word("height"),
    )


def matrix_data(analysis: Analysis) -> ChartData | None:
    """Return the strength √F of every pair, without an error the root of its mean square."""
    names = [factor.name or factor.key for factor in analysis.factors]
    tests = [t for t in analysis.tests if order(t.mask) == 2 and t.mask.bit_count() == 2]
    if not tests or not FEWEST <= len(names) <= MOST:
        return None
    strengths = [math.sqrt(max(t.ss / t.df if t.f is None else t.f, 0.0)) for t in tests]
    largest = max(max(strengths), DEEPEST if tests[0].f is not None else 0.0) or 1.0
    rows: list[Record] = []
    for test, strength in zip(tests, strengths, strict=True):
        first, second = factors_in(test.mask)
        shown: Record = {
            "down": names[first],
            "across": names[second],
            "pair": f"{names[first]} × {names[second]}",
            "strength": strength,
            "share": strength / largest,
            "percent": test.percent,
            "p": test.p,
            "p_holm": test.p_holm,
            "mark": "●" if significant(test.p_holm, analysis.alpha) else "",
        }
        rows.append(shown)
    rows.sort(key=lambda row: names.index(str(row["down"])))
    across = {str(row["across"]) for row in rows}
    room = 0.8 * FULL / len(across)
    lines = {name: wrapped(name, room) for name in across}
    short = max(map(text_width, lines.values())) < room
    for row in rows if short else ():
        row["across"] = lines[str(row["across"])]
    size = {"height": max(SQUARE, STEP * (len(names) - 1)), "angle": 0 if short else -90}
    return ChartData({"pairs": rows}, {**size, "ends": [0.0, largest]})


INTERACTION_MATRIX = ResponseChart(
    2,
    "interaction-matrix",
    "Interactions",
    "The stronger the colour, the stronger the two factors interact (√F); a dot: significant "
    "after Holm's adjustment; blank: not estimated by itself.",
    draw_interaction_matrix,
    of_analysis(matrix_data),
)


# Lost runs ----------------------------------------------------------------------------------------


LOST = ("failed", "diverged")
MOST_LEVELS = 40
"""Levels of all factors up to which the map is drawn."""
LOST_CELL = [40.0, 90.0]
"""Least and most pixels of a column on the page."""


def draw_failure_map() -> alt.TopLevelMixin:
    """Draw a matrix of levels: the share of runs without a result; alone on the diagonal."""
    base = alt.Chart(alt.NamedData("pairs")).encode(
        x=alt.X(
            "across:N",
            title=None,
            sort=None,
            axis=alt.Axis(orient="top", labelAngle=-90, labelLimit=300),
        ),
        y=alt.Y("down:N", title=None, sort=None, axis=alt.Axis(labelLimit=300)),
        tooltip=hover("pair", "failed", "diverged", "runs"),
    )
    colour = alt.Color(
        "share:Q",
        scale=alt.Scale(range=[DIVERGING[2], STATES["failed"]], domain=[0, 1], interpolate="rgb"),
        legend=None,
    )
    ink = alt.condition("datum.share > 0.45", alt.value(PAPER), alt.value(INK))
    return alt.layer(
        base.mark_rect(stroke=None).encode(color=colour),
        base.mark_text(baseline="middle").encode(text="text:N", color=ink),
        width=FULL,
        height=word("height"),
    )


def failure_data(report: Report) -> ChartData | None:
    """Runs that ended, by every level and every pair of levels; None where all went well."""
    subject = report.subject
    ended = [run for run in subject.runs if run.state in ("done", *LOST)]
    names = {factor.key: factor.name or factor.key for factor in subject.factors}
    levels = [(f.key, label) for f in subject.factors for label in f.labels]
    if all(run.state == "done" for run in ended) or len(levels) > MOST_LEVELS:
        return None
    rows: list[Record] = []
    for first, second in _level_pairs(levels):
        runs = [run for run in ended if _has_level(run, first) and _has_level(run, second)]
        if not runs:
            continue
        lost = {state: sum(run.state == state for run in runs) for state in LOST}
        parts = [f"{names[key]} {label}" for key, label in dict.fromkeys((first, second))]
        count = sum(lost.values())
        rows.append(
            {
                "down": f"{names[first[0]]} {first[1]}",
                "across": f"{names[second[0]]} {second[1]}",
                "pair": ", ".join(parts),
                "share": count / len(runs),
                "text": f"{count}/{len(runs)}" if count else "",
                "runs": len(runs),
                **lost,
            }
        )
    words: dict[str, Word] = {
        "height": (STEP + 8) * len(levels),
        "labels": round(max(text_width(str(row["down"])) for row in rows)),
        "columns": len(levels),
        "cell": LOST_CELL,
    }
    return ChartData({"pairs": rows}, words)


def _level_pairs(
    levels: list[tuple[str, str]],
) -> Iterator[tuple[tuple[str, str], tuple[str, str]]]:
    """Yield every level with itself and with those of later factors."""
    for level in levels:
        yield level, level
    yield from ((a, b) for a, b in combinations(levels, 2) if a[0] != b[0])


def _has_level(run: RunRecord, level: tuple[str, str]) -> bool:
    return level_text(run.levels[level[0]]) == level[1]


FAILURE_MAP = StudyChart(
    8,
    "failures",
    "failure-map",
    "Where runs fail or diverge",
    "Share of ended runs that have no result, at each pair of levels, and on the diagonal at each "
    "level; the stronger the colour, the larger the share.",
    draw_failure_map,
    failure_data,
)

CHARTS = (HEATMAP, INTERACTION_MATRIX, FAILURE_MAP)
