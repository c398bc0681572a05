"""Words that several views share, each defined once."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from doe.analysis.data import FactorLevels
from doe.analysis.diagnostics import Finding
from doe.analysis.response import ResponseAnalysis
from doe.terms import factor_label, parse_term
from doe.views.table import Mark

SWITCHES = (("false", "true"), ("off", "on"), ("no", "yes"), ("0", "1"))
"""Low and high of factors that are there or not."""


MARKS: Mapping[bool | None, Mark] = {True: "good", False: "bad", None: "strong"}
"""What a cell says of an effect that helps, harms, or of which nobody said which it does."""


def helps(effect: float, goal: str | None) -> bool | None:
    """Whether an effect is for the better, by the goal of the response; None without a goal."""
    return None if goal is None else (effect > 0) == (goal == "max")


def unit_text(unit: str) -> str:
    """A unit as it follows a name; empty where there is none."""
    return f" [{unit}]" if unit else ""


def mean_word(analysis: ResponseAnalysis) -> str:
    """What a mean taken back from the analysed scale is called."""
    return "Geometric mean" if analysis.transform.scale.ratio else "Mean"


def mean_text(analysis: ResponseAnalysis) -> str:
    """What a mean is the mean of: "Mean loss [nats]"."""
    return f"{mean_word(analysis)} {analysis.response}{unit_text(analysis.unit)}"


def quantity(analysis: ResponseAnalysis) -> str:
    """The response as analysed, with the unit that it still has: "loss [nats]", "ln loss"."""
    unit = analysis.unit if analysis.transform.name == "none" else ""
    return analysis.transform.label(analysis.response) + unit_text(unit)


def advice_text(finding: Finding) -> str:
    """What to do, with the options that do it."""
    options = ", ".join(f"--{remedy.replace('=', ' ')}" for remedy in finding.remedies)
    return f"{finding.advice.removesuffix('.')} ({options})." if options else finding.advice


def factor_text(factor: FactorLevels) -> str:
    """A factor by its name, with its key: "Noise (F)"."""
    return factor_label(factor.key, factor.name)


def term_text(term: str, factors: Sequence[FactorLevels]) -> str:
    """A term by the names of its factors: "Noise × Bottleneck (BF)"."""
    mask = parse_term(term, [factor.key for factor in factors])
    parts = [factor for i, factor in enumerate(factors) if mask >> i & 1]
    if len(parts) == 1:
        return factor_text(parts[0])
    names = " × ".join(factor.name or factor.key for factor in parts)
    return f"{names} ({term})" if any(factor.name for factor in parts) else names


def spaced(sentence: str) -> str:
    """A sentence whose configurations may break between factors: "lr=0.1, aug=on"."""
    return re.sub(r"(?<==)([^,\s]+),(?=[^,\s]+=)", r"\1, ", sentence)


def is_switch(factor: FactorLevels) -> bool:
    """Whether a factor is there or not, rather than at one of two levels."""
    return (factor.low.lower(), factor.high.lower()) in SWITCHES


def level_phrase(factor: FactorLevels, coded: int, again: bool = False) -> str:
    """Where a factor has a level: "without Noise (F)", "with it", "at lr = 0.1"."""
    level = factor.high if coded > 0 else factor.low
    if is_switch(factor):
        return f"{'with' if coded > 0 else 'without'} {'it' if again else factor_text(factor)}"
    return f"at {level}" if again else f"at {factor_text(factor)} = {level}"


LOOKS = (
    "p and intervals hold over all looks: p is the smallest that any look has given, at its own "
    "level, so that it need not follow t and F, which are those of the last look."
)
"""Said under tables of a study that was looked at after each replicate."""
