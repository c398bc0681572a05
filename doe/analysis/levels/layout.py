"""What an analysis with levels is given: which run had which levels, and what was observed."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from doe.analysis.contrasts import Floats, Ints
from doe.analysis.data import numbered
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
        """The levels as text: switches are false and true, numbers as they are written."""
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
    """A level as text, as it is written in a study file."""
    if isinstance(level, bool):
        return "true" if level else "false"
    return level if isinstance(level, str) else repr(level)


@dataclass(frozen=True)
class LevelRuns:
    """Which run had which levels: the part that all responses share."""

    factors: tuple[FactorColumn, ...]
    index: Ints  # runs x factors: the level's number, CENTRE in centre runs
    block: Ints | None = None  # 0, 1, ...; None where there is but one
    block_name: str = "block"
    centre: NDArray[np.bool_] | None = None  # which runs are centre runs
    notes: tuple[str, ...] = ()  # what was taken for granted when the runs were read

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

    def only(self, kept: Ints) -> LevelRuns:
        """The chosen runs, blocks numbered without gaps and None where one is left."""
        block = self.block
        if block is not None:
            block = np.unique(block[kept], return_inverse=True)[1].astype(np.int64)
            block = block if block.max(initial=0) > 0 else None
        centre = self.is_centre[kept]
        return LevelRuns(
            self.factors,
            self.index[kept],
            block,
            self.block_name,
            centre if centre.any() else None,
            self.notes,
        )


@dataclass(frozen=True)
class LevelObservations:
    """One response of the runs; NaN where a run has no value."""

    layout: LevelRuns
    response: str
    y: Floats
    unit: str = ""
    goal: str | None = None  # min, max, or None where neither is known
    scale: str = "raw"  # raw, log or auto: what is analysed unless a transformation is asked for


def layout_of(
    columns: Mapping[str, Sequence[Level]],
    levels: Mapping[str, Sequence[Level]] | None = None,
    scales: Mapping[str, str] | None = None,
    names: Mapping[str, str] | None = None,
    block: Sequence[Hashable] | None = None,
    block_name: str = "block",
) -> LevelRuns:
    """A layout from the level of every run, a column per factor.

    Parameters
    ----------
    columns
        Key of a factor -> its level in every run.
    levels
        Levels in their order, where that is known; else numbers rise, ``False`` comes before
        ``True``, and words stand in the alphabet's order.
    scales
        ``linear`` or ``log`` of numeric factors; ``linear`` where it is not said.

    Rows in which every factor, of two or more, has a number between its others that occurs in no
    further row are centre runs.

    Raises
    ------
    DoeError
        As `check_layout`, and if a run has a level that is not among those said.
    """
    levels, scales, names = levels or {}, scales or {}, names or {}
    centre = _centre_rows(columns, levels)
    factors, index = [], []
    for key, values in columns.items():
        present = {v for v, middle in zip(values, centre, strict=True) if not middle}
        order = tuple(levels[key]) if key in levels else tuple(sorted(present, key=_rank))
        unknown = sorted(present - set(order), key=_rank)
        if unknown:
            known = ", ".join(level_label(level) for level in order)
            raise DoeError(
                f"a run has {key} = {level_label(unknown[0])}, which is no level; they are {known}"
            )
        numeric = all(isinstance(v, int | float) and not isinstance(v, bool) for v in order)
        scale = scales.get(key, "linear")
        factors.append(FactorColumn(key, names.get(key, key), order, numeric, scale))
        number = {level: i for i, level in enumerate(order)}
        index.append([CENTRE if c else number[v] for v, c in zip(values, centre, strict=True)])
    numbers = None if block is None else numbered(block)
    middle = np.array(centre, dtype=bool)
    return LevelRuns(
        tuple(factors),
        np.array(index, np.int64).T.reshape(len(centre), len(factors)),
        None if numbers is None or numbers.max(initial=0) == 0 else numbers,
        block_name,
        middle if middle.any() else None,
    )


def _rank(level: Level) -> tuple[int, float, str]:
    """Numbers and switches by size, then words by the alphabet."""
    return (1, 0.0, level) if isinstance(level, str) else (0, float(level), "")


def _centre_rows(
    columns: Mapping[str, Sequence[Level]], levels: Mapping[str, Sequence[Level]]
) -> list[bool]:
    """Rows where every factor has a number between its others that no other row has."""
    keys = list(columns)
    count = len(columns[keys[0]])
    numbers = all(
        isinstance(v, int | float) and not isinstance(v, bool) for key in keys for v in columns[key]
    )
    if len(keys) < 2 or not numbers:
        return [False] * count
    first = columns[keys[0]]
    for value in sorted(set(first), key=_rank):
        rows = [v == value for v in first]
        if all(_is_middle(columns[key], rows, levels.get(key, ())) for key in keys):
            return rows
    return [False] * count


def _is_middle(values: Sequence[Level], rows: Sequence[bool], known: Sequence[Level]) -> bool:
    inside = {float(v) for v, row in zip(values, rows, strict=True) if row}
    others = {float(v) for v, row in zip(values, rows, strict=True) if not row}
    return (
        len(inside) == 1
        and len(others) > 1
        and not inside & others
        and not inside & {float(v) for v in known}
        and min(others) < min(inside) < max(others)
    )


def check_layout(layout: LevelRuns) -> None:
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
