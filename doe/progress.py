"""How far a study is: time left, and what a running run reports."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from doe.scan import Seen
from doe.store import RunDir, StudyDir

SPARKS = "▁▂▃▄▅▆▇█"
TAIL_BYTES = 16384
ASKED = 32
"""Runs under way that are asked for a first estimate of the time left, at most."""


class Report(msgspec.Struct, frozen=True):
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


_DECODER = msgspec.json.Decoder(Report)


def read_progress(run: RunDir) -> Progress | None:
    """The end of a run's progress file; None if nothing was reported."""
    try:
        with open(run.progress, "rb") as file:
            file.seek(max(file.seek(0, os.SEEK_END) - TAIL_BYTES, 0))
            lines = file.read().split(b"\n")
    except OSError:
        return None
    reports: dict[int, Report] = {}
    last: Report | None = None
    for line in lines:
        try:
            last = _DECODER.decode(line)
        except msgspec.MsgspecError:  # cut in two by the seek or by a kill
            continue
        reports[last.step] = last
    if last is None:
        return None
    metric = next(iter(last.metrics), "")
    steps = [reports[step] for step in sorted(reports) if step <= last.step]
    values = [value for r in steps if (value := r.metrics.get(metric)) is not None]
    return Progress(last.step, last.total, metric, tuple(values))


def sparkline(values: Sequence[float], width: int = 16) -> str:
    """Draw the last `width` values, the smallest at the bottom."""
    shown = [value for value in values if math.isfinite(value)][-width:]
    if not shown:
        return ""
    low, high = min(shown), max(shown)
    scale = (len(SPARKS) - 1) / (high - low) if high > low else 0.0
    return "".join(SPARKS[round((value - low) * scale)] for value in shown)


def foreseen(files: StudyDir, views: Sequence[Seen], elapsed: Mapping[str, float]) -> list[float]:
    """What runs under way foresee of themselves; nothing once one has finished, which says more."""
    if _finished(views):
        return []
    asked = list(elapsed.items())[:ASKED]
    known = [foresee(files.run(run_id), age) for run_id, age in asked]
    return [seconds for seconds in known if seconds is not None]


def foresee(run: RunDir, age: float) -> float | None:
    """Seconds that a run of this age will have taken, if its steps go on as they went.

    None before its first step, and for one that was started again: at which step is not known.
    """
    progress = read_progress(run)
    if progress is None or progress.step < 1 or run.lease(2).exists():
        return None
    try:
        silent = time.time() - run.progress.stat().st_mtime
    except OSError:
        return None
    return max(age - silent, 0.0) * max(progress.total / progress.step, 1.0)


def time_left(
    views: Sequence[Seen],
    elapsed: Mapping[str, float],
    places: int,
    foreseen: Sequence[float] = (),
) -> float | None:
    """Seconds until all runs have a verdict; None before anything is known.

    A run is expected to take the mean of its configuration's finished runs, or of all where there
    are none. Running runs are censored: they say only that a duration exceeds their age, so the
    mean over all is the exponential estimate, (finished + running time) / number finished, as soon
    as a running one is older than the plain mean. Before the first has finished, what running ones
    foresee of themselves takes its place. What is left is shared among the places, and no less than
    the longest single run needs.
    """
    finished = _finished(views)
    durations = [seconds for one in finished.values() for seconds in one] or list(foreseen)
    if not durations:
        return None
    mean = sum(durations) / len(durations)
    if any(age > mean for age in elapsed.values()):
        mean = (sum(durations) + sum(elapsed.values())) / len(durations)
    left = []
    for seen in views:
        if seen.state in ("pending", "running"):
            own = finished.get(seen.run.config)
            expected = sum(own) / len(own) if own else mean
            age = elapsed.get(seen.run.run_id, 0.0)
            # Past its expected end, a run of a memoryless kind has as long to go as ever.
            left.append(expected - age if age < expected else expected)
    return max(sum(left) / max(places, 1), max(left)) if left else 0.0


def _finished(views: Sequence[Seen]) -> dict[str, list[float]]:
    """Seconds that finished runs took, by configuration."""
    found: dict[str, list[float]] = {}
    for seen in views:
        if seen.state in ("done", "diverged") and seen.seconds is not None:
            found.setdefault(seen.run.config, []).append(seen.seconds)
    return found


def duration_text(seconds: float | None) -> str:
    """Write a duration for people: 12 s, 3 min 20 s, 5 h 07 min."""
    if seconds is None:
        return "unknown"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"
