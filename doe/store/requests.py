"""The request of a run, `request.json`, and whether a result answers it."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterable
from typing import Any

import msgspec

from doe.design.runs import Run, stage_needs
from doe.errors import DoeError, counted, were
from doe.store.files import STRANGE, RunDir, StudyDir, read_file, write_atomic
from doe.store.scan import RunStatus
from doe.study.levels import factor_settings
from doe.study.values import OWN, Level, MetricsSection, ProgressSection, Study

DEFAULT_METRICS, DEFAULT_PROGRESS = MetricsSection(), ProgressSection()


class RunRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Content of `request.json`: everything that decides a run's outcome, and no path."""

    study: str
    run_id: str
    config: str
    row: int
    replicate: int
    seed: int
    backend: str
    command: tuple[str, ...]
    factors: dict[str, Level]
    settings: dict[str, Any]
    metrics: tuple[str, ...]
    """Metrics that the backend must return."""
    further: tuple[str, ...]
    """Metrics that it may return."""
    source: MetricsSection | None = None
    """Where a command writes its metrics; None for the default, so that older requests stay the
    same."""
    progress: ProgressSection | None = None
    threads: int = 1
    seeds: dict[str, int] = {}
    """Stream -> its seed, if the study has several streams."""
    cwd: str = ""
    """Where a command runs; empty for a function, and in requests of earlier versions."""
    env: dict[str, Level] = {}
    """Variables added to the environment of a command."""
    stage: str = ""
    """Stage of which this is an execution; empty for a run."""
    stages: dict[str, str] = {}
    """Stage -> directory, next to this one, of the execution that is passed on."""
    reuse: bool = False
    """Whether a stage's output may be taken from another study."""


def request_bytes(study: Study, run: Run) -> bytes:
    """Encode a run's `request.json`, always as the same bytes for the same run."""
    request = RunRequest(
        study=study.name,
        run_id=run.run_id,
        config=run.name,
        row=run.row,
        replicate=run.replicate,
        seed=run.seed,
        factors=run.levels,
        threads=study.threads,
        seeds=run.seeds,
        stages=stage_needs(study, run),
        **(_of_stage(study, run) if run.stage else _of_run(study, run)),
    )
    return msgspec.json.format(msgspec.json.encode(request), indent=1) + b"\n"


def _of_stage(study: Study, run: Run) -> dict[str, Any]:
    stage = study.stages[run.stage]
    return {
        "backend": stage.function or "command",
        "command": study.started(stage.command),
        "settings": stage.settings | factor_settings(study, run.levels),
        "metrics": (),
        "further": (),
        "progress": stage.progress if stage.progress != DEFAULT_PROGRESS else None,
        "cwd": (study.cwd or OWN) if stage.command else "",
        "env": stage.env,
        "stage": run.stage,
        "reuse": stage.reuse,
    }


def _of_run(study: Study, run: Run) -> dict[str, Any]:
    return {
        "backend": study.backend,
        "command": study.words,
        "settings": {**study.settings, **factor_settings(study, run.levels)},
        "metrics": study.responses.returned,
        "further": study.responses.optional,
        "source": _source(study) if study.metrics != DEFAULT_METRICS else None,
        "progress": study.progress if study.progress != DEFAULT_PROGRESS else None,
        "cwd": study.cwd if study.command else "",
        "env": study.env,
    }


def _source(study: Study) -> MetricsSection:
    """Return where a command writes its metrics, "best" resolved by the goal of the response."""
    section = study.metrics
    if not section.reduce:
        return section
    words = {
        name: study.responses.goal_of(name) or "min" if how == "best" else how
        for name, how in section.reduce.items()
    }
    return msgspec.structs.replace(section, reduce=words)


def request_digest(study: Study, run: Run) -> str:
    """Return the digest that names a request in the provenance of its verdict."""
    return hashlib.sha256(request_bytes(study, run)).hexdigest()


def read_request(run: RunDir) -> tuple[RunRequest, str]:
    """Read a run's request, and its digest."""
    try:
        raw = read_file(run.request)
        return msgspec.json.decode(raw, type=RunRequest), hashlib.sha256(raw).hexdigest()
    except FileNotFoundError:
        raise DoeError(f"{run.path} holds no request.json; start it with `doe run`") from None
    except OSError as error:
        raise DoeError(f"cannot read {run.request}: {error.strerror}") from error
    except msgspec.MsgspecError as error:
        raise DoeError(f"{run.request} is damaged ({error}); `doe run` writes it again") from error


def prepare(run_dir: RunDir, study: Study, run: Run) -> str:
    """Write a run's request; return what prevents it, if anything does."""
    wanted = request_bytes(study, run)
    if _read_request(run_dir) == wanted:
        writable = os.access(run_dir.path, os.W_OK)
        return "" if writable else "its directory belongs to another user and cannot be written"
    try:
        # Made durable by the worker, while its training computes (`worker`).
        write_atomic(run_dir.request, wanted.decode(), durable=False)
    except DoeError as error:
        cause = error.__cause__
        if isinstance(cause, OSError) and cause.errno in IN_THE_WAY:
            return f"cannot write its {run_dir.request.name}: {cause.strerror}"
        raise
    return ""


IN_THE_WAY = (
    *(errno.EISDIR, errno.EEXIST, errno.ENOTDIR, errno.ELOOP, errno.ENOTEMPTY),
    *(errno.EACCES, errno.EPERM),
)
"""Errors that concern one run alone: its directory or request is of another type, or another
user's."""


def _read_request(run_dir: RunDir) -> bytes:
    try:
        return read_file(run_dir.request).strip(b"\0")  # a power failure may leave such a file
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, *STRANGE):
            return b""
        raise


def changed_runs(study: Study, statuses: Iterable[RunStatus]) -> list[RunStatus]:
    """Return runs whose verdict answers a request other than the study's present one."""
    return [
        status
        for status in statuses
        if status.result and status.provenance.get("request") != request_digest(study, status.run)
    ]


def changed_warning(study: Study, statuses: Iterable[RunStatus]) -> str:
    """Write one sentence if some results answer an outdated request, else an empty text."""
    changed = changed_runs(study, statuses)
    if not changed:
        return ""
    number = len(changed)
    return (
        f"The study file was changed after {counted(number, 'run')} {were(number)} done "
        f"(the first is {changed[0].run.run_id}); their results are for the former settings."
    )


def check_unchanged(study: Study, statuses: Iterable[RunStatus], files: StudyDir) -> None:
    """Refuse to mix results of two studies, or to go on from another study's checkpoints."""
    statuses = list(statuses)
    if changed := changed_runs(study, statuses):
        raise DoeError(
            f"{files.study} was changed after {len(changed)} of its runs were done (the first is "
            f"{changed[0].run.run_id}): their results are for the former settings"
            f"{_difference(files, study, changed[0])}. Restore it (request.json in a run's "
            "directory shows what it was), or plan the changed study under another name"
        )
    for status in statuses:
        if status.lease is not None:
            run_dir = files.run(status.run.run_id)
            if _read_request(run_dir) not in (b"", request_bytes(study, status.run)):
                raise DoeError(
                    f"{files.study} was changed after {status.run.run_id} had begun"
                    f"{_difference(files, study, status)}. Restore it, or remove the directory "
                    f"{run_dir.path}, which holds no result"
                )


def _difference(files: StudyDir, study: Study, status: RunStatus) -> str:
    """Say in which values a run's request differs from the study."""
    wanted = msgspec.json.decode(request_bytes(study, status.run), type=RunRequest)
    try:
        former, _ = read_request(files.run(status.run.run_id))
    except DoeError:
        return ""
    pairs = [
        (name, getattr(former, name), getattr(wanted, name))
        for name in RunRequest.__struct_fields__
    ]
    lines = [
        f"{name} {old}, now {new}" if isinstance(new, int | str) else name
        for name, old, new in pairs
        if old != new
    ]
    return f" ({'; '.join(lines)})" if lines else ""
