"""Progress that runs reported, and the details of single runs."""

from __future__ import annotations

import contextlib
import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from doe.results.responses import mean_of
from doe.store.files import RunDir, StudyDir, read_end, read_inside
from doe.store.progress import read_steps
from doe.store.scan import RunStatus
from doe.study.values import Study

EPOCH = "epoch"

Curve = list[tuple[float, float]]
"""Epoch or step and value, in the order of epochs."""
Lines = list[dict[str, float]]
"""Reports of a run by epoch, or by step: its metrics by their names, and the epoch."""


def epoch_lines(files: StudyDir, statuses: Sequence[RunStatus]) -> dict[str, Lines]:
    """Run -> its epochs in `epochs.csv`, or where it has none, the steps that it reported."""
    begun = [status.run.run_id for status in statuses if status.state != "pending"]
    return {run_id: _epochs(files.run(run_id)) or _steps(files.run(run_id)) for run_id in begun}


def learning_curves(
    study: Study, statuses: Sequence[RunStatus], epochs: Mapping[str, Lines]
) -> dict[str, dict[str, Curve]]:
    """Response -> configuration -> curve, the mean over the replicates that have the epoch.

    A response takes the column of its name in `epochs.csv`, or where a run has none, what was
    reported with each step under its name or under its key in [metrics]; an average takes the mean
    of its metrics. Runs that failed or diverged are left out, and so is a run whose file cannot be
    read: the curves show how training went and decide nothing.
    """
    gathered: dict[str, dict[str, dict[float, list[float]]]] = {}
    for status in statuses:
        if status.state in ("failed", "diverged", "pending"):
            continue
        for line in epochs.get(status.run.run_id, ()):
            epoch = line.get(EPOCH, math.nan)
            for name, value in line_responses(study, line):
                if math.isfinite(epoch) and math.isfinite(value):
                    configs = gathered.setdefault(name, {})
                    configs.setdefault(status.run.config, {}).setdefault(epoch, []).append(value)
    return {
        name: {
            config: [(epoch, mean_of(v)) for epoch, v in sorted(by_epoch.items())]
            for config, by_epoch in configs.items()
        }
        for name, configs in gathered.items()
    }


def reported_at(run: RunDir, name: str, step: float) -> float:
    """Return what was current at a step or epoch of a run that got there: the last value up to
    it.
    """
    lines = [line for line in _epochs(run) or _steps(run) if name in line and EPOCH in line]
    before = [line[name] for line in lines if line[EPOCH] <= step]
    reached = any(line[EPOCH] >= step for line in lines)
    return before[-1] if before and reached else math.nan


def _epochs(run: RunDir) -> Lines:
    text = ""
    for path in (run.epochs, run.out / run.epochs.name):
        with contextlib.suppress(OSError, UnicodeDecodeError):
            text = text or read_inside(path, run.path).decode()
    header, *lines = csv.reader(text.splitlines()) if text else [[]]
    return [
        {name: _number(cell) for name, cell in zip(header, line, strict=True)}
        for line in lines
        if len(line) == len(header)
    ]


def _steps(run: RunDir) -> Lines:
    return [
        {name: math.nan if value is None else value for name, value in report.metrics.items()}
        | {EPOCH: float(report.step)}
        for report in read_steps(run)
    ]


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def line_responses(study: Study, line: Mapping[str, float]) -> Iterable[tuple[str, float]]:
    """Return the responses that an epoch tells: metrics, and averages of which it has every
    part.
    """
    answers, keys = study.responses, study.metrics.keys
    values = {
        name: line[key]
        for name in (*answers.metrics, *answers.further)
        if (key := name if name in line else keys.get(name, name)) in line
    }
    yield from values.items()
    for name, parts in answers.averages.items():
        if all(part in values for part in parts):
            yield name, mean_of([values[part] for part in parts])


# Details of a run ---------------------------------------------------------------------------------


LOG_BYTES = {"done": 500}
MOST_LOG_BYTES = 3000
"""Of a log's end; less of runs that went well, of which there are many."""


class RunDetail(NamedTuple):
    """One run, beyond its state and its responses."""

    log: str
    """The end of what it wrote."""
    error: str
    """Why it has no metrics, with the traceback; empty where it has."""
    curves: dict[str, Curve]
    """Metric -> its values by epoch, or by step where the run reports no epochs."""


def run_details(
    files: StudyDir,
    study: Study,
    statuses: Sequence[RunStatus],
    epochs: Mapping[str, Lines],
    responses: Sequence[str],
) -> dict[str, RunDetail]:
    """Run -> its details, with the curves of its loss and of some responses."""
    return {
        status.run.run_id: RunDetail(
            _log_end(files, status),
            _error(status),
            _curves(study, epochs.get(status.run.run_id, []), responses),
        )
        for status in statuses
        if status.state != "pending"
    }


def _log_end(files: StudyDir, status: RunStatus) -> str:
    most = LOG_BYTES.get(status.state, MOST_LOG_BYTES)
    try:
        end = read_end(files.run(status.run.run_id).log, most + 1)
    except OSError:
        return ""
    text = end.decode(errors="replace")
    # A line that the cut went through is left out.
    return (text.partition("\n")[2] if len(end) > most else text).strip("\n")


def _error(status: RunStatus) -> str:
    error = status.result.error if status.result else None
    if error is None:
        return status.reason
    return "\n".join(part for part in (error.reason, error.traceback.strip()) if part)


def _curves(study: Study, lines: Lines, responses: Sequence[str]) -> dict[str, Curve]:
    """Return the first column, which is the loss where a backend writes one, and the asked
    responses.
    """
    curves: dict[str, Curve] = {}
    for line in lines:
        epoch = line.get(EPOCH, math.nan)
        values = dict(line_responses(study, line))
        first = [(name, value) for name, value in line.items() if name != EPOCH][:1]
        wanted = [*first, *((name, values[name]) for name in responses if name in values)]
        for name, value in wanted:
            if math.isfinite(epoch) and math.isfinite(value):
                curves.setdefault(name, []).append((epoch, value))
    return curves
