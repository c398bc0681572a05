"""Slurm's commands with machine-readable output; no accounting database is needed."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from typing import NamedTuple

from doe.errors import DoeError
from doe.store.timing import SLURM_CALL_SECONDS

LIVE = {
    *("PENDING", "CONFIGURING", "RUNNING", "SUSPENDED", "STOPPED", "RESIZING", "SIGNALING"),
    *("COMPLETING", "STAGE_OUT", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT"),
}
"""States of jobs that wait or run."""
AWAY = re.compile(
    r"unable to contact|connect(ion)? (failure|refused|timed out)|timed out|zero bytes were"
    r"|temporarily unable|resource temporarily unavailable|communication connection failure"
    r"|slurm backup controller|in standby mode|transport endpoint|no route to host"
    r"|missing socket|broken pipe|connection reset",
    re.IGNORECASE,
)
"""Messages of the commands when no controller answers; anything else is a refusal."""
WIDTHS = {
    **{"Name": 80, "ArrayTaskID": 20, "State": 20, "exit_code": 20, "Reason": 80},
    **{"ArrayJobID": 20},
}


class AwayError(Exception):
    """The controller does not answer."""


class QueueRow(NamedTuple):
    """One task of an array in the controller's queue."""

    name: str
    task: int
    state: str
    code: int
    """Exit code, or minus the signal's number; 0 while it runs."""
    reason: str
    number: str = ""
    """Slurm's number of its array; may be reused later."""

    @property
    def live(self) -> bool:
        """Return whether it waits or runs."""
        return self.state in LIVE


def most_tasks() -> int:
    """Return the maximum size of an array."""
    limit = re.search(r"^MaxArraySize\s*=\s*(\d+)", _call("scontrol", "show", "config"), re.M)
    return max(1, int(limit[1]) - 1) if limit else 1000


def submit(name: str, script: str, options: Sequence[str], tasks: int, at_once: int) -> str:
    """Submit one array of jobs; return its number.

    Raises
    ------
    AwayError
        If there was no answer; the array may have been submitted all the same.
    DoeError
        If Slurm refuses it.
    """
    throttle = f"%{at_once}" if at_once else ""
    words = [
        *("--parsable", f"--job-name={name}", f"--array=0-{tasks - 1}{throttle}"),
        *("--no-requeue", "--output=/dev/null", "--export=ALL"),
    ]
    # The user's defaults (SBATCH_ACCOUNT and the like) apply, but nobody waits for the jobs here.
    environment = {key: value for key, value in os.environ.items() if key != "SBATCH_WAIT"}
    answer = _call("sbatch", *words, *options, text=script, environment=environment)
    return answer.strip().partition(";")[0]


def queue(names: Sequence[str], seconds: float = SLURM_CALL_SECONDS) -> list[QueueRow]:
    """Return all tasks of some arrays that the controller knows, including ended ones.

    It forgets a job some minutes after its end (`MinJobAge`).
    """
    if not names:
        return []
    form = ",".join(f"{field}:{width}" for field, width in WIDTHS.items())
    filters = ("--noheader", "--array", "--states=all", f"--name={','.join(names)}")
    rows = []
    answer = _call("squeue", *filters, f"--Format={form}", seconds=seconds)
    for line in answer.splitlines():
        cells, start = [], 0
        for width in WIDTHS.values():
            cells.append(line[start : start + width].strip())
            start += width
        name, task, state, code, reason, number = cells
        if name in names and task.isdecimal():
            rows.append(QueueRow(name, int(task), state, _exit_code(code), reason, number))
    return rows


def _exit_code(status: str) -> int:
    """Read a status as wait(2) gives it: the exit code, or minus the signal's number."""
    number = int(status) if status.isdecimal() else 0
    return -(number & 127) or number >> 8


def cancel(name: str, *options: str) -> None:
    """Cancel the jobs of one name: an id may belong to another job by now."""
    _call("scancel", "--quiet", f"--name={name}", *options)


def _call(
    *words: str,
    text: str | None = None,
    environment: dict[str, str] | None = None,
    seconds: float = SLURM_CALL_SECONDS,
) -> str:
    try:
        done = subprocess.run(
            words,
            input=text,
            stdin=subprocess.DEVNULL if text is None else None,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            env=environment,
            start_new_session=True,  # Ctrl-C is for the scheduler alone
        )
    except FileNotFoundError:
        raise DoeError(
            f"there is no {words[0]} on this machine; run the study where Slurm's commands are "
            "installed, or choose another engine"
        ) from None
    except subprocess.TimeoutExpired as error:
        raise AwayError(f"{words[0]} gave no answer within {seconds:g} s") from error
    if done.returncode == 0:
        return done.stdout
    complaint = done.stderr.strip() or f"{words[0]} ended with exit code {done.returncode}"
    if AWAY.search(complaint):
        raise AwayError(complaint)
    raise DoeError(f"{words[0]} failed: {complaint}\nAsked for: {' '.join(words[1:])}")
