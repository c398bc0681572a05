"""What `doe status` tells: the state of a study as one value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from doe.errors import counted, listed, were
from doe.results.stages import StageState, stage_json, stage_states
from doe.results.time_left import study_time_left
from doe.store.files import RunDir, StudyDir
from doe.store.leases import HolderState, LeaseFile, age, silent_since
from doe.store.plan import load_plan
from doe.store.progress import read_progress
from doe.store.requests import changed_warning
from doe.store.scan import RunState, RunStatus, counts, retried_reason, scan
from doe.store.verdicts import FILES, IMPORTED, UNREAD
from doe.study.stages import read_by_runs
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
    """What makes runs of one study differ in more than their factors."""
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
            f"The backend has read {', '.join(never)} in no run; such a factor measures nothing."
        )
    if damaged := [status.run.run_id for status in statuses if status.damaged]:
        warnings.append(f"Damaged results, set aside when run again: {', '.join(damaged)}.")
    return warnings


def _origin_warnings(every: Sequence[Mapping[str, Any]]) -> list[str]:
    """What differs between runs in where they come from."""
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
    """The same for machines."""
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
