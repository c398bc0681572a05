"""What an analysis with levels is given: which run had which levels, and what was observed."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from doe.analysis.contrasts import Floats, Ints
from doe.errors import DoeError

Level = bool | int | float | str
CENTRE = -1
"""Level index of every factor in a centre run, and the cell of such a run."""


class FactorColumn(Struct, frozen=True):
    """A factor with its levels in the order in which they are shown."""

    key: str
    name: str
    levels: tuple[Level, ...]
    numeric: bool = False
    scale: str = "linear"  # linear or log; of numbers only

    @property
    def labels(self) -> tuple[str, ...]:
        """The levels as text: switches are on and off, numbers as they are written."""
        return tuple(level_label(level) for level in self.levels)

    @property
    def positions(self) -> Floats:
        """Where the levels of a numeric factor lie on its scale, from -1 (least) to 1 (most)."""
        z = np.array([float(level) for level in self.levels])
        if self.scale == "log":
            z = np.log(z)
        low, high = float(z.min()), float(z.max())
        return np.asarray((z - low) / (high - low) * 2.0 - 1.0)


def level_label(level: Level) -> str:
    """A level as text."""
    if isinstance(level, bool):
        return "on" if level else "off"
    return level if isinstance(level, str) else repr(level)


@dataclass(frozen=True)
class Layout:
    """Which run had which levels: the part that all responses share."""

    factors: tuple[FactorColumn, ...]
    index: Ints  # runs x factors: the level's number, CENTRE in centre runs
    block: Ints | None = None  # 0, 1, ...; None where there is but one
    block_name: str = "block"
    centre: NDArray[np.bool_] | None = None  # which runs are centre runs

    def __post_init__(self) -> None:
        check_layout(self)

    @property
    def runs(self) -> int:
        """Number of runs."""
        return len(self.index)

    @property
    def keys(self) -> tuple[str, ...]:
        """Factor keys."""
        return tuple(factor.key for factor in self.factors)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of levels of each factor."""
        return tuple(len(factor.levels) for factor in self.factors)

    @property
    def is_centre(self) -> NDArray[np.bool_]:
        """Which runs are centre runs; none where none are said."""
        return np.zeros(self.runs, dtype=bool) if self.centre is None else self.centre

    @property
    def cells(self) -> Ints:
        """Number of each run's cell, the first factor fastest; CENTRE for centre runs."""
        weights = np.cumprod([1, *self.sizes[:-1]])
        return np.where(self.is_centre, CENTRE, self.index @ weights)

    def cell_levels(self, cell: int) -> tuple[int, ...]:
        """Level index of each factor in a cell."""
        if cell == CENTRE:
            return (CENTRE,) * len(self.factors)
        levels = []
        for size in self.sizes:
            cell, level = divmod(cell, size)
            levels.append(level)
        return tuple(levels)

    def config(self, cell: int) -> str:
        """A configuration by its levels, ``0.01 · adam · off``."""
        if cell == CENTRE:
            return "centre"
        levels = zip(self.factors, self.cell_levels(cell), strict=True)
        return " · ".join(factor.labels[i] for factor, i in levels)

    def only(self, kept: Ints) -> Layout:
        """The chosen runs, blocks numbered without gaps and None where one is left."""
        block = self.block
        if block is not None:
            block = np.unique(block[kept], return_inverse=True)[1].astype(np.int64)
            block = block if block.max(initial=0) > 0 else None
        centre = self.is_centre[kept]
        return Layout(
            self.factors, self.index[kept], block, self.block_name, centre if centre.any() else None
        )


@dataclass(frozen=True)
class LevelObservations:
    """One response of the runs on the scale to be analysed; NaN where a run has no value."""

    layout: Layout
    response: str
    y: Floats
    unit: str = ""
    goal: str | None = None  # min, max, or None where neither is known


def check_layout(layout: Layout) -> None:
    """Refuse what cannot be analysed.

    Raises
    ------
    DoeError
        If a factor has fewer than two levels or one twice, numbers do not fit their scale, a run
        names a level that is not there, or centre runs stand beside a factor without numbers.
    """
    for factor in layout.factors:
        _check_factor(factor)
    shape = (layout.runs, len(layout.factors))
    if layout.index.shape != shape:
        raise DoeError(f"levels have shape {layout.index.shape}; expected {shape}")
    at = layout.index[~layout.is_centre]
    if len(at) and ((at < 0) | (at >= np.array(layout.sizes))).any():
        raise DoeError("a run names a level that its factor does not have")
    if layout.centre is not None and layout.centre.any():
        words = [factor.key for factor in layout.factors if not factor.numeric]
        if words:
            raise DoeError(
                f"centre runs need numbers on every factor; {', '.join(words)} has none between"
                " its levels"
            )


def _check_factor(factor: FactorColumn) -> None:
    if len(factor.levels) < 2:
        raise DoeError(f"factor {factor.key} has {len(factor.levels)} level; expected two or more")
    labels = factor.labels
    twice = [label for i, label in enumerate(labels) if label in labels[:i]]
    if twice:
        raise DoeError(f"factor {factor.key} has the level {twice[0]} twice")
    if not factor.numeric:
        return
    numbers = [v for v in factor.levels if isinstance(v, int | float) and not isinstance(v, bool)]
    if len(numbers) < len(labels) or not all(math.isfinite(number) for number in numbers):
        raise DoeError(f"factor {factor.key} is numeric, but not all its levels are numbers")
    if factor.scale not in ("linear", "log"):
        raise DoeError(f"factor {factor.key} has scale {factor.scale!r}; expected linear or log")
    if factor.scale == "log" and min(numbers) <= 0:
        raise DoeError(
            f"factor {factor.key} has a log scale and the level {min(numbers)}; "
            "logarithms need numbers above 0"
        )
