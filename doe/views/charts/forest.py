"""The forest plot: every main effect and the strongest interactions, a column for each response."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from doe.analysis.analyze import Analysis
from doe.analysis.dataset import FactorColumn
from doe.analysis.means import LevelDifference
from doe.analysis.pvalues import significant
from doe.results.report import Report
from doe.views.charts import alt
from doe.views.charts.labels import text_width
from doe.views.charts.model import ChartData, Record, StudyChart, Word
from doe.views.charts.shared import (
    DIRECTIONS,
    LINES,
    NO_DIRECTION,
    OTHERS,
    direction,
    direction_of,
    direction_words,
    hover,
    panels,
    word,
)
from doe.views.words import effect_on, helps, is_clear, is_switch, level_phrase

STEP = 24
"""Pixels from one row to the next."""
RESPONSES, MAIN, PAIRS = 4, 14, 2
"""Columns, rows of main effects, and interactions of each response."""
WIDTH, LEAST = 190, 120
"""Width of a column in a saved picture, and on the page what it has at least."""


class Estimate(NamedTuple):
    """An effect with its interval; without one, both ends are the effect."""

    value: float
    low: float | None
    high: float | None
    direction: str
    p_holm: float | None
    none: float
    """The value of no effect: 0, of a ratio 1."""
    factor: str = ""
    """Of a single factor its key: the rows of its levels stand together."""

    @property
    def size(self) -> float:
        """How far it is from no effect."""
        return abs(math.log(self.value) if self.none and self.value > 0 else self.value - self.none)


Estimates = dict[str, Estimate]
"""Row -> its estimate; a row has the same meaning in every response."""


def draw_forest() -> alt.TopLevelMixin:
    """Draw effects as dots with intervals as bars, a row each, a line at no effect."""
    base = alt.Chart().encode(
        y=alt.Y(
            "row:N",
            title=None,
            sort=alt.EncodingSortField("rank", op="min"),
            axis=alt.Axis(
                labelLimit=word("labels"), labelExpr=LINES, ticks=False, domain=False, grid=True
            ),
        ),
        tooltip=hover("row", "effect", "ci_low", "ci_high", "p_holm"),
    )
    x = alt.X(
        "effect:Q",
        title=None,
        scale=alt.Scale(zero=False, padding=6),
        axis=alt.Axis(grid=False, tickCount=4),
    )
    coloured = direction()
    drawn: alt.FacetChart = panels(
        "effects",
        "response",
        alt.Chart().mark_rule().encode(x=alt.X("mean(none):Q", title=None)),
        base.mark_bar(height=7, opacity=0.45).encode(x="ci_low:Q", x2="ci_high:Q", color=coloured),
        base.mark_circle(size=55, opacity=1).encode(x=x, color=coloured),
        spacing=16,
        height=alt.Step(word("step")),
    )
    return drawn.properties(title="")


def forest_data(report: Report) -> ChartData | None:
    """Rows of main effects, the largest first, then of conditional effects."""
    names = report.headline_responses[:RESPONSES]
    analyses = [report.analyses[name] for name in names]
    main = [_main(analysis) for analysis in analyses]
    pairs = [_conditional(analysis) for analysis in analyses]
    rows = [*_ranked(main)[:MAIN], *_strongest(analyses)]
    records: list[Record] = []
    for rank, row in enumerate(rows):
        for number, analysis in enumerate(analyses):
            found = (main[number] | pairs[number]).get(row)
            if found is not None:
                title = _column(analysis, report.subject.responses.title_of(analysis.response))
                record: Record = {"response": title, "row": row, "rank": rank}
                records.append(record | _record(found))
    if not records:
        return None
    layout: dict[str, Word] = {
        "columns": len(names),
        "panels": len(names),
        "width": WIDTH,
        "least": LEAST,
        "labels": round(max(text_width(row) for row in rows)) + 6,
        "step": STEP,
    }
    return ChartData({"effects": records}, layout | direction_words(records))


def _record(found: Estimate) -> Record:
    low = found.value if found.low is None else found.low
    high = found.value if found.high is None else found.high
    record: Record = {"effect": found.value, "ci_low": low, "ci_high": high, "none": found.none}
    return record | {"p_holm": found.p_holm, "direction": found.direction}


def _column(analysis: Analysis, title: str) -> str:
    if analysis.transform.scale.ratio:
        odds = "odds " * (analysis.transform.scale.ratio == "odds")
        return f"{title}, {odds}ratio"
    return effect_on(analysis).replace(analysis.response, title)


def _ranked(estimates: Sequence[Estimates]) -> list[str]:
    """Rows, those of the largest effects on the first response that has them first."""
    sizes: dict[str, float] = {}
    rows: dict[str, str] = {}
    for found in estimates:
        largest: dict[str, float] = {}
        for row, estimate in found.items():
            rows.setdefault(row, estimate.factor)
            largest[estimate.factor] = max(estimate.size, largest.get(estimate.factor, 0.0))
        sizes = largest | sizes
    return sorted(rows, key=lambda row: -sizes[rows[row]])


def _strongest(analyses: Sequence[Analysis]) -> list[str]:
    """Rows of the strongest significant interactions of each response."""
    rows: dict[str, None] = {}
    for analysis in analyses:
        for term, row, _ in list(_pair_rows(analysis)):
            called = [
                p.term for p in analysis.interactions if significant(p.p_holm, analysis.alpha)
            ]
            if term in called[:PAIRS]:
                rows.setdefault(row)
    return list(rows)


# Main effects -------------------------------------------------------------------------------------


def _main(analysis: Analysis) -> Estimates:
    found: Estimates = {}
    back = {scaled.term: scaled for scaled in analysis.response_scale if scaled.kind == "ratio"}
    effects = {effect.mask: effect for effect in analysis.effects}
    for number, factor in enumerate(analysis.factors):
        effect = effects.get(1 << number)
        if effect is None:
            found |= _levels(factor, analysis)
            continue
        scaled = back.get(effect.term)
        value, low, high = effect.effect, effect.ci_low, effect.ci_high
        if scaled is not None:
            value, low, high = scaled.value, scaled.low, scaled.high
        colour = direction_of(effect, analysis)
        none = 0.0 if scaled is None else 1.0
        row = _name(factor) if is_switch(factor) else _step(factor, 1)
        found[row] = Estimate(value, low, high, colour, effect.p_holm, none, factor.key)
    return found


def _levels(factor: FactorColumn, analysis: Analysis) -> Estimates:
    """Return each level against the first one."""
    found = {}
    for number in range(1, len(factor.levels)):
        pair = {factor.labels[0], factor.labels[number]}
        for d in analysis.differences:
            if d.factor == factor.key and {d.level, d.other} == pair and d.difference is not None:
                turned = d.other != factor.labels[0]
                found[_step(factor, number)] = _difference(d, turned, analysis)
    return found


def _difference(d: LevelDifference, turned: bool, analysis: Analysis) -> Estimate:
    ratio = d.ratio is not None
    ends = (d.ratio, d.ratio_low, d.ratio_high) if ratio else (d.difference, d.ci_low, d.ci_high)
    value, low, high = ends
    assert value is not None
    if turned:
        value, low, high = (
            None if end is None else 1.0 / end if ratio else -end for end in (value, high, low)
        )
        assert value is not None
    none = 1.0 if ratio else 0.0
    strong = significant(d.p_tukey, analysis.alpha)
    colour = DIRECTIONS[helps(value - none, analysis.goal)] if strong else OTHERS
    return Estimate(value, low, high, colour, None, none, d.factor)


def _name(factor: FactorColumn) -> str:
    return factor.name or factor.key


def _step(factor: FactorColumn, number: int) -> str:
    return f"{_name(factor)}: {factor.labels[0]} → {factor.labels[number]}"


# Conditional effects ------------------------------------------------------------------------------


def _conditional(analysis: Analysis) -> Estimates:
    return {row: estimate for _, row, estimate in _pair_rows(analysis)}


def _pair_rows(analysis: Analysis) -> Iterator[tuple[str, str, Estimate]]:
    """Term, row and estimate of what a factor does at each level of another."""
    factors = {factor.key: factor for factor in analysis.factors}
    for pair in analysis.interactions:
        acting, other = factors[pair.factor], factors[pair.other]
        subject = _name(acting)
        if not is_switch(acting):
            subject = f"{subject}: {pair.low} → {pair.high}"
        for number, effect in enumerate(pair.at):
            if effect.effect is not None:
                colour = NO_DIRECTION if is_clear(effect, pair.ratio) else OTHERS
                none = 1.0 if pair.ratio else 0.0
                ends = effect.effect, effect.ci_low, effect.ci_high
                row = f"{subject}, {level_phrase(other, number, keyed=False)}"
                yield pair.term, row, Estimate(*ends, colour, pair.p_holm, none)


FOREST = StudyChart(
    5,
    "first",
    "forest",
    "Effects",
    "Change of the mean and its 95 % interval, where there is an error to make one; below the "
    "single factors, what a factor does at each level of another. Intervals of interactions hold "
    "for all of them at once. A gap: not among the strongest of that response.",
    draw_forest,
    forest_data,
)

CHARTS = (FOREST,)
