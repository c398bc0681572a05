"""Learning curves: what runs reported of their steps or wrote of their epochs, by configuration."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Mapping, Sequence

from doe.store.files import RunDir, StudyDir
from doe.store.progress import read_steps
from doe.store.scan import RunStatus
from doe.study.values import Study

EPOCH = "epoch"

Curve = list[tuple[float, float]]
"""Epoch or step and value, in the order of epochs."""


def learning_curves(
    files: StudyDir, study: Study, statuses: Sequence[RunStatus]
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
        run_dir = files.run(status.run.run_id)
        for line in _epochs(run_dir) or _steps(run_dir):
            epoch = line.get(EPOCH, math.nan)
            for name, value in _responses(study, line):
                if math.isfinite(epoch) and math.isfinite(value):
                    configs = gathered.setdefault(name, {})
                    configs.setdefault(status.run.config, {}).setdefault(epoch, []).append(value)
    return {
        name: {
            config: [(epoch, math.fsum(v) / len(v)) for epoch, v in sorted(epochs.items())]
            for config, epochs in configs.items()
        }
        for name, configs in gathered.items()
    }


def _epochs(run: RunDir) -> list[dict[str, float]]:
    try:
        text = run.epochs.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return []
    header, *lines = csv.reader(text.splitlines()) if text else [[]]
    return [
        {name: _number(cell) for name, cell in zip(header, line, strict=True)}
        for line in lines
        if len(line) == len(header)
    ]


def _steps(run: RunDir) -> list[dict[str, float]]:
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


def _responses(study: Study, line: Mapping[str, float]) -> Iterable[tuple[str, float]]:
    answers, keys = study.responses, study.metrics.keys
    values = {
        name: line[key]
        for name in (*answers.metrics, *answers.further)
        if (key := name if name in line else keys.get(name, name)) in line
    }
    yield from values.items()
    for name, parts in answers.averages.items():
        if all(part in values for part in parts):
            yield name, math.fsum(values[part] for part in parts) / len(parts)
