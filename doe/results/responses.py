"""The responses table: one row per planned run; a gap keeps its reason."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from doe.store.scan import Seen
from doe.study.values import RUN_COLUMNS, STATE_COLUMNS, Study, coded_columns


def columns(study: Study) -> list[str]:
    """Names of the columns, in order."""
    responses = study.responses
    return [
        *RUN_COLUMNS,
        *study.keys,
        *coded_columns(study.keys),
        *STATE_COLUMNS,
        *responses.metrics,
        *responses.further,
        *responses.averages,
    ]


def table_rows(study: Study, views: Sequence[Seen]) -> list[list[Any]]:
    """The table as plain rows, for those who do without pandas."""
    return [_row(study, view) for view in views]


def _row(study: Study, view: Seen) -> list[Any]:
    run, result = view.run, view.result
    origin = result.provenance if result else {}
    return [
        *(run.run_id, run.run_order, run.row, run.replicate, run.block, run.seed, run.config),
        *(run.levels[key] for key in study.keys),
        *run.coded,
        view.state,
        view.reason,
        *slot_and_host(view),
        origin.get("seconds", math.nan),
        *response_values(study, view).values(),
    ]


def slot_and_host(view: Seen) -> tuple[str, str]:
    """Where a run was or is executed; empty where nobody knows."""
    origin = view.result.provenance if view.result else {}
    lease = view.lease.lease if view.lease and view.state == "running" else None
    return (
        origin.get("slot", lease.slot if lease else ""),
        origin.get("host", lease.host if lease else ""),
    )


def response_values(study: Study, view: Seen) -> dict[str, float]:
    """Metrics, further metrics and averages of a run; NaN where there is no value."""
    responses = study.responses
    given = view.result.metrics if view.result else {}
    values = {}
    for name in (*responses.metrics, *responses.further):
        value = given.get(name)
        values[name] = math.nan if value is None else value
    for name, parts in responses.averages.items():
        values[name] = math.fsum(values[part] for part in parts) / len(parts)
    return values
