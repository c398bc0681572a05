"""Findings in sentences, every number of them from the analysis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from doe.analysis.analyze import Analysis
from doe.analysis.best import RankedCell
from doe.analysis.dataset import FactorColumn
from doe.analysis.effects import Effect, TermTest
from doe.analysis.estimators.covariates import Covariates
from doe.analysis.estimators.quasi_binomial import QuasiBinomial
from doe.analysis.estimators.robust import Robust
from doe.analysis.means import ConditionalEffect, Interaction, LevelDifference
from doe.analysis.pvalues import significant
from doe.errors import are, counted, listed
from doe.numbers import about, cell_text, confidence, with_interval
from doe.terms import config_in_words, factors_in, level_in_words, level_text, order, single_letters
from doe.views.next_step import next_step
from doe.views.words import (
    advice_text,
    after_number,
    curvature_text,
    difference_unit,
    factor_text,
    is_clear,
    is_switch,
    level_phrase,
    loss_finding,
    mean_word,
    spaced,
    survivors,
    worst_ranks_text,
)

LARGEST = 3
"""Most findings of each kind that are shown: main effects, interactions."""
NAMED = 8
CONFIRMED = {
    "confirmed": "Confirmed to be better than",
    "refuted": "It is worse than",
    "open": "It is not shown to differ from",
}
NO_GOAL = "No goal is set: give a goal, min or max, to see the best configurations."


class Headlines(NamedTuple):
    """Sentences about one response."""

    effects: tuple[str, ...]
    best: str
    fragile: tuple[str, ...]
    """Caveats: what does not hold under every assumption."""
    options: tuple[str, ...]
    """Options of `doe analyze` to try; empty if no check asks for one."""
    next: str = ""
    """Next step on a response surface; empty if there is none."""


def headlines(analysis: Analysis, study: bool = True) -> Headlines:
    """Return the significant effects, the best configuration, and the caveats.

    Findings are significant after Holm's adjustment over all terms. An interaction of two factors
    is told as what one of them does at each level of the other.
    """
    called = list(analysis.findings)
    if analysis.exact:
        called = [test for test in analysis.tests if test.ss > 0]
    called.sort(key=lambda test: (-test.ss / test.df, test.term))
    main = [test for test in called if order(test.mask) == 1][: 2 * LARGEST]
    pairs = [test for test in called if order(test.mask) > 1][:LARGEST]
    sentences = [_finding(test, analysis) for test in called if test in main or test in pairs]
    bend = (curvature_text(analysis),) if analysis.curvature is not None else ()
    blocks = () if analysis.random_blocks is None else (analysis.random_blocks.sentence,)
    streams = () if analysis.variation is None else (analysis.variation.sentence,)
    lost = tuple(map(spaced, filter(None, (loss_finding(analysis), worst_ranks_text(analysis)))))
    between = _between_blocks(analysis)
    adjusted = (found.sentence,) if (found := analysis.get(Covariates)) is not None else ()
    further = (*bend, *blocks, *between, *streams, *adjusted, *_doubted(analysis))
    return Headlines(
        (*lost, *sentences, *further, _count(analysis, called)),
        _best(analysis),
        _fragile(analysis),
        _options(analysis),
        step.text(study) if (step := next_step(analysis)) else "",
    )


def _finding(test: TermTest, analysis: Analysis) -> str:
    pair = next((i for i in analysis.interactions if i.mask == test.mask), None)
    curves = [analysis.factors[i].is_curve for i in factors_in(test.mask)]
    between = analysis.surface is not None or any(curves)  # numbers act between their levels too
    if pair is not None and not between:
        return _interaction(pair, analysis)
    effect = next((e for e in analysis.effects if e.mask == test.mask), None)
    if order(test.mask) == 1 and effect is not None:
        return _effect(effect, analysis)
    if order(test.mask) == 1 and test.mask.bit_count() == 1:
        return _levels(test, analysis)
    verb = "has a curved effect" if order(test.mask) == 1 else "interact"
    names = [factor_text(analysis.factors[i]) for i in factors_in(test.mask)]
    rivals = _rivals(test.mask, test.term, analysis) or test.term
    return f"{_joined(names)} {verb} ({rivals}, Holm-adjusted p {_p(test.p_holm)})."


def _between_blocks(analysis: Analysis) -> tuple[str, ...]:
    """Terms that vary between blocks alone, which random blocks can estimate."""
    if analysis.random_blocks is None:
        return ()
    tested = {test.term for test in analysis.tests}
    sentences = []
    for term in analysis.random_blocks.terms:
        if term.term in tested or term.estimate is None:
            continue
        size = f"{about(abs(term.estimate))}{_analysed_unit(analysis)}"
        does = f"{_raises(term.estimate)} {analysis.response} by {size} ("
        if not significant(term.p, analysis.alpha):
            does = f"has no clear effect (estimate {about(term.estimate)}, "
        sentences.append(
            f"{term.term} varies between blocks alone and {does}SE {about(term.se)}, "
            f"p = {cell_text(term.p, 'p')} against the variation of blocks)."
        )
    return tuple(sentences)


def _joined(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]


def _effect(effect: Effect, analysis: Analysis) -> str:
    """ "augment (A) lowers loss by 4.36 (95 % CI 3.9 to 4.8)"."""
    rivals = _rivals(effect.mask, effect.term, analysis)
    back = next((s for s in analysis.response_scale if s.term == effect.term), None)
    factor = analysis.factors[factors_in(effect.mask)[0]]
    pair = next((d for d in analysis.differences if d.factor == factor.key), None)
    shared = "" if pair is None else _shared(pair)
    if back is not None and back.kind == "ratio":
        value, *ends = with_interval(back.value, back.low, back.high)
        size = f"multiplies {_multiplied(analysis)} by {value}"
    else:
        low, high = effect.ci_low, effect.ci_high
        if effect.effect < 0 and low is not None and high is not None:
            low, high = -high, -low
        value, *ends = with_interval(abs(effect.effect), low, high)
        verb = _raises(effect.effect)
        size = f"{verb} {analysis.response} by {value}{_analysed_unit(analysis)}"
    span = _interval(ends, analysis)
    inside = "; ".join(part for part in (rivals, span) if part)
    return f"{_subject(factor)} {size}{f' ({inside})' if inside else ''}{shared}."


def _subject(factor: FactorColumn) -> str:
    """Return the subject of a sentence: "noise (F)", "opt = adam instead of sgd"."""
    named = factor_text(factor)
    if len(factor.levels) > 2 or is_switch(factor) or not isinstance(factor.levels[0], str):
        return named
    return f"{named} = {factor.labels[1]} instead of {factor.labels[0]}"


def _shared(pair: LevelDifference) -> str:
    return "" if pair.cells == pair.of else " over the combinations that both levels have"


def _levels(test: TermTest, analysis: Analysis) -> str:
    """ "optimizer: adam is 3.1 above sgd (…), the largest difference between levels"."""
    factor = analysis.factors[factors_in(test.mask)[0]]
    known = [d for d in analysis.differences if d.factor == factor.key and d.difference is not None]
    lead = factor_text(factor)
    if factor.is_curve:
        return _curve(factor, analysis)
    if not known:
        return f"{lead} has an effect (Holm-adjusted p {_p(test.p_holm)})."
    widest = max(known, key=lambda d: abs(d.difference or 0.0))
    top, bottom, size = _ordered(widest, analysis)
    among = ", the largest difference between levels" if len(factor.levels) > 2 else ""
    return f"{lead}: {top} {size} {bottom}{_shared(widest)}{among}{_shape(factor, analysis)}."


def _curve(factor: FactorColumn, analysis: Analysis) -> str:
    """ "lr changes acc by +0.04 (…) over its log scale; the middle less its ends: −0.09 (…)"."""
    unit = _analysed_unit(analysis)
    sizes = {}
    for part in analysis.parts:
        if part.factor == factor.key and part.estimate is not None:
            value, *ends = with_interval(part.estimate, part.ci_low, part.ci_high)
            sign = "+" * (part.estimate > 0)
            span = _interval(ends, analysis)
            sizes[part.part] = f"{sign}{value}{unit}{f' ({span})' if span else ''}"
    return (
        f"{factor_text(factor)} changes {analysis.response} by {sizes['linear']} from end to end "
        f"of its {factor.scale} scale; its middle differs from the mean of the ends by "
        f"{sizes['quadratic']}."
    )


def _ordered(pair: LevelDifference, analysis: Analysis) -> tuple[str, str, str]:
    """Return the higher level, the lower one, and how far they are apart."""
    ratio = pair.ratio is not None
    value, low, high = pair.difference or 0.0, pair.ci_low, pair.ci_high
    names = (level_in_words(pair.level), level_in_words(pair.other))
    if ratio:
        value, low, high = pair.ratio or 1.0, pair.ratio_low, pair.ratio_high
    if value < (1.0 if ratio else 0.0):
        names = names[::-1]
        value = 1.0 / value if ratio else -value
        if low is not None and high is not None:
            low, high = (1.0 / high, 1.0 / low) if ratio else (-high, -low)
    size, *ends = with_interval(value, low, high)
    span = _interval(ends, analysis, "simultaneous ")
    inside = f" ({span})" if span else ""
    if ratio:
        odds = "has the odds" if analysis.transform.scale.ratio == "odds" else "is"
        return *names, f"{odds} × {size}{inside} of"
    return *names, f"is {size}{_analysed_unit(analysis)}{inside} above"


def _shape(factor: FactorColumn, analysis: Analysis) -> str:
    """Return whether a number acts along a curve, as far as that is shown."""
    part = next(
        (p for p in analysis.parts if p.factor == factor.key and p.part == "quadratic"), None
    )
    rest = next((p for p in analysis.parts if p.factor == factor.key and p.part == "rest"), None)
    if part is None or part.estimate is None:
        return ""
    scale = " on its log scale" if factor.scale == "log" else ""
    if significant(part.p, analysis.alpha) or (rest and significant(rest.p, analysis.alpha)):
        return f"; its effect is curved{scale}"
    bend, *ends = with_interval(part.estimate, part.ci_low, part.ci_high)
    span = _interval(ends, analysis)
    return f"; curvature{scale} {bend}{f' ({span})' if span else ''}"


def _interaction(pair: Interaction, analysis: Analysis) -> str:
    """ "noise (F) raises loss by 10.2 without dropout and by 1.4 with it"."""
    factors = {factor.key: factor for factor in analysis.factors}
    acting, other = factors[pair.factor], factors[pair.other]
    subject = _subject(acting)
    if len(acting.levels) > 2:
        subject = f"{subject} = {pair.high} instead of {pair.low}"
    parts = []
    for number, effect in enumerate(pair.at):
        parts.append(
            f"{_change(effect, pair, analysis)} {level_phrase(other, number, again=number > 0)}"
        )
    verb = next((v for v in _verbs(analysis) if parts[0].startswith(v)), None)
    if verb is not None:
        parts[1:] = [part.removeprefix(verb) for part in parts[1:]]
    named = _rivals(pair.mask, pair.term, analysis) or pair.term
    p = "" if pair.p_holm is None else f" ({named}, Holm-adjusted p {_p(pair.p_holm)})"
    return f"{subject} {_joined(parts)}{p}."


def _verbs(analysis: Analysis) -> tuple[str, ...]:
    response = analysis.response
    return f"raises {response} ", f"lowers {response} ", f"multiplies {_multiplied(analysis)} "


def _change(change: ConditionalEffect, pair: Interaction, analysis: Analysis) -> str:
    """Return the effect of a factor in words: "raises loss by 0.2", "has no clear effect"."""
    if change.effect is None:
        return "has an effect that the runs do not determine"
    if analysis.exact and change.effect == (1.0 if pair.ratio else 0.0):
        return "has no effect"
    if not is_clear(change, pair.ratio):
        return "has no clear effect"
    value = with_interval(change.effect, change.ci_low, change.ci_high)[0].lstrip("\u2212")
    if pair.ratio:
        return f"multiplies {_multiplied(analysis)} by {value}"
    unit = f" {difference_unit(analysis.unit)}".rstrip()
    return f"{_raises(change.effect)} {analysis.response} by {value}{unit}"


def _raises(effect: float) -> str:
    return "raises" if effect > 0 else "lowers"


def rival_terms(term: int, name: str, analysis: Analysis) -> list[str]:
    """Return a term with those of its order that are aliased with it; none if alone."""
    others = next((others for first, *others in analysis.aliases if first == name), [])
    letters = single_letters(analysis.keys)
    size = (lambda text: len(text)) if letters else (lambda text: text.count(":") + 1)
    alike = [other for other in others if size(other.lstrip("−")) == order(term)]
    return [name, *alike] if alike else []


def _rivals(term: int, name: str, analysis: Analysis) -> str:
    """Those terms in a sentence: "AB = −CD"; empty if the runs tell the term from all others."""
    return " = ".join(rival_terms(term, name, analysis))


def _analysed_unit(analysis: Analysis) -> str:
    """Return what follows a difference on the analysed scale."""
    if analysis.transform.name != "none":
        return " on the analysed scale"
    return f" {difference_unit(analysis.unit)}".rstrip()


def _multiplied(analysis: Analysis) -> str:
    """Return what a ratio multiplies: the response, or its odds."""
    odds = analysis.transform.scale.ratio == "odds"
    return f"the odds of {analysis.response}" if odds else analysis.response


def _interval(ends: Sequence[str], analysis: Analysis, kind: str = "") -> str:
    """Return the interval beside an estimate, as `with_interval` writes it; empty where there is
    none.
    """
    return f"{kind}{confidence(analysis.alpha)} CI {' to '.join(ends)}" if ends else ""


def _p(value: float | None) -> str:
    return f"= {cell_text(value, 'p')}" if value else "below the smallest number"


def _count(analysis: Analysis, called: Sequence[TermTest]) -> str:
    terms = counted(len(analysis.tests), "term")
    if all(test.p_holm is None for test in analysis.tests):
        return f"None of {terms} can be tested: there is no error to test against."
    by = " by Lenth's method" if analysis.sigma is None else ""
    if not called:
        none = f"No other of {terms}" if analysis.doubted else f"None of {terms}"
        return f"{none} is significant after Holm's adjustment{by}."
    names = listed([test.term for test in called], NAMED)
    count = len(called)
    return f"{count} of {terms} {are(count)} significant after Holm's adjustment{by}: {names}."


def _doubted(analysis: Analysis) -> tuple[str, ...]:
    """Terms that are no findings, because the spread differs where they are tested."""
    if not analysis.doubted:
        return ()
    names, several = listed(analysis.doubted, NAMED), len(analysis.doubted) > 1
    verb, whom = ("are", "them") if several else ("is", "it")
    return (
        f"{names} {verb} significant only if all runs are taken to vary alike: HC3, which lets "
        f"the spread differ, does not confirm {whom}.",
    )


def _best(analysis: Analysis) -> str:
    if analysis.best is None:
        return NO_GOAL
    top = analysis.best.cells[0]
    shared = sum(cell.mean == top.mean for cell in analysis.best.cells) > 1
    whose = "Their" if shared else "Its"
    mean = f"{whose} {mean_word(analysis).lower()} is {about(top.mean)}{after_number(analysis)}"
    parts = (
        *over_conditions_text(analysis),
        analysis.best.sentence,
        _has(top, analysis),
        f"{mean}{_confirmed(analysis)}",
        *survivors(analysis),
    )
    return spaced(" ".join(part for part in (*parts, *_beats(analysis)) if part))


def over_conditions_text(analysis: Analysis) -> tuple[str, ...]:
    """Return which choice is best over what is met and not chosen; nothing where all is chosen."""
    best = analysis.best
    met = [factor_text(f) for f in analysis.factors if f.role == "condition"]
    if best is None or not met or not best.over_conditions:
        return ()
    mean, worst = best.over_conditions
    choice, safest = (choice_in_words(of.config) for of in (mean, worst))
    lead = f"Over all conditions of {_joined(met)}, {choice} has the best observed mean"
    own = f"{lead}, {about(mean.value)}{after_number(analysis)}"
    case = f"the best observed worst case, {about(worst.value)}{after_number(analysis)}."
    joint = ", and " if worst.config == mean.config else f"; {safest} has "
    return (f"{own}{joint}{case}",)


def choice_in_words(name: str) -> str:
    """Write a choice as a sentence has it: "lr = 0.1, opt = adam"."""
    return name.replace("=", " = ").replace(",", ", ")


def _beats(analysis: Analysis) -> list[str]:
    """Return how likely one configuration beats another, where it was asked for."""
    named = partial(config_in_words, analysis.keys)
    sentences = []
    for b in analysis.beats:
        who = f"{named(b.config)} beats {named(b.against)}"
        if b.probability is None:
            why = (
                "replicates share whole plots or a random condition"
                if b.basis == "nothing"
                else "too few runs to estimate it"
            )
            sentences.append(f"How likely {who} with a fresh seed is not known: {why}.")
            continue
        chance, low, high = (cell_text(p, "fixed2") for p in (b.probability, b.low, b.high))
        sentences.append(f"With a fresh seed {who} with probability {chance} ({low} to {high}).")
    return sentences


def _confirmed(analysis: Analysis) -> str:
    """Return what fresh runs say of the winner; the best of many is optimistic until they have."""
    fresh = analysis.confirmation
    if fresh is None:
        return ", not yet confirmed with new seeds."
    configs: Callable[[str], str] = partial(config_in_words, analysis.keys)
    named = choice_in_words if fresh.over_conditions else configs
    seeds, predicted = counted(fresh.seeds, "fresh seed"), ""
    if fresh.predicted_low is not None:
        level = confidence(analysis.alpha)
        span = f"{about(fresh.predicted_low)} to {about(fresh.predicted_high)}"
        predicted = f", predicted {span} ({level} for any choice)"
    over = " over all conditions" if fresh.over_conditions else ""
    sentences = [
        f". With {seeds} {named(fresh.config)} has {about(fresh.mean)}{after_number(analysis)}"
        f"{over}{predicted}."
    ]
    for gain in fresh.gains:
        size, *ends = with_interval(gain.difference, gain.low, gain.high)
        span = _interval(ends, analysis)
        against = f"{named(gain.against)}: {size}"
        sentences.append(
            f"{CONFIRMED[gain.verdict]} {against} ({span})."
            if span
            else "Fresh seeds share whole plots, which leave no error for its difference to "
            f"{against}."
        )
    return " ".join(sentences)


def _has(top: RankedCell, analysis: Analysis) -> str:
    """Return the factors that are on, by name, or the level of each where letters do not say it."""
    factors = analysis.factors
    if not single_letters(analysis.keys) or "=" in top.config:
        return ""
    if top.point or not all(map(is_switch, factors)):
        levels = map(level_text, top.point) if top.point else _levels_of(top, factors)
        pairs = zip(factors, levels, strict=True)
        named = [f"{factor.key} = {level}" for factor, level in pairs if not factor.random]
        return f"That is {', '.join(named)}."
    if any(factor.name in ("", factor.key) for factor in factors):
        return ""
    names = [f.name for f, level in zip(factors, top.levels, strict=True) if level > 0]
    return f"It has {', '.join(names)}." if names else "It has none of the factors."


def _levels_of(top: RankedCell, factors: Sequence[FactorColumn]) -> list[str]:
    return [factor.labels[level] for factor, level in zip(factors, top.levels, strict=True)]


def _fragile(analysis: Analysis) -> tuple[str, ...]:
    told = f"{loss_finding(analysis)} "  # leads the findings
    doubts = [warning.removeprefix(told) for warning in analysis.warnings]
    robust = analysis.get(Robust)
    if robust is not None and not all(row.agree for row in robust.rows):
        doubts.append(robust.sentence)
    counted_items = analysis.get(QuasiBinomial)
    if counted_items is not None and not counted_items.agree:
        doubts.append(counted_items.sentence)
    advice = (advice_text(f) for f in analysis.diagnostics.findings if not f.ok)
    return tuple(spaced(sentence) for sentence in (*doubts, *advice))


def _options(analysis: Analysis) -> tuple[str, ...]:
    """Return the last remedy of each kind: checks that know more come later."""
    options = {}
    for finding in analysis.diagnostics.findings:
        for remedy in finding.remedies:
            if not finding.ok and (remedy != "robust" or analysis.get(Robust) is None):
                option, _, value = remedy.partition("=")
                options[option] = f"--{option} {value}".strip()
    return tuple(options.values())
