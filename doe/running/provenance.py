"""Provenance of a result: code, versions, machine; determined once per process, not per run."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import importlib.util
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from doe.store.leases import Lease
from doe.store.requests import RunRequest

PACKAGES = ("pit-doe", "numpy", "torch", "scikit-learn")
"""Packages whose versions are recorded if installed."""
INTERPRETER = re.compile(r"(python|pypy|Rscript|julia|node|perl|ruby|bash)[\d.]*(?:\.exe)?")
LARGEST_FILE = 1 << 26
"""Size limit of hashed files: larger ones are data."""


class Gpu(NamedTuple):
    """A GPU with the driver's name for it."""

    number: int
    name: str
    driver: str


def ask_gpus() -> tuple[Gpu, ...]:
    """Return the GPUs that `nvidia-smi` lists; none without that program."""
    query = ["nvidia-smi", "--query-gpu=index,name,driver_version", "--format=csv,noheader"]
    try:
        answer = subprocess.run(query, capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return ()
    lines = [line.split(", ") for line in answer.stdout.splitlines() if line.strip()]
    return tuple(Gpu(int(index), name, driver) for index, name, driver in lines)


def static_facts(
    backend: str, gpu: Gpu | None = None, command: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the facts shared by all runs of one process; for a command, none of this
    interpreter."""
    commit, dirty = code_version(backend, command)
    versions = {"python": platform.python_version(), **_versions(PACKAGES)}
    return {
        "commit": commit,
        "dirty": dirty,
        "versions": command_versions(command) if backend == "command" else versions,
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
    """Return the provenance of one attempt: the facts of its process, and its own.

    The duration comes from a monotonic clock: somebody may set the time of day meanwhile.
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


def backend_files(backend: str, command: Sequence[str]) -> dict[str, str]:
    """Map file name to SHA-256 for the program, script and small data that a command names
    outright.

    Of a function, its module.
    """
    if backend == "command":
        first, *rest = command
        words = rest if _interpreter(first) else [shutil.which(first) or first, *rest]
    else:
        words = [getattr(sys.modules.get(backend.partition(":")[0]), "__file__", None) or ""]
    digests = {}
    for path in _files(words):
        with contextlib.suppress(OSError):
            if path.stat().st_size <= LARGEST_FILE:
                digests[path.name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return digests


def command_versions(command: Sequence[str]) -> dict[str, str]:
    """Return the version of a command's interpreter, and of pit-doe, which started it."""
    versions = _versions(PACKAGES[:1])
    if command and (name := _interpreter(command[0])):
        call = [command[0], "--version"]
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            said = subprocess.run(call, capture_output=True, text=True, timeout=30, check=True)
            if match := re.search(r"\d+(\.\d+)+", said.stdout + said.stderr):
                versions[name] = match[0]
    return versions


def _interpreter(word: str) -> str:
    """Return the name of the interpreter that a word starts, or an empty text."""
    match = INTERPRETER.fullmatch(Path(word).name)
    return match[1] if match else ""


def _files(words: Sequence[str]) -> list[Path]:
    return [Path(word) for word in words if word and "{" not in word and Path(word).is_file()]


def code_version(backend: str, command: Sequence[str] = ()) -> tuple[str, bool]:
    """Return the commit of the backend's code and whether tracked files differ; "" without git."""
    directory = _command_directory(command) if command else _code_directory(backend)
    commit = _git(directory, "rev-parse", "HEAD")
    if commit is None:
        return "", False
    return commit, bool(_git(directory, "status", "--porcelain", "--untracked-files=no"))


def cpu_name() -> str:
    """Return the kernel's name of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _command_directory(command: Sequence[str]) -> Path:
    """Return the directory of the script or program of a command, else the current one."""
    words = command[1:] if _interpreter(command[0]) else command
    return next((path.resolve().parent for path in _files(words)), Path.cwd())


def _code_directory(backend: str) -> Path:
    """Return the directory of a function's package, else the current one."""
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


def _versions(packages: Sequence[str]) -> dict[str, str]:
    versions = {}
    for package in packages:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[package] = importlib.metadata.version(package)
    return versions
