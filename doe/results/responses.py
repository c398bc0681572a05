"""The responses table: one row per planned run; a gap keeps its reason."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from typing import Any

from doe.errors import DoeError, nearest
from doe.store.scan import RunStatus
from doe.store.verdicts import IMPORTED
from doe.study.values import (
    RECORDED,
    RUN_COLUMNS,
    STATE_COLUMNS,
    WHOLE_PLOT,
    Study,
    coded_columns,
    seed_columns,
)
from doe.terms import level_text


def columns(study: Study) -> list[str]:
    """Names of the columns, in order."""
    known = study.responses
    responses = (*known.metrics, *known.further, *known.averages)
    return [
        *RUN_COLUMNS,
        *seed_columns(study.streams),
        *([WHOLE_PLOT] if study.whole_plot_factors else []),
        *study.keys,
        *coded_columns(study.keys),
        *STATE_COLUMNS,
        *(name for name in responses if name not in STATE_COLUMNS),
    ]


def table_rows(study: Study, statuses: Sequence[RunStatus]) -> list[list[Any]]:
    """The table as plain rows, for those who do without pandas."""
    return [_row(study, status) for status in statuses]


def _row(study: Study, status: RunStatus) -> list[Any]:
    run, origin, values = status.run, status.provenance, response_values(study, status)
    return [
        *run.cells,
        *([run.whole_plot] if study.whole_plot_factors else []),
        *(run.levels[key] for key in study.keys),
        *run.coded,
        status.state,
        status.reason,
        *slot_and_host(status),
        *(origin.get(key, "") for key in ("start", "end")),
        values.pop("seconds", origin.get("seconds", math.nan)),
        origin.get(IMPORTED, ""),
        *values.values(),
    ]


def table_csv(study: Study, statuses: Sequence[RunStatus]) -> str:
    """The table as CSV; a missing value is empty."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns(study))
    for row in table_rows(study, statuses):
        cells = [level_text(cell) if isinstance(cell, bool) else cell for cell in row]
        writer.writerow(["" if cell != cell else cell for cell in cells])  # NaN differs from itself
    return out.getvalue()


def slot_and_host(status: RunStatus) -> tuple[str, str]:
    """Where a run was or is executed; empty where nobody knows."""
    origin = status.provenance
    lease = status.lease.lease if status.lease and status.state == "running" else None
    return (
        origin.get("slot", lease.slot if lease else ""),
        origin.get("host", lease.host if lease else ""),
    )


def check_response(study: Study, name: str) -> None:
    """Refuse a name that is no response of the study."""
    known = study.responses.names
    if name not in known:
        raise DoeError(
            f"response {name!r} is none of the study's{nearest(name, known)}; "
            f"it has {', '.join(known)}"
        )


def mean_of(values: Sequence[float]) -> float:
    """The plain mean, of any magnitude that a float can have."""
    try:
        return math.fsum(values) / len(values)
    except OverflowError:  # the sum, not the mean
        return math.fsum(value / len(values) for value in values)


def response_values(study: Study, status: RunStatus) -> dict[str, float]:
    """Metrics, further metrics and averages of a run; NaN where there is no value.

    What is recorded of each run is a response of those that are done.
    """
    responses = study.responses
    metrics = dict(status.result.metrics) if status.result else {}
    if status.state == "done":
        recorded = {name: status.provenance.get(name) for name in RECORDED}
        metrics = {name: value for name, value in recorded.items() if value is not None} | metrics
    values = {}
    for name in (*responses.metrics, *responses.further):
        value = metrics.get(name)
        values[name] = math.nan if value is None else value
    for name, parts in responses.averages.items():
        values[name] = mean_of([values[part] for part in parts])
    return values
