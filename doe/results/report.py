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

from doe.analysis.analyze import Analysis, analyze
from doe.analysis.dataset import Dataset
from doe.analysis.effects_by_response import EffectsByResponse, effects_by_response
from doe.analysis.options import AnalysisOptions
from doe.analysis.trade_off import TradeOff
from doe.errors import DoeError
from doe.results.curves import Curve, epoch_lines, learning_curves
from doe.results.decision import Decision, decision
from doe.results.details import RunDetail, run_details
from doe.results.estimates import Settling, settling
from doe.results.goals import trade_off_of
from doe.results.status import Overview
from doe.results.subject import Subject
from doe.store.files import StudyDir
from doe.study.values import ReportSection
from doe.terms import parse_term

if TYPE_CHECKING:
    from doe.analysis.censored import CensoredAnalysis

WORTH_A_PROCESS = 4
"""Responses for which it is worth starting a process."""


LATER = "Its analysis follows in a moment."
"""Why a report in short has no analysis of a response."""


class Report(NamedTuple):
    """A study or a table, its analyses and its tables, as far as it has run."""

    subject: Subject
    options: AnalysisOptions
    section: ReportSection
    analyses: dict[str, Analysis]
    refused: dict[str, str]
    """Response -> why there is no analysis of it."""
    effects_by_response: EffectsByResponse | None
    group_effects: dict[str, EffectsByResponse]
    """Effects on each group of responses of the report's section."""
    curves: dict[str, dict[str, Curve]]
    details: dict[str, RunDetail]
    """Run -> how it went, for the runs that have begun."""
    decision: Decision | None = None
    """How far a study has come that may stop early."""
    trade_off: TradeOff | None = None
    """What several responses say together; None of one."""
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
    """A short text that changes when a run begins or ends."""
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
    analyses, refused = analyze_all(list(data.values()), options)
    refused |= {name: LATER for name in subject.data if name not in data}
    curves, details, reached = _course(subject.state)
    report = Report(
        subject=subject,
        options=options,
        section=section,
        analyses=analyses,
        refused=refused,
        effects_by_response=effects_by_response(list(analyses.values())) if analyses else None,
        group_effects=group_effects(subject, section, analyses),
        curves=curves,
        details=details,
        decision=reached,
        trade_off=trade_off_of(subject, options),
    )
    if in_short or subject.state is None or not report.provisional:
        return report
    plain = msgspec.structs.replace(options, robust=False)
    names = report.headline_responses[:1]
    return report._replace(settling=tuple(settling(subject.state, names, plain)))


def _course(
    state: Overview | None,
) -> tuple[dict[str, dict[str, Curve]], dict[str, RunDetail], Decision | None]:
    """How the runs of a study went, and what they decide; nothing of a table."""
    if state is None:
        return {}, {}, None
    study, statuses, files = state.study, state.statuses, StudyDir(state.directory)
    epochs = epoch_lines(files, statuses)
    details = run_details(files, study, statuses, epochs, study.responses.headline)
    return learning_curves(study, statuses, epochs), details, decision(study, statuses)


def analyze_all(
    data: Sequence[Dataset], options: AnalysisOptions
) -> tuple[dict[str, Analysis], dict[str, str]]:
    """The analysis of each response, and why there is none of the others."""
    results = dict(zip([d.response for d in data], _analyses(data, options), strict=True))
    return (
        {name: result for name, result in results.items() if not isinstance(result, str)},
        {name: result for name, result in results.items() if isinstance(result, str)},
    )


def bound_all(
    subject: Subject, options: AnalysisOptions
) -> tuple[dict[str, CensoredAnalysis], dict[str, str]]:
    """Bounds of the effects on each response with limits such as >50, and why there are none."""
    from doe.analysis.censored import analyze_censored

    bounds, refused = {}, {}
    for name, data in subject.data.items():
        if data.censored:
            try:
                ceiling = None if subject.table is None else subject.table.ceiling
                bounds[name] = analyze_censored(data, options, ceiling)
            except DoeError as error:
                refused[name] = str(error)
    return bounds, refused


def _analyses(data: Sequence[Dataset], options: AnalysisOptions) -> list[Analysis | str]:
    """The analysis of each response or why there is none; many at once take all cores."""
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
