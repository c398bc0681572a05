"""How long a study will take: from finished runs, or from the steps that the first ones report."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from doe.store.files import RunDir, StudyDir
from doe.store.progress import read_progress
from doe.store.scan import RunStatus

ASKED = 32
"""Runs under way that are asked for a first estimate of the time left, at most."""


def study_time_left(
    files: StudyDir, statuses: Sequence[RunStatus], elapsed: Mapping[str, float], places: int
) -> float | None:
    """Seconds until all runs and stages have a verdict, each kind judged by its own durations.

    None as long as nothing is known of a kind that is still to come.
    """
    total = 0.0
    for stage in dict.fromkeys(status.run.stage for status in statuses):
        own = [status for status in statuses if status.run.stage == stage]
        ages = {s.run.run_id: elapsed[s.run.run_id] for s in own if s.run.run_id in elapsed}
        left = time_left(own, ages, places, foreseen(files, own, ages))
        if left is None:
            return None
        total += left
    return total


def foreseen(
    files: StudyDir, statuses: Sequence[RunStatus], elapsed: Mapping[str, float]
) -> list[float]:
    """What runs under way foresee of themselves; nothing once one has finished, which says more."""
    if _finished(statuses):
        return []
    first = list(elapsed.items())[:ASKED]
    durations = [foresee(files.run(run_id), age) for run_id, age in first]
    return [seconds for seconds in durations if seconds is not None]


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
    statuses: Sequence[RunStatus],
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
    finished = _finished(statuses)
    durations = [seconds for taken in finished.values() for seconds in taken] or list(foreseen)
    if not durations:
        return None
    mean = sum(durations) / len(durations)
    if any(age > mean for age in elapsed.values()):
        mean = (sum(durations) + sum(elapsed.values())) / len(durations)
    left = []
    for status in statuses:
        if status.state in ("pending", "running"):
            own = finished.get(status.run.config)
            expected = sum(own) / len(own) if own else mean
            age = elapsed.get(status.run.run_id, 0.0)
            # Past its expected end, a run of a memoryless kind has as long to go as ever.
            left.append(expected - age if age < expected else expected)
    return max(sum(left) / max(places, 1), max(left)) if left else 0.0


def _finished(statuses: Sequence[RunStatus]) -> dict[str, list[float]]:
    """Seconds that finished runs took, by configuration."""
    durations: dict[str, list[float]] = {}
    for status in statuses:
        if status.state in ("done", "diverged") and status.seconds is not None:
            durations.setdefault(status.run.config, []).append(status.seconds)
    return durations
