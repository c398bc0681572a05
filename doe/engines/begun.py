"""What a run's directory tells an engine, apart from the verdict."""

from __future__ import annotations

from doe.attempts import failed_attempts
from doe.lease import last_lease
from doe.store import RunDir


def has_begun(run: RunDir, job: str) -> bool:
    """Whether the start of this name has taken the run's lease."""
    found = last_lease(run)
    return bool(found and found.lease and found.lease.job == job)


def needs_gpu_alone(run: RunDir) -> bool:
    """Whether the run has found too little memory on a GPU that it shared."""
    return any(record.failure.kind == "gpu-memory" for record in failed_attempts(run))
