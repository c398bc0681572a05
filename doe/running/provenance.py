"""Where a result comes from: code, versions, machine. Asked once per process, not once per run."""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import platform
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from doe.store.leases import Lease
from doe.store.requests import RunRequest

PACKAGES = ("pit-doe", "numpy", "torch", "scikit-learn")
"""Packages whose versions are noted where installed."""


class Gpu(NamedTuple):
    """A GPU as the driver names it."""

    number: int
    name: str
    driver: str


def ask_gpus() -> tuple[Gpu, ...]:
    """The GPUs that `nvidia-smi` lists; none where there is no such program."""
    query = ["nvidia-smi", "--query-gpu=index,name,driver_version", "--format=csv,noheader"]
    try:
        answer = subprocess.run(query, capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return ()
    lines = [line.split(", ") for line in answer.stdout.splitlines() if line.strip()]
    return tuple(Gpu(int(index), name, driver) for index, name, driver in lines)


def static_facts(backend: str, gpu: Gpu | None = None) -> dict[str, Any]:
    """What is the same for all runs of one process."""
    commit, dirty = code_version(backend)
    return {
        "commit": commit,
        "dirty": dirty,
        "versions": {"python": platform.python_version(), **_versions()},
        "host": platform.node(),
        "hardware": gpu.name if gpu else cpu_name(),
        "driver": gpu.driver if gpu else "",
    }


def provenance(
    facts: Mapping[str, Any],
    lease: Lease,
    request: RunRequest,
    digest: str,
    began: float,
    seconds: float,
) -> dict[str, Any]:
    """Where the result of one attempt comes from: the facts of its process, and its own.

    The duration is no difference of two times of day, which somebody may set in between.
    """
    return {
        **facts,
        "slot": lease.slot,
        "job": lease.job,
        "seed": request.seed,
        **({"seeds": request.seeds} if request.seeds else {}),
        "threads": request.threads,
        "attempt": lease.attempt,
        "start": _timestamp(began),
        "end": _timestamp(began + seconds),
        "seconds": round(seconds, 6),
        "request": digest,
    }


def _timestamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


def code_version(backend: str) -> tuple[str, bool]:
    """Commit of the backend's code and whether tracked files differ from it; "" without git."""
    directory = _code_directory(backend)
    commit = _git(directory, "rev-parse", "HEAD")
    if commit is None:
        return "", False
    return commit, bool(_git(directory, "status", "--porcelain", "--untracked-files=no"))


def cpu_name() -> str:
    """The processor as the kernel names it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _code_directory(backend: str) -> Path:
    """Where a backend's code stands: its package's directory, or for a command, here."""
    try:
        spec = importlib.util.find_spec(backend.partition(":")[0].partition(".")[0])
    except (ImportError, ValueError):
        spec = None
    return Path(spec.origin).parent if spec and spec.origin else Path.cwd()


def _git(directory: Path, *words: str) -> str | None:
    call = ["git", "--no-optional-locks", "-C", str(directory), *words]
    try:
        answer = subprocess.run(call, capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip()


def _versions() -> dict[str, str]:
    versions = {}
    for package in PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[package] = importlib.metadata.version(package)
    return versions
