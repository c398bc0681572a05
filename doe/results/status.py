"""State of a study as one value, as `doe status` shows it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from doe.errors import counted, listed, were
from doe.numbers import duration_text
from doe.store.files import RunDir, StudyDir
from doe.store.leases import HolderState, LeaseFile, age, silent_since
from doe.store.plan import Plan, load_plan
from doe.store.progress import read_progress
from doe.store.requests import changed_warning
from doe.store.scan import RunState, RunStatus, counts, retried_reason, scan
from doe.store.stages import REUSED, is_present
from doe.store.verdicts import FILES, IMPORTED, UNREAD
from doe.study.stages import read_by_runs, stage_factors
from doe.study.values import Study


class Running(NamedTuple):
    """A run under way."""

    run_id: str
    config: str
    host: str
    slot: str
    seconds: float
    step: int | None
    total: int | None
    metric: str
    """The metric that is followed, with its last value; empty where none was reported."""
    value: float | None
    note: str = ""
    """What should be known of it: that it waits to write its result, that nobody sees it."""


class Overview(NamedTuple):
    """The state of a study."""

    study: Study
    directory: Path
    counts: dict[RunState, int]
    failures: dict[str, list[str]]
    """Reason -> the runs that failed or diverged for it, the most frequent first."""
    again: dict[str, str]
    """Pending run -> why it is to be tried again."""
    running: list[Running]
    left: float | None
    """Seconds until the end, judged by the runs under way; None if unknown or nothing runs."""
    balance: dict[int, int]
    """Finished replicates -> number of configurations that have so many."""
    missing: list[str]
    """Runs without metrics."""
    warnings: list[str]
    statuses: list[RunStatus]
    stages: list[StageState]


def overview(directory: Path) -> Overview:
    """Read the state of a study."""
    plan = load_plan(directory)
    _, study, design = plan
    files = StudyDir(directory)
    every = scan(files, plan.everything)
    statuses = [status for status in every if not status.run.stage]
    running = [_running(files, status) for status in every if status.state == "running"]
    ages = {run.run_id: run.seconds for run in running}
    done: Counter[str] = Counter({run.config: 0 for run in design.runs})
    done.update(status.run.config for status in statuses if status.state == "done")
    again = {
        status.run.run_id: reason
        for status in statuses
        if status.state == "pending" and (reason := status.reason or retried_reason(files, status))
    }
    return Overview(
        study=study,
        directory=directory,
        counts=counts(statuses),
        failures=failures([(s.run.run_id, s.state, s.reason) for s in statuses]),
        again=again,
        running=running,
        left=study_time_left(files, every, ages, len(running)) if running else None,
        balance=dict(sorted(Counter(done.values()).items())),
        missing=[status.run.run_id for status in statuses if status.state != "done"],
        warnings=_warnings(study, statuses),
        statuses=statuses,
        stages=stage_states(plan),
    )


def _running(files: StudyDir, status: RunStatus) -> Running:
    lease = status.holder
    progress = read_progress(files.run(status.run.run_id))
    return Running(
        status.run.run_id,
        status.run.config,
        lease.host if lease else "",
        lease.slot if lease else "",
        age(lease) if lease else 0.0,
        progress.step if progress else None,
        progress.total if progress else None,
        progress.metric if progress else "",
        progress.values[-1] if progress and progress.values else None,
        _note(files.run(status.run.run_id), status.lease),
    )


def _note(run: RunDir, last: LeaseFile | None) -> str:
    if last is None:
        return ""
    if last.lease is not None and last.lease.state is HolderState.WAITING:
        return "finished, and waits for room on the disk to write its result"
    try:
        since = silent_since(run, last)
    except OSError:
        return ""
    if since is None:
        return ""
    moment = datetime.fromtimestamp(since, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return f"unknown since {moment}: no sign of life; `doe run` watches it and takes it over"


def failures(runs: Iterable[tuple[str, str, str]]) -> dict[str, list[str]]:
    """Reason -> the runs that failed or diverged for it, the most frequent first.

    A run is its id, its state and its reason.
    """
    groups: dict[str, list[str]] = {}
    for run_id, state, reason in runs:
        if state in ("failed", "diverged"):
            groups.setdefault(f"{state}: {reason}", []).append(run_id)
    return dict(sorted(groups.items(), key=lambda item: -len(item[1])))


def _warnings(study: Study, statuses: Sequence[RunStatus]) -> list[str]:
    """Return what makes runs of one study differ in more than their factors."""
    warnings = []
    if changed := changed_warning(study, statuses):
        warnings.append(changed)
    warnings += _origin_warnings([status.provenance for status in statuses if status.result])
    if unreadable := [f"{s.run.run_id}: {s.problem}" for s in statuses if s.problem]:
        warnings.append(f"Unreadable, left alone while the rest goes on: {listed(unreadable, 1)}.")
    unread = [
        status.provenance.get(UNREAD, [])
        for status in statuses
        if status.result and status.state != "failed" and IMPORTED not in status.provenance
    ]
    plain = read_by_runs(study)
    if never := [key for key in plain if unread and all(key in names for names in unread)]:
        warnings.append(
            f"The backend has read {', '.join(never)} in no run, so it cannot have an effect."
        )
    if damaged := [status.run.run_id for status in statuses if status.damaged]:
        warnings.append(f"Damaged results, set aside when run again: {', '.join(damaged)}.")
    return warnings


def _origin_warnings(every: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what differs between runs in where they come from."""
    origins = [origin for origin in every if IMPORTED not in origin]
    tables = Counter(origin[IMPORTED] for origin in every if IMPORTED in origin)
    warnings = [
        f"{counted(count, 'run')} {were(count)} not made here but imported from {name}."
        for name, count in tables.items()
    ]
    commits = Counter(str(origin.get("commit", ""))[:10] or "no commit" for origin in origins)
    if len(commits) > 1:
        warnings.append(f"The code changed between runs: {_listing(commits)}.")
    threads = Counter(str(origin["threads"]) for origin in origins if "threads" in origin)
    if len(threads) > 1:
        warnings.append(f"Runs computed with different numbers of threads: {_listing(threads)}.")
    if dirty := sum(bool(origin.get("dirty")) for origin in origins):
        warnings.append(
            f"{counted(dirty, 'run')} {were(dirty)} made by code with uncommitted changes."
        )
    if names := _changed_files(origins):
        warnings.append(f"Files of the command changed between runs: {', '.join(names)}.")
    versions = {str(origin.get("versions", {})) for origin in origins}
    if len(versions) > 1:
        warnings.append(f"Package versions changed between runs: {len(versions)} sets of versions.")
    return warnings


def _changed_files(origins: Sequence[Mapping[str, Any]]) -> list[str]:
    """Files of a command whose hashes differ between runs."""
    digests: dict[str, set[object]] = {}
    for origin in origins:
        files = origin.get(FILES)
        for name, digest in files.items() if isinstance(files, dict) else ():
            digests.setdefault(name, set()).add(digest)
    return [name for name, known in digests.items() if len(known) > 1]


def _listing(counter: Counter[str]) -> str:
    return ", ".join(f"{name} ({counted(count, 'run')})" for name, count in counter.most_common())


def as_json(state: Overview) -> dict[str, Any]:
    """Return the status as JSON."""
    return {
        "study": state.study.name,
        "runs": len(state.statuses),
        "counts": state.counts,
        "failures": [
            {"reason": reason, "count": len(runs), "runs": runs}
            for reason, runs in state.failures.items()
        ],
        "again": state.again,
        "running": [run._asdict() for run in state.running],
        "seconds_left": state.left,
        "balance": {str(done): number for done, number in state.balance.items()},
        "missing": state.missing,
        **({"stages": [stage_json(stage) for stage in state.stages]} if state.stages else {}),
        "unreadable": {s.run.run_id: s.problem for s in state.statuses if s.problem},
        "warnings": state.warnings,
    }


# Time left ----------------------------------------------------------------------------------------


ASKED = 32
"""Runs under way that are asked for a first estimate of the time left, at most."""


def study_time_left(
    files: StudyDir, statuses: Sequence[RunStatus], elapsed: Mapping[str, float], places: int
) -> float | None:
    """Seconds until all runs and stages have a verdict, each kind judged by its own durations.

    None as long as nothing is known of a kind that is still to come.
    """
    total = 0.0
    for stage in dict.fromkeys(status.run.stage for status in statuses):
        own = [status for status in statuses if status.run.stage == stage]
        ages = {s.run.run_id: elapsed[s.run.run_id] for s in own if s.run.run_id in elapsed}
        left = time_left(own, ages, places, foreseen(files, own, ages))
        if left is None:
            return None
        total += left
    return total


def foreseen(
    files: StudyDir, statuses: Sequence[RunStatus], elapsed: Mapping[str, float]
) -> list[float]:
    """Return what runs under way foresee of themselves; nothing once one has finished, which says
    more.
    """
    if _finished(statuses):
        return []
    first = list(elapsed.items())[:ASKED]
    durations = [foresee(files.run(run_id), age) for run_id, age in first]
    return [seconds for seconds in durations if seconds is not None]


def foresee(run: RunDir, age: float) -> float | None:
    """Seconds that a run of this age will have taken, if its steps go on as they went.

    None before its first step, and for one that was started again: at which step is not known.
    """
    progress = read_progress(run)
    if progress is None or progress.step < 1 or run.lease(2).exists():
        return None
    try:
        silent = time.time() - run.progress.stat().st_mtime
    except OSError:
        return None
    return max(age - silent, 0.0) * max(progress.total / progress.step, 1.0)


def time_left(
    statuses: Sequence[RunStatus],
    elapsed: Mapping[str, float],
    places: int,
    foreseen: Sequence[float] = (),
) -> float | None:
    """Seconds until all runs have a verdict; None before anything is known.

    A run is expected to take the mean of its configuration's finished runs, or of all where there
    are none. Running runs are censored: they say only that a duration exceeds their age, so the
    mean over all is the exponential estimate, (finished + running time) / number finished, as soon
    as a running one is older than the plain mean. Before the first has finished, what running ones
    foresee of themselves takes its place. What is left is shared among the places, and no less than
    the longest single run needs.
    """
    finished = _finished(statuses)
    durations = [seconds for taken in finished.values() for seconds in taken] or list(foreseen)
    if not durations:
        return None
    mean = sum(durations) / len(durations)
    if any(age > mean for age in elapsed.values()):
        mean = (sum(durations) + sum(elapsed.values())) / len(durations)
    left = []
    for status in statuses:
        if status.state in ("pending", "running"):
            own = finished.get(status.run.config)
            expected = sum(own) / len(own) if own else mean
            age = elapsed.get(status.run.run_id, 0.0)
            # Past its expected end, a run of a memoryless kind has as long to go as ever.
            left.append(expected - age if age < expected else expected)
    return max(sum(left) / max(places, 1), max(left)) if left else 0.0


def _finished(statuses: Sequence[RunStatus]) -> dict[str, list[float]]:
    """Seconds that finished runs took, by configuration."""
    durations: dict[str, list[float]] = {}
    for status in statuses:
        if status.state in ("done", "diverged") and status.seconds is not None:
            durations.setdefault(status.run.config, []).append(status.seconds)
    return durations


# Stages -------------------------------------------------------------------------------------------


class StageState(NamedTuple):
    """One stage and its executions."""

    name: str
    factors: tuple[str, ...]
    runs: int
    """Runs that it serves: so often it would be executed without sharing."""
    counts: dict[RunState, int]
    seconds: float | None
    """How long an execution takes, by those that are done; None before one is."""
    removed: int
    """Executions of which nothing is left, as no run needs it."""
    reused: tuple[str, ...]
    """Executions of other studies that were taken over."""
    failures: dict[str, str]
    """Execution -> why it failed."""

    @property
    def executions(self) -> int:
        """How often it is executed."""
        return sum(self.counts.values())


def stage_states(plan: Plan) -> list[StageState]:
    """Look at the stages of a planned study."""
    if not plan.study.stages:
        return []
    statuses = scan(plan.files, plan.stages)
    return [
        _state(plan.study, plan.files, name, len(plan.design.runs), own)
        for name in plan.study.stages
        if (own := [status for status in statuses if status.run.stage == name])
    ]


def _state(
    study: Study, files: StudyDir, name: str, runs: int, statuses: Sequence[RunStatus]
) -> StageState:
    done = [status for status in statuses if status.state == "done"]
    made = [s.seconds for s in done if s.seconds is not None and REUSED not in s.provenance]
    return StageState(
        name=name,
        factors=stage_factors(study, name),
        runs=runs,
        counts=counts(statuses),
        seconds=sum(made) / len(made) if made else None,
        removed=sum(not is_present(files.run(status.run.run_id)) for status in done),
        reused=tuple(s.provenance[REUSED] for s in done if REUSED in s.provenance),
        failures={s.run.run_id: s.reason for s in statuses if s.state == "failed"},
    )


def plan_line(stage: StageState) -> str:
    """Return what sharing a stage saves: in executions, and in time once that is known."""
    of = f"for each level of {', '.join(stage.factors)}" if stage.factors else "for all levels"
    line = (
        f"Stage {stage.name}, {of}: {counted(stage.executions, 'execution')} for "
        f"{counted(stage.runs, 'run')}; without sharing {stage.runs}"
    )
    if stage.seconds is None:
        return f"{line}."
    shared, alone = (duration_text(n * stage.seconds) for n in (stage.executions, stage.runs))
    return f"{line}. At {duration_text(stage.seconds)} each: {shared} instead of {alone}."


def status_line(stage: StageState) -> str:
    """Return the state of a stage."""
    number = ", ".join(f"{count} {name}" for name, count in stage.counts.items() if count)
    line = f"stage {stage.name}: {counted(stage.executions, 'execution')}: {number}"
    if stage.removed:
        line += f"; {stage.removed} removed, because no run needs their output any more"
    if stage.reused:
        line += f"; {len(stage.reused)} taken over, as from {stage.reused[0]}"
    return line


def stage_json(stage: StageState) -> dict[str, object]:
    """Return the state of a stage as JSON."""
    return {**stage._asdict(), "executions": stage.executions}
