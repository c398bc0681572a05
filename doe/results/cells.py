"""Configurations as rows of tables: mean and spread of every response over their runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from doe.store.scan import RunStatus


class Spread(NamedTuple):
    """A mean with the standard deviation around it; None where a single run gives no spread."""

    mean: float
    std: float | None


class Cell(NamedTuple):
    """One configuration: mean and standard deviation of every response over its runs."""

    row: int
    config: str
    coded: tuple[int, ...]
    spreads: Mapping[str, Spread]
    """Responses with a value in some run."""


def cells_of(views: Sequence[RunStatus], values: dict[str, list[float]]) -> tuple[Cell, ...]:
    """Means and standard deviations of all configurations, over the runs that have a value."""
    places: dict[int, list[int]] = {}
    for i, seen in enumerate(views):
        places.setdefault(seen.run.row, []).append(i)
    cells = []
    for row in sorted(places):
        run = views[places[row][0]].run
        spreads: dict[str, Spread] = {}
        for name, column in values.items():
            if (spread := cell_spread([column[i] for i in places[row]])) is not None:
                spreads[name] = spread
        cells.append(Cell(row, run.config, run.coded, spreads))
    return tuple(cells)


def cell_spread(values: Sequence[float]) -> Spread | None:
    """Mean and sample standard deviation of the values that are there; None without any."""
    known = [value for value in values if not math.isnan(value)]
    if not known:
        return None
    mean = math.fsum(known) / len(known)
    if len(known) < 2:
        return Spread(mean, None)
    return Spread(mean, math.sqrt(math.fsum((v - mean) ** 2 for v in known) / (len(known) - 1)))
