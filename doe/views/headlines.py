"""Findings in sentences, every number of them from the analysis."""

from __future__ import annotations

from typing import NamedTuple

from doe.analysis.analyze import Analysis
from doe.analysis.best import CellMean
from doe.analysis.effects import Effect
from doe.analysis.estimators.robust import Robust
from doe.views.numbers import cell_text
from doe.views.words import advice_text, helps

LARGEST = 3
NAMED = 8


class Headlines(NamedTuple):
    """What one response says."""

    effects: tuple[str, ...]
    best: str
    fragile: tuple[str, ...]
    """What does not hold under every assumption; empty if nothing is."""


def headlines(analysis: Analysis) -> Headlines:
    """The largest effects, the best configuration, and what is fragile."""
    ranked = sorted(analysis.effects, key=lambda e: (-abs(e.effect), e.term))
    sentences = [_effect(effect, analysis) for effect in ranked[:LARGEST]]
    return Headlines((*sentences, _count(analysis)), _best(analysis), _fragile(analysis))


def _effect(effect: Effect, analysis: Analysis) -> str:
    size, interval = _size(effect, analysis)
    p = "" if effect.p_holm is None else f"Holm-adjusted p {_p(effect.p_holm)}"
    inside = "; ".join(part for part in (interval, p) if part)
    direction = "better" if helps(effect.effect, analysis.goal) else "worse"
    verdict = f"for the {direction}"
    if effect.p_holm is not None and effect.p_holm > analysis.alpha:
        verdict = "which may be chance"
    return f"{effect.term} {size}{f' ({inside})' if inside else ''}, {verdict}."


def _size(effect: Effect, analysis: Analysis) -> tuple[str, str]:
    """What a term does to the response, and the interval, on the response scale if it can be."""
    level = f"{cell_text(100 * (1 - analysis.alpha), 'int')} % interval "
    back = next((s for s in analysis.response_scale if s.term == effect.term), None)
    if back is not None and back.kind == "ratio":
        interval = "" if back.low is None else level + _span(back.low, back.high)
        return f"multiplies {analysis.response} by {cell_text(back.value, 'num')}", interval
    low, high = effect.ci_low, effect.ci_high
    interval = "" if low is None else level + _span(low, high)
    if analysis.transform.name != "none":
        shift = cell_text(effect.effect, "signed")
        return f"changes {analysis.response} by {shift} on the analysed scale", interval
    unit = f" {analysis.unit}" if analysis.unit else ""
    return f"changes {analysis.response} by {cell_text(effect.effect, 'signed')}{unit}", interval


def _span(low: float | None, high: float | None) -> str:
    return f"{cell_text(low, 'num')} to {cell_text(high, 'num')}"


def _p(value: float) -> str:
    text = cell_text(value, "p")
    return f"= {text}" if value > 0 else "below the smallest number"


def _count(analysis: Analysis) -> str:
    significant = [
        e for e in analysis.effects if e.p_holm is not None and e.p_holm <= analysis.alpha
    ]
    significant.sort(key=lambda e: (-abs(e.effect), e.term))
    if not significant:
        return f"None of {len(analysis.effects)} effects is significant after Holm's adjustment."
    names = ", ".join(effect.term for effect in significant[:NAMED])
    more = f" and {len(significant) - NAMED} more" if len(significant) > NAMED else ""
    verb = "is" if len(significant) == 1 else "are"
    return (
        f"{len(significant)} of {len(analysis.effects)} effects {verb} significant after Holm's "
        f"adjustment: {names}{more}."
    )


def _best(analysis: Analysis) -> str:
    top: CellMean = analysis.best.cells[0]
    unit = f" {analysis.unit}" if analysis.unit else ""
    interval = "" if top.ci_low is None else f" ({_span(top.ci_low, top.ci_high)})"
    mean = f"Its mean is {cell_text(top.mean, 'num')}{unit}{interval}."
    return f"{analysis.best.sentence} {mean}"


def _fragile(analysis: Analysis) -> tuple[str, ...]:
    doubts = list(analysis.warnings)
    robust = analysis.get(Robust)
    if robust is not None and not all(row.agree for row in robust.rows):
        doubts.append(robust.sentence)
    return (*doubts, *(advice_text(f) for f in analysis.diagnostics.findings if not f.ok))
