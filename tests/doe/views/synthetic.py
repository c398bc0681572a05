"""A PIT study that has run, with made-up numbers of a plausible shape."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import numpy as np

from doe.design.runs import Run
from doe.store.files import RunDir, StudyDir
from doe.store.leases import Watch, acquire, new_owner
from doe.store.plan import Plan, write_plan
from doe.store.progress import Reporter
from doe.store.requests import request_bytes
from doe.store.verdicts import Failure, Result, commit
from doe.study.presets import preset_study
from doe.study.values import Study

Lost = tuple[str, ...] | Callable[[Run], bool]
"""Runs without a result, by their names or by what they are."""
START = datetime(2026, 11, 16, 8, 0, tzinfo=UTC)
EPOCHS = 8
TRACEBACK = 'Traceback (most recent call last):\n  File "train.py", line 7, in train'
LOSSES = ("loss", "autoencoder", "cone", "heatmap", "pill", "pills")


def study_directory(
    root: Path,
    preset: str = "paper",
    replicates: int | None = None,
    unfinished: int = 0,
    failed: Lost = (),
    diverged: Lost = (),
    study: Study | None = None,
    values: Callable[[Study, Run], dict[str, float]] | None = None,
    **changes: str,
) -> Path:
    """Plan a study below `root` and give its runs verdicts; the last `unfinished` have none."""
    study = study or preset_study(preset)
    if replicates is not None:
        seeds = study.seeds[:replicates]
        study = msgspec.structs.replace(study, replicates=replicates, seeds=seeds)
    study = msgspec.structs.replace(study, **changes)
    directory = root / "study"
    plan, _ = write_plan(study, directory)
    done = len(plan.design.runs) - unfinished
    for run in plan.design.runs[:done]:
        metrics = (values or made_up)(study, run)
        _finish(plan, run, metrics, _lost(run, failed), _lost(run, diverged))
    return directory


def begin_run(run: RunDir) -> None:
    """Make a run look like one under way that has reported its third step."""
    run.path.mkdir(exist_ok=True)
    assert acquire(run, new_owner(slot="cpu0"), Watch())
    Reporter(run)(3, 12, loss=0.25)


def _lost(run: Run, which: Lost) -> bool:
    return which(run) if callable(which) else run.run_id in which


def _finish(plan: Plan, run: Run, values: dict[str, float], failed: bool, diverged: bool) -> None:
    place = StudyDir(plan.directory).run(run.run_id)
    place.path.mkdir(parents=True, exist_ok=True)
    request = request_bytes(plan.study, run)
    place.request.write_bytes(request)
    metrics: dict[str, float | None] = dict(values)
    state, error = "done", None
    if failed:
        state, metrics = "failed", {}
        error = Failure("exception", "made to fail <b>here</b>", "ValueError", TRACEBACK)
    if diverged:
        state, metrics = "diverged", dict.fromkeys(metrics)
        error = Failure("diverged", "loss is nan at epoch 3")
    begun = START + timedelta(seconds=30 * ((run.run_order - 1) // 2))
    provenance = {
        "commit": "0123456789abcdef0123456789abcdef01234567",
        "dirty": False,
        "versions": {"python": "3.11.7", "numpy": "2.4.6"},
        "host": "node1",
        "hardware": "a processor",
        "slot": f"cpu{run.run_order % 2}",
        "device": "cpu",
        "seed": run.seed,
        "attempt": 1,
        "start": begun.isoformat(timespec="milliseconds"),
        "end": (begun + timedelta(seconds=28)).isoformat(timespec="milliseconds"),
        "seconds": 28.0,
        "request": hashlib.sha256(request).hexdigest(),
    }
    assert commit(place, Result(state, metrics, error, provenance), run.run_id)  # type: ignore[arg-type]
    place.log.write_text(f"begins\nthe last line of {run.run_id}\n")
    if state == "done":
        _write_epochs(place.path, metrics)


def made_up(study: Study, run: Run) -> dict[str, float]:
    """Errors with a few strong effects on the log scale, more noise where they are large."""
    order = [run.run_order] if study.design else []  # centre runs share a row
    rng = np.random.default_rng([run.row, run.replicate, *order])
    x = dict(zip("ABCDEF", run.coded, strict=False))  # by place, whatever the factors are called
    values = {}
    for i, metric in enumerate((*study.responses.metrics, *study.responses.further)):
        a, c, e = x.get("A", 1), x.get("C", 1), x.get("E", 1)
        f, ac = x.get("F", 1), x.get("A", 1) * x.get("C", 1)
        shape = 1.2 - 0.7 * a - 0.6 * c - 0.35 * e + 0.45 * f - 0.3 * ac + 0.02 * i * a
        values[metric] = float(math.exp(shape + (0.12 + 0.05 * (f > 0)) * rng.standard_normal()))
    return values


def _write_epochs(path: Path, metrics: dict[str, float | None]) -> None:
    lines = [",".join(["epoch", *LOSSES, *metrics])]
    for epoch in range(EPOCHS):
        fall = 1 + 3 * math.exp(-epoch / 2)
        losses = [f"{fall / (k + 1):.5g}" for k in range(len(LOSSES))]
        values = [f"{(value or 0) * fall:.5g}" for value in metrics.values()]
        lines.append(",".join([str(epoch), *losses, *values]))
    (path / "epochs.csv").write_text("\n".join(lines) + "\n")
