"""Findings in sentences, every number of them from the analysis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from doe.analysis.analyze import Analysis
from doe.analysis.best import RankedCell
from doe.analysis.dataset import FactorColumn
from doe.analysis.effects import Effect, TermTest
from doe.analysis.estimators.quasi_binomial import QuasiBinomial
from doe.analysis.estimators.robust import Robust
from doe.analysis.means import ConditionalEffect, Interaction, LevelDifference
from doe.analysis.pvalues import significant
from doe.errors import are, counted, listed
from doe.numbers import cell_text, confidence
from doe.terms import factors_in, level_text, order, single_letters
from doe.views.next_step import next_step
from doe.views.words import (
    advice_text,
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
)

LARGEST = 3
"""Findings of each kind that are told: main effects, interactions."""
NAMED = 8
CONFIRMED = {
    "confirmed": "Confirmed to be better than",
    "refuted": "It is worse than",
    "open": "It is not shown to differ from",
}
NO_GOAL = "No goal is set: give a goal, min or max, to see the best configurations."


class Headlines(NamedTuple):
    """What one response says."""

    effects: tuple[str, ...]
    best: str
    fragile: tuple[str, ...]
    """What does not hold under every assumption; empty if nothing is."""
    options: tuple[str, ...]
    """Options of `doe analyze` to try; empty if no check asks for one."""
    next: str = ""
    """Where to go next on a response surface; empty where there is none."""


def headlines(analysis: Analysis, study: bool = True) -> Headlines:
    """The significant effects, the best configuration, and what is fragile.

    Findings are significant after Holm's adjustment over all terms. An interaction of two factors
    is told as what one of them does at each level of the other.
    """
    called = [test for test in analysis.tests if significant(test.p_holm, analysis.alpha)]
    called.sort(key=lambda test: (-test.ss / test.df, test.term))
    main = [test for test in called if order(test.mask) == 1][: 2 * LARGEST]
    pairs = [test for test in called if order(test.mask) > 1][:LARGEST]
    sentences = [_finding(test, analysis) for test in called if test in main or test in pairs]
    bend = (curvature_text(analysis),) if analysis.curvature is not None else ()
    blocks = () if analysis.random_blocks is None else (analysis.random_blocks.sentence,)
    streams = () if analysis.variation is None else (analysis.variation.sentence,)
    lost = (spaced(loss_finding(analysis)),) if loss_finding(analysis) else ()
    between = _between_blocks(analysis)
    return Headlines(
        (*lost, *sentences, *bend, *blocks, *between, *streams, _count(analysis, called)),
        _best(analysis),
        _fragile(analysis),
        _options(analysis),
        step.text(study) if (step := next_step(analysis)) else "",
    )


def _finding(test: TermTest, analysis: Analysis) -> str:
    pair = next((i for i in analysis.interactions if i.mask == test.mask), None)
    if pair is not None:
        return _interaction(pair, analysis)
    effect = next((e for e in analysis.effects if e.mask == test.mask), None)
    if order(test.mask) == 1 and effect is not None:
        return _effect(effect, analysis)
    if order(test.mask) == 1 and test.mask.bit_count() == 1:
        return _levels(test, analysis)
    verb = "bends" if order(test.mask) == 1 else "interact"
    names = [factor_text(analysis.factors[i]) for i in factors_in(test.mask)]
    rivals = _rivals(test.mask, test.term, analysis) or test.term
    return f"{_joined(names)} {verb} ({rivals}, Holm-adjusted p {_p(test.p_holm)})."


def _between_blocks(analysis: Analysis) -> tuple[str, ...]:
    """Terms that vary between blocks alone, which blocks as random can tell."""
    if analysis.random_blocks is None:
        return ()
    tested = {test.term for test in analysis.tests}
    return tuple(
        f"{term.term} varies between blocks alone and changes {analysis.response} by "
        f"{cell_text(term.estimate, 'signed')}{_analysed_unit(analysis)} (SE {_short(term.se)}, "
        f"p = {cell_text(term.p, 'p')} against the variation of blocks)."
        for term in analysis.random_blocks.terms
        if term.term not in tested and term.estimate is not None
    )


def _joined(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]


def _effect(effect: Effect, analysis: Analysis) -> str:
    """ "augment (A) lowers loss by 4.36 (95 % CI 3.9 to 4.8)"."""
    rivals = _rivals(effect.mask, effect.term, analysis)
    back = next((s for s in analysis.response_scale if s.term == effect.term), None)
    factor = factor_text(analysis.factors[factors_in(effect.mask)[0]])
    if back is not None and back.kind == "ratio":
        size = f"multiplies {_multiplied(analysis)} by {_short(back.value)}"
        span = _interval(back.low, back.high, analysis)
    else:
        low, high = effect.ci_low, effect.ci_high
        value = effect.effect
        if value < 0 and low is not None and high is not None:
            low, high = -high, -low
        verb = "raises" if value > 0 else "lowers"
        size = f"{verb} {analysis.response} by {_short(abs(value))}{_analysed_unit(analysis)}"
        span = _interval(low, high, analysis)
    inside = "; ".join(part for part in (rivals, span) if part)
    return f"{factor} {size}{f' ({inside})' if inside else ''}."


def _levels(test: TermTest, analysis: Analysis) -> str:
    """ "optimizer: adam is 3.1 above sgd (…), the largest difference between levels"."""
    factor = analysis.factors[factors_in(test.mask)[0]]
    known = [d for d in analysis.differences if d.factor == factor.key and d.difference is not None]
    lead = factor_text(factor)
    if not known:
        return f"{lead} has an effect (Holm-adjusted p {_p(test.p_holm)})."
    widest = max(known, key=lambda d: abs(d.difference or 0.0))
    top, bottom, size = _ordered(widest, analysis)
    shared = "" if widest.cells == widest.of else " over the combinations that both have"
    among = ", the largest difference between levels" if len(factor.levels) > 2 else ""
    return f"{lead}: {top} {size} {bottom}{shared}{among}{_shape(factor, analysis)}."


def _ordered(pair: LevelDifference, analysis: Analysis) -> tuple[str, str, str]:
    """The higher level, the lower one, and how far they are apart."""
    ratio = pair.ratio is not None
    value, low, high = pair.difference or 0.0, pair.ci_low, pair.ci_high
    names = (pair.level, pair.other)
    if ratio:
        value, low, high = pair.ratio or 1.0, pair.ratio_low, pair.ratio_high
    if value < (1.0 if ratio else 0.0):
        names = names[::-1]
        value = 1.0 / value if ratio else -value
        if low is not None and high is not None:
            low, high = (1.0 / high, 1.0 / low) if ratio else (-high, -low)
    span = _interval(low, high, analysis, "simultaneous " if len(names) else "")
    inside = f" ({span})" if span else ""
    if ratio:
        odds = "has the odds" if analysis.transform.scale.ratio == "odds" else "is"
        return *names, f"{odds} × {_short(value)}{inside} of"
    return *names, f"is {_short(value)}{_analysed_unit(analysis)}{inside} above"


def _shape(factor: FactorColumn, analysis: Analysis) -> str:
    """Whether a number acts along a curve, as far as that is shown."""
    part = next(
        (p for p in analysis.parts if p.factor == factor.key and p.part == "quadratic"), None
    )
    rest = next((p for p in analysis.parts if p.factor == factor.key and p.part == "rest"), None)
    if part is None or part.estimate is None:
        return ""
    scale = " on its log scale" if factor.scale == "log" else ""
    if significant(part.p, analysis.alpha) or (rest and significant(rest.p, analysis.alpha)):
        return f"; it acts along a curve{scale}"
    span = _interval(part.ci_low, part.ci_high, analysis)
    return f"; bend{scale} {_short(part.estimate)}{f' ({span})' if span else ''}"


def _interaction(pair: Interaction, analysis: Analysis) -> str:
    """ "noise (F) raises loss by 10.2 without dropout and by 1.4 with it"."""
    factors = {factor.key: factor for factor in analysis.factors}
    acting, other = factors[pair.factor], factors[pair.other]
    subject = factor_text(acting)
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
    """What a factor does: "raises loss by 0.2", "has no clear effect"."""
    if change.effect is None:
        return "has an effect that the runs do not determine"
    if not is_clear(change, pair.ratio):
        return "has no clear effect"
    if pair.ratio:
        return f"multiplies {_multiplied(analysis)} by {_short(change.effect)}"
    verb = "raises" if change.effect > 0 else "lowers"
    unit = f" {difference_unit(analysis.unit)}".rstrip()
    return f"{verb} {analysis.response} by {_short(abs(change.effect))}{unit}"


def _rivals(term: int, name: str, analysis: Analysis) -> str:
    """The term with those of its order that the runs cannot tell from it: "AB = −CD"."""
    others = next((others for first, *others in analysis.aliases if first == name), [])
    letters = single_letters(analysis.keys)
    size = (lambda text: len(text)) if letters else (lambda text: text.count(":") + 1)
    alike = [other for other in others if size(other.lstrip("−")) == order(term)]
    return " = ".join((name, *alike)) if alike else ""


def _unit(analysis: Analysis) -> str:
    return f" {analysis.unit}" if analysis.unit else ""


def _analysed_unit(analysis: Analysis) -> str:
    """What follows a difference on the analysed scale."""
    if analysis.transform.name != "none":
        return " on the analysed scale"
    return f" {difference_unit(analysis.unit)}".rstrip()


def _multiplied(analysis: Analysis) -> str:
    """What a ratio multiplies: the response, or its odds."""
    odds = analysis.transform.scale.ratio == "odds"
    return f"the odds of {analysis.response}" if odds else analysis.response


def _short(value: float | None) -> str:
    return cell_text(value, "short")


def _interval(low: float | None, high: float | None, analysis: Analysis, kind: str = "") -> str:
    if low is None or high is None:
        return ""
    return f"{kind}{confidence(analysis.alpha)} CI {_short(low)} to {_short(high)}"


def _p(value: float | None) -> str:
    return f"= {cell_text(value, 'p')}" if value else "below the smallest number"


def _count(analysis: Analysis, called: Sequence[TermTest]) -> str:
    terms = counted(len(analysis.tests), "term")
    if all(test.p_holm is None for test in analysis.tests):
        return f"None of {terms} can be tested: there is no error to test against."
    by = " by Lenth's method" if analysis.sigma is None else ""
    if not called:
        return f"None of {terms} is significant after Holm's adjustment{by}."
    names = listed([test.term for test in called], NAMED)
    count = len(called)
    return f"{count} of {terms} {are(count)} significant after Holm's adjustment{by}: {names}."


def _best(analysis: Analysis) -> str:
    if analysis.best is None:
        return NO_GOAL
    top = analysis.best.cells[0]
    shared = sum(cell.mean == top.mean for cell in analysis.best.cells) > 1
    whose = "Their" if shared else "Its"
    mean = f"{whose} {mean_word(analysis).lower()} is {cell_text(top.mean, 'num')}{_unit(analysis)}"
    parts = (
        *_over_conditions(analysis),
        analysis.best.sentence,
        _has(top, analysis),
        f"{mean}{_confirmed(analysis)}",
        *survivors(analysis),
    )
    return spaced(" ".join(part for part in (*parts, *_beats(analysis)) if part))


def _over_conditions(analysis: Analysis) -> tuple[str, ...]:
    """Which choice is best over what is met and not chosen; nothing where all is chosen."""
    best = analysis.best
    met = [factor_text(f) for f in analysis.factors if f.role == "condition"]
    if best is None or not met or not best.over_conditions:
        return ()
    mean, worst = best.over_conditions
    lead = f"Over all conditions of {_joined(met)}, {mean.config} has the best mean"
    own = f"{lead}, {_short(mean.value)}{_unit(analysis)}"
    if worst.config == mean.config:
        return (f"{own}, and the best worst case, {_short(worst.value)}{_unit(analysis)}.",)
    return (f"{own}; {worst.config} has the best worst case, {_short(worst.value)}.",)


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
        return ", not yet confirmed with new seeds."
    seeds = f"{fresh.seeds} fresh seeds"
    predicted = ""
    if fresh.predicted_low is not None:
        level = confidence(analysis.alpha)
        span = f"{_short(fresh.predicted_low)} to {_short(fresh.predicted_high)}"
        predicted = f", predicted {span} ({level} for any choice)"
    sentences = [
        f". With {seeds} {fresh.config} has {_short(fresh.mean)}{_unit(analysis)}{predicted}."
    ]
    for gain in fresh.gains:
        span = f"{_short(gain.low)} to {_short(gain.high)}"
        size = f"{cell_text(gain.difference, 'signed')} ({confidence(analysis.alpha)} CI {span})"
        sentences.append(f"{CONFIRMED[gain.verdict]} {gain.against}: {size}.")
    return " ".join(sentences)


def _has(top: RankedCell, analysis: Analysis) -> str:
    """The factors that are on, by name, or the level of each."""
    factors = analysis.factors
    if top.point or not single_letters(analysis.keys):
        labels = [level_text(value) for value in top.point] or [
            f.labels[level] for f, level in zip(factors, top.levels, strict=True)
        ]
        pairs = zip(analysis.keys, labels, strict=True)
        return f"That is {', '.join(f'{key} = {label}' for key, label in pairs)}."
    if not all(is_switch(factor) and factor.name not in ("", factor.key) for factor in factors):
        return ""
    names = [f.name for f, level in zip(factors, top.levels, strict=True) if level > 0]
    return f"It has {', '.join(names)}." if names else "It has none of the factors."


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
    """The last remedy of each kind: checks that know more come later."""
    options = {}
    for finding in analysis.diagnostics.findings:
        for remedy in finding.remedies:
            if not finding.ok and (remedy != "robust" or analysis.get(Robust) is None):
                option, _, value = remedy.partition("=")
                options[option] = f"--{option} {value}".strip()
    return tuple(options.values())
