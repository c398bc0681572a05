"""The protocol between the scheduler and what executes runs.

An engine starts a worker (`worker_words`) somewhere, by whatever means, and tells when that process
is gone. It never decides success: the scheduler looks at the run's
directory, where the worker has left a verdict or not. All that an engine may add is how a process
ended without one (`Ended.message`). A worker is idempotent: an engine may start one too often.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from doe.running.worker import WorkerOptions
from doe.store.files import RunDir
from doe.store.leases import last_lease, machine, process_alive
from doe.store.verdicts import failed_attempts


class Slot(msgspec.Struct, frozen=True):
    """A place where runs are executed: a GPU's share, some cores, or a whole cluster."""

    name: str
    device: str = "cpu"
    """What the backend is told: "cpu" or "cuda:0"."""
    places: int = 1
    """How many runs it takes at once; a cluster takes many."""
    kind: str = ""
    """Name of its GPU or processor, as in the provenance of a result; empty where unknown."""
    group: str = ""
    """Slots of one group share a GPU; a run that needs it alone waits until the others are idle."""


class Job(msgspec.Struct, frozen=True):
    """One start of one run."""

    run_id: str
    run_dir: Path
    slot: Slot
    options: WorkerOptions
    """What the worker is told; `options.job` is unique to this start."""
    stage: str = ""
    """The stage that is executed, which may ask for other resources; empty for a run."""


class Ended(msgspec.Struct, frozen=True):
    """The news that a started process is gone."""

    run_id: str
    job: str
    """`options.job` of the start that ended."""
    code: int | None = None
    """Exit code, where known; see the codes of `doe.running.worker`."""
    message: str = ""
    """How it ended, for a run that left no verdict: "killed by SIGSEGV", "Slurm: NODE_FAIL"."""
    timeout: bool = False
    """Whether it was ended for taking longer than it may."""
    interrupted: bool = False
    """Whether it was stopped for no fault of its own (a stop that was asked for, preemption)."""
    unseen: bool = False
    """Whether nobody saw how it ended; this is excused as often as a crash is."""


class Left(msgspec.Struct, frozen=True):
    """The news that a run has left its slot: it has finished, and its worker commits."""

    job: str


class Engine(Protocol):
    """What the scheduler needs of an engine. No method blocks for longer than it says."""

    @property
    def slots(self) -> Sequence[Slot]:
        """All places, free or not; fixed while the engine lives."""

    def adopt(self) -> Sequence[tuple[str, str, str]]:
        """Runs that an earlier scheduler handed over and that still wait or run there.

        As (run id, job, slot name). Called once, before anything is started; their end is reported
        by `wait`. An engine without a memory returns nothing: leases tell of running orphans.
        """

    def start(self, jobs: Sequence[Job]) -> None:
        """Begin some runs, at most as many as their slots have free places; DoeError if it cannot.

        Several at once, so that a cluster can submit them as one array.
        """

    def wait(self, seconds: float) -> Sequence[Ended | Left]:
        """Return what has ended or left, as soon as something has, or nothing after `seconds`."""

    def withdraw(self) -> None:
        """Take back what waits and has not begun; `wait` reports it as interrupted."""

    def stop(self, grace: float) -> None:
        """End all runs: TERM, after `grace` seconds KILL; return when no process is left."""

    def close(self) -> None:
        """Let go of idle helpers. Runs that are under way are left to run."""


# What a run's directory tells an engine, apart from the verdict ---------------------------------


def has_begun(run: RunDir, job: str) -> bool:
    """Whether the start of this name has taken the run's lease."""
    last = last_lease(run)
    return last is not None and last.is_of(job)


def failure_recorded(run: RunDir, job: str) -> bool:
    """Whether the start of this name has left a record of how it failed."""
    last = last_lease(run)
    return last is not None and last.is_of(job) and run.attempt(last.attempt).exists()


def await_death(run: RunDir, job: str, seconds: float) -> None:
    """Wait until the process of this start is dead that the kernel is about to end on this machine.

    Looked at alive, it would be taken for one that goes on, and its crash would not be counted.
    """
    last = last_lease(run)
    lease = last.lease if last else None
    if lease is None or lease.job != job or lease.machine != machine():
        return
    deadline = time.monotonic() + seconds
    while process_alive(lease.process) and time.monotonic() < deadline:
        time.sleep(0.01)


def needs_gpu_alone(run: RunDir) -> bool:
    """Whether the run has found too little memory on a GPU that it shared."""
    return any(record.failure.kind == "gpu-memory" for record in failed_attempts(run))
