"""The first screen of the page: a sentence for each headline response, and the best configuration.

What was found in full is in `doe.views.headlines`; here is what is worth large type.
"""

from __future__ import annotations

import math
import re
from typing import NamedTuple

from doe.analysis.analyze import Analysis
from doe.analysis.best import RankedCell
from doe.analysis.dataset import FactorColumn, Level
from doe.analysis.means import ConditionalEffect, Interaction
from doe.analysis.pvalues import significant
from doe.errors import counted
from doe.numbers import about, cell_text, confidence, from_to, with_interval
from doe.results.report import Report
from doe.terms import factors_in, is_squared, level_in_words, level_text, order, parse_term
from doe.views.headlines import choice_in_words, headlines, over_conditions_text, rival_terms
from doe.views.next_step import next_step
from doe.views.words import (
    after_number,
    is_clear,
    is_switch,
    level_phrase,
    loss_finding,
    mean_word,
)

VERDICTS = {
    "confirmed": "Confirmed with {seeds}.",
    "refuted": "Refuted by {seeds}.",
    "open": "Not shown to differ with {seeds}.",
}


MOST_CONDITIONS = 4
"""Conditions whose best choices a card lists."""


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


def leads(report: Report) -> list[str]:
    """Return what the page begins with: a sentence for each response that leads.

    Levels that lose runs come first, once for all responses: their survivors are no fair sample.
    """
    analyses = [report.analyses[name] for name in report.headline_responses]
    lost = dict.fromkeys(filter(None, map(lost_levels, analyses)))
    title_of = report.subject.responses.title_of
    return [*lost, *(lead(analysis, title_of(analysis.response)) for analysis in analyses)]


def lost_levels(analysis: Analysis) -> str:
    """Return which levels lose runs, by the names of the factors."""
    sentence = loss_finding(analysis)
    for factor in analysis.factors:
        sentence = re.sub(rf"(?<![\w.]){re.escape(factor.key)} = ", f"{_name(factor)} = ", sentence)
    return sentence


def lead(analysis: Analysis, title: str) -> str:
    """Return the strongest finding: "loss falls from 11.2 to 6.8 with warmup"."""
    if all(test.p_holm is None for test in analysis.tests):
        return f"Effects on {title} cannot be tested: there is no error to test against."
    if said := _optimum_found(analysis, title):
        return said
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


def _optimum_found(analysis: Analysis, title: str) -> str:
    """Return where a surface that is shown to bend has its best, if that lies among the runs."""
    surface = analysis.surface
    best = None if surface is None else surface.optimum
    lack = next((row.p for row in analysis.anova.rows if row.source == "Lack of fit"), None)
    if best is None or not best.inside or significant(lack, analysis.alpha):
        return ""
    if not any(is_squared(t.mask, i) for t in analysis.findings for i in factors_in(t.mask)):
        return ""
    names = {factor.key: _name(factor) for factor in analysis.factors}
    places = [f"{names[key]} = {_level_about(level)}" for key, level in best.levels.items()]
    most = "highest" if analysis.goal == "max" else "lowest"
    size = with_interval(best.mean, best.ci_low, best.ci_high)[0]
    unit = after_number(analysis)
    where = " and ".join(filter(None, (", ".join(places[:-1]), places[-1])))
    return f"The fitted surface has its {most} {title}, {size}{unit}, at {where}."


def _level_about(level: Level) -> str:
    return about(level) if isinstance(level, float) else level_text(level)


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
    unit = after_number(analysis)
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
    if pair is None:
        return ""
    rivals = rival_terms(pair.mask, pair.term, analysis)
    aliased = f" ({rivals[0]} is aliased with {' and '.join(rivals[1:])})" if rivals else ""
    said = _depends(factor, pair, analysis)
    return f"{said}{aliased}" if said else ""


def _depends(factor: FactorColumn, pair: Interaction, analysis: Analysis) -> str:
    other = next(f for f in analysis.factors if f.key == pair.other)
    if len(factor.levels) > 2:
        return f"; its effect depends on {_name(other)}"
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
    unit = after_number(analysis)
    cell = next((cell for cell in report.subject.cells if cell.config == top.config), None)
    spread = None if cell is None or response not in cell.spreads else cell.spreads[response].std
    runs = counted(top.n, "run")
    lines = (
        _ties(analysis),
        _optimum(analysis),
        *over_conditions_text(analysis),
        _in_each_condition(analysis),
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
        return "Without an error estimate no other can be ruled out."
    others = len(analysis.best.among_best) - 1
    if others < 1:
        return "No other configuration is tied with it."
    return f"{counted(others, 'other')} {'are' if others > 1 else 'is'} statistically tied with it."


def _optimum(analysis: Analysis) -> str:
    """Return the model's optimum, where it is another choice or lies on a surface.

    Nothing where it lies in another condition, which nobody chooses.
    """
    assert analysis.best is not None
    if analysis.surface is not None and analysis.surface.optimum is not None:
        found = analysis.surface.optimum
        size, *ends = with_interval(found.mean, found.ci_low, found.ci_high)
        span = f" ({confidence(analysis.alpha)} CI {' to '.join(ends)})" if ends else ""
        return f"At the optimum of the surface the model predicts {size}{span}."
    reduced, top = analysis.best.reduced, analysis.best.cells[0]
    fixed = {i for term in reduced.terms for i in factors_in(parse_term(term, analysis.keys))}
    levels = reduced.best.levels
    changed = [i for i in sorted(fixed) if levels[i] not in (-1, top.levels[i])]
    met = any(analysis.factors[i].role == "condition" for i in changed)
    if not changed or met or reduced.best.mean is None:
        return ""
    unit = after_number(analysis)
    kind = "a geometric mean of " if reduced.best.geometric else ""
    predicted = f"predicted {kind}{_number(reduced.best.mean)}{unit}"
    words = ", ".join(level_phrase(analysis.factors[i], levels[i], keyed=False) for i in changed)
    return f"The model's optimum is another: {words}, {predicted}."


def _in_each_condition(analysis: Analysis) -> str:
    """Return the choice with the best observed mean in each of a few conditions."""
    assert analysis.best is not None
    conditions = analysis.best.conditions
    if not 2 <= len(conditions) <= MOST_CONDITIONS:
        return ""
    unit = after_number(analysis)
    each = (
        f"for {choice_in_words(of.condition)}, {choice_in_words(of.config)} "
        f"({about(of.mean)}{unit})"
        for of in conditions
    )
    return f"Best observed {'; '.join(each)}."


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
    said: dict[str, list[str]] = {}
    for name in report.headline_responses:
        for sentence in headlines(report.analyses[name]).fragile:
            said.setdefault(sentence, []).append(report.subject.responses.title_of(name))
    fragile: dict[str, tuple[str, ...]] = {}
    for sentence, names in said.items():
        whose = ", ".join(names)
        fragile[whose] = (*fragile.get(whose, ()), sentence)
    states = [run.state for run in report.subject.runs]
    verb = "needs" if len(said) == 1 else "need"
    parts = [f"{counted(len(said), 'check')} {verb} a look"]
    parts += [f"{counted(states.count('failed'), 'failed run')}"]
    parts += [f"{states.count('diverged')} diverged"] * ("diverged" in states)
    return Caveats(", ".join(parts), tuple(fragile.items()))
