"""The responses table: one row per planned run; a gap keeps its reason."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from doe.store.scan import RunStatus
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


def table_rows(study: Study, views: Sequence[RunStatus]) -> list[list[Any]]:
    """The table as plain rows, for those who do without pandas."""
    return [_row(study, seen) for seen in views]


def _row(study: Study, seen: RunStatus) -> list[Any]:
    run, result = seen.run, seen.result
    origin = result.provenance if result else {}
    return [
        *(run.run_id, run.run_order, run.row, run.replicate, run.block, run.seed, run.config),
        *(run.levels[key] for key in study.keys),
        *run.coded,
        seen.state,
        seen.reason,
        *slot_and_host(seen),
        origin.get("seconds", math.nan),
        *response_values(study, seen).values(),
    ]


def slot_and_host(seen: RunStatus) -> tuple[str, str]:
    """Where a run was or is executed; empty where nobody knows."""
    origin = seen.result.provenance if seen.result else {}
    lease = seen.lease.lease if seen.lease and seen.state == "running" else None
    return (
        origin.get("slot", lease.slot if lease else ""),
        origin.get("host", lease.host if lease else ""),
    )


def response_values(study: Study, seen: RunStatus) -> dict[str, float]:
    """Metrics, further metrics and averages of a run; NaN where there is no value."""
    responses = study.responses
    given = seen.result.metrics if seen.result else {}
    values = {}
    for name in (*responses.metrics, *responses.further):
        value = given.get(name)
        values[name] = math.nan if value is None else value
    for name, parts in responses.averages.items():
        values[name] = math.fsum(values[part] for part in parts) / len(parts)
    return values
