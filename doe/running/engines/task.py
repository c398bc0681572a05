"""What one job of a cluster does: execute its runs one after another, a process each.

``python -m doe.running.engines.task STUDY_DIR SUBMISSION TASK`` is the last line of every Slurm
job. It forks a worker per run and sees how it ended, so that a crash is on record with its reason
even where no scheduler watches. A job of several runs imports the backend once, before it forks.

Exit codes are those of `doe.running.worker`, of the last run that came to no verdict.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from doe.errors import DoeError
from doe.running import sessions
from doe.running.backend import end_with_parent, resolve
from doe.running.crash import record_crash
from doe.running.engines.base import Ended
from doe.running.engines.local import LATE_SECONDS, ending
from doe.running.engines.slot import forkable
from doe.running.engines.submission import Entry, SubmissionFiles
from doe.running.process import end_process, thread_environment
from doe.running.provenance import static_facts
from doe.running.worker import (
    BUSY,
    INTERRUPTED,
    LOST,
    UNWRITABLE,
    Prepared,
    work,
)
from doe.store.files import RunDir, StudyDir
from doe.store.leases import new_owner
from doe.store.requests import read_request

POLL_SECONDS = 0.02


class Stop:
    """Whether this job may begin another run."""

    def __init__(self, mark: Path) -> None:
        self._mark = mark
        self.asked = False
        # Slurm signals every process of a job: the worker gets the same signal and ends itself.
        signal.signal(signal.SIGTERM, self._note)

    def _note(self, _number: int, _frame: object) -> None:
        self.asked = True

    def __bool__(self) -> bool:
        return self.asked or self._mark.exists()


def execute(study: StudyDir, entries: Sequence[Entry], stop: Stop) -> int:
    """Execute some runs in their order; return the job's exit code."""
    os.environ.update(thread_environment(entries[0].order.threads))
    prepared = warm(study.run(entries[0].run_id)) if len(entries) > 1 else None
    last = 0
    for entry in entries:
        if stop:
            return INTERRUPTED
        code = _execute(study.run(entry.run_id), entry, prepared, stop)
        last = code if code else last
    return last


def warm(run: RunDir) -> Prepared | None:
    """Import the backend; None where that fails or a fork of it would not be as good as new."""
    try:
        request, _ = read_request(run)
        backend = resolve(request.backend, request.command)
    except Exception:  # the first worker meets it again and leaves a verdict
        return None
    return Prepared(backend, static_facts(request.backend)) if forkable() else None


def _execute(run: RunDir, entry: Entry, prepared: Prepared | None, stop: Stop) -> int:
    order, began = entry.order, time.monotonic()
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        _child(run, entry, prepared)
    code = _wait(pid, order.timeout)
    sessions.sweep(pid)
    stopped = stop.asked and code == -signal.SIGTERM
    if code in (0, BUSY, INTERRUPTED, LOST, UNWRITABLE) or stopped:
        return INTERRUPTED if stopped else code
    late = 0 < order.timeout <= time.monotonic() - began
    message = f"took longer than {order.timeout:g} s" if late else ending(code)
    ended = Ended(entry.run_id, order.job, code, message, late)
    owner = new_owner(order.job, order.slot, order.supervisor)
    record_crash(run, ended, owner, order.policy)
    return code if code > 0 else 128 - code


def _child(run: RunDir, entry: Entry, prepared: Prepared | None) -> NoReturn:
    os.setsid()
    end_with_parent()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    end_process(lambda: work(run, entry.order, prepared))


def _wait(pid: int, limit: float) -> int:
    """Wait for a run's process; kill it where it does not keep its own time limit."""
    if not limit:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    deadline = time.monotonic() + limit + LATE_SECONDS
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > deadline:
            sessions.send(pid, signal.SIGKILL)
        time.sleep(POLL_SECONDS)


def main() -> None:
    """The command line of a job."""
    directory, name, task = sys.argv[1:]
    study = StudyDir(Path(directory))
    files = SubmissionFiles(study.slurm, name)
    submission = files.read()
    if submission is None:
        print(f"{files.content.name} is gone: the submission was withdrawn", file=sys.stderr)
        sys.exit(INTERRUPTED)
    try:
        code = execute(study, submission.tasks[int(task)], Stop(files.stop))
    except DoeError as error:
        print(f"error: {error}", file=sys.stderr)
        code = 1
    output = files.output(task)
    with contextlib.suppress(OSError):
        if output.stat().st_size == 0:
            output.unlink()
    sys.exit(code)


if __name__ == "__main__":
    main()
