"""Findings in sentences, every number of them from the analysis."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from doe.analysis.analyze import Analysis
from doe.analysis.effects import Effect
from doe.analysis.estimators.means import Interaction, Mean, Means
from doe.analysis.estimators.robust import Robust
from doe.analysis.pvalues import significant
from doe.analysis.response import ResponseAnalysis
from doe.errors import are, counted, listed
from doe.numbers import cell_text, confidence
from doe.terms import config_header, order, parse_term
from doe.views.words import (
    advice_text,
    factor_text,
    helps,
    is_switch,
    level_phrase,
    mean_word,
    spaced,
    term_text,
)

if TYPE_CHECKING:
    from doe.analysis.levels.analyze import LevelAnalysis
    from doe.analysis.ranking import RankedCell

LARGEST = 3
VERDICTS = {True: ", for the better", False: ", for the worse", None: ""}
NAMED = 8
CONFIRMED = {
    "confirmed": "Confirmed to be better than",
    "refuted": "It is worse than",
    "open": "It cannot be told from",
}
NO_GOAL = (
    "Which way is better was not said: give a goal, min or max, to see the best configurations."
)


class Headlines(NamedTuple):
    """What one response says."""

    effects: tuple[str, ...]
    best: str
    fragile: tuple[str, ...]
    """What does not hold under every assumption; empty if nothing is."""
    options: tuple[str, ...]
    """Options of `doe analyze` to try; empty if no check asks for one."""


def headlines(analysis: ResponseAnalysis) -> Headlines:
    """What one response says, whatever levels its factors have."""
    return two_level_headlines(analysis) if isinstance(analysis, Analysis) else _levels(analysis)


def _levels(analysis: LevelAnalysis) -> Headlines:
    """A sentence for each significant term, the best configuration, and what is fragile."""
    called = sum(significant(test.p_bh, analysis.alpha) for test in analysis.tests)
    count = (
        f"{called} of {counted(len(analysis.tests), 'term')} "
        f"{are(called)} significant at false discovery rate "
        f"{analysis.alpha:g}."
    )
    if analysis.sigma is None:
        count = "There is no error to test against; single contrasts are judged by Lenth's method."
    bend = () if analysis.curvature is None else (analysis.curvature.sentence,)
    blocks = () if analysis.random_blocks is None else (analysis.random_blocks.sentence,)
    return Headlines(
        (*analysis.sentences, *bend, *blocks, *_variation(analysis), count),
        _level_best(analysis),
        analysis.warnings,
        (),
    )


def _variation(analysis: ResponseAnalysis) -> tuple[str, ...]:
    """Where the variation between runs of one configuration comes from, if seeds have streams."""
    return () if analysis.variation is None else (analysis.variation.sentence,)


def _level_best(analysis: LevelAnalysis) -> str:
    if analysis.best is None:
        return NO_GOAL
    best = f"{analysis.best.sentence}{_named_levels(analysis)}"
    mean = _top_mean(analysis.best.cells[0], analysis)
    return f"{best} {mean}, before fresh seeds have confirmed it."


def _named_levels(analysis: ResponseAnalysis) -> str:
    """Whose levels the label of a configuration has, where it does not say so itself."""
    names = config_header([factor.key for factor in analysis.factors], "")
    return f" Its levels are {names}." if names else ""


def _top_mean(top: RankedCell, analysis: ResponseAnalysis) -> str:
    """The mean of the best configuration; it was chosen for its luck as well, so that an interval
    of it alone would promise too much.
    """
    return f"Its {mean_word(analysis).lower()} is {cell_text(top.mean, 'num')}{_unit(analysis)}"


def two_level_headlines(analysis: Analysis) -> Headlines:
    """The largest effects, what depends on what, the best configuration, and what is fragile.

    An interaction of two factors is told as what one of them does at each level of the other.
    """
    keys = [factor.key for factor in analysis.factors]
    ranked = sorted(analysis.effects, key=lambda e: (-abs(e.effect), e.term))
    means = analysis.get(Means)
    interactions = (
        {i.term: i for i in means.interactions if _significant(i, analysis)} if means else {}
    )
    sentences = [
        _interaction(interactions[e.term], analysis)
        if e.term in interactions
        else _effect(e, analysis)
        for e in ranked[:LARGEST]
    ]
    further = [e.term for e in ranked[LARGEST:] if e.term in interactions][:LARGEST]
    main = [e for e in ranked[LARGEST:] if order(parse_term(e.term, keys)) == 1]
    sentences += [_effect(e, analysis) for e in main[:LARGEST] if _significant(e, analysis)]
    sentences += [_interaction(interactions[term], analysis) for term in further]
    return Headlines(
        (*sentences, *_variation(analysis), _count(analysis)),
        _best(analysis),
        _fragile(analysis),
        _options(analysis),
    )


def _significant(effect: Effect | Interaction, analysis: Analysis) -> bool:
    return significant(effect.p_holm, analysis.alpha)


def _effect(effect: Effect, analysis: Analysis) -> str:
    size, interval = _size(effect, analysis)
    p = "" if effect.p_holm is None else f"Holm-adjusted p {_p(effect.p_holm)}"
    inside = "; ".join(part for part in (_rivals(effect.term, analysis), interval, p) if part)
    verdict = VERDICTS[helps(effect.effect, analysis.goal)]
    if effect.p_holm is None:
        verdict = ", with no error to test it against"
    elif effect.p_holm > analysis.alpha:
        verdict = ", which may be chance"
    term = term_text(effect.term, analysis.factors)
    return f"{term} {size}{f' ({inside})' if inside else ''}{verdict}."


def _rivals(term: str, analysis: Analysis) -> str:
    """The term with those of its order that the runs cannot tell from it: "AB = −CD"."""
    keys = [factor.key for factor in analysis.factors]
    chains = [chain.split(" = ") for chain in analysis.aliases]
    others = next((others for first, *others in chains if first == term), [])
    own = order(parse_term(term, keys))
    alike = [other for other in others if order(parse_term(other.lstrip("−"), keys)) == own]
    return " = ".join((term, *alike)) if alike else ""


def _size(effect: Effect, analysis: Analysis) -> tuple[str, str]:
    """What a term does to the response, and the interval, on the response scale if it can be."""
    level = f"{confidence(analysis.alpha)} interval "
    back = next((s for s in analysis.response_scale if s.term == effect.term), None)
    if back is not None and back.kind == "ratio":
        interval = "" if back.low is None else level + _span(back.low, back.high)
        return f"multiplies {analysis.response} by {cell_text(back.value, 'num')}", interval
    low, high = effect.ci_low, effect.ci_high
    interval = "" if low is None else level + _span(low, high)
    if analysis.transform.name != "none":
        shift = cell_text(effect.effect, "signed")
        return f"changes {analysis.response} by {shift} on the analysed scale", interval
    size = f"{cell_text(effect.effect, 'signed')}{_unit(analysis)}"
    return f"changes {analysis.response} by {size}", interval


def _interaction(pair: Interaction, analysis: Analysis) -> str:
    """ "Noise costs 10.2 px without the bottleneck and 1.4 px with it"."""
    by_key = {factor.key: factor for factor in analysis.factors}
    acting, other = factor_text(by_key[pair.factor]), by_key[pair.other]
    low, high = _change(pair.at_low, pair, analysis), _change(pair.at_high, pair, analysis)
    for verb in (f"multiplies {analysis.response} ", "costs ", "saves ", "adds ", "takes off "):
        if low.startswith(verb):
            high = high.removeprefix(verb)
    levels = (level_phrase(other, -1), level_phrase(other, 1, again=True))
    named = _rivals(pair.term, analysis) or pair.term
    p = "" if pair.p_holm is None else f" ({named}, Holm-adjusted p {_p(pair.p_holm)})"
    return f"{acting} {low} {levels[0]} and {high} {levels[1]}{p}."


def _change(change: Mean, pair: Interaction, analysis: Analysis) -> str:
    """What a factor does: "costs 10.2 px", "saves 3 px", "multiplies loss by 2"."""
    none = 1.0 if pair.ratio else 0.0
    if change.ci_low is not None and change.ci_low <= none <= (change.ci_high or 0.0):
        return "makes no sure difference"
    if pair.ratio:
        return f"multiplies {analysis.response} by {cell_text(change.mean, 'num')}"
    verb = "costs"
    if analysis.goal is None:
        verb = "adds" if change.mean > 0 else "takes off"
    elif helps(change.mean, analysis.goal):
        verb = "adds" if analysis.goal == "max" else "saves"
    return f"{verb} {cell_text(abs(change.mean), 'num')}{_unit(analysis)}"


def _unit(analysis: ResponseAnalysis) -> str:
    return f" {analysis.unit}" if analysis.unit else ""


def _span(low: float | None, high: float | None) -> str:
    return f"{cell_text(low, 'num')} to {cell_text(high, 'num')}"


def _p(value: float) -> str:
    return f"= {cell_text(value, 'p')}" if value > 0 else "below the smallest number"


def _count(analysis: Analysis) -> str:
    called = [effect for effect in analysis.effects if _significant(effect, analysis)]
    called.sort(key=lambda e: (-abs(e.effect), e.term))
    if all(effect.p_holm is None for effect in analysis.effects):
        return f"None of {len(analysis.effects)} effects can be tested."
    if not called:
        return f"None of {len(analysis.effects)} effects is significant after Holm's adjustment."
    names = listed([effect.term for effect in called], NAMED)
    return (
        f"{len(called)} of {len(analysis.effects)} effects {are(len(called))} "
        "significant after Holm's "
        f"adjustment: {names}."
    )


def _best(analysis: Analysis) -> str:
    if analysis.best is None:
        return NO_GOAL
    top = analysis.best.cells[0]
    mean = f"{_top_mean(top, analysis)}{_confirmed(analysis)}"
    best = f"{analysis.best.sentence}{_named_levels(analysis)}"
    whole = " ".join((best, _has(top.coded, analysis), mean, *_beats(analysis)))
    return spaced(whole.replace("  ", " "))


def _beats(analysis: Analysis) -> list[str]:
    """How likely one configuration beats another, where it was asked for."""
    return [
        f"With a fresh seed {b.config} beats {b.against} with probability "
        f"{cell_text(b.probability, 'fixed2')} "
        f"({cell_text(b.low, 'fixed2')} to {cell_text(b.high, 'fixed2')})."
        for b in analysis.beats
        if b.probability is not None
    ]


def _confirmed(analysis: Analysis) -> str:
    """What fresh runs say of the winner; the best of many is optimistic until they have."""
    fresh = analysis.confirmation
    if fresh is None:
        return ", before confirmation."
    seeds = f"{fresh.seeds} fresh seeds"
    sentences = [
        f". With {seeds} {fresh.config} has {cell_text(fresh.mean, 'num')}{_unit(analysis)}"
        + (
            f", predicted {_span(fresh.predicted_low, fresh.predicted_high)}."
            if fresh.predicted_low is not None
            else "."
        )
    ]
    for gain in fresh.gains:
        size = f"{cell_text(gain.difference, 'signed')} ({_span(gain.low, gain.high)})"
        sentences.append(f"{CONFIRMED[gain.verdict]} {gain.against}: {size}.")
    return " ".join(sentences)


def _has(coded: tuple[int, ...], analysis: Analysis) -> str:
    """The factors that are there, by name, where the label has but letters."""
    factors = analysis.factors
    if not all(is_switch(factor) and len(factor.key) == 1 and factor.name for factor in factors):
        return ""
    names = [f.name for f, x in zip(factors, coded, strict=True) if x > 0]
    return f"It has {', '.join(names)}." if names else "It has none of the factors."


def _fragile(analysis: Analysis) -> tuple[str, ...]:
    doubts = list(analysis.warnings)
    robust = analysis.get(Robust)
    if robust is not None and not all(row.agree for row in robust.rows):
        doubts.append(robust.sentence)
    advice = (advice_text(f) for f in analysis.diagnostics.findings if not f.ok)
    return tuple(spaced(sentence) for sentence in (*doubts, *advice))


def _options(analysis: Analysis) -> tuple[str, ...]:
    """The last remedy of each kind: checks that know more come later."""
    options = {}
    for finding in analysis.diagnostics.findings:
        for remedy in finding.remedies:
            if not finding.ok and (remedy != "robust" or analysis.get(Robust) is None):
                option, _, value = remedy.partition("=")
                options[option] = f"--{option} {value}".strip()
    return tuple(options.values())
