"""The state of every planned run, read from disk: the basis of all views."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

from doe.design.runs import Run, portion
from doe.errors import DoeError
from doe.store.files import RunDir, StudyDir
from doe.store.leases import Lease, LeaseFile, Watch, last_lease
from doe.store.verdicts import (
    LATER,
    Result,
    State,
    checksum,
    failed_attempts,
    is_final,
    verdict_in,
)
from doe.study.values import Study

RunState = State | Literal["running", "pending"]
STATES: tuple[RunState, ...] = (*get_args(State), "running", "pending")


class RunStatus(NamedTuple):
    """One planned run and the content of its directory."""

    run: Run
    state: RunState
    result: Result | None = None
    checksum: str = ""
    """Checksum of the verdict, if there is one."""
    lease: LeaseFile | None = None
    """The last lease of a run without a verdict."""
    damaged: bool = False
    """Whether its verdict cannot be trusted; the run is done again."""
    problem: str = ""
    """Why the run's directory cannot be read; such a run is skipped."""
    directory: RunDir | None = None
    """Directory of the run, once it has ended."""

    @property
    def holder(self) -> Lease | None:
        """The holder in the last lease, if readable."""
        return self.lease.lease if self.lease else None

    @property
    def reason(self) -> str:
        """Why a run has no usable metrics, or an empty text."""
        if self.damaged:
            return "damaged result, will be run again"
        return self.result.error.reason if self.result and self.result.error else ""

    @property
    def provenance(self) -> Mapping[str, Any]:
        """Provenance in the verdict; empty without one."""
        return self.result.provenance if self.result else {}

    @property
    def seconds(self) -> float | None:
        """Duration of the run, if it ended."""
        return self.provenance.get("seconds")

    def is_final(self, replace: str = "") -> bool:
        """Return whether the run has a final verdict other than the one of this checksum."""
        return is_final(self.result, self.checksum, replace)


def scan(files: StudyDir, runs: Iterable[Run], watch: Watch | None = None) -> list[RunStatus]:
    """Read the state of each run from its directory.

    A lease of another machine counts as running until `watch` has seen it silent for long enough.
    """
    watch = watch or Watch()
    try:
        with os.scandir(files.root) as entries:
            begun = {entry.name: entry.is_symlink() for entry in entries}
    except OSError as error:
        raise DoeError(f"cannot read {files.root}: {error.strerror}") from error
    return [_scanned(files, run, watch, begun.get(run.run_id)) for run in runs]


def _scanned(files: StudyDir, run: Run, watch: Watch, link: bool | None) -> RunStatus:
    """Read the state of a run that has begun; refuse a directory that is a link."""
    if link:
        problem = "its directory is a link: move the directory itself into the study"
        return RunStatus(run, "pending", problem=problem)
    return RunStatus(run, "pending") if link is None else read_status(files, run, watch)


def read_status(files: StudyDir, run: Run, watch: Watch) -> RunStatus:
    """Read the state of one run; report a directory that cannot be read."""
    try:
        return _read_status(files, run, watch)
    except DoeError as error:
        return RunStatus(run, "pending", problem=str(error))
    except OSError as error:
        return RunStatus(run, "pending", problem=f"cannot read its directory: {error.strerror}")


def _read_status(files: StudyDir, run: Run, watch: Watch) -> RunStatus:
    verdict, run_dir = verdict_in(files.verdict(run.run_id)), files.run(run.run_id)
    if verdict is not None and (result := verdict.result) is not None:
        name = checksum(verdict.raw)
        return RunStatus(run, result.state, result, name, directory=run_dir)
    if verdict is not None and verdict.later:
        return RunStatus(run, "pending", problem=LATER)
    lease = last_lease(run_dir)
    state: RunState = "running" if lease and not watch.is_expired(run_dir, lease) else "pending"
    blocked = state == "pending" and run_dir.request.is_dir()
    problem = f"its {run_dir.request.name} is a directory" if blocked else ""
    return RunStatus(run, state, lease=lease, damaged=verdict is not None, problem=problem)


def retried_reason(files: StudyDir, status: RunStatus) -> str:
    """Explain why a pending run is to be retried, or return an empty text."""
    records = failed_attempts(files.run(status.run.run_id)) if status.lease else ()
    return records[-1].failure.reason if records else ""


def counts(statuses: Sequence[RunStatus]) -> dict[RunState, int]:
    """Count the runs in each state."""
    number: dict[RunState, int] = dict.fromkeys(STATES, 0)
    for status in statuses:
        number[status.state] += 1
    return number


def complete_replicates(statuses: Sequence[RunStatus]) -> int:
    """Count the replicates, from the first on, in which every run has a verdict."""
    return _complete(statuses, [status.run.replicate for status in statuses])


def complete_portions(study: Study, statuses: Sequence[RunStatus]) -> int:
    """Count the portions, from the first on, in which every run has a verdict."""
    return _complete(statuses, [portion(study, status.run) for status in statuses])


def _complete(statuses: Sequence[RunStatus], numbers: Sequence[int]) -> int:
    """Count the numbered parts of a study, from the first on, in which every run has a verdict."""
    pairs = zip(statuses, numbers, strict=True)
    waiting = [number for status, number in pairs if status.state in ("running", "pending")]
    return min(waiting, default=max(numbers, default=0) + 1) - 1
