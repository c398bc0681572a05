"""The responses table: one row per planned run; a gap keeps its reason."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from doe.plan import load_plan
from doe.scan import Seen, scan
from doe.store import StudyDir
from doe.study import Study

if TYPE_CHECKING:
    import pandas as pd


def load(directory: Path | str) -> pd.DataFrame:
    """Read a study's results, in run order.

    Columns: the run (`run_id, run_order, row, replicate, block, seed, config`), the factors' levels
    as given and coded −1/+1 (`<key>_coded`), `state` (done, diverged, failed, running, pending),
    `reason`, `slot`, `host`, `seconds`, then metrics, further metrics and averages. An average is
    the plain mean of its metrics. A missing value is NaN.
    """
    import pandas as pd

    _, study, design = load_plan(Path(directory))
    views = scan(StudyDir(Path(directory)), design.runs)
    return pd.DataFrame(table_rows(study, views), columns=columns(study))


def columns(study: Study) -> list[str]:
    """Names of the columns, in order."""
    responses = study.responses
    return [
        *("run_id", "run_order", "row", "replicate", "block", "seed", "config"),
        *study.keys,
        *(f"{key}_coded" for key in study.keys),
        *("state", "reason", "slot", "host", "seconds"),
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


def slot_and_host(seen: Seen) -> tuple[str, str]:
    """Where a run was or is executed; empty where nobody knows."""
    origin = seen.result.provenance if seen.result else {}
    lease = seen.lease.lease if seen.lease and seen.state == "running" else None
    return (
        origin.get("slot", lease.slot if lease else ""),
        origin.get("host", lease.host if lease else ""),
    )


def response_values(study: Study, seen: Seen) -> dict[str, float]:
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
