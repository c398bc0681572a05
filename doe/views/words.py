"""Words that several views share, each defined once."""

from __future__ import annotations

from doe.analysis.analyze import Analysis
from doe.analysis.diagnostics import Finding


def helps(effect: float, goal: str) -> bool:
    """Whether an effect is for the better, by the goal of the response."""
    return (effect > 0) == (goal == "max")


def unit_text(unit: str) -> str:
    """A unit as it follows a name; empty where there is none."""
    return f" [{unit}]" if unit else ""


def quantity(analysis: Analysis) -> str:
    """The response as analysed, with the unit that it still has: "loss [nats]", "ln loss"."""
    unit = analysis.unit if analysis.transform.name == "none" else ""
    return analysis.transform.label(analysis.response) + unit_text(unit)


def advice_text(finding: Finding) -> str:
    """What to do, with the options that do it."""
    options = ", ".join(f"--{remedy.replace('=', ' ')}" for remedy in finding.remedies)
    return f"{finding.advice} ({options})" if options else finding.advice
