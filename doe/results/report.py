"""From a study's directory to everything that a report shows; nothing is drawn here.

How the runs become the rows and columns of a paper's tables is the study's [report] section.
"""

from __future__ import annotations

import hashlib
import math
import multiprocessing
import os
import threading
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from doe.analysis.across import Across, across
from doe.analysis.analyze import Analysis
from doe.analysis.case import AnalysisOptions
from doe.analysis.data import Runs
from doe.analysis.levels.layout import LevelRuns
from doe.analysis.response import analyze_response
from doe.design.changes import confirming
from doe.errors import DoeError
from doe.results.cells import Cell, cells_of
from doe.results.curves import Curve, epoch_lines, learning_curves
from doe.results.decision import Decision, decision
from doe.results.details import RunDetail, run_details
from doe.results.looks import analysed
from doe.results.observations import confirming_runs, observations, study_runs
from doe.results.responses import response_values
from doe.results.status import Overview
from doe.store.files import StudyDir
from doe.store.scan import RunStatus
from doe.study.values import Group, ReportSection, Study
from doe.terms import parse_term

if TYPE_CHECKING:
    from doe.analysis.response import ResponseAnalysis

WORTH_A_PROCESS = 4
"""Responses for which it is worth starting a process."""


class Report(NamedTuple):
    """A study, its analyses and its tables, as far as it has run."""

    state: Overview
    options: AnalysisOptions
    section: ReportSection
    cells: tuple[Cell, ...]
    """Configurations in standard order."""
    analyses: dict[str, ResponseAnalysis]
    refused: dict[str, str]
    """Response -> why there is no analysis of it."""
    across: Across | None
    group_effects: dict[str, Across]
    """Effects on each group of responses of the report's section."""
    curves: dict[str, dict[str, Curve]]
    details: dict[str, RunDetail]
    """Run -> how it went, for the runs that have begun."""
    values: dict[str, tuple[float | None, ...]]
    """Response -> its value in each run, in run order."""
    decision: Decision | None = None
    """How far a study has come that may stop early."""

    @property
    def study(self) -> Study:
        """The study reported on."""
        return self.state.study

    @property
    def provisional(self) -> bool:
        """Whether runs are still to come, so that every number may change."""
        stopped = self.decision is not None and self.decision.over
        return bool(self.state.counts["running"] or (self.state.counts["pending"] and not stopped))

    @property
    def progress(self) -> str:
        """How many runs are done."""
        return f"{self.state.counts['done']} of {len(self.state.statuses)} runs are done."

    @property
    def headline_responses(self) -> tuple[str, ...]:
        """Responses that a report begins with, as far as they were analysed."""
        return tuple(name for name in self.study.responses.headline if name in self.analyses)


def fingerprint(state: Overview) -> str:
    """A short text that changes when a run begins or ends."""
    runs = "\n".join(
        f"{status.run.run_id} {status.state} {status.checksum}" for status in state.statuses
    )
    return hashlib.sha256(f"{state.study.name}\n{runs}".encode()).hexdigest()[:16]


def report_of(
    state: Overview,
    options: AnalysisOptions,
    drop: tuple[str, ...] | None = None,
    responses: tuple[str, ...] = (),
) -> Report:
    """Analyse every response of a study as it was read, or those that are named."""
    study, answers = state.study, state.study.responses
    names = responses or report_responses(study)
    section = report_section(study)
    for term in options.terms or ():
        parse_term(term, study.keys)
    if drop is not None:
        for key in drop:
            parse_term(key, study.keys)
        section = msgspec.structs.replace(section, drop=drop)
    answers_by_name = dict(zip(names, _analyses(state, names, options), strict=True))
    analyses = {n: a for n, a in answers_by_name.items() if not isinstance(a, str)}
    refused = {n: a for n, a in answers_by_name.items() if isinstance(a, str)}
    files = StudyDir(state.directory)
    epochs = epoch_lines(files, state.statuses)
    rows = [response_values(study, status) for status in state.statuses]
    values = {name: [row[name] for row in rows] for name in names}
    return Report(
        state=state,
        options=options,
        section=section,
        cells=factorial_cells(study, state.statuses, values),
        analyses=analyses,
        refused=refused,
        across=across(list(analyses.values())) if analyses else None,
        group_effects=group_effects(study, section, analyses),
        curves=learning_curves(study, state.statuses, epochs),
        details=run_details(files, study, state.statuses, epochs, answers.headline),
        values={name: tuple(_finite(v) for v in column) for name, column in values.items()},
        decision=decision(study, state.statuses),
    )


def report_responses(study: Study) -> tuple[str, ...]:
    """All responses, those that summarise first."""
    answers = study.responses
    return (*answers.averages, *answers.metrics, *answers.further)


def factorial_cells(
    study: Study, statuses: Sequence[RunStatus], values: dict[str, list[float]]
) -> tuple[Cell, ...]:
    """Configurations over the runs of the design; those that confirm a winner stand apart."""
    kept = [i for i, s in enumerate(statuses) if s.run.replicate not in confirming(study)]
    columns = {name: [column[i] for i in kept] for name, column in values.items()}
    return cells_of([statuses[i] for i in kept], columns)


def _analyses(
    state: Overview, names: Sequence[str], options: AnalysisOptions
) -> list[ResponseAnalysis | str]:
    """The analysis of each response or why there is none; many at once take all cores."""
    statuses = analysed(state.study, state.statuses)
    runs = study_runs(state.study, statuses)
    fresh = confirming_runs(state.study, state.statuses)
    tasks = [(state.study, statuses, runs, fresh, name, options) for name in names]
    cores = min(len(os.sched_getaffinity(0)), len(names) // WORTH_A_PROCESS)
    # A fork is safe where there is no other thread, and costs no import.
    if cores < 2 or not options.robust or threading.active_count() > 1:
        return [_analysis(*task) for task in tasks]
    first = _analysis(*tasks[0])  # what it loads and keeps, the processes find
    with ProcessPoolExecutor(cores, mp_context=multiprocessing.get_context("fork")) as pool:
        return [first, *pool.map(_analysis, *zip(*tasks[1:], strict=True))]


def _analysis(
    study: Study,
    statuses: list[RunStatus],
    runs: Runs | LevelRuns,
    fresh: list[RunStatus],
    name: str,
    options: AnalysisOptions,
) -> ResponseAnalysis | str:
    try:
        return analyze_response(observations(study, statuses, runs, [name], fresh)[0], options)
    except DoeError as error:
        return str(error)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def report_section(study: Study) -> ReportSection:
    """The study's [report] section; without groups, one for each average, else for the metrics."""
    section, answers = study.report, study.responses
    if section.groups:
        return section
    averages = tuple(
        Group(name, name, parts, f"{name} factorial effects")
        for name, parts in answers.averages.items()
    )
    metrics = Group("metrics", "Metrics", answers.metrics, "Metrics factorial effects")
    further = Group("further", "Further metrics", answers.further) if answers.further else None
    return msgspec.structs.replace(
        section, groups=averages or (metrics,), further=section.further or further
    )


def group_effects(
    study: Study, section: ReportSection, analyses: dict[str, ResponseAnalysis]
) -> dict[str, Across]:
    """Effects on each group of responses, without the terms of dropped factors."""
    dropped = sum(parse_term(key, study.keys) for key in section.drop)
    by_group = {}
    for group in section.groups:
        # A term of several degrees of freedom has no single effect to show.
        if group.effects and all(
            isinstance(analyses.get(name), Analysis) for name in group.responses
        ):
            averaged = set(group.responses) in map(set, study.responses.averages.values())
            whole = across([analyses[name] for name in group.responses], averaged)
            kept = [row for row in whole.rows if not parse_term(row.term, study.keys) & dropped]
            by_group[group.name] = msgspec.structs.replace(whole, rows=tuple(kept))
    return by_group
