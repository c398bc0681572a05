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
    return [_row(study, seen) for seen in views]


def _row(study: Study, seen: Seen) -> list[Any]:
    run, result = seen.run, seen.result
    origin = result.provenance if result else {}
    lease = seen.lease.lease if seen.lease and seen.state == "running" else None
    metrics = _metrics(study, seen)
    return [
        *(run.run_id, run.run_order, run.row, run.replicate, run.block, run.seed, run.config),
        *(run.levels[key] for key in study.keys),
        *run.coded,
        seen.state,
        seen.reason,
        origin.get("slot", lease.slot if lease else ""),
        origin.get("host", lease.host if lease else ""),
        origin.get("seconds", math.nan),
        *metrics.values(),
    ]


def _metrics(study: Study, seen: Seen) -> dict[str, float]:
    responses = study.responses
    given = seen.result.metrics if seen.result else {}
    values = {}
    for name in (*responses.metrics, *responses.further):
        value = given.get(name)
        values[name] = math.nan if value is None else value
    for name, parts in responses.averages.items():
        values[name] = math.fsum(values[part] for part in parts) / len(parts)
    return values
