"""Words that several views share, each defined once."""

from __future__ import annotations

import re
from collections.abc import Mapping

from doe.analysis.analyze import Analysis
from doe.analysis.dataset import FactorColumn
from doe.analysis.diagnostics import Finding
from doe.analysis.means import ConditionalEffect
from doe.analysis.pvalues import significant
from doe.errors import are, counted
from doe.numbers import cell_text, confidence, with_interval
from doe.terms import factor_label
from doe.views.table import Mark

SWITCHES = (("false", "true"), ("off", "on"), ("no", "yes"), ("0", "1"))
"""Low and high of factors that are there or not."""


MARKS: Mapping[bool | None, Mark] = {True: "good", False: "bad", None: "strong"}
"""What a cell says of an effect that helps, harms, or of which nobody said which it does."""


def helps(effect: float, goal: str | None) -> bool | None:
    """Return whether an effect is for the better, by the goal of the response; None without a
    goal.
    """
    return None if goal is None else (effect > 0) == (goal == "max")


MEANS: Mapping[str, str] = {"log": "Geometric mean", "logit": "Logit mean"}
"""What means are called that were taken on another scale."""


def unit_text(unit: str) -> str:
    """Return a unit as it follows a name; empty where there is none."""
    return f" [{unit}]" if unit else ""


def after_number(analysis: Analysis) -> str:
    """Return the response's unit as it follows a number; empty where there is none."""
    return f" {analysis.unit}" if analysis.unit else ""


def mean_word(analysis: Analysis) -> str:
    """Return what a mean taken back from the analysed scale is called."""
    return MEANS.get(analysis.transform.name, "Mean")


def mean_text(analysis: Analysis) -> str:
    """Return what a mean is the mean of: "Mean loss [nats]"."""
    return f"{mean_word(analysis)} {analysis.response}{unit_text(analysis.unit)}"


def quantity(analysis: Analysis) -> str:
    """Return the response as analysed, with the unit that it still has: "loss [nats]", "ln
    loss".
    """
    unit = analysis.unit if analysis.transform.name == "none" else ""
    return analysis.transform.label(analysis.response) + unit_text(unit)


def difference_unit(unit: str) -> str:
    """Return the unit of a difference: two shares in % differ by points."""
    return "points" if unit == "%" else unit


def effect_on(analysis: Analysis) -> str:
    """Return what an effect is a difference in, on the analysed scale: "loss [nats]", "acc
    [points]".
    """
    if analysis.transform.name != "none":
        return quantity(analysis)
    return analysis.response + unit_text(difference_unit(analysis.unit))


def loss_finding(analysis: Analysis) -> str:
    """Return which levels lose runs; empty where none is shown to."""
    return "" if analysis.missing is None else analysis.missing.finding


def worst_ranks_text(analysis: Analysis) -> str:
    """Return which terms are significant where diverged runs count as the worst; empty without
    any.
    """
    ranks = () if analysis.missing is None else analysis.missing.worst_rank
    if not ranks:
        return ""
    called = [row.term for row in ranks if significant(row.p_holm, analysis.alpha)]
    names = f"{', '.join(called)} {are(len(called))}" if called else "no term is"
    return f"With every diverged run ranked last, {names} significant after Holm's adjustment."


def survivors(analysis: Analysis) -> tuple[str, ...]:
    """Say that means rest on the remaining runs, if levels lose runs."""
    return ("Means rest on the runs that are left.",) if loss_finding(analysis) else ()


def advice_text(finding: Finding) -> str:
    """Return what to do, with the options that do it."""
    options = ", ".join(f"--{remedy.replace('=', ' ')}" for remedy in finding.remedies)
    return f"{finding.advice.removesuffix('.')} ({options})." if options else finding.advice


def factor_text(factor: FactorColumn) -> str:
    """Return a factor by its name, with its key: "Noise (F)"."""
    return factor_label(factor.key, factor.name)


def spaced(sentence: str) -> str:
    """Return a sentence whose configurations may break between factors: "lr=0.1, aug=on"."""
    return re.sub(r"(?<==)([^,\s]+),(?=[^,\s]+=)", r"\1, ", sentence)


def is_switch(factor: FactorColumn) -> bool:
    """Return whether a factor is there or not, rather than at one of two levels."""
    return tuple(label.lower() for label in factor.labels) in SWITCHES


def level_phrase(factor: FactorColumn, number: int, again: bool = False, keyed: bool = True) -> str:
    """Return where a factor has a level: "without Noise (F)", "with it", "at lr = 0.1"."""
    name = factor_text(factor) if keyed else factor.name or factor.key
    if is_switch(factor):
        return f"{'with' if number else 'without'} {'it' if again else name}"
    level = factor.labels[number]
    return f"at {level}" if again else f"at {name} = {level}"


def is_clear(effect: ConditionalEffect, ratio: bool) -> bool:
    """Return whether the interval of a conditional effect leaves out no effect."""
    none = 1.0 if ratio else 0.0
    if effect.effect is None:
        return False
    return effect.ci_low is None or not effect.ci_low <= none <= (effect.ci_high or 0.0)


def curvature_text(analysis: Analysis) -> str:
    """Return what the centre runs say of a curve, and what to do next."""
    bend = analysis.curvature
    if bend is None:
        return ""
    plain = analysis.transform.name == "none"
    unit = f" {difference_unit(analysis.unit)}".rstrip() if plain else " on the analysed scale"
    runs = counted(bend.n, "centre run")
    low, high = bend.ci_low, bend.ci_high
    if bend.difference < 0 and low is not None and high is not None:
        low, high = -high, -low
    gap, *ends = with_interval(abs(bend.difference), low, high)
    side = "above" if bend.difference > 0 else "below"
    mean = "Their mean" if bend.n > 1 else "It"
    lead = f"{runs}. {mean} lies {gap}{unit} {side} what straight lines predict"
    if bend.p is None:
        return f"{lead}; there is no error to test it against. {AXIAL}"
    if bend.p >= analysis.alpha:
        span = f"{confidence(analysis.alpha)} CI of the gap {' to '.join(ends)}"
        return f"{lead} ({span}): no curvature is shown."
    return (
        f"{lead} (p = {cell_text(bend.p, 'p')}): at least one factor has a curved effect, and "
        f"two levels do not show which. {AXIAL}"
    )


AXIAL = "Axial runs (doe plan --augment axial) would show which, and where the optimum lies."


LOOKS = (
    "p and intervals hold over all looks: p is the smallest that any look has given, at its own "
    "level, so that it need not follow t and F, which are those of the last look."
)
"""Said under tables of a study that was looked at after each replicate."""
