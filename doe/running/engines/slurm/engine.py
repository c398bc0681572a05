"""The Slurm engine: one array of jobs per submission, each job executes its runs.

Slurm is asked which of our jobs still wait or run, and how the others ended; whether a run
succeeded is read from its directory. So nothing is lost when a submission vanishes, a number is
given twice, the controller is away, or a job counts as TIMEOUT although its run is done.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from doe.errors import DoeError
from doe.running.engines import (
    Ended,
    Job,
    Slot,
    failure_recorded,
    has_begun,
    needs_gpu_alone,
)
from doe.running.engines.slurm import calls
from doe.running.engines.slurm.calls import AwayError, QueueRow
from doe.running.engines.slurm.job import (
    SLURM,
    Entry,
    Submission,
    SubmissionFiles,
    new_name,
    submissions,
)
from doe.running.engines.slurm.settings import Settings
from doe.running.processes import module_words
from doe.running.worker import STOPPED, ExitCode
from doe.store.files import RunDir, StudyDir
from doe.store.progress import read_progress
from doe.store.timing import (
    CONTROLLER_AWAY_SECONDS,
    QUEUE_LOOK_SECONDS,
    QUEUE_POLL_SECONDS,
    SLURM_REPEAT_SECONDS,
    VERDICT_POLL_SECONDS,
    VERDICT_VISIBLE_SECONDS,
)
from doe.store.verdicts import has_final_verdict
from doe.study.values import Study

PLACES = 1_000_000
"""Slurm has its own queue, so all runs are submitted at once."""
MISSED_LOOKS = 2
"""Consecutive queries without a job before it counts as lost."""

FAULTLESS = ("CANCELLED", "PREEMPTED", "NODE_FAIL", "BOOT_FAIL", "REVOKED")
"""States that do not count against the runs."""
TOO_LONG = ("TIMEOUT", "DEADLINE")


T = TypeVar("T")
TaskKey = tuple[str, int]
"""A task: the name of its submission, and its index there."""


class _Sent(NamedTuple):
    """A submission, its files, and the resources of its jobs."""

    submission: Submission
    files: SubmissionFiles
    settings: Settings
    after: str = ""
    """Tasks that must end first, in the form of sbatch's --dependency."""


class SlurmEngine:
    """Runs as jobs of a Slurm cluster; see `doe.running.engines.Engine`."""

    def __init__(
        self,
        study: Study,
        directory: Path,
        settings: Settings,
        stages: Mapping[str, Settings] = {},
    ) -> None:
        device = "cuda:0" if settings.gpu else "cpu"
        self.slots = (Slot(SLURM, device, PLACES),)
        self._study = study
        self._settings = msgspec.structs.replace(settings, cpus=settings.cpus or study.threads)
        self._stages = {
            name: msgspec.structs.replace(asked, cpus=asked.cpus or study.threads)
            for name, asked in stages.items()
        }
        self._study_dir = StudyDir(directory.resolve())
        self._sent: dict[str, _Sent] = {}
        self._numbers: dict[str, str] = {}
        """Slurm's number of each array, by name; for dependencies made at once."""
        self._unsent: list[str] = []
        """Submissions that the controller did not answer."""
        self._waited_for: dict[TaskKey, list[Entry]] = {}
        """Runs whose end was not reported, by task."""
        self._rows: Mapping[TaskKey, QueueRow] = {}
        self._missed: dict[TaskKey, int] = {}
        self._poll = QUEUE_POLL_SECONDS[0]
        self._next_look = self._next_glance = 0.0
        self._answered = time.monotonic()
        self._ended_at: dict[TaskKey, float] = {}

    # Submitting ---------------------------------------------------------------------------------

    def adopt(self) -> Sequence[tuple[str, str, str]]:
        """Return runs of earlier submissions that still wait or run in Slurm."""
        recorded = {files.name: files for files in submissions(self._study_dir)}
        rows = self._patiently(lambda: calls.queue(list(recorded)))
        self._note_accepted(rows)
        live = {(row.name, row.task) for row in rows if row.live}
        adopted = []
        for name, files in recorded.items():
            submission = files.read()
            if submission is None or not any(task[0] == name for task in live):
                files.remove()
                continue
            self._sent[name] = _Sent(submission, files, self._settings)
            for number, entries in enumerate(submission.tasks):
                if (name, number) in live:
                    left = [entry for entry in entries if not self._has_verdict(entry)]
                    self._waited_for[name, number] = left
                    adopted += [(entry.run_id, entry.options.job, SLURM) for entry in left]
        return adopted

    def start(self, jobs: Sequence[Job]) -> None:
        """Submit some runs, as one array if the size limit allows."""
        parts: dict[tuple[str, bool, tuple[str, ...]], list[Job]] = {}
        most = self._patiently(calls.most_tasks)
        for job in jobs:
            shared = self._stages.get(job.stage, self._settings).shared
            alone = shared and needs_gpu_alone(self._study_dir.run(job.run_id))
            parts.setdefault((job.stage, alone, job.after), []).append(job)
        for (stage, alone, after), part in parts.items():
            settings = self._stages.get(stage, self._settings)
            settings = settings.alone() if alone else settings
            entries = [self._entry(job, settings) for job in part]
            size = settings.runs_per_job
            tasks = [tuple(entries[i : i + size]) for i in range(0, len(entries), size)]
            for i in range(0, len(tasks), most):
                self._submit(tuple(tasks[i : i + most]), settings, self._dependency(after))

    def _entry(self, job: Job, settings: Settings) -> Entry:
        progress = read_progress(self._study_dir.run(job.run_id))
        device = "cuda:0" if settings.gpu else "cpu"
        options = msgspec.structs.replace(job.options, alone=not settings.shared, device=device)
        return Entry(job.run_id, options, progress.step if progress else 0)

    def _dependency(self, after: Collection[str]) -> str:
        """Return sbatch's dependency on stages, however they end: runs check them."""
        ids = [
            f"{self._numbers[name]}_{number}"
            for (name, number), entries in self._waited_for.items()
            if any(entry.options.job in after for entry in entries)
        ]
        return f"--dependency=afterany:{':'.join(ids)}" if ids else ""

    def _submit(self, tasks: tuple[tuple[Entry, ...], ...], settings: Settings, after: str) -> None:
        submission = Submission(new_name(self._study.name), tasks)
        files = SubmissionFiles(self._study_dir.engine(SLURM), submission.name)
        files.write(submission)
        self._sent[submission.name] = _Sent(submission, files, settings, after)
        for number, entries in enumerate(tasks):
            self._waited_for[submission.name, number] = list(entries)
        self._unsent.append(submission.name)
        self._send()
        if tasks[0][0].options.wait:
            self._send_all()

    def _send(self) -> None:
        """Submit what waits; what the controller does not answer is retried later."""
        for name in list(self._unsent):
            submission, files, settings, after = self._sent[name]
            try:
                self._numbers[name] = calls.submit(
                    name,
                    batch_script(self._study_dir.root, files, settings),
                    [*settings.options(), *([after] if after else [])],
                    len(submission.tasks),
                    settings.jobs,
                )
            except AwayError:
                return
            except DoeError:
                files.remove()
                raise
            self._unsent.remove(name)

    def _note_accepted(self, rows: Iterable[QueueRow]) -> None:
        """Record unanswered submissions that Slurm accepted all the same."""
        self._numbers |= {row.name: row.number for row in rows}
        self._unsent = [name for name in self._unsent if name not in self._numbers]

    def _send_all(self) -> None:
        """Retry until the controller answers: no process stays to do so later."""
        while self._unsent:
            self._note_accepted(self._patiently(lambda: calls.queue(list(self._sent))))
            self._send()

    # Detecting ends -----------------------------------------------------------------------------

    def wait(self, seconds: float) -> Sequence[Ended]:
        """Return events as soon as a run has ended."""
        deadline = time.monotonic() + seconds
        while True:
            ended = self._glance()
            if time.monotonic() >= self._next_look:
                ended += self._poll_queue()
                _, after_news, longest = QUEUE_POLL_SECONDS
                self._poll = min(1.2 * self._poll, after_news if ended else longest)
                self._next_look = time.monotonic() + self._poll
            left = deadline - time.monotonic()
            if ended or left <= 0:
                return ended
            time.sleep(min(0.1, left))

    def _glance(self) -> list[Ended]:
        """Report runs with a verdict, whatever Slurm says of their jobs."""
        if time.monotonic() < self._next_glance:
            return []
        self._next_glance = time.monotonic() + VERDICT_POLL_SECONDS
        ended = []
        for task, entries in self._waited_for.items():
            row = self._rows.get(task)
            if row is None or row.state != "PENDING":
                done = [entry for entry in entries if self._has_verdict(entry)]
                ended += [Ended(entry.run_id, entry.options.job, 0) for entry in done]
                entries[:] = [entry for entry in entries if entry not in done]
        self._sweep()
        return ended

    def _has_verdict(self, entry: Entry) -> bool:
        return has_final_verdict(self._study_dir.run(entry.run_id), entry.options.replace)

    def _poll_queue(self) -> list[Ended]:
        """Query the queue; report the runs whose jobs are gone."""
        try:
            self._rows = _latest(calls.queue(list(self._sent)))
        except AwayError as error:
            if time.monotonic() - self._answered > CONTROLLER_AWAY_SECONDS:
                raise DoeError(
                    f"Slurm did not answer for {CONTROLLER_AWAY_SECONDS / 60:g} minutes: {error}\n"
                    "Running jobs continue; start `doe run` again when Slurm is back"
                ) from error
            return []
        self._answered = time.monotonic()
        self._note_accepted(self._rows.values())
        self._send()
        self._next_glance = 0.0
        ended = self._glance()
        for task in list(self._waited_for):
            ended += self._close_task(task)
        return ended

    def _close_task(self, task: TaskKey) -> list[Ended]:
        """Report all runs of a task that has ended."""
        name, number = task
        row = self._rows.get(task)
        entries = self._waited_for[task]
        if name in self._unsent or (row is not None and row.live):
            self._missed.pop(task, None)
            return []
        if row is None:
            self._missed[task] = self._missed.get(task, 0) + 1
            if self._missed[task] < MISSED_LOOKS:
                return []
        runs = [JobRun(entry, self._study_dir.run(entry.run_id)) for entry in entries]
        waited = time.monotonic() - self._ended_at.setdefault(task, time.monotonic())
        good = row is not None and row.state == "COMPLETED" and row.code == 0
        if good and waited < VERDICT_VISIBLE_SECONDS and not all(run.failed for run in runs):
            return []  # all is recorded, says the job: wait until that is visible here
        del self._waited_for[task]
        files = self._sent[name].files
        return judge(explain(row, files.tail(number), files.output(number).exists()), runs)

    def _sweep(self) -> None:
        """Forget finished submissions."""
        self._waited_for = {task: left for task, left in self._waited_for.items() if left}
        busy = {name for name, _ in self._waited_for}
        for name in [name for name in self._sent if name not in busy]:
            self._sent.pop(name).files.remove()

    # Ending -------------------------------------------------------------------------------------

    def withdraw(self) -> None:
        """Cancel jobs that have not begun, and let running ones start no further run."""
        for name in self._unsent:
            self._drop(name)
        self._unsent.clear()
        for sent in self._sent.values():
            if any(len(task) > 1 for task in sent.submission.tasks):
                sent.files.stop.touch()
        self._cancel(list(self._sent), "--state=PENDING")
        self._next_look = 0.0

    def _drop(self, name: str) -> None:
        """Count what was never sent as lost at the next query."""
        for task in self._waited_for:
            if task[0] == name:
                self._missed[task] = MISSED_LOOKS

    def stop(self, grace: float) -> None:
        """Cancel every job; Slurm sends TERM, and KILL after its own or this grace time."""
        self._unsent.clear()
        names = list(self._sent)
        self._cancel(names)
        deadline = time.monotonic() + grace
        while any(row.live for row in self._patiently(lambda: calls.queue(names))):
            if time.monotonic() > deadline:
                self._cancel(names, "--signal=KILL", "--full")
            time.sleep(0.2)
        for sent in self._sent.values():
            sent.files.remove()
        self._sent.clear()
        self._waited_for.clear()

    def _cancel(self, names: Sequence[str], *options: str) -> None:
        for name in names:
            self._patiently(partial(calls.cancel, name, *options))

    def close(self) -> None:
        """Do nothing: waiting and running jobs are left to Slurm."""

    def _patiently(self, call: Callable[[], T]) -> T:
        """Retry a call while the controller is away."""
        deadline = time.monotonic() + SLURM_REPEAT_SECONDS
        while True:
            try:
                return call()
            except AwayError as error:
                if time.monotonic() > deadline:
                    raise DoeError(
                        f"Slurm did not answer for {SLURM_REPEAT_SECONDS:g} s: {error}"
                    ) from error
                time.sleep(0.5)


def _latest(rows: Sequence[QueueRow]) -> Mapping[TaskKey, QueueRow]:
    """Return one row per task; of two with one name, the live one."""
    latest: dict[TaskKey, QueueRow] = {}
    for row in rows:
        former = latest.get((row.name, row.task))
        if former is None or not former.live:
            latest[row.name, row.task] = row
    return latest


def batch_script(study: Path, files: SubmissionFiles, settings: Settings) -> str:
    """Return the script of every job of an array; sbatch receives it and Slurm keeps it."""
    output = shlex.quote(str(files.output("")).removesuffix(".txt"))
    words = [*module_words("doe.running.engines.slurm.job"), str(study), files.name]
    return "\n".join(
        [
            "#!/bin/bash",
            f'exec >>{output}"$SLURM_ARRAY_TASK_ID.txt" 2>&1',
            "set -e",
            *settings.setup,
            f'exec {shlex.join(words)} "$SLURM_ARRAY_TASK_ID"',
            "",
        ]
    )


# Interpreting the end of a job -------------------------------------------------------------------


class JobEnd(NamedTuple):
    """How a job ended."""

    message: str
    code: int | None = None
    faultless: bool = False
    too_long: bool = False


class JobRun(NamedTuple):
    """A run of an ended job, and its directory."""

    entry: Entry
    directory: RunDir

    @property
    def begun(self) -> bool:
        """Return whether this job began the run."""
        return has_begun(self.directory, self.entry.options.job)

    @property
    def failed(self) -> bool:
        """Return whether this job's failure is recorded; a verdict was reported before."""
        return failure_recorded(self.directory, self.entry.options.job)

    @property
    def advanced(self) -> bool:
        """Return whether the run got further than in any earlier job."""
        progress = read_progress(self.directory)
        return progress is not None and progress.step > self.entry.step


def explain(row: QueueRow | None, output: str, script_began: bool) -> JobEnd:
    """Interpret a job's last state; without one, Slurm has forgotten the job or never had it."""
    last_lines = f": {output}" if output else ""
    if row is None:
        return JobEnd(f"Slurm no longer knows its job{last_lines}", faultless=not script_began)
    how = f"signal {-row.code}" if row.code < 0 else f"exit code {row.code}"
    message = f"Slurm: {row.state}, {how}{last_lines}"
    if row.state in FAULTLESS:
        return JobEnd(message, None, faultless=True)
    if row.state in TOO_LONG:
        return JobEnd(message, None, too_long=True)
    return JobEnd(message, row.code, faultless=row.code in STOPPED)


def judge(end: JobEnd, runs: Sequence[JobRun]) -> list[Ended]:
    """Decide for each run without a verdict how it ended.

    At most one was under way when the job ended; the others wait for another job. A job that ended
    before any run began is held against its first run, so that it is not submitted for ever.
    """
    open_runs = [run for run in runs if not run.failed]
    blamed = next((run for run in open_runs if run.begun), None)
    if blamed is None and open_runs and not any(run.begun for run in runs):
        blamed = open_runs[0]
    ended = []
    for run in runs:
        run_id, job = run.entry.run_id, run.entry.options.job
        if run is not blamed:
            ended.append(Ended(run_id, job, None, end.message, interrupted=True))
            continue
        code = (
            end.code if len(runs) == 1 or end.code in (ExitCode.BUSY, ExitCode.UNWRITABLE) else None
        )
        faultless = end.faultless or (end.too_long and run.advanced)
        # Nobody saw how a run ended whose job Slurm has forgotten.
        faultless |= end.code is None and not end.too_long and run.begun
        message = end.message
        if end.too_long and not faultless:
            message += "; it got no further than the job before: increase the time limit"
        too_long = end.too_long and not faultless
        ended.append(Ended(run_id, job, code, message, too_long, faultless))
    return ended


# Reasons for runs that have not begun, for read-only commands ------------------------------------


def waiting_reasons(study: StudyDir, runs: Collection[str]) -> dict[str, str]:
    """Map each run to the reason why its job waits, or to the output of its ended job."""
    recorded = submissions(study)
    try:
        listed = calls.queue([files.name for files in recorded], QUEUE_LOOK_SECONDS)
        rows = {(row.name, row.task): row for row in listed}
        away = ""
    except (AwayError, DoeError) as error:
        rows, away = {}, str(error).splitlines()[0]
    words: dict[str, str] = {}
    for files in recorded:
        submission = files.read()
        for number, entries in enumerate(submission.tasks if submission else ()):
            row = rows.get((files.name, number))
            for entry in entries:
                if entry.run_id in runs:
                    words[entry.run_id] = _words(row, files.tail(number), away)
    return {run: text for run, text in words.items() if text}


def _words(row: QueueRow | None, output: str, away: str) -> str:
    if row is not None and row.state == "PENDING":
        return f"Slurm: PENDING ({row.reason})"
    if row is not None and row.live:
        return ""
    if output:
        how = f"{row.state}, exit code {row.code}" if row is not None else "its job has ended"
        return f"Slurm: {how}: {output}"
    return f"Slurm does not answer: {away}" if away else ""
