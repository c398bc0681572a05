"""A submission on disk, and one job of it, which executes its runs in turn, one process each.

``python -m doe.running.engines.slurm.job STUDY_DIR SUBMISSION TASK`` is the last line of every
job. It forks a worker per run and sees how it ended, so that a crash is on record with its reason
even where no scheduler watches. A job of several runs imports the backend once, before it forks.
Its exit codes are those of `doe.running.worker`, of the last run that came to no verdict.

A submission is kept below `slurm/` in the study's directory, and removed once its jobs have ended.
It is known by its name, which is the name of its jobs and holds a nonce: Slurm's own numbers can be
given twice.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn

import msgspec

from doe.errors import DoeError
from doe.running.backend import resolve
from doe.running.processes import (
    end_process,
    end_with_parent,
    ending,
    forkable,
    thread_environment,
)
from doe.running.provenance import static_facts
from doe.running.worker import (
    ORDERLY,
    ExitCode,
    Prepared,
    WorkerOptions,
    record_crash,
    work,
)
from doe.store.files import RunDir, StudyDir, write_atomic
from doe.store.leases import new_owner
from doe.store.requests import read_request

SLURM = "slurm"
"""Name of the engine, of its folder and of its one slot."""
TAIL_LINES = 10


class Entry(msgspec.Struct, frozen=True):
    """One run of a job."""

    run_id: str
    options: WorkerOptions = msgspec.field(name="order")
    step: int = 0
    """Steps reported in earlier jobs; a job that gets no further was too short."""


class Submission(msgspec.Struct, frozen=True):
    """One array of jobs."""

    name: str
    tasks: tuple[tuple[Entry, ...], ...]
    """The runs of each task, in order of execution."""


class SubmissionFiles(NamedTuple):
    """All names that belong to one submission."""

    folder: Path
    name: str

    @property
    def content(self) -> Path:
        """The submission itself."""
        return self.folder / f"{self.name}.json"

    @property
    def stop(self) -> Path:
        """Marker: running jobs start no further run."""
        return self.folder / f"{self.name}.stop"

    def output(self, task: int | str) -> Path:
        """Output of a job before and after its runs."""
        return self.folder / f"{self.name}.{task}.txt"

    def tail(self, task: int) -> str:
        """Return the last lines of a job's output."""
        try:
            lines = self.output(task).read_text(errors="replace").splitlines()
        except OSError:
            return ""
        return "\n".join(lines[-TAIL_LINES:])

    def read(self) -> Submission | None:
        """Return the submission, or None if it was withdrawn."""
        try:
            return msgspec.json.decode(self.content.read_bytes(), type=Submission)
        except (FileNotFoundError, msgspec.MsgspecError):
            return None

    def write(self, submission: Submission) -> None:
        """Write the submission, before its jobs are submitted."""
        write_atomic(self.content, msgspec.json.encode(submission).decode())

    def remove(self) -> None:
        """Remove everything; the folder too if it was the last."""
        for path in self.folder.glob(f"{self.name}.*"):
            path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self.folder.rmdir()


def submissions(study: StudyDir) -> list[SubmissionFiles]:
    """Return every recorded submission."""
    folder = study.engine(SLURM)
    names = sorted(os.listdir(folder)) if folder.is_dir() else []
    stems = [name.removesuffix(".json") for name in names if not name.startswith(".")]
    return [SubmissionFiles(folder, stem) for stem in stems if f"{stem}.json" in names]


def new_name(study: str) -> str:
    """Return a unique name for the jobs of a new submission."""
    plain = re.sub(r"[^A-Za-z0-9]+", "-", study).strip("-")[:24] or "study"
    return f"doe-{plain}-{os.urandom(6).hex()}"


# The job ----------------------------------------------------------------------------------------


class JobStop:
    """Whether this job may begin another run."""

    def __init__(self, mark: Path) -> None:
        self._mark = mark
        self.requested = False
        self.worker = 0
        """The running worker, which was not waited for."""
        signal.signal(signal.SIGTERM, self._note)

    def _note(self, _number: int, _frame: object) -> None:
        self.requested = True
        if self.worker:  # Slurm may signal this process alone, as by --signal=B:TERM@60
            os.kill(self.worker, signal.SIGTERM)

    def __bool__(self) -> bool:
        return self.requested or self._mark.exists()


def execute_entries(study: StudyDir, entries: Sequence[Entry], stop: JobStop) -> int:
    """Execute some runs in order; return the job's exit code."""
    prepared = warm(study.run(entries[0].run_id)) if len(entries) > 1 else None
    last = 0
    for entry in entries:
        if stop:
            return ExitCode.INTERRUPTED
        code = _execute(study.run(entry.run_id), entry, prepared, stop)
        last = code if code else last
    return last


def warm(run: RunDir) -> Prepared | None:
    """Import the backend; None if that fails or a fork of it would differ from a new process."""
    try:
        request, _ = read_request(run)
        os.environ.update(thread_environment(request.threads))
        backend = resolve(request.backend, request.command)
    except Exception:  # the first worker meets the error again and commits a verdict
        return None
    facts = static_facts(request.backend, None, request.command)
    return Prepared(backend, facts) if forkable() else None


def _execute(run: RunDir, entry: Entry, prepared: Prepared | None, stop: JobStop) -> int:
    options = entry.options
    sys.stdout.flush()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    pid = stop.worker = os.fork()
    if pid == 0:
        _child(run, entry, prepared)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    stop.worker = 0
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    stopped = stop.requested and code == -signal.SIGTERM
    if code in ORDERLY or stopped:
        return ExitCode.INTERRUPTED if stopped else code
    owner = new_owner(options.job, options.slot, options.supervisor)
    record_crash(run, owner, options.policy, ending(code))
    return code if code > 0 else 128 - code


def _child(run: RunDir, entry: Entry, prepared: Prepared | None) -> NoReturn:
    os.setsid()
    end_with_parent()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    end_process(lambda: work(run, entry.options, prepared))


def main() -> None:
    """Parse the command line of a job and execute its runs."""
    directory, name, task = sys.argv[1:]
    study = StudyDir(Path(directory))
    files = SubmissionFiles(study.engine(SLURM), name)
    submission = files.read()
    if submission is None:
        print(f"{files.content.name} is gone: the submission was withdrawn", file=sys.stderr)
        sys.exit(ExitCode.INTERRUPTED)
    try:
        code = execute_entries(study, submission.tasks[int(task)], JobStop(files.stop))
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
