"""What a run's directory tells an engine, apart from the verdict."""

from __future__ import annotations

import time

from doe.store.files import RunDir
from doe.store.leases import last_lease, machine, process_alive
from doe.store.verdicts import failed_attempts


def has_begun(run: RunDir, job: str) -> bool:
    """Whether the start of this name has taken the run's lease."""
    found = last_lease(run)
    return bool(found and found.lease and found.lease.job == job)


def await_death(run: RunDir, job: str, seconds: float) -> None:
    """Wait until the process of this start is dead that the kernel is about to end on this machine.

    RunStatus alive, it would be taken for one that goes on, and its crash would not be counted.
    """
    found = last_lease(run)
    lease = found.lease if found else None
    if lease is None or lease.job != job or lease.machine != machine():
        return
    deadline = time.monotonic() + seconds
    while process_alive(f"{lease.pid}:{lease.started}") and time.monotonic() < deadline:
        time.sleep(0.01)


def needs_gpu_alone(run: RunDir) -> bool:
    """Whether the run has found too little memory on a GPU that it shared."""
    return any(record.failure.kind == "gpu-memory" for record in failed_attempts(run))
