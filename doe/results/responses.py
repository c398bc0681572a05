"""The responses of every run, and their means and spreads by configuration."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from doe.errors import DoeError, nearest
from doe.numbers import Spread
from doe.store.scan import RunStatus
from doe.store.verdicts import IMPORTED
from doe.study.values import (
    RECORDED,
    RUN_COLUMNS,
    STATE_COLUMNS,
    WHOLE_PLOT,
    Group,
    Level,
    Responses,
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
    """Return the table as plain rows, for those who do without pandas."""
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
    """Return the table as CSV; a missing value is empty."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns(study))
    for row in table_rows(study, statuses):
        cells = [level_text(cell) if isinstance(cell, bool) else cell for cell in row]
        writer.writerow(["" if cell != cell else cell for cell in cells])  # NaN differs from itself
    return out.getvalue()


def slot_and_host(status: RunStatus) -> tuple[str, str]:
    """Return where a run was or is executed; empty where nobody knows."""
    origin = status.provenance
    lease = status.lease.lease if status.lease and status.state == "running" else None
    return (
        origin.get("slot", lease.slot if lease else ""),
        origin.get("host", lease.host if lease else ""),
    )


def check_response(study: Study, name: str) -> None:
    """Refuse a name that is not a response of the study."""
    known = study.responses.names
    if name not in known:
        raise DoeError(
            f"response {name!r} is not among the study's{nearest(name, known)}; "
            f"it has {', '.join(known)}"
        )


def mean_of(values: Sequence[float]) -> float:
    """Return the plain mean, of any magnitude that a float can have."""
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


# Configurations -----------------------------------------------------------------------------------


class Cell(NamedTuple):
    """One configuration: mean and standard deviation of every response over its runs."""

    row: int
    config: str
    levels: Mapping[str, Level]
    spreads: Mapping[str, Spread]
    """Responses with a value in some run."""


class Configured(Protocol):
    """A run with its configuration."""

    @property
    def row(self) -> int:
        """Number of the configuration in standard order."""

    @property
    def config(self) -> str:
        """The configuration as it is shown."""

    @property
    def levels(self) -> dict[str, Level]:
        """Factor -> its level."""


def cells_of(runs: Sequence[Configured], values: Mapping[str, Sequence[float]]) -> tuple[Cell, ...]:
    """Means and standard deviations of all configurations, over the runs that have a value."""
    indices: dict[int, list[int]] = {}
    for i, run in enumerate(runs):
        indices.setdefault(run.row, []).append(i)
    cells = []
    for row in sorted(indices):
        run = runs[indices[row][0]]
        spreads: dict[str, Spread] = {}
        for name, column in values.items():
            if (spread := cell_spread([column[i] for i in indices[row]])) is not None:
                spreads[name] = spread
        cells.append(Cell(row, run.config, run.levels, spreads))
    return tuple(cells)


def cell_spread(values: Sequence[float]) -> Spread | None:
    """Mean and sample standard deviation of the values that are there; None without any."""
    known = [value for value in values if not math.isnan(value)]
    if not known:
        return None
    mean = mean_of(known)
    if len(known) < 2:
        return Spread(mean, None)
    return Spread(mean, math.hypot(*(v - mean for v in known)) / math.sqrt(len(known) - 1))


def best_cells(
    cells: Sequence[Cell], responses: Sequence[str], answers: Responses
) -> dict[str, int]:
    """Response -> row number of the configuration with the best mean, by the response's goal."""
    best = {}
    for name in responses:
        known = [(cell.spreads[name].mean, cell.row) for cell in cells if name in cell.spreads]
        if known and answers.goal_of(name) is not None:
            choose = max if answers.goal_of(name) == "max" else min
            best[name] = choose(known, key=lambda pair: pair[0])[1]
    return best


def best_first(cells: Sequence[Cell], response: str, goal: str | None) -> list[Cell]:
    """Configurations by their mean, the best first, those without one last."""
    sign = -1 if goal == "max" else 1

    def rank(cell: Cell) -> float:
        return sign * cell.spreads[response].mean if response in cell.spreads else math.inf

    return sorted(cells, key=rank)


def baseline(study: Study, cells: Sequence[Cell], response: str) -> str:
    """Return the configuration that others are compared with: the [report] section's, else the
    first.
    """
    groups = [g for g in study.report.groups if response in (g.name, *g.responses)]
    marked = [cell for group in groups for cell in cells if is_baseline(group, cell)]
    return min(marked or cells, key=lambda cell: cell.row).config


def is_baseline(group: Group, cell: Cell) -> bool:
    """Return whether a configuration has the levels that mark the baseline of a group."""
    return bool(group.baseline) and all(
        cell.levels[key] == level for key, level in group.baseline.items()
    )
