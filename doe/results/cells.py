"""Configurations as rows of tables: mean and spread of every response over their runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from doe.numbers import Spread
from doe.results.responses import mean_of
from doe.study.values import Group, Level, Responses, Study


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
    """The configuration that others are compared with: the [report] section's, else the first."""
    groups = [g for g in study.report.groups if response in (g.name, *g.responses)]
    marked = [cell for group in groups for cell in cells if is_baseline(group, cell)]
    return min(marked or cells, key=lambda cell: cell.row).config


def is_baseline(group: Group, cell: Cell) -> bool:
    """Whether a configuration has the levels that mark the baseline of a group."""
    return bool(group.baseline) and all(
        cell.levels[key] == level for key, level in group.baseline.items()
    )
