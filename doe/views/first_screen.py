"""The first screen of the page: a sentence for each headline response, and the best configuration.

What was found in full is in `doe.views.headlines`; here is what is worth large type.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from doe.analysis.analyze import Analysis
from doe.analysis.best import RankedCell
from doe.analysis.dataset import FactorColumn, Level
from doe.analysis.means import ConditionalEffect, Interaction
from doe.analysis.pvalues import significant
from doe.errors import counted
from doe.numbers import cell_text, from_to
from doe.results.report import Report
from doe.terms import factors_in, level_in_words, level_text, order, parse_term
from doe.views.headlines import headlines, over_conditions_text
from doe.views.next_step import next_step
from doe.views.words import is_clear, is_switch, level_phrase, loss_finding, mean_word

VERDICTS = {
    "confirmed": "Confirmed with {seeds}.",
    "refuted": "Refuted by {seeds}.",
    "open": "Not shown to differ with {seeds}.",
}


class Chip(NamedTuple):
    """The level of a factor in a configuration."""

    text: str
    off: bool
    """Whether the factor is a switch that is off."""


class Card(NamedTuple):
    """The best observed configuration of a response."""

    title: str
    chips: tuple[Chip, ...]
    mean: str
    spread: str
    lines: tuple[str, ...]
    """How many are tied with it, the model's optimum, and whether fresh runs confirm it."""


# Sentences ----------------------------------------------------------------------------------------


def lead(analysis: Analysis, title: str) -> str:
    """Return the strongest finding: "loss falls from 11.2 to 6.8 with warmup".

    Levels that lose runs come first: their survivors are not a fair sample.
    """
    return " ".join(part for part in (loss_finding(analysis), _strongest(analysis, title)) if part)


def _strongest(analysis: Analysis, title: str) -> str:
    if all(test.p_holm is None for test in analysis.tests):
        return f"Effects on {title} cannot be tested: there is no error to test against."
    called = sorted(analysis.findings, key=lambda test: (-test.ss / test.df, test.term))
    if not called:
        return f"No factor has a clear effect on {title}."
    main = [analysis.factors[factors_in(t.mask)[0]] for t in called if t.mask.bit_count() == 1]
    if main:
        factor = max(main, key=lambda factor: _span(factor, analysis))  # the first of equal ones
        return f"{_change(factor, analysis, title)}{_condition(factor, analysis)}."
    names = [_name(analysis.factors[i]) for i in factors_in(called[0].mask)]
    verb = (
        "interact in" if order(called[0].mask) > 1 and len(names) > 1 else "has a curved effect on"
    )
    return f"{' and '.join(names)} {verb} {title}; no factor has a clear effect by itself."


def _span(factor: FactorColumn, analysis: Analysis) -> float:
    """Return how far the means of a factor's levels lie apart."""
    known = [m.mean for m in analysis.levels if m.factor == factor.key and m.mean is not None]
    return max(known) - min(known) if known else 0.0


def _change(factor: FactorColumn, analysis: Analysis, title: str) -> str:
    known = [
        (m.mean, level_in_words(m.level))
        for m in analysis.levels
        if m.factor == factor.key and m.mean is not None
    ]
    if len(known) < 2:
        return f"{_name(factor)} has an effect on {title}"
    unit = f" {analysis.unit}" if analysis.unit else ""
    if title != analysis.response:  # a name as it is written in code stays so
        title = title[:1].upper() + title[1:]
    if len(factor.levels) == 2:
        (low, before), (high, after) = known
        verb = "rises" if high > low else "falls"
        size = f"{title} {verb} from {' to '.join(from_to(low, high))}{unit}"
        if is_switch(factor):
            return f"{size} with {_name(factor)}"
        return f"{size} as {_name(factor)} goes from {before} to {after}"
    ends, words = (min(known), max(known)), ("lowest", "highest")
    if analysis.goal == "max":  # the better end comes first
        ends, words = ends[::-1], words[::-1]
    sizes = from_to(*(mean for mean, _ in ends))
    return (
        f"{title} is {words[0]} at {_name(factor)} = {ends[0][1]} ({sizes[0]}{unit}) "
        f"and {words[1]} at {ends[1][1]} ({sizes[1]}{unit})"
    )


def _condition(factor: FactorColumn, analysis: Analysis) -> str:
    """Say on what the effect of a factor depends most, if that is significant."""
    pair = next(
        (
            pair
            for pair in analysis.interactions
            if pair.factor == factor.key and significant(pair.p_holm, analysis.alpha)
        ),
        None,
    )
    if pair is None or len(factor.levels) > 2:
        return ""
    other = next(f for f in analysis.factors if f.key == pair.other)
    clear = [is_clear(effect, pair.ratio) for effect in pair.at]
    if not any(clear) or any(effect.effect is None for effect in pair.at):
        return ""
    if not all(clear):
        if len(clear) > 2:
            return f", but not clearly at every level of {_name(other)}"
        return f", but clearly only {level_phrase(other, clear.index(True), keyed=False)}"
    signed = [_signed(effect, pair) for effect in pair.at]
    turned = [change * sum(signed) < 0 for change in signed]
    if any(turned):
        verb = "rises" if signed[turned.index(True)] > 0 else "falls"
        return f", but {verb} {level_phrase(other, turned.index(True), keyed=False)}"
    sizes = [abs(change) for change in signed]
    strong, weak = sizes.index(max(sizes)), sizes.index(min(sizes))
    more = level_phrase(other, strong, keyed=False)
    return f", more {more} than {level_phrase(other, weak, again=True)}"


def _signed(effect: ConditionalEffect, pair: Interaction) -> float:
    """Return a conditional effect, of a ratio its logarithm."""
    value = effect.effect or 0.0
    return math.log(value) if pair.ratio and value > 0 else value


def _name(factor: FactorColumn) -> str:
    return factor.name or factor.key


def _level(value: Level) -> str:
    return cell_text(value, "short") if isinstance(value, float) else level_text(value)


def _number(value: float) -> str:
    return cell_text(value, "brief")


# The best configuration ---------------------------------------------------------------------------


def card(report: Report, response: str) -> Card | None:
    """Return the best observed configuration; None where no goal is known."""
    analysis = report.analyses[response]
    if analysis.best is None or not analysis.best.cells:
        return None
    top = analysis.best.cells[0]
    unit = f" {analysis.unit}" if analysis.unit else ""
    cell = next((cell for cell in report.subject.cells if cell.config == top.config), None)
    spread = None if cell is None or response not in cell.spreads else cell.spreads[response].std
    runs = counted(top.n, "run")
    lines = (
        _ties(analysis),
        _optimum(analysis),
        *over_conditions_text(analysis),
        _confirmed(analysis),
        _next(report, analysis),
    )
    return Card(
        report.subject.responses.title_of(response),
        _chips(top, analysis, report),
        f"{_number(top.mean)}{unit}",
        runs
        if top.n == 1
        else f"{mean_word(analysis).lower()} of {runs}"
        if spread is None
        else f"{mean_word(analysis).lower()} of {runs}, SD {_number(spread)}",
        tuple(filter(None, lines)),
    )


def _chips(top: RankedCell, analysis: Analysis, report: Report) -> tuple[Chip, ...]:
    if min(top.levels, default=0) < 0:  # between the levels
        values = report.subject.data[analysis.response].runs.values(top.cell)
        pairs = zip(analysis.factors, values, strict=True)
        return tuple(
            Chip(f"{_name(f)} {_level(value)}", False) for f, value in pairs if not f.random
        )
    return tuple(
        Chip(_name(factor), level == 0)
        if is_switch(factor)
        else Chip(f"{_name(factor)} {factor.labels[level]}", False)
        for factor, level in zip(analysis.factors, top.levels, strict=True)
        if not factor.random
    )


def _ties(analysis: Analysis) -> str:
    assert analysis.best is not None
    if analysis.best.critical is None:
        return ""
    others = len(analysis.best.among_best) - 1
    if others < 1:
        return "No other configuration is tied with it."
    return f"{counted(others, 'other')} {'are' if others > 1 else 'is'} statistically tied with it."


def _optimum(analysis: Analysis) -> str:
    """Return the model's optimum, where it is another configuration."""
    assert analysis.best is not None
    reduced, top = analysis.best.reduced, analysis.best.cells[0]
    fixed = {i for term in reduced.terms for i in factors_in(parse_term(term, analysis.keys))}
    levels = reduced.best.levels
    changed = [
        level_phrase(analysis.factors[i], levels[i], keyed=False)
        for i in sorted(fixed)
        if levels[i] not in (-1, top.levels[i])
    ]
    if not changed or reduced.best.mean is None:
        return ""
    unit = f" {analysis.unit}" if analysis.unit else ""
    kind = "a geometric mean of " if reduced.best.geometric else ""
    predicted = f"predicted {kind}{_number(reduced.best.mean)}{unit}"
    return f"The model's optimum is another: {', '.join(changed)}, {predicted}."


def _confirmed(analysis: Analysis) -> str:
    fresh = analysis.confirmation
    if fresh is None:
        return "Not yet confirmed with new seeds."
    return VERDICTS[fresh.verdict].format(seeds=counted(fresh.seeds, "fresh seed"))


def _next(report: Report, analysis: Analysis) -> str:
    step = next_step(analysis)
    return "" if step is None else step.text(report.subject.table is None)


# Caveats ------------------------------------------------------------------------------------------


class Caveats(NamedTuple):
    """Caveats: one line, and what it unfolds to."""

    line: str
    sentences: tuple[tuple[str, tuple[str, ...]], ...]
    """Caveats by response."""


def caveats(report: Report) -> Caveats:
    """Return the checks that need a look, and the runs without a result."""
    fragile = [
        (name, headlines(report.analyses[name]).fragile) for name in report.headline_responses
    ]
    checks = sum(len(sentences) for _, sentences in fragile)
    states = [run.state for run in report.subject.runs]
    verb = "needs" if checks == 1 else "need"
    parts = [f"{counted(checks, 'check')} {verb} a look"]
    parts += [f"{counted(states.count('failed'), 'failed run')}"]
    parts += [f"{states.count('diverged')} diverged"] * ("diverged" in states)
    return Caveats(", ".join(parts), tuple(pair for pair in fragile if pair[1]))
