"""Runs that may be looked at, and what a reader must know about the looks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from doe.design.changes import confirming, on_path, planned_replicates
from doe.design.runs import most_portions, portion, portions_per_replicate
from doe.errors import counted
from doe.store.scan import RunStatus, complete_portions, complete_replicates
from doe.study.values import FIRST_LOOK, Stopping, Study

if TYPE_CHECKING:
    from doe.analysis.spending import Rule

SHAPES = {"obrien-fleming": "O'Brien and Fleming", "pocock": "Pocock", "quadratic": "quadratic"}


def stopping_rule(study: Study) -> Rule:
    """Return the rule of a study as the statistics know it."""
    from doe.analysis.sequential import EARLY_ORDER, with_first_look
    from doe.analysis.spending import Rule
    from doe.terms import terms_up_to

    declared = study.stopping or Stopping(FIRST_LOOK)
    each = portions_per_replicate(study)
    spend = (most_portions(study), declared.alpha, declared.spending)
    rule = Rule(*spend, per_replicate=each, two_sided=declared.rule == 1)
    columns = len(terms_up_to(len(study.keys), min(EARLY_ORDER, len(study.keys))))
    return with_first_look(rule, math.prod(study.sizes) // each, columns)


def of_design(study: Study, statuses: Sequence[RunStatus]) -> list[RunStatus]:
    """Return all runs but those that confirm a winner and those of a path of ascent."""
    fresh, path = confirming(study), on_path(study)
    return [s for s in statuses if s.run.replicate not in fresh and s.run.level_values not in path]


def analysed(study: Study, statuses: Sequence[RunStatus]) -> list[RunStatus]:
    """Return the runs that effects are estimated from: those of the design, and where the study
    declares that it is looked at, those of complete portions.
    """
    factorial = of_design(study, statuses)
    if study.stopping is None:
        return factorial
    complete = min(complete_portions(study, factorial), most_portions(study))
    return [s for s in factorial if not complete or portion(study, s.run) <= complete]


def look_notes(study: Study, statuses: Sequence[RunStatus]) -> tuple[str, ...]:
    """Return what a reader of p values must know of when these runs were looked at."""
    rule, complete = study.stopping, complete_replicates(statuses)
    if rule is not None:
        late = (
            f"; this was declared when {rule.after} replicates were complete, so the rule may have "
            "been chosen after their results"
            if rule.after
            else ""
        )
        part = {1: "complete", 2: "half", 4: "quarter"}[portions_per_replicate(study)]
        return (
            f"Looked at after each {part} replicate up to {rule.max_replicates}, as declared: p "
            "values and intervals of effects are adjusted for the interim looks "
            f"({SHAPES[rule.spending]} spending); those of configurations and of robust methods "
            f"are not{late}.",
        )
    if complete < planned_replicates(study):
        waiting = sum(status.state in ("running", "pending") for status in statuses)
        return (
            f"With {counted(waiting, 'run')} still to come, this study did not declare interim "
            "looks: looking until something is significant gives more false effects than p says. "
            "A study that runs until it is decided declares its looks, and its p values are "
            "adjusted for them.",
        )
    if added := planned_replicates(study) - study.replicates:
        return (
            f"{counted(added, 'replicate')} beyond the first plan, and the study did not declare "
            "interim looks: if results were seen before they were added, p is too small.",
        )
    return ()
