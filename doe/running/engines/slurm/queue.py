"""What Slurm says of runs that were handed over and have not begun, for who only looks."""

from __future__ import annotations

from collections.abc import Collection

from doe.errors import DoeError
from doe.running.engines.slurm import calls
from doe.running.engines.slurm.calls import AwayError, QueueRow
from doe.running.engines.slurm.job import submissions
from doe.store.files import StudyDir

LOOK_SECONDS = 10.0
"""How long a command that only looks waits for the controller."""


def told(study: StudyDir, runs: Collection[str]) -> dict[str, str]:
    """Run -> the reason for which its job waits, or what a job said that has ended before it."""
    recorded = submissions(study)
    try:
        listed = calls.look([files.name for files in recorded], LOOK_SECONDS)
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


def _words(row: QueueRow | None, said: str, away: str) -> str:
    if row is not None and row.state == "PENDING":
        return f"Slurm: PENDING ({row.reason})"
    if row is not None and row.live:
        return ""
    if said:
        how = f"{row.state}, exit code {row.code}" if row is not None else "its job has ended"
        return f"Slurm: {how}: {said}"
    return f"Slurm does not answer: {away}" if away else ""
