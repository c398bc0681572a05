"""The output of a stage on disk: `out` in the directory of its execution; passed on, removed."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from doe.store.files import RunDir, StudyDir
from doe.store.requests import RunRequest
from doe.store.verdicts import Failure, Result, read_verdict

DIGEST, RECIPE, REUSED = "digest", "recipe", "reused"
"""Facts of a stage's provenance: its output, its inputs, its source if taken over."""
STAGES = "stages"
"""Fact of a run's provenance: the executions of stages that it used, and the digest of each."""
CHUNK_BYTES = 1 << 20
REMOVED = ".removed"
"""Output of a stage under removal: renamed first, so that part of it never passes for all."""


def is_present(stage: RunDir) -> bool:
    """Return whether the output of a stage is there."""
    try:
        with os.scandir(stage.out) as entries:
            return any(True for _ in entries)
    except OSError:
        return False


def remove_product(stage: RunDir) -> None:
    """Remove the output of a stage; its verdict, log and leases stay."""
    with contextlib.suppress(OSError):
        os.rename(stage.out, stage.path / f"{REMOVED}-{os.urandom(4).hex()}")
    for name in stage.names():
        if name.startswith(REMOVED):
            shutil.rmtree(stage.path / name, ignore_errors=True)


class StageResults(NamedTuple):
    """State of the stages of a run."""

    used: dict[str, dict[str, str]]
    """Stage -> its execution and the digest of its output."""
    failure: Failure | None = None
    """Why the run is impossible: a stage has failed."""
    missing: str = ""
    """The first stage that is not done or whose output is missing."""


def stage_results(study: StudyDir, request: RunRequest) -> StageResults:
    """Read the state of the stages that a run needs."""
    used: dict[str, dict[str, str]] = {}
    missing = ""
    for name, run_id in request.stages.items():
        verdict = read_verdict(study.run(run_id))
        result = verdict.result if verdict else None
        if result is not None and result.state == "failed":
            return StageResults({}, stage_failure(run_id, result))
        if result is None or not is_present(study.run(run_id)):
            missing = missing or run_id
        else:
            used[name] = {"execution": run_id, DIGEST: str(result.provenance.get(DIGEST, ""))}
    return StageResults(used, missing=missing)


def stage_failure(run_id: str, result: Result) -> Failure:
    """Return the failure of runs whose stage has failed, with its reason."""
    reason = result.error.reason if result.error else "for no known reason"
    return Failure("stage", f"{run_id} failed: {reason}")


# Digests ----------------------------------------------------------------------------------------


def content_digest(directory: Path) -> str:
    """Return the SHA-256 over the names and bytes of all files below a directory."""
    total = hashlib.sha256()
    for path in _files(directory):
        total.update(f"{path.relative_to(directory)}\0".encode(errors="surrogateescape"))
        total.update(_file_digest(path))
    return total.hexdigest()


def _files(directory: Path) -> Iterator[Path]:
    return iter(sorted(path for path in directory.rglob("*") if path.is_file()))


def _file_digest(path: Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


def recipe(request: RunRequest, files: Mapping[str, str], used: Mapping[str, Any]) -> str:
    """Return the digest of all inputs of a stage: command, files, settings, levels, seed.

    Parameters
    ----------
    files : mapping
        Files of its command or function, with the hash of each.
    used : mapping
        Stages that it needs, with the digest of each.
    """
    says = [request.backend, request.command, request.settings, request.factors, request.env]
    seeds = [request.seed, request.seeds, request.cwd, request.threads]
    before = {name: facts[DIGEST] for name, facts in used.items()}
    document = msgspec.json.encode([*says, *seeds, files, before], order="sorted")
    return hashlib.sha256(document).hexdigest()


# Taking over ------------------------------------------------------------------------------------


def take_over(stage: RunDir, wanted: str) -> dict[str, Any]:
    """Link the output of a neighbouring study's stage with the same recipe; return its facts."""
    study = stage.path.parent.resolve()
    for other in sorted(study.parent.glob("*/stage-*")):
        if other.parent == study:
            continue
        verdict = read_verdict(RunDir(other)) if is_present(RunDir(other)) else None
        result = verdict.result if verdict else None
        facts = result.provenance if result else {}
        if facts.get(RECIPE) != wanted:
            continue
        remove_product(stage)
        with contextlib.suppress(OSError):  # it is being removed there
            shutil.copytree(RunDir(other).out, stage.out, symlinks=True, copy_function=_link)
            if content_digest(stage.out) == facts.get(DIGEST):
                return {REUSED: f"{other.parent.name}/{other.name}"}
        remove_product(stage)
    return {}


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
