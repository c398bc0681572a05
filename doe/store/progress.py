"""How far a run is: the steps and metrics that its backend reports."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from doe.store.files import MOST_BYTES, RunDir, append, encodable, read_end
from doe.store.timing import REPORT_SECONDS

TAIL_BYTES = 16384


class ProgressLine(msgspec.Struct, frozen=True):
    """One line of a run's progress file."""

    step: int
    total: int
    metrics: dict[str, float | None] = {}


class Progress(NamedTuple):
    """What a running run has reported."""

    step: int
    total: int
    metric: str
    """The metric that is followed: the first that was reported."""
    values: tuple[float, ...]
    """Its latest values, one per step."""


_LINES = msgspec.json.Decoder(ProgressLine)


def read_progress(run: RunDir) -> Progress | None:
    """The end of a run's progress file; None if nothing was reported."""
    reports = _reports(run, TAIL_BYTES)
    if not reports:
        return None
    last = reports[-1]
    metric = next(iter(last.metrics), "")
    steps = [report for report in _by_step(reports) if report.step <= last.step]
    values = [value for r in steps if (value := r.metrics.get(metric)) is not None]
    return Progress(last.step, last.total, metric, tuple(values))


def read_steps(run: RunDir) -> list[ProgressLine]:
    """All steps that a run has reported, in their order."""
    return _by_step(_reports(run, MOST_BYTES))


def _by_step(reports: Iterable[ProgressLine]) -> list[ProgressLine]:
    """Reports in the order of their steps; of a step that was done again, the last one."""
    return [report for _, report in sorted({report.step: report for report in reports}.items())]


def _reports(run: RunDir, most: int) -> list[ProgressLine]:
    """The reports among the last bytes of a run's progress file."""
    reports = []
    with contextlib.suppress(OSError):
        for line in read_end(run.progress, most).split(b"\n"):
            with contextlib.suppress(msgspec.MsgspecError):  # cut in two by the seek or by a kill
                reports.append(_LINES.decode(line))
    return reports


BURST = 100
"""Reports that may come at once: the steps of a short run, the rows that a CSV has gained."""


class Reporter:
    """Appends what a backend reports to the run's progress file."""

    def __init__(self, run: RunDir) -> None:
        self._path = run.progress
        self._last = -math.inf
        self._spare = 0.0

    def __call__(self, step: int, total: int, **metrics: float) -> None:
        """Note that `step` of `total` is done, with the metrics known there."""
        now = time.monotonic()
        self._spare = min(self._spare + (now - self._last) / REPORT_SECONDS, BURST)
        self._last = now
        if self._spare < 1 and step < total:
            return
        self._spare = max(self._spare - 1, 0.0)
        # A training must not end because its progress could not be told.
        with contextlib.suppress(OSError, TypeError, ValueError, OverflowError):
            values: dict[str, float | None] = {encodable(n): float(v) for n, v in metrics.items()}
            line = ProgressLine(int(step), int(total), values)
            append(self._path, msgspec.json.encode(line) + b"\n")
