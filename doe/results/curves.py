"""Learning curves: what runs wrote about their epochs, by configuration."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Mapping, Sequence

from doe.store.files import StudyDir
from doe.store.scan import RunStatus
from doe.study.values import Study

EPOCH = "epoch"

Curve = list[tuple[float, float]]
"""Epoch and value, in the order of epochs."""


Lines = list[dict[str, float]]
"""The epochs of a run: every column of `epochs.csv` by its name."""


def epoch_lines(files: StudyDir, statuses: Sequence[RunStatus]) -> dict[str, Lines]:
    """Run -> its epochs, for the runs that have written some."""
    begun = [status.run.run_id for status in statuses if status.state != "pending"]
    return {run_id: lines for run_id in begun if (lines := list(_lines(files, run_id)))}


def learning_curves(
    study: Study, statuses: Sequence[RunStatus], epochs: Mapping[str, Lines]
) -> dict[str, dict[str, Curve]]:
    """Response -> configuration -> curve, the mean over the replicates that have the epoch.

    A response takes the column of its name in `epochs.csv`; an average takes the mean of its
    metrics' columns. Runs that failed or diverged are left out, and so is a run whose file cannot
    be read: the curves show how training went and decide nothing.
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
            config: [(epoch, math.fsum(v) / len(v)) for epoch, v in sorted(by_epoch.items())]
            for config, by_epoch in configs.items()
        }
        for name, configs in gathered.items()
    }


def _lines(files: StudyDir, run_id: str) -> Iterable[dict[str, float]]:
    try:
        text = files.run(run_id).epochs.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return
    header, *lines = csv.reader(text.splitlines()) if text else [[]]
    for line in lines:
        if len(line) == len(header):
            yield {name: _number(cell) for name, cell in zip(header, line, strict=True)}


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def line_responses(study: Study, line: Mapping[str, float]) -> Iterable[tuple[str, float]]:
    """The responses that an epoch tells: metrics, and averages of which it has every part."""
    answers = study.responses
    for name in (*answers.metrics, *answers.further):
        if name in line:
            yield name, line[name]
    for name, parts in answers.averages.items():
        if all(part in line for part in parts):
            yield name, math.fsum(line[part] for part in parts) / len(parts)
