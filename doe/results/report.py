"""Everything that a report of a study or a table shows; nothing is drawn here.

How the runs become the rows and columns of a paper's tables is the study's [report] section.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import threading
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from doe.analysis.analyze import Analysis, analyze, fit_response
from doe.analysis.dataset import Dataset
from doe.analysis.effects_by_response import EffectsByResponse, effects_by_response
from doe.analysis.fitted import FittedResponse
from doe.analysis.options import AnalysisOptions
from doe.analysis.trade_off import TradeOff, trade_off
from doe.errors import DoeError
from doe.goals import check_constraints, check_desires, parse_constraint, parse_desire
from doe.results.curves import Curve, RunDetail, epoch_lines, learning_curves, run_details
from doe.results.decision import Decision, decision
from doe.results.status import Overview
from doe.results.subject import Subject, study_datasets
from doe.store.files import StudyDir
from doe.study.values import ReportSection
from doe.terms import parse_term

if TYPE_CHECKING:
    from doe.analysis.censored import CensoredAnalysis


WORTH_A_PROCESS = 4
"""Responses for which it is worth starting a process."""


LATER = "Its analysis follows in a moment."
"""Why a report in short has no analysis of a response."""


class Answers(NamedTuple):
    """Results of the responses, each by itself and together."""

    analyses: dict[str, Analysis]
    bounds: dict[str, CensoredAnalysis]
    """Of the responses with limits such as >50."""
    refused: dict[str, str]
    """Response -> why there is no analysis of it."""
    effects_by_response: EffectsByResponse | None
    trade_off: TradeOff | None
    """None of one response."""


class Report(NamedTuple):
    """A study or a table, its analyses and its tables, as far as it has run."""

    subject: Subject
    options: AnalysisOptions
    section: ReportSection
    analyses: dict[str, Analysis]
    bounds: dict[str, CensoredAnalysis]
    refused: dict[str, str]
    effects_by_response: EffectsByResponse | None
    trade_off: TradeOff | None
    group_effects: dict[str, EffectsByResponse]
    """Effects on each group of responses of the report's section."""
    curves: dict[str, dict[str, Curve]]
    details: dict[str, RunDetail]
    """Run -> how it went, for the runs that have begun."""
    decision: Decision | None = None
    """How far a study has come that may stop early."""
    settling: tuple[Settling, ...] = ()
    """Main effects replicate by replicate, of a study under way."""

    @property
    def provisional(self) -> bool:
        """Whether runs are still to come, so that every number may change."""
        stopped = self.decision is not None and self.decision.is_final
        states = {run.state for run in self.subject.runs}
        return "running" in states or ("pending" in states and not stopped)

    @property
    def progress(self) -> str:
        """How many runs are done."""
        return f"{self.subject.done} of {len(self.subject.runs)} runs are done."

    @property
    def headline_responses(self) -> tuple[str, ...]:
        """Responses that a report begins with, as far as they were analysed."""
        return tuple(name for name in self.subject.responses.headline if name in self.analyses)


def fingerprint(state: Overview) -> str:
    """Return a short text that changes when a run begins or ends."""
    runs = "\n".join(
        f"{status.run.run_id} {status.state} {status.checksum}" for status in state.statuses
    )
    return hashlib.sha256(f"{state.study.name}\n{runs}".encode()).hexdigest()[:16]


def report_of(
    subject: Subject,
    options: AnalysisOptions,
    drop: tuple[str, ...] | None = None,
    in_short: bool = False,
) -> Report:
    """Analyse every response of a study or a table as it was read.

    `in_short`: those alone that a report begins with, without the robust methods.
    """
    section = subject.section
    for term in (*(options.terms or ()), *(drop or ())):
        parse_term(term, subject.keys)
    if drop is not None:
        section = msgspec.structs.replace(section, drop=drop)
    data = subject.data
    if in_short:
        options = msgspec.structs.replace(options, robust=False)
        data = {name: data[name] for name in subject.responses.headline if name in data}
    answers = answers_of(subject._replace(data=data), options)
    later = {name: LATER for name in subject.data if name not in data}
    curves, details, reached = _course(subject.state)
    report = Report(
        subject=subject,
        options=options,
        section=section,
        **answers._replace(refused=answers.refused | later)._asdict(),
        group_effects=group_effects(subject, section, answers.analyses),
        curves=curves,
        details=details,
        decision=reached,
    )
    if in_short or subject.state is None or not report.provisional:
        return report
    plain = msgspec.structs.replace(options, robust=False)
    names = report.headline_responses[:1]
    return report._replace(settling=tuple(settling(subject.state, names, plain)))


def _course(
    state: Overview | None,
) -> tuple[dict[str, dict[str, Curve]], dict[str, RunDetail], Decision | None]:
    """Return how the runs of a study went, and what they decide; nothing of a table."""
    if state is None:
        return {}, {}, None
    study, statuses, files = state.study, state.statuses, StudyDir(state.directory)
    epochs = epoch_lines(files, statuses)
    details = run_details(files, study, statuses, epochs, study.responses.headline)
    return learning_curves(study, statuses, epochs), details, decision(study, statuses)


def answers_of(subject: Subject, options: AnalysisOptions) -> Answers:
    """Analyse every response that was read; those with limits such as >50 have bounds instead."""
    data = [d for d in subject.data.values() if not d.censored]
    answers = dict(zip([d.response for d in data], _analyses(data, options), strict=True))
    refused = {name: answer for name, answer in answers.items() if isinstance(answer, str)}
    analyses = {name: a for name, a in answers.items() if not isinstance(a, str)}
    bounds, unbounded = _bounds(subject, options)
    family = effects_by_response(list(analyses.values())) if analyses else None
    together = trade_off_of(subject, options)
    return Answers(analyses, bounds, refused | unbounded, family, together)


def _bounds(
    subject: Subject, options: AnalysisOptions
) -> tuple[dict[str, CensoredAnalysis], dict[str, str]]:
    """Bounds of the effects on each response with limits, and why there are none of others."""
    bounds, refused = {}, {}
    for name, data in subject.data.items():
        if data.censored:
            from doe.analysis.censored import analyze_censored

            try:
                ceiling = None if subject.table is None else subject.table.ceiling
                bounds[name] = analyze_censored(data, options, ceiling)
            except DoeError as error:
                refused[name] = str(error)
    return bounds, refused


def _analyses(data: Sequence[Dataset], options: AnalysisOptions) -> list[Analysis | str]:
    """Return the analysis of each response or why there is none; many at once take all cores."""
    tasks = [(dataset, options) for dataset in data]
    cores = min(len(os.sched_getaffinity(0)), len(data) // WORTH_A_PROCESS)
    # A fork is safe where there is no other thread, and costs no import.
    if cores < 2 or not options.robust or threading.active_count() > 1:
        return [_analysis(*task) for task in tasks]
    first = _analysis(*tasks[0])  # what it loads and keeps, the processes find
    with ProcessPoolExecutor(cores, mp_context=multiprocessing.get_context("fork")) as pool:
        return [first, *pool.map(_analysis, *zip(*tasks[1:], strict=True))]


def _analysis(data: Dataset, options: AnalysisOptions) -> Analysis | str:
    try:
        return analyze(data, options)
    except DoeError as error:
        return str(error)


def group_effects(
    subject: Subject, section: ReportSection, analyses: dict[str, Analysis]
) -> dict[str, EffectsByResponse]:
    """Effects on each group of responses, without the terms of dropped factors.

    A term of several degrees of freedom has no single effect to show.
    """
    dropped = sum(parse_term(key, subject.keys) for key in section.drop)
    averages = [set(parts) for parts in subject.responses.averages.values()]
    by_group = {}
    for group in section.groups:
        if not group.effects or not all(name in analyses for name in group.responses):
            continue
        whole = effects_by_response(
            [analyses[name] for name in group.responses], set(group.responses) in averages
        )
        kept = [r for r in whole.rows if not r.mask & dropped and None not in r.effects]
        if kept:
            by_group[group.name] = msgspec.structs.replace(whole, rows=tuple(kept))
    return by_group


# How estimates settle -----------------------------------------------------------------------------


MOST_REPLICATES = 12


class Settling(NamedTuple):
    """A main effect by the runs of the first replicates."""

    response: str
    factor: str
    replicates: int
    effect: float
    ci_low: float | None
    ci_high: float | None


def settling(
    state: Overview, responses: tuple[str, ...], options: AnalysisOptions
) -> list[Settling]:
    """Return the main effects of two-level factors after one, two and more replicates.

    Empty of a study without a second replicate. A replicate counts once one of its runs is done.
    """
    begun = sorted({s.run.replicate for s in state.statuses if s.state == "done"})[:MOST_REPLICATES]
    if len(begun) < 2:
        return []
    rows: list[Settling] = []
    for number in begun:
        included = [s for s in state.statuses if s.run.replicate <= number]
        for data in study_datasets(state.study, included, responses).values():
            try:
                analysis = analyze(data, options)
            except DoeError:  # too few runs yet
                continue
            rows += [
                Settling(data.response, e.term, number, e.effect, e.ci_low, e.ci_high)
                for e in analysis.effects
                if e.mask.bit_count() == 1
            ]
    return rows


# Several goals ------------------------------------------------------------------------------------


def trade_off_of(subject: Subject, options: AnalysisOptions) -> TradeOff | None:
    """Weigh the responses that were read, and those that a constraint or desirability names.

    Averages represent their metrics. None if there is nothing to compare: one response, or no goal.

    Raises
    ------
    DoeError
        If a constraint or desirability was asked for that names no response or cannot be met.
    """
    known = subject.responses
    constraints = [*known.constraints, *options.constraints]
    desires = subject.desirability | dict(map(parse_desire, options.desires))
    names = known.names if subject.state else tuple(subject.data)
    problems: list[str] = []
    check_constraints(options.constraints, names, problems.append)
    if options.desires:
        goals = {name: known.goal_of(name) for name in names}
        check_desires(desires, names, goals, problems.append)
    for problem in problems:
        raise DoeError(problem)
    limits = [parse_constraint(text) for text in constraints]
    wanted = {*_weighed(subject), *(c.response for c in limits), *desires}
    asked = bool(options.constraints or options.desires)
    ordered = dict.fromkeys(name for name in (*subject.data, *names) if name in wanted)
    fits = _fits(subject, tuple(ordered), options, asked)
    present = {fitted.data.response for fitted in fits}
    limits = [limit for limit in limits if limit.response in present]
    desires = desires if present.issuperset(desires) else {}
    try:
        return trade_off(fits, limits, desires, subject.excluded, everywhere=_is_open(subject))
    except DoeError:
        if asked:
            raise
        return None


def _weighed(subject: Subject) -> list[str]:
    """Responses that were read, without metrics of an average and further ones, where others are.

    Where the study says how desirable its responses are, these alone.
    """
    averages = subject.responses.averages
    parts = {part for name, parts in averages.items() if name in subject.data for part in parts}
    own = [name for name in subject.data if name not in parts and name not in subject.desirability]
    if set(subject.desirability) & set(subject.data):
        return []
    first = [name for name in own if name not in subject.responses.further]
    return first if len(first) > 1 else own


def _fits(
    subject: Subject, names: tuple[str, ...], options: AnalysisOptions, asked: bool
) -> list[FittedResponse]:
    data: dict[str, Dataset] = dict(subject.data)
    absent = [name for name in names if name not in data]
    if absent and subject.state is not None:
        data |= study_datasets(subject.state.study, subject.state.statuses, absent)
    fits = []
    for name in names:
        if data[name].goal is None and not asked:
            continue
        try:
            fits.append(fit_response(data[name], options))
        except DoeError:
            if asked:
                raise
    return fits


def _is_open(subject: Subject) -> bool:
    """Return whether configurations without runs can run: nothing restricts factors but
    exclusions.
    """
    if subject.state is None:
        return True
    study = subject.state.study
    return not study.design.get("constraints") and not any(f.when for f in study.factors)
