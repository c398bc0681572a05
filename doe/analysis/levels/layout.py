"""What an analysis with levels is given: which run had which levels, and what was observed."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeGuard

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from doe.analysis.contrasts import Floats, Ints, blocks_of
from doe.analysis.data import numbered
from doe.analysis.streams import Seeding
from doe.errors import DoeError
from doe.terms import BETWEEN, config_label, level_text

Level = bool | int | float | str
MIDDLE = -1
"""Level index of a factor at its middle, and the cell of a run with every factor there."""


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
        return tuple(level_text(level) for level in self.levels)

    @property
    def positions(self) -> Floats:
        """Where the levels of a numeric factor lie on its scale, from -1 (least) to 1 (most)."""
        z = np.array([float(level) for level in self.levels])
        if self.scale == "log":
            z = np.log(z)
        low, high = float(z.min()), float(z.max())
        return np.asarray((z - low) / (high - low) * 2.0 - 1.0)


@dataclass(frozen=True)
class LevelRuns:
    """Which run had which levels: the part that all responses share."""

    factors: tuple[FactorColumn, ...]
    index: Ints  # runs x factors: the level's number, MIDDLE at the middle in centre runs
    block: Ints | None = None  # 0, 1, ...; None where there is but one
    block_name: str = "block"
    centre: NDArray[np.bool_] | None = None  # which runs are centre runs
    notes: tuple[str, ...] = ()  # what was taken for granted when the runs were read
    seeding: Seeding | None = None  # None where each replicate has one seed of its own

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
    def centred(self) -> NDArray[np.bool_]:
        """Which factors are at their middle in centre runs; the others keep their levels there."""
        return np.asarray((self.index == MIDDLE).any(axis=0))

    @property
    def cells(self) -> Ints:
        """Number of each run's cell, the first factor fastest.

        Centre runs have numbers below 0: MIDDLE less the number of the cell of those factors that
        have no middle.
        """
        weights = np.cumprod([1, *self.sizes[:-1]])
        held = np.where(self.centred, 1, self.sizes)
        held_weights = np.where(self.centred, 0, np.cumprod([1, *held[:-1]]))
        return np.where(self.is_centre, MIDDLE - self.index @ held_weights, self.index @ weights)

    def cell_levels(self, cell: int) -> tuple[int, ...]:
        """Level index of each factor in a cell, MIDDLE at the middle."""
        middle = self.centred if cell < 0 else np.zeros(len(self.factors), dtype=bool)
        rest = MIDDLE - cell if cell < 0 else cell
        levels = []
        for size, at_middle in zip(self.sizes, middle.tolist(), strict=True):
            if at_middle:
                levels.append(MIDDLE)
                continue
            rest, level = divmod(rest, size)
            levels.append(level)
        return tuple(levels)

    def config(self, cell: int) -> str:
        """A configuration as it is shown, ``0.01 · adam · off``; ``centre`` for a middle."""
        levels = self.cell_levels(cell)
        named = list(zip(levels, self.factors, strict=True))
        if MIDDLE not in levels:
            return config_label(self.keys, [(i, factor.labels[i]) for i, factor in named])
        if set(levels) == {MIDDLE}:
            return "centre"
        return BETWEEN.join("centre" if i == MIDDLE else factor.labels[i] for i, factor in named)

    def only(self, kept: Ints) -> LevelRuns:
        """The chosen runs, blocks numbered without gaps and None where one is left."""
        centre = self.is_centre[kept]
        return LevelRuns(
            self.factors,
            self.index[kept],
            blocks_of(self.block, kept),
            self.block_name,
            centre if centre.any() else None,
            self.notes,
            self.seeding and self.seeding.of(kept),
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

    Rows in which two or more factors have a number between their others that occurs in no further
    row are centre runs; a factor without such a middle (words, counts) keeps its levels there.

    Raises
    ------
    DoeError
        As `check_layout`, and if a run has a level that is not among those said.
    """
    levels = levels or {}
    centre, centred = _centre_rows(columns, levels)
    factors, index = [], []
    for key, values in columns.items():
        at_middle = key in centred
        present = {v for v, c in zip(values, centre, strict=True) if not (c and at_middle)}
        order = tuple(levels[key]) if key in levels else tuple(sorted(present, key=_rank))
        unknown = sorted(present - set(order), key=_rank)
        if unknown:
            known = ", ".join(level_text(level) for level in order)
            raise DoeError(
                f"a run has {key} = {level_text(unknown[0])}, which is no level; they are {known}"
            )
        numeric = all(map(_is_number, order))
        factors.append(FactorColumn(key, key, order, numeric))
        number = {level: i for i, level in enumerate(order)}
        index.append([number.get(value, MIDDLE) for value in values])
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
) -> tuple[list[bool], set[str]]:
    """Rows where two or more factors have a number that lies between their others and is in no
    other row, and these factors; all others have levels there that other rows have too.
    """
    numeric = [key for key, values in columns.items() if all(map(_is_number, values))]
    for first in numeric:
        for value in sorted(set(columns[first]), key=_rank):
            rows = [v == value for v in columns[first]]
            middle = {k for k in numeric if _is_middle(columns[k], rows, levels.get(k, ()))}
            if len(middle) > 1 and all(
                _is_shared(columns[k], rows) for k in columns.keys() - middle
            ):
                return rows, middle
    return [False] * len(next(iter(columns.values()))), set()


def _is_number(level: Level) -> TypeGuard[int | float]:
    return isinstance(level, int | float) and not isinstance(level, bool)


def _is_shared(values: Sequence[Level], rows: Sequence[bool]) -> bool:
    """Whether a factor has no level in these rows that others lack."""
    inside = {v for v, row in zip(values, rows, strict=True) if row}
    return inside <= {v for v, row in zip(values, rows, strict=True) if not row}


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
    least = np.where(layout.is_centre, MIDDLE, 0)[:, None]
    if ((layout.index < least) | (layout.index >= np.array(layout.sizes))).any():
        raise DoeError("a run names a level that its factor does not have")
    middle = zip(layout.factors, layout.centred.tolist(), strict=True)
    if words := [factor.key for factor, at_middle in middle if at_middle and not factor.numeric]:
        raise DoeError(
            f"centre runs need numbers on a factor; {', '.join(words)} has none between its levels"
        )
    if (layout.centred & (layout.index != MIDDLE))[layout.is_centre].any():
        raise DoeError("some centre runs have a factor at its middle that others have elsewhere")


def _check_factor(factor: FactorColumn) -> None:
    if len(factor.levels) < 2:
        raise DoeError(f"factor {factor.key} has {len(factor.levels)} level; expected two or more")
    labels = factor.labels
    twice = [label for i, label in enumerate(labels) if label in labels[:i]]
    if twice:
        raise DoeError(f"factor {factor.key} has the level {twice[0]} twice")
    if not factor.numeric:
        return
    numbers = [level for level in factor.levels if _is_number(level)]
    if len(numbers) < len(labels) or not all(math.isfinite(number) for number in numbers):
        raise DoeError(f"factor {factor.key} is numeric, but not all its levels are numbers")
    if factor.scale not in ("linear", "log"):
        raise DoeError(f"factor {factor.key} has scale {factor.scale!r}; expected linear or log")
    if factor.scale == "log" and min(numbers) <= 0:
        raise DoeError(
            f"factor {factor.key} has a log scale and the level {min(numbers)}; "
            "logarithms need numbers above 0"
        )
