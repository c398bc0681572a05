"""What a person wants to know of one run: how it learned, what it wrote last, why it failed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from doe.results.curves import EPOCH, Curve, Lines, line_responses
from doe.store.files import StudyDir, read_end
from doe.store.scan import RunStatus
from doe.study.values import Study

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
    """The first column, which is the loss where a backend writes one, and the asked responses."""
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
