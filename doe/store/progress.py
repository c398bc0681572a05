"""How far a study is: time left, and what a running run reports."""

from __future__ import annotations

import contextlib
import math
import time
from typing import NamedTuple

import msgspec

from doe.store.files import RunDir, read_end

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
    try:
        lines = read_end(run.progress, TAIL_BYTES).split(b"\n")
    except OSError:
        return None
    reports: dict[int, ProgressLine] = {}
    last: ProgressLine | None = None
    for line in lines:
        try:
            last = _LINES.decode(line)
        except msgspec.MsgspecError:  # cut in two by the seek or by a kill
            continue
        reports[last.step] = last
    if last is None:
        return None
    metric = next(iter(last.metrics), "")
    steps = [reports[step] for step in sorted(reports) if step <= last.step]
    values = [value for r in steps if (value := r.metrics.get(metric)) is not None]
    return Progress(last.step, last.total, metric, tuple(values))


REPORT_SECONDS = 0.1
"""Reports that come faster than this are thinned out."""


class Reporter:
    """Appends what a backend reports to the run's progress file."""

    def __init__(self, run: RunDir) -> None:
        self._path = run.progress
        self._last = -math.inf

    def __call__(self, step: int, total: int, **metrics: float) -> None:
        """Note that `step` of `total` is done, with the metrics known there."""
        now = time.monotonic()
        if now - self._last < REPORT_SECONDS and step < total:
            return
        self._last = now
        # A training must not end because its progress could not be told.
        with contextlib.suppress(OSError, TypeError, ValueError, OverflowError):
            values: dict[str, float | None] = {_plain(n): float(v) for n, v in metrics.items()}
            line = ProgressLine(int(step), int(total), values)
            with open(self._path, "ab", buffering=0) as file:
                file.write(msgspec.json.encode(line) + b"\n")


def _plain(name: str) -> str:
    return name.encode(errors="replace").decode()
