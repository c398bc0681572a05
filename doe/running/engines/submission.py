"""What was handed to Slurm, on disk: which task of which array executes which runs.

Below `slurm/` in the study's directory, and gone once its jobs have ended. A submission is known by
its name, which is the name of its jobs and holds a nonce: Slurm's own numbers can be given twice.
"""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path
from typing import NamedTuple

import msgspec

from doe.running.worker import WorkOrder
from doe.store.files import StudyDir, write_atomic

TAIL_LINES = 10


class Entry(msgspec.Struct, frozen=True):
    """One run of a job."""

    run_id: str
    order: WorkOrder
    step: int = 0
    """Steps that earlier jobs have reported; a job that gets no further was too short."""


class Submission(msgspec.Struct, frozen=True):
    """One array of jobs."""

    name: str
    tasks: tuple[tuple[Entry, ...], ...]
    """The runs of each task, in the order in which it executes them."""


class SubmissionFiles(NamedTuple):
    """Every name that belongs to one submission."""

    folder: Path
    name: str

    @property
    def content(self) -> Path:
        """The submission itself."""
        return self.folder / f"{self.name}.json"

    @property
    def stop(self) -> Path:
        """Made to tell running jobs that they begin no further run."""
        return self.folder / f"{self.name}.stop"

    def output(self, task: int | str) -> Path:
        """What a job says before and after its runs."""
        return self.folder / f"{self.name}.{task}.txt"

    def tail(self, task: int) -> str:
        """The last lines of that."""
        try:
            lines = self.output(task).read_text(errors="replace").splitlines()
        except OSError:
            return ""
        return "\n".join(lines[-TAIL_LINES:])

    def read(self) -> Submission | None:
        """The submission, or None if it was withdrawn."""
        try:
            return msgspec.json.decode(self.content.read_bytes(), type=Submission)
        except (FileNotFoundError, msgspec.MsgspecError):
            return None

    def write(self, submission: Submission) -> None:
        """Put it in place; before its jobs are submitted."""
        write_atomic(self.content, msgspec.json.encode(submission).decode())

    def remove(self) -> None:
        """Sweep everything; the folder too when it was the last."""
        for path in self.folder.glob(f"{self.name}.*"):
            path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self.folder.rmdir()


def submissions(study: StudyDir) -> list[SubmissionFiles]:
    """Every submission on record."""
    names = sorted(os.listdir(study.slurm)) if study.slurm.is_dir() else []
    found = [name.removesuffix(".json") for name in names if not name.startswith(".")]
    return [SubmissionFiles(study.slurm, name) for name in found if f"{name}.json" in names]


def new_name(study: str) -> str:
    """A name for the jobs of a new submission that no other one has."""
    plain = re.sub(r"[^A-Za-z0-9]+", "-", study).strip("-")[:24] or "study"
    return f"doe-{plain}-{os.urandom(6).hex()}"
