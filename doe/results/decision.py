"""What a study that may stop early has decided, and what is still open."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from doe.design.changes import confirming, planned_replicates
from doe.errors import DoeError, are, counted
from doe.numbers import cell_text
from doe.results.looks import analysed, stopping_rule
from doe.store.plan import Plan, declare_plan, load_plan
from doe.store.scan import RunStatus, complete_replicates
from doe.study.values import FIRST_LOOK, Stopping, Study
from doe.terms import parse_term, term_name

if TYPE_CHECKING:
    from doe.analysis.contrasts import Floats
    from doe.analysis.dataset import Runs
    from doe.analysis.sequential import TermDecision


class TermState(NamedTuple):
    """One term of one response."""

    response: str
    term: str
    state: TermDecision
    chance: float | None
    """Of being decided by the next replicate, where it is open and there is a next one."""


class Decision(NamedTuple):
    """How far a study has come that is looked at after each complete replicate."""

    rule: Stopping
    replicates: int
    """Complete ones."""
    terms: tuple[TermState, ...]
    expected: float | None
    """Replicates in the end, the mean of simulated futures; None before the first look."""
    runs_each: int
    """Runs of a replicate."""

    @property
    def open(self) -> tuple[TermState, ...]:
        """Terms that are not decided."""
        return tuple(term for term in self.terms if term.state.verdict == "open")

    @property
    def is_final(self) -> bool:
        """Whether nothing more is to be run."""
        return not self.open or self.replicates >= self.rule.max_replicates

    @property
    def sentences(self) -> tuple[str, str]:
        """What is settled, and what the next replicate is expected to bring."""
        effects = sum(term.state.verdict == "effect" for term in self.terms)
        decided = len(self.terms) - len(self.open)
        settled = (
            f"{decided} of {counted(len(self.terms), 'term')} {are(decided)} decided after "
            f"{self.replicates} of at most {self.rule.max_replicates} replicates: "
            f"{counted(effects, 'effect')}, {decided - effects} negligible, {len(self.open)} open."
        )
        if not self.open:
            return settled, "The study has stopped: no further replicate is run."
        if self.is_final:
            return settled, "The last replicate is complete: what is open stays open."
        if self.expected is None:
            return settled, "The first look comes after the second replicate."
        bring = sum(term.chance or 0.0 for term in self.open)
        return settled, (
            f"The next replicate is expected to decide {cell_text(bring, 'fixed1')} of the "
            f"{len(self.open)} open; the study is expected to take "
            f"{cell_text(self.expected, 'fixed1')} replicates in all, "
            f"{cell_text(self.expected * self.runs_each, 'int')} runs."
        )


def decided_terms(study: Study, runs: Runs) -> tuple[int, ...]:
    """Terms to decide: those named, else main effects and two-factor interactions.

    Of terms that the design cannot tell apart, the first stands for all.
    """
    from doe.analysis.model import make_model
    from doe.terms import order, terms_up_to

    named = [parse_term(term, study.keys) for term in (study.stopping or Stopping(2)).terms]
    highest = max(map(order, named), default=min(2, len(study.keys)))
    estimable = set(make_model(runs, (*terms_up_to(len(study.keys), highest), *named)).terms)
    for mask in named:
        if mask not in estimable:
            raise DoeError(
                f"{term_name(mask, study.keys)} cannot be decided: this design cannot tell it from "
                "blocks or from other terms; `doe alias` shows which stand for it"
            )
    return tuple(sorted(named or estimable))


def decided_responses(study: Study) -> tuple[str, ...]:
    """Responses to decide for: those named, else the averages, else all metrics."""
    named = study.stopping.responses if study.stopping else ()
    return named or study.responses.principal


def decision(study: Study, statuses: Sequence[RunStatus]) -> Decision | None:
    """What the complete replicates decide; None where the study declares no rule."""
    if study.stopping is None:
        return None
    import numpy as np

    from doe.analysis.sequential import Start, decide, futures, looks_at
    from doe.results.dataset import datasets, study_runs

    included = analysed(study, statuses)
    runs = study_runs(study, included)
    masks, names = decided_terms(study, runs), decided_responses(study)
    rule, family = stopping_rule(study.stopping), len(masks) * len(names)
    complete = min(complete_replicates(included), rule.replicates)
    replicate = np.array([status.run.replicate for status in included], dtype=np.int64)
    cells = len({status.run.row for status in included})
    terms: list[TermState] = []
    ends = np.ones((1, 1), dtype=bool)
    for data in datasets(study, included, runs, names):
        looks = looks_at(data.y, runs, replicate, rule) if complete in rule.looks else []
        matters = study.responses.matters_of(data.response) or 0.0
        states = decide(looks, masks, family, rule, matters)
        chances: list[float | None] = [None] * len(masks)
        if looks and complete < rule.replicates:
            closed = np.array([state.verdict != "open" for state in states], dtype=np.int64)
            start = Start(
                complete,
                np.array([state.effect or 0.0 for state in states]),
                looks[-1].sigma,
                closed,
                np.array([state.df for state in states]),
                _spreads(states, looks[-1].sigma, complete * cells),
            )
            future = futures(start, cells, family, rule, matters)
            chances = [
                float(chance) if not done else None
                for chance, done in zip(future[:, 0].mean(axis=0), closed, strict=True)
            ]
            ends = ends & future.all(axis=2)
        terms += [
            TermState(data.response, term_name(state.term, study.keys), state, chance)
            for state, chance in zip(states, chances, strict=True)
        ]
    expected = None
    if complete in rule.looks:
        final = complete >= rule.replicates or all(t.state.verdict != "open" for t in terms)
        expected = float(complete)
        if not final:
            expected += 1.0 + float((~ends[:, :-1]).sum(axis=1).mean())
    return Decision(study.stopping, complete, tuple(terms), expected, cells)


def _spreads(states: Sequence[TermDecision], sigma: float, runs: int) -> Floats:
    """Variance of each effect over σ² / runs; that of two levels where it is not known."""
    import numpy as np

    known = [(state.se / sigma) ** 2 * runs if state.se else 4.0 for state in states]
    return np.array(known)


def needed(
    study: Study, statuses: Sequence[RunStatus], reached: Decision | None
) -> list[RunStatus]:
    """The runs that the study asks for: not the replicates that a decision has made needless."""
    if reached is None or not reached.is_final:
        return list(statuses)
    wanted = {*range(1, reached.replicates + 1), *confirming(study)}
    return [status for status in statuses if status.run.replicate in wanted]


def is_decided(study: Study, statuses: Sequence[RunStatus]) -> bool:
    """Whether a study needs no further replicate."""
    reached = decision(study, statuses)
    return reached is not None and reached.is_final


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
    if until != "decided":
        raise DoeError(f"until {until!r} is unknown; expected decided")
    declare(directory, terms, replicates)


def declare(directory: Path, terms: tuple[str, ...], replicates: int | None) -> Plan:
    """Declare that a study is looked at after each complete replicate, and when it may stop.

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
        rule = Stopping(replicates or planned, names, after=complete)
        decided_terms(replace(study, stopping=rule), planned_runs(study, plan.design.runs))
        return rule

    plan = declare_plan(directory, declared)
    rule = plan.study.stopping
    assert rule is not None
    if replicates not in (None, rule.max_replicates) or (names and names != rule.terms):
        terms_text = ", ".join(rule.terms) or "main effects and two-factor interactions"
        raise DoeError(
            f"{directory} has declared to stop after {rule.max_replicates} replicates at most, or "
            f"when {terms_text} are decided; a rule that changes on the way is none. Ask for no "
            "other terms and replicates"
        )
    return plan


def decision_json(reached: Decision | None) -> dict[str, Any] | None:
    """The same for machines."""
    if reached is None:
        return None
    return {
        "replicates": reached.replicates,
        "max_replicates": reached.rule.max_replicates,
        "over": reached.is_final,
        "expected_replicates": reached.expected,
        "sentences": reached.sentences,
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
            }
            for term in reached.terms
        ],
    }
