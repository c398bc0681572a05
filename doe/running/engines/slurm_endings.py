"""What the end of a Slurm job means for the runs in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from doe.running.engines.base import Ended
from doe.running.engines.begun import has_begun
from doe.running.engines.slurm_calls import Row
from doe.running.engines.submission import Entry
from doe.running.worker import BUSY, INTERRUPTED, LOST, UNWRITABLE
from doe.store.files import RunDir
from doe.store.leases import last_lease
from doe.store.progress import read_progress

FAULTLESS = ("CANCELLED", "PREEMPTED", "NODE_FAIL", "BOOT_FAIL", "REVOKED")
"""States that say nothing against the runs."""
TOO_LONG = ("TIMEOUT", "DEADLINE")


class JobEnd(NamedTuple):
    """How a job ended."""

    message: str
    code: int | None = None
    faultless: bool = False
    too_long: bool = False


class Known(NamedTuple):
    """A run of an ended job, and its directory."""

    entry: Entry
    run: RunDir

    @property
    def begun(self) -> bool:
        """Whether this job began the run."""
        return has_begun(self.run, self.entry.order.job)

    @property
    def settled(self) -> bool:
        """Whether this job's failure is on record; a verdict was reported before."""
        found = last_lease(self.run)
        return self.begun and found is not None and self.run.attempt(found.attempt).exists()

    @property
    def advanced(self) -> bool:
        """Whether the run got further than any job before."""
        progress = read_progress(self.run)
        return progress is not None and progress.step > self.entry.step


def explain(row: Row | None, said: str, script_began: bool) -> JobEnd:
    """Read a job's last state; without one, Slurm has forgotten the job or never had it."""
    said = f":\n{said}" if said else ""
    if row is None:
        return JobEnd(f"Slurm does not know its job any more{said}", faultless=not script_began)
    how = f"signal {-row.code}" if row.code < 0 else f"exit code {row.code}"
    message = f"Slurm: {row.state}, {how}{said}"
    if row.state in FAULTLESS:
        return JobEnd(message, None, faultless=True)
    if row.state in TOO_LONG:
        return JobEnd(message, None, too_long=True)
    return JobEnd(message, row.code, faultless=row.code in (INTERRUPTED, LOST))


def judge(end: JobEnd, runs: Sequence[Known]) -> list[Ended]:
    """Tell for each run without a verdict how it ended.

    At most one was under way when the job ended; the others wait for another job. A job that ended
    before any run began is held against its first run, so that it is not submitted for ever.
    """
    open_runs = [known for known in runs if not known.settled]
    blamed = next((known for known in open_runs if known.begun), None)
    if blamed is None and open_runs and not any(known.begun for known in runs):
        blamed = open_runs[0]
    ended = []
    for known in runs:
        run_id, job = known.entry.run_id, known.entry.order.job
        if known is not blamed:
            ended.append(Ended(run_id, job, None, end.message, interrupted=True))
            continue
        code = end.code if len(runs) == 1 or end.code in (BUSY, UNWRITABLE) else None
        faultless = end.faultless or (end.too_long and known.advanced)
        # Nobody saw how a run ended whose job Slurm has forgotten.
        faultless |= end.code is None and not end.too_long and known.begun
        message = end.message
        if end.too_long and not faultless:
            message += "; it got no further than the job before: ask for more time (--time)"
        too_long = end.too_long and not faultless
        ended.append(Ended(run_id, job, code, message, too_long, faultless))
    return ended
