"""Decisions of a study that may stop early, and what is still open."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from doe.design.changes import confirming, planned_replicates
from doe.design.runs import portion, portions_per_replicate
from doe.errors import DoeError, are, counted
from doe.numbers import about, cell_text, share_text
from doe.results.looks import analysed, of_design, stopping_rule
from doe.store.plan import Plan, declare_plan, load_plan
from doe.store.scan import RunStatus, complete_portions, complete_replicates
from doe.study.values import FIRST_LOOK, Stopping, Study
from doe.terms import parse_term, term_name

if TYPE_CHECKING:
    from doe.analysis.dataset import Runs
    from doe.analysis.sequential import TermDecision
    from doe.analysis.within import CloseToBest


class TermState(NamedTuple):
    """One term of one response."""

    response: str
    term: str
    state: TermDecision
    chance: float | None
    """Chance to be decided by the next look; None if decided or if there is no next look."""
    chance_in_all: float | None = None
    """Chance to be decided by the last look."""


class Decision(NamedTuple):
    """Progress of a study that is looked at after each complete portion."""

    rule: Stopping
    replicates: float
    """Complete ones."""
    terms: tuple[TermState, ...]
    expected: float | None
    """Replicates in the end, the mean of simulated futures; None before the first look."""
    runs_each: int
    """Runs per replicate."""
    first: float = FIRST_LOOK
    """Replicates at the first look."""
    close: tuple[CloseToBest, ...] = ()
    """Configurations that are known to be close to the best, where that is the aim."""
    responses: int = 1

    @property
    def open(self) -> tuple[TermState, ...]:
        """Terms that are not decided."""
        return tuple(term for term in self.terms if term.state.verdict == "open")

    @property
    def reached(self) -> bool:
        """Whether the aim is reached."""
        if self.rule.within:
            return len(self.close) == self.responses and all(c.is_known for c in self.close)
        return not self.open

    @property
    def futile(self) -> bool:
        """Whether no open term has a fair chance of being decided by the end."""
        chances = [term.chance_in_all for term in self.open]
        known = [chance for chance in chances if chance is not None]
        return bool(known) and max(known) < self.rule.futility and not self.rule.within

    @property
    def is_final(self) -> bool:
        """Whether nothing more is to be run."""
        return self.reached or self.replicates >= self.rule.max_replicates or self.futile

    @property
    def sentences(self) -> tuple[str, str]:
        """Sentences on what is decided, and on what the next look is expected to bring."""
        so_far = (
            f"after {cell_text(self.replicates, 'short')} of at most {self.rule.max_replicates} "
            "replicates"
        )
        if self.rule.within:
            return self._close_sentence(so_far), self._outlook
        effects = sum(term.state.verdict == "effect" for term in self.terms)
        decided = len(self.terms) - len(self.open)
        settled = (
            f"{decided} of {counted(len(self.terms), 'term')} {are(decided)} decided {so_far}: "
            f"{counted(effects, 'effect')}, {decided - effects} negligible, {len(self.open)} open."
        )
        return settled, self._outlook

    def _close_sentence(self, so_far: str) -> str:
        """Return how close to the best the leading configurations are."""
        if not self.close:
            return f"No configuration is known to be close to the best {so_far}."
        parts = [
            f"{c.config} is at most {about(c.gap)} from the best of {c.response}"
            for c in self.close
        ]
        return f"{'; '.join(parts)} {so_far} (requested: {self.rule.within:g})."

    @property
    def _outlook(self) -> str:
        """Whether more is run, and what that is expected to bring."""
        if self.reached:
            return "The study has stopped: no further replicate is run."
        if self.replicates >= self.rule.max_replicates:
            left = "none is known to be so close" if self.rule.within else "what is open stays open"
            return f"The last replicate is complete: {left}."
        if self.replicates < self.first:
            return f"The first look comes after {_replicates(self.first)}."
        if self.futile:
            return (
                f"The study has stopped: {counted(len(self.open), 'open term')} cannot be decided "
                f"with {self.rule.max_replicates} replicates (the chance of each is below "
                f"{share_text(self.rule.futility)}). Its next replicate may be run all the same."
            )
        if self.expected is None:
            return "The study goes on."
        bring = sum(term.chance or 0.0 for term in self.open)
        return (
            f"The next look is expected to decide {cell_text(bring, 'fixed1')} of the "
            f"{len(self.open)} open; the study is expected to take "
            f"{cell_text(self.expected, 'fixed1')} replicates in all, "
            f"{cell_text(self.expected * self.runs_each, 'int')} runs."
        )


def _replicates(number: float) -> str:
    return f"{cell_text(number, 'short')} replicate{'' if number == 1 else 's'}"


def decided_terms(study: Study, runs: Runs) -> tuple[int, ...]:
    """Terms to decide: those named, else main effects and two-factor interactions.

    Of aliased terms the first represents all.
    """
    from doe.analysis.model import make_model
    from doe.terms import order, terms_up_to

    named = [parse_term(term, study.keys) for term in (study.stopping or Stopping(2)).terms]
    highest = max(map(order, named), default=min(2, len(study.keys)))
    estimable = set(make_model(runs, (*terms_up_to(len(study.keys), highest), *named)).terms)
    for mask in named:
        if mask not in estimable:
            raise DoeError(
                f"{term_name(mask, study.keys)} cannot be decided: this design confounds it with "
                "blocks or other terms; `doe alias` shows which"
            )
    return tuple(sorted(named or estimable))


def decided_responses(study: Study) -> tuple[str, ...]:
    """Responses to decide for: those named, else the averages, else all metrics."""
    named = study.stopping.responses if study.stopping else ()
    return named or study.responses.principal


def decision(study: Study, statuses: Sequence[RunStatus]) -> Decision | None:
    """Return what the complete portions decide; None where the study declares no rule."""
    if study.stopping is None:
        return None
    import numpy as np

    from doe.results.course import Course
    from doe.results.dataset import datasets, planned_runs, study_runs

    rule = stopping_rule(study)
    included = analysed(study, statuses)
    runs = study_runs(study, included)
    names = decided_responses(study)
    complete = min(complete_portions(study, included), rule.portions)
    cells = len({status.run.row for status in included})
    course = Course(study, rule, complete, np.array([portion(study, s.run) for s in included]))
    data = datasets(study, included, runs, names)
    terms: tuple[TermState, ...] = ()
    close: tuple[CloseToBest, ...] = ()
    expected = None
    if not study.stopping.within:
        planned = planned_runs(study, [status.run for status in of_design(study, statuses)])
        judged, expected = course.decided(data, decided_terms(study, planned))
        terms = tuple(
            TermState(name, term_name(state.term, study.keys), state, *chances)
            for name, state, *chances in judged
        )
    elif complete in rule.looks:
        close = course.close_to_best(data)
    return Decision(
        *(study.stopping, rule.replicates(complete), terms, expected, cells),
        *(rule.replicates(rule.first), close, len(names)),
    )


def required_runs(
    study: Study, statuses: Sequence[RunStatus], reached: Decision | None
) -> list[RunStatus]:
    """Return the runs that the study asks for: not the portions that a decision has made
    needless.
    """
    if reached is None or not reached.is_final:
        return list(statuses)
    last, fresh = reached.replicates * portions_per_replicate(study), confirming(study)
    return [s for s in statuses if s.run.replicate in fresh or portion(study, s.run) <= last]


def requested_portions(study: Study, statuses: Sequence[RunStatus]) -> int:
    """Return how many portions a study asks for: those that are complete, or those of the next
    look.
    """
    reached = decision(study, statuses)
    assert reached is not None
    each = portions_per_replicate(study)
    complete = round(reached.replicates * each)
    return complete if reached.is_final else max(complete + 1, round(reached.first * each))


def declare_until(
    directory: Path, until: str | None, terms: tuple[str, ...], replicates: int | None
) -> None:
    """Write down when the study may stop, before it is looked at; refuse another rule later."""
    if until is None:
        if terms or replicates is not None:
            raise DoeError(
                "terms to decide and max_replicates belong to a study that runs until it is "
                "decided; ask for that too (until decided)"
            )
        return
    aim, _, distance = until.partition(":")
    within = _distance(distance) if aim == "within" else 0.0
    if until != "decided" and not within:
        raise DoeError(
            f"until {until!r} is unknown; expected decided, or within:0.5, a distance from the best"
        )
    if within and terms:
        raise DoeError("terms to decide belong to until decided; within is about the best alone")
    declare(directory, terms, replicates, within)


def _distance(text: str) -> float:
    """Return a positive number; 0 if it is not."""
    try:
        return value if 0.0 < (value := float(text)) < math.inf else 0.0
    except ValueError:
        return 0.0


def declare(
    directory: Path, terms: tuple[str, ...], replicates: int | None, within: float = 0.0
) -> Plan:
    """Declare that a study is looked at after each complete portion, and when it may stop.

    Raises
    ------
    DoeError
        If it declares another rule already, or nobody says how many replicates there may be.
    """
    plan = load_plan(directory)
    names = tuple(term_name(parse_term(term, plan.study.keys), plan.study.keys) for term in terms)
    complete = complete_replicates(plan.scan())
    from doe.results.dataset import planned_runs

    def declared(study: Study) -> Stopping:
        planned = planned_replicates(study)
        if replicates is None and planned < FIRST_LOOK:
            raise DoeError(
                "the study plans one replicate, and a look needs two; plan more, or say how many "
                "there may be at most (max_replicates)"
            )
        rule = Stopping(replicates or planned, names, after=complete, within=within)
        ruled = replace(study, stopping=rule)
        if within:
            _check_goals(ruled)
        else:
            decided_terms(ruled, planned_runs(study, plan.design.runs))
        return rule

    plan = declare_plan(directory, declared)
    rule = plan.study.stopping
    assert rule is not None
    other = (names and names != rule.terms) or within != rule.within
    if replicates not in (None, rule.max_replicates) or other:
        terms_text = ", ".join(rule.terms) or "main effects and two-factor interactions"
        aim = f"{terms_text} are decided"
        if rule.within:
            aim = f"a configuration is known to be within {rule.within:g} of the best"
        raise DoeError(
            f"{directory} has declared to stop after {rule.max_replicates} replicates at most, or "
            f"when {aim}; a rule must not change during a study: repeat "
            "its aim, terms and replicates"
        )
    return plan


def _check_goals(study: Study) -> None:
    """Refuse to look for the best where nobody says what is better, or on which scale."""
    answers = study.responses
    for name in decided_responses(study):
        if answers.goal_of(name) is None:
            raise DoeError(f"{name} has no goal; say whether min or max is better")


def decision_json(reached: Decision | None) -> dict[str, Any] | None:
    """Return the decision as JSON; None without a stopping rule."""
    if reached is None:
        return None
    return {
        "replicates": reached.replicates,
        "max_replicates": reached.rule.max_replicates,
        "over": reached.is_final,
        "expected_replicates": reached.expected,
        "sentences": reached.sentences,
        "futile": reached.futile,
        "within": reached.rule.within or None,
        "close_to_best": [close._asdict() for close in reached.close],
        "terms": [
            {
                "response": term.response,
                "term": term.term,
                "effect": term.state.effect,
                "ci_low": term.state.low,
                "ci_high": term.state.high,
                "p": term.state.p,
                "verdict": term.state.verdict,
                "decided_at": term.state.decided_at,
                "chance": term.chance,
                "chance_in_all": term.chance_in_all,
            }
            for term in reached.terms
        ],
    }
