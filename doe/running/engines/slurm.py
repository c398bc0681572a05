"""The Slurm engine: one array of jobs per submission, each job executes its runs.

Slurm is asked which of our jobs still wait or run, and how the others ended; whether a run
succeeded is read from its directory. So nothing is lost when a submission vanishes, a number is
given twice, the controller is away, or a job counts as TIMEOUT although its run is done.
"""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from doe.errors import DoeError
from doe.running.engines import slurm_calls as slurm
from doe.running.engines.base import Ended, Job, Slot
from doe.running.engines.begun import needs_gpu_alone
from doe.running.engines.slurm_calls import AwayError, Row
from doe.running.engines.slurm_endings import Known, explain, judge
from doe.running.engines.slurm_settings import SlurmSettings
from doe.running.engines.submission import Entry, Submission, SubmissionFiles, new_name, submissions
from doe.store.files import StudyDir
from doe.store.progress import read_progress
from doe.store.verdicts import checksum, read_verdict
from doe.study.values import Study

SLOT = "slurm"
PLACES = 1_000_000
"""Slurm has a queue of its own, so all runs are handed over at once."""
POLL_SECONDS = (0.5, 2.0, 15.0)
"""Time between two looks at the queue: at first, after news, and the longest without any."""
GLANCE_SECONDS = 0.5
"""Time between two looks for verdicts."""
AWAY_SECONDS = 1800.0
"""How long the controller may be silent before the scheduler gives up; its jobs go on."""
VISIBLE_SECONDS = 60.0
"""How long after a job's good end its verdict may take to be seen on a network file system."""
MISSED_LOOKS = 2
"""Looks at the queue in a row that do not show a job before it counts as lost."""

T = TypeVar("T")
Place = tuple[str, int]
"""A task: the name of its submission, and its number there."""


class _Sent(NamedTuple):
    """A submission, its files, and what its jobs ask for."""

    submission: Submission
    files: SubmissionFiles
    settings: SlurmSettings


class SlurmEngine:
    """Runs as jobs of a Slurm cluster; see `doe.running.engines.base.Engine`."""

    def __init__(self, study: Study, directory: Path, settings: SlurmSettings) -> None:
        device = "cuda:0" if settings.gpu else "cpu"
        self.slots = (Slot(SLOT, device, settings.cpus, PLACES),)
        self._study, self._settings = study, settings
        self._place = StudyDir(directory.resolve())
        self._sent: dict[str, _Sent] = {}
        self._unsent: list[str] = []
        """Submissions that the controller did not answer."""
        self._waited_for: dict[Place, list[Entry]] = {}
        """Runs whose end was not reported, by task."""
        self._rows: Mapping[Place, Row] = {}
        self._missed: dict[Place, int] = {}
        self._poll = POLL_SECONDS[0]
        self._next_look = self._next_glance = 0.0
        self._answered = time.monotonic()
        self._ended_at: dict[Place, float] = {}

    # Handing over -------------------------------------------------------------------------------

    def adopt(self) -> Sequence[tuple[str, str, str]]:
        """Runs of earlier submissions that still wait or run in Slurm."""
        found = {files.name: files for files in submissions(self._place)}
        rows = self._patiently(lambda: slurm.look(list(found)))
        live = {(row.name, row.task) for row in rows if row.live}
        adopted = []
        for name, files in found.items():
            submission = files.read()
            if submission is None or not any(place[0] == name for place in live):
                files.remove()
                continue
            self._sent[name] = _Sent(submission, files, self._settings)
            for number, entries in enumerate(submission.tasks):
                if (name, number) in live:
                    left = [entry for entry in entries if not self._has_verdict(entry)]
                    self._waited_for[name, number] = left
                    adopted += [(entry.run_id, entry.order.job, SLOT) for entry in left]
        return adopted

    def start(self, jobs: Sequence[Job]) -> None:
        """Submit some runs, as one array where it may be as large."""
        parts: dict[bool, list[Job]] = {False: [], True: []}
        for job in jobs:
            shared = self._settings.shared
            parts[shared and needs_gpu_alone(self._place.run(job.run_id))].append(job)
        for alone, part in parts.items():
            settings = self._settings.alone() if alone else self._settings
            entries = [self._entry(job, settings) for job in part]
            size = settings.runs_per_job
            tasks = [tuple(entries[i : i + size]) for i in range(0, len(entries), size)]
            most = self._patiently(slurm.most_tasks) if tasks else 1
            for i in range(0, len(tasks), most):
                self._submit(tuple(tasks[i : i + most]), settings)

    def _entry(self, job: Job, settings: SlurmSettings) -> Entry:
        progress = read_progress(self._place.run(job.run_id))
        order = msgspec.structs.replace(job.order, alone=not settings.shared)
        return Entry(job.run_id, order, progress.step if progress else 0)

    def _submit(self, tasks: tuple[tuple[Entry, ...], ...], settings: SlurmSettings) -> None:
        submission = Submission(new_name(self._study.name), tasks)
        files = SubmissionFiles(self._place.slurm, submission.name)
        files.write(submission)
        self._sent[submission.name] = _Sent(submission, files, settings)
        for number, entries in enumerate(tasks):
            self._waited_for[submission.name, number] = list(entries)
        self._unsent.append(submission.name)
        self._send()

    def _send(self) -> None:
        """Hand over what waits; what the controller does not answer stays for the next time."""
        for name in list(self._unsent):
            submission, files, settings = self._sent[name]
            try:
                slurm.submit(
                    name,
                    batch_script(self._place.root, files, settings),
                    settings.options(),
                    len(submission.tasks),
                    settings.jobs,
                )
            except AwayError:
                return
            except DoeError:
                files.remove()
                raise
            self._unsent.remove(name)

    # Seeing what ends ---------------------------------------------------------------------------

    def wait(self, seconds: float) -> Sequence[Ended]:
        """Return what has ended, as soon as something has."""
        deadline = time.monotonic() + seconds
        while True:
            ended = self._glance()
            if time.monotonic() >= self._next_look:
                ended += self._look()
                _, after_news, longest = POLL_SECONDS
                self._poll = min(1.2 * self._poll, after_news if ended else longest)
                self._next_look = time.monotonic() + self._poll
            left = deadline - time.monotonic()
            if ended or left <= 0:
                return ended
            time.sleep(min(0.1, left))

    def _glance(self) -> list[Ended]:
        """Report runs that have their verdict, whatever Slurm thinks of their jobs."""
        if time.monotonic() < self._next_glance:
            return []
        self._next_glance = time.monotonic() + GLANCE_SECONDS
        ended = []
        for place, entries in self._waited_for.items():
            row = self._rows.get(place)
            if row is None or row.state != "PENDING":
                done = [entry for entry in entries if self._has_verdict(entry)]
                ended += [Ended(entry.run_id, entry.order.job, 0) for entry in done]
                entries[:] = [entry for entry in entries if entry not in done]
        self._sweep()
        return ended

    def _has_verdict(self, entry: Entry) -> bool:
        verdict = read_verdict(self._place.run(entry.run_id))
        if verdict is None or verdict.result is None:
            return False
        return not entry.order.replace or checksum(verdict.raw) != entry.order.replace

    def _look(self) -> list[Ended]:
        """Ask for the queue; report the runs whose jobs are gone."""
        try:
            self._rows = _latest(slurm.look(list(self._sent)))
        except AwayError as error:
            if time.monotonic() - self._answered > AWAY_SECONDS:
                raise DoeError(
                    f"Slurm did not answer for {AWAY_SECONDS / 60:.0f} minutes: {error}\n"
                    "Jobs that run go on; start `doe run` again when it is back"
                ) from error
            return []
        self._answered = time.monotonic()
        # An unanswered submission may have been taken all the same.
        taken = {name for name, _ in self._rows}
        self._unsent = [name for name in self._unsent if name not in taken]
        self._send()
        self._next_glance = 0.0
        ended = self._glance()
        for place in list(self._waited_for):
            ended += self._close_task(place)
        return ended

    def _close_task(self, place: Place) -> list[Ended]:
        """Report all runs of a task that is over."""
        name, number = place
        row = self._rows.get(place)
        entries = self._waited_for[place]
        if name in self._unsent or (row is not None and row.live):
            self._missed.pop(place, None)
            return []
        if row is None:
            self._missed[place] = self._missed.get(place, 0) + 1
            if self._missed[place] < MISSED_LOOKS:
                return []
        known = [Known(entry, self._place.run(entry.run_id)) for entry in entries]
        waited = time.monotonic() - self._ended_at.setdefault(place, time.monotonic())
        good = row is not None and row.state == "COMPLETED" and row.code == 0
        if good and waited < VISIBLE_SECONDS and not all(one.settled for one in known):
            return []  # The job says that all is on record: wait until that is seen from here too.
        del self._waited_for[place]
        files = self._sent[name].files
        return judge(explain(row, files.tail(number), files.output(number).exists()), known)

    def _sweep(self) -> None:
        """Forget submissions of which nothing is waited for."""
        self._waited_for = {place: left for place, left in self._waited_for.items() if left}
        busy = {name for name, _ in self._waited_for}
        for name in [name for name in self._sent if name not in busy]:
            self._sent.pop(name).files.remove()

    # Ending -------------------------------------------------------------------------------------

    def withdraw(self) -> None:
        """Cancel jobs that have not begun, and let running ones begin no further run."""
        for name in self._unsent:
            self._drop(name)
        self._unsent.clear()
        for sent in self._sent.values():
            if any(len(task) > 1 for task in sent.submission.tasks):
                sent.files.stop.touch()
        self._cancel(list(self._sent), "--state=PENDING")
        self._next_look = 0.0

    def _drop(self, name: str) -> None:
        """Let what was never sent count as lost at the next look."""
        for place in self._waited_for:
            if place[0] == name:
                self._missed[place] = MISSED_LOOKS

    def stop(self, grace: float) -> None:
        """Cancel every job; Slurm sends TERM, and KILL after its own or this grace time."""
        self._unsent.clear()
        names = list(self._sent)
        self._cancel(names)
        deadline = time.monotonic() + grace
        while any(row.live for row in self._patiently(lambda: slurm.look(names))):
            if time.monotonic() > deadline:
                self._cancel(names, "--signal=KILL", "--full")
            time.sleep(0.2)
        for sent in self._sent.values():
            sent.files.remove()
        self._sent.clear()
        self._waited_for.clear()

    def _cancel(self, names: Sequence[str], *options: str) -> None:
        for name in names:
            self._patiently(partial(slurm.cancel, name, *options))

    def close(self) -> None:
        """Nothing: jobs that wait or run are left to Slurm."""

    def _patiently(self, call: Callable[[], T], seconds: float = 60.0) -> T:
        """Repeat a call while the controller is away."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                return call()
            except AwayError as error:
                if time.monotonic() > deadline:
                    raise DoeError(f"Slurm did not answer for {seconds:.0f} s: {error}") from error
                time.sleep(0.5)


def _latest(rows: Sequence[Row]) -> Mapping[Place, Row]:
    """One row per task; where there are two of a name, a live one counts."""
    found: dict[Place, Row] = {}
    for row in rows:
        former = found.get((row.name, row.task))
        if former is None or not former.live:
            found[row.name, row.task] = row
    return found


def batch_script(study: Path, files: SubmissionFiles, settings: SlurmSettings) -> str:
    """The script of every job of an array; it is given to sbatch and kept by Slurm alone."""
    output = shlex.quote(str(files.output("")).removesuffix(".txt"))
    words = [sys.executable, "-m", "doe.running.engines.task", str(study), files.name]
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
