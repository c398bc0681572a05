"""What must hold before a run is started: it is asked for, its request is in place, unchanged."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from doe.attempts import Policy
from doe.backend import request_bytes
from doe.design import Run
from doe.errors import DoeError, nearest
from doe.scan import Seen
from doe.store import RunDir, StudyDir, write_atomic
from doe.study import Study


class Options(NamedTuple):
    """What `doe run` was asked for."""

    policy: Policy = Policy()
    timeout: float = 0.0
    only: tuple[str, ...] = ()
    """Configurations; empty for all."""
    replicate: int = 0
    limit: int = 0
    """Most runs to start; 0 for all."""
    retry_failed: bool = False
    grace: float = 10.0
    """Seconds between TERM and KILL."""
    detach: bool = False
    """Hand the runs over and leave: no scheduler watches them."""


def selected(runs: Sequence[Run], options: Options) -> list[str]:
    """Ids of the runs that are asked for, in the planned order."""
    configs = sorted({run.config for run in runs})
    for config in options.only:
        if config not in configs:
            raise DoeError(
                f"no configuration {config!r} is planned{nearest(config, configs)}; "
                f"they look like {configs[0]}"
            )
    replicates = sorted({run.replicate for run in runs})
    if options.replicate and options.replicate not in replicates:
        raise DoeError(f"replicate {options.replicate} is not planned; there are {replicates}")
    return [
        run.run_id
        for run in runs
        if (not options.only or run.config in options.only)
        and options.replicate in (0, run.replicate)
    ]


def prepare(place: RunDir, study: Study, run: Run) -> None:
    """Put a run's request in place."""
    wanted = request_bytes(study, run)
    if _request_there(place) != wanted:
        write_atomic(place.request, wanted.decode())


def _request_there(place: RunDir) -> bytes:
    try:
        return place.request.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return b""


def changed_runs(study: Study, views: Iterable[Seen]) -> list[str]:
    """Runs whose verdict answers another request than the study makes now."""
    return [
        seen.run.run_id
        for seen in views
        if seen.result
        and seen.result.provenance.get("request")
        != hashlib.sha256(request_bytes(study, seen.run)).hexdigest()
    ]


def check_unchanged(study: Study, views: Iterable[Seen], files: StudyDir) -> None:
    """Refuse to mix results of two studies, or to go on from another study's checkpoints."""
    views = list(views)
    if changed := changed_runs(study, views):
        raise DoeError(
            f"{files.study} was changed after {len(changed)} of its runs were done (the first is "
            f"{changed[0]}): their results answer another request. Restore it (request.json in a "
            "run's directory shows what it was), or plan the changed study under another name"
        )
    for seen in views:
        if seen.lease is not None:
            place = files.run(seen.run.run_id)
            if _request_there(place) not in (b"", request_bytes(study, seen.run)):
                raise DoeError(
                    f"{files.study} was changed after {seen.run.run_id} had begun. Restore it, or "
                    f"remove the directory {place.path}, which holds no result"
                )
