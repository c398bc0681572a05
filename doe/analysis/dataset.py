"""Input of an analysis: the levels of every run, and what was observed."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple, TypeGuard

import numpy as np
from msgspec import Struct

from doe.analysis.contrasts import Floats, Ints
from doe.analysis.spending import Rule
from doe.analysis.streams import Seeding
from doe.errors import DoeError
from doe.terms import (
    BETWEEN,
    OPEN,
    LevelOf,
    config_label,
    config_name,
    level_text,
    single_letters,
)

Level = bool | int | float | str
OFF = -1
"""Level number of a factor between its levels, as in a centre run."""
CENTRE = "centre"
"""How a run with every factor at its middle is called."""
NEAR_MIDDLE = 0.05
"""How far from the middle of the scale a centre run may be: 62 of 45 and 80, a whole number."""
FIGURES = 6
"""Digits of a value between levels."""


class FactorColumn(Struct, frozen=True):
    """A factor with its levels in the order in which they are shown."""

    key: str
    name: str
    levels: tuple[Level, ...]
    numeric: bool = False
    scale: str = "linear"  # linear or log; of numbers only
    role: str = "choice"  # choice, or condition: met and not chosen
    degree: int | None = None  # of the polynomial of a number; None for a mean at each level
    random: bool = False  # a condition whose levels are a sample of those to come

    @property
    def labels(self) -> tuple[str, ...]:
        """The levels as text: switches are false and true, numbers as they are written."""
        return tuple(level_text(level) for level in self.levels)

    @property
    def is_curve(self) -> bool:
        """Whether it is a number with too many values for a mean at each: a line and a curve."""
        return self.degree == 2

    @property
    def positions(self) -> Floats:
        """Positions of the levels of a numeric factor on its scale, from -1 (least) to 1 (most)."""
        return self.position_of(np.array([float(level) for level in self.levels]))

    @property
    def _ends(self) -> Floats:
        return np.array([min(map(float, self.levels)), max(map(float, self.levels))])

    def position_of(self, values: Floats) -> Floats:
        """Return where values lie on the scale on which the levels go from -1 to 1."""
        ends = self._ends
        if self.scale == "log":
            values, ends = np.log(values), np.log(ends)
        return np.asarray((values - ends[0]) / (ends[1] - ends[0]) * 2.0 - 1.0)

    def values_at(self, positions: Floats) -> Floats:
        """Return the values at positions of the scale: the inverse of `position_of`."""
        low, high = np.log(self._ends) if self.scale == "log" else self._ends
        values = low + (positions + 1.0) / 2.0 * (high - low)
        return np.asarray(np.exp(values) if self.scale == "log" else values)

    def value_at(self, position: float) -> float:
        """Return the value at one position, rounded; a whole number between whole levels."""
        exact = float(self.values_at(np.array(position)))
        none = 10.0**-FIGURES * max(abs(float(level)) for level in self.levels)
        value = 0.0 if abs(exact) < none and self.scale != "log" else exact
        value = float(f"{value:.{FIGURES}g}")
        whole = value.is_integer() and all(isinstance(level, int) for level in self.levels)
        return int(value) if whole else value


class RandomGroup(NamedTuple):
    """Runs that share something random, such as a whole plot."""

    name: str
    of: Ints  # number of each run's group


class Covariate(NamedTuple):
    """Measurement of each run from before a factor could act on it."""

    name: str
    values: Floats  # of each run; NaN where it is not known


@dataclass(frozen=True)
class Limits:
    """Restrictions of a study on where it may run, beyond the ranges of its factors."""

    integer: tuple[bool, ...]  # of each factor: whether it takes whole numbers alone
    listed: tuple[bool, ...]  # whether it takes its levels alone, though they are numbers
    excluded: tuple[dict[int, int], ...] = ()  # factor -> level of combinations that never run
    nested: dict[int, tuple[int, frozenset[int]]] = field(default_factory=dict)
    """Factor -> another one, and its levels beside which the factor has its first level."""
    weights: Floats | None = None  # constraints x factors: a weighted sum of the values
    bounds: Floats | None = None  # is at most this


@dataclass(frozen=True)
class Looked:
    """Runs that were looked at after each complete portion, as declared beforehand."""

    rule: Rule
    portion: Ints  # of each run, from 1


@dataclass(frozen=True)
class Runs:
    """Levels of every run and other facts about it, shared by all responses."""

    factors: tuple[FactorColumn, ...]
    index: Ints  # runs x factors: the level's number, OFF between levels
    position: Floats | None = None  # runs x factors, on the factors' scales; None if none is OFF
    block: Ints | None = None  # 0, 1, ...; None where there is but one
    block_name: str = "block"
    run_ids: tuple[str, ...] = ()
    run_order: tuple[int, ...] | None = None  # None where it is not known
    slot: tuple[str, ...] | None = None
    host: tuple[str, ...] | None = None
    states: tuple[str, ...] = ()  # state and reason where they are known, else ""
    notes: tuple[str, ...] = ()  # what was taken for granted when the runs were read
    looked: Looked | None = None  # None where the runs were not looked at before all were done
    seeding: Seeding | None = None  # None where each replicate has one seed of its own
    groups: tuple[RandomGroup, ...] = ()  # such as whole plots; each with an error of its own
    facts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # such as the kind of GPU
    limits: Limits | None = None  # where runs may be, beyond the ranges; None of a table
    covariates: tuple[Covariate, ...] = ()  # that the analysis adjusts for

    def __post_init__(self) -> None:
        check_runs(self)
        if not self.run_ids:
            ids = tuple(f"row {i}" for i in range(1, self.count + 1))
            object.__setattr__(self, "run_ids", ids)
        if not self.states:
            object.__setattr__(self, "states", ("",) * self.count)

    @property
    def count(self) -> int:
        """Number of runs."""
        return len(self.index)

    @property
    def keys(self) -> tuple[str, ...]:
        """Factor keys."""
        return tuple(factor.key for factor in self.factors)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Number of levels of each factor in configurations: 1 of a random condition.

        Its levels are a sample, so that they are no part of what is chosen, compared or repeated.
        """
        return tuple(1 if factor.random else len(factor.levels) for factor in self.factors)

    @property
    def stratified(self) -> bool:
        """Whether runs share something random, so that there is more than one error."""
        return bool(self.groups) or any(factor.random for factor in self.factors)

    @property
    def every(self) -> int:
        """Number of combinations of levels."""
        return math.prod(self.sizes)

    @property
    def two_level(self) -> bool:
        """Whether every factor has two levels."""
        return all(size == 2 for size in self.sizes)

    @cached_property
    def fixed_index(self) -> Ints:
        """Level numbers that identify configurations: those of random conditions are 0."""
        random = [factor.random for factor in self.factors]
        return np.where(random, 0, self.index) if any(random) else self.index

    @cached_property
    def off(self) -> np.ndarray:
        """Which runs lie between the levels of some factor."""
        return np.asarray((self.index == OFF).any(axis=1))

    @cached_property
    def off_points(self) -> Floats:
        """The distinct points between levels: level numbers and positions side by side."""
        if not self.off.any():
            return np.empty((0, 2 * len(self.factors)))
        return np.unique(self._points()[self.off], axis=0)

    def _points(self) -> Floats:
        assert self.position is not None
        place = np.where(self.index == OFF, np.round(self.position, 9), 0.0)
        return np.column_stack([self.fixed_index.astype(np.float64), place])

    @property
    def has_surface(self) -> bool:
        """Whether runs lie at more places between levels than one centre."""
        if not self.off.any() or self.position is None:
            return False
        places = np.where(self.index == OFF, np.round(self.position, 9), np.inf)[self.off]
        return len(np.unique(places, axis=0)) > 1

    @property
    def has_centre(self) -> bool:
        """Whether the runs between levels are centre runs, all at one place."""
        return bool(self.off.any()) and not self.has_surface

    @cached_property
    def cells(self) -> Ints:
        """Number of each run's configuration, the first factor fastest.

        A point between levels has a number below 0: -1 less its row in `off_points`.
        """
        weights = np.cumprod([1, *self.sizes[:-1]])
        cells = np.asarray(self.fixed_index @ weights, dtype=np.int64)
        if self.off.any():
            points = {tuple(row): i for i, row in enumerate(self.off_points.tolist())}
            rows = [points[tuple(row)] for row in self._points()[self.off].tolist()]
            cells[self.off] = OFF - np.array(rows, dtype=np.int64)
        return cells

    @cached_property
    def combinations(self) -> Ints:
        """Number of each run's configuration together with its random condition."""
        random = [i for i, factor in enumerate(self.factors) if factor.random]
        if not random:
            return self.cells
        return numbered(map(tuple, np.column_stack([self.cells, self.index[:, random]]).tolist()))

    def cell_levels(self, cell: int) -> tuple[int, ...]:
        """Level number of each factor in a configuration, OFF between levels."""
        if cell < 0:
            row = self.off_points[OFF - cell]
            return tuple(int(number) for number in row[: len(self.factors)])
        levels = []
        for size in self.sizes:
            cell, level = divmod(cell, size)
            levels.append(level)
        return tuple(levels)

    def cell_positions(self, cell: int) -> Floats:
        """Position of each factor in a configuration between levels."""
        return np.asarray(self.off_points[OFF - cell][len(self.factors) :])

    def values(self, cell: int) -> tuple[Level, ...]:
        """Return the level of each factor in a configuration, wherever it lies.

        A whole number near the middle counts as the middle (`runs_at`) and is rounded to itself.
        """
        levels = self.cell_levels(cell)
        places = self.cell_positions(cell) if cell < 0 else np.zeros(len(levels))
        values = [
            factor.value_at(float(place)) if number == OFF else factor.levels[number]
            for number, factor, place in zip(levels, self.factors, places, strict=True)
        ]
        whole = self.limits.integer if self.limits else (False,) * len(values)
        return tuple(round(v) if own else v for v, own in zip(values, whole, strict=True))  # type: ignore[arg-type]

    def levels_of(self, cell: int, fixed: int = -1) -> list[LevelOf]:
        """Levels of a configuration; factors outside the bits of `fixed` are left open."""
        numbers = self.cell_levels(cell)
        values = self.values(cell)
        return [
            (number, level_text(value)) if fixed >> i & 1 and not factor.random else None
            for i, (number, value, factor) in enumerate(
                zip(numbers, values, self.factors, strict=True)
            )
        ]

    def config(self, cell: int, fixed: int = -1) -> str:
        """Return a configuration as it is shown, some of its factors left open."""
        if cell >= 0:
            return config_label(self.keys, self.levels_of(cell, fixed))
        pairs = [
            (factor.key, OPEN if factor.random else level_text(value))
            for factor, value in zip(self.factors, self.values(cell), strict=True)
        ]
        if not single_letters(self.keys):
            return BETWEEN.join(text for _, text in pairs)
        if set(self.cell_levels(cell)) == {OFF} and not self.cell_positions(cell).any():
            return CENTRE
        return ", ".join(f"{key}={text}" for key, text in pairs if text != OPEN)

    def config_names(self, cells: Iterable[int]) -> dict[str, int]:
        """Return configurations by their name in files and options, and as they are shown."""
        shown = {self.config(cell): cell for cell in cells}
        named = {config_name(self.keys, self.levels_of(c)): c for c in shown.values() if c >= 0}
        return named | shown

    def only(self, kept: Ints) -> Runs:
        """Return the chosen runs, blocks numbered without gaps and None where one is left."""
        chosen = kept.tolist()

        def of(values: tuple[str, ...] | None) -> tuple[str, ...] | None:
            return None if values is None else tuple(values[i] for i in chosen)

        order = self.run_order
        return replace(
            self,
            index=self.index[kept],
            position=None if self.position is None else self.position[kept],
            block=blocks_of(self.block, kept),
            run_ids=of(self.run_ids) or (),
            run_order=None if order is None else tuple(order[i] for i in chosen),
            slot=of(self.slot),
            host=of(self.host),
            states=of(self.states) or (),
            seeding=self.seeding and self.seeding.of(kept),
            groups=tuple(RandomGroup(group.name, group.of[kept]) for group in self.groups),
            facts={name: of(values) or () for name, values in self.facts.items()},
            covariates=tuple(Covariate(c.name, c.values[kept]) for c in self.covariates),
        )


@dataclass(frozen=True)
class FreshRuns:
    """Runs with seeds that had no part in the choice, the chosen configuration first."""

    configs: tuple[str, ...]  # the best, the runner-up, the baseline, each once
    y: Floats  # configurations x seeds, NaN where a run has no value
    plots: tuple[Ints, ...] = ()  # configurations x seeds, for each kind of whole plot

    @property
    def complete(self) -> bool:
        """Whether enough has run to judge: two seeds of the best and of some other."""
        return len(self.y) > 1 and int((~np.isnan(self.y[0])).sum()) > 1


@dataclass(frozen=True)
class Dataset:
    """One response of the runs; NaN where a run has no value, or lacks a covariate."""

    runs: Runs
    response: str
    y: Floats  # value, NaN where missing or censored
    limits: tuple[Floats, Floats] | None = None  # ends between which values lie, where censored
    unit: str = ""
    goal: str | None = None  # min, max, or None where neither is known
    scale: str = "raw"  # raw, log, logit or auto, unless a transformation is asked for
    items: int = 0  # counted, where the response is a share of them
    fresh: FreshRuns | None = None  # runs that confirm the best configuration
    baseline: str = ""  # the configuration that others are compared with
    terms: tuple[int, ...] | None = None  # the usual model of the design; None for its own terms
    matters: float | None = None  # the smallest effect worth knowing

    def __post_init__(self) -> None:
        if self.response in {covariate.name for covariate in self.runs.covariates}:
            note = f"{self.response} is a covariate itself, so nothing is adjusted for."
            runs = replace(self.runs, covariates=(), notes=(*self.runs.notes, note))
            object.__setattr__(self, "runs", runs)
        for covariate in self.runs.covariates:
            known = np.isfinite(covariate.values)
            object.__setattr__(self, "y", np.where(known, self.y, np.nan))

    @property
    def censored(self) -> bool:
        """Whether some values are only known to lie above or below a limit."""
        return self.limits is not None

    @property
    def observed(self) -> Ints:
        """Numbers of the runs with a value."""
        return np.flatnonzero(np.isfinite(self.y))


def blocks_of(block: Ints | None, kept: Ints) -> Ints | None:
    """Blocks of some runs, numbered without gaps; None where one is left."""
    if block is None:
        return None
    renumbered = np.unique(block[kept], return_inverse=True)[1].astype(np.int64)
    return renumbered if renumbered.max(initial=0) > 0 else None


def numbered(labels: Iterable[Hashable]) -> Ints:
    """Number the distinct labels 0, 1, … in the order in which they appear."""
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(label, len(numbers)) for label in labels], np.int64)


def is_number(level: Level) -> TypeGuard[int | float]:
    """Return whether a level is a number; a switch is not."""
    return isinstance(level, int | float) and not isinstance(level, bool)


def runs_at(
    columns: Mapping[str, Sequence[Level]],
    factors: Sequence[FactorColumn],
) -> tuple[Ints, Floats | None]:
    """Level numbers and positions of the runs, from the level of every run by factor.

    Raises
    ------
    DoeError
        If a run has a level that its factor lacks and that is not a number on its scale.
    """
    index, place = [], []
    for factor in factors:
        number = {level: i for i, level in enumerate(factor.levels)}
        values = columns[factor.key]
        numbers = [number.get(value, OFF) for value in values]
        between = [v for v, i in zip(values, numbers, strict=True) if i == OFF]
        if between and not (factor.numeric and all(map(is_number, between))):
            wrong = next(v for v in between if not (factor.numeric and is_number(v)))
            raise DoeError(
                f"a run has {factor.key} = {level_text(wrong)}, which is not a level; expected one "
                f"of {', '.join(factor.labels)}"
            )
        index.append(numbers)
        if factor.numeric:
            place.append(factor.position_of(np.array([float(v) for v in values])))
        else:
            place.append(np.zeros(len(values)))
    levels = np.array(index, np.int64).T
    positions = np.stack(place, axis=1)
    positions[(levels == OFF) & (np.abs(positions) < NEAR_MIDDLE)] = 0.0
    return levels, positions if (levels == OFF).any() else None


def check_runs(runs: Runs) -> None:
    """Refuse what cannot be analysed.

    Raises
    ------
    DoeError
        If a factor has fewer than two levels or one twice, numbers do not fit their scale, or a
        run names a level that is not there.
    """
    for factor in runs.factors:
        _check_factor(factor)
    shape = (runs.count, len(runs.factors))
    if runs.index.shape != shape:
        raise DoeError(f"levels have shape {runs.index.shape}; expected {shape}")
    levels = np.array([len(factor.levels) for factor in runs.factors])
    if ((runs.index < OFF) | (runs.index >= levels)).any():
        raise DoeError("a run names a level that its factor does not have")
    between = (runs.index == OFF).any(axis=0)
    if words := [f.key for f, off in zip(runs.factors, between, strict=True) if off > f.numeric]:
        raise DoeError(
            f"a run lies between the levels of {', '.join(words)}, which are not numbers; "
            "expected one of the levels"
        )
    if between.any() and runs.position is None:
        raise DoeError("runs lie between levels, and their positions are not given")


def _check_factor(factor: FactorColumn) -> None:
    if len(factor.levels) < 2:
        raise DoeError(f"factor {factor.key} has {len(factor.levels)} level; expected two or more")
    labels = factor.labels
    twice = [label for i, label in enumerate(labels) if label in labels[:i]]
    if twice:
        raise DoeError(f"factor {factor.key} has the level {twice[0]} twice")
    if not factor.numeric:
        return
    numbers = [level for level in factor.levels if is_number(level)]
    if len(numbers) < len(labels) or not all(math.isfinite(number) for number in numbers):
        raise DoeError(f"factor {factor.key} is numeric, but not all its levels are numbers")
    if factor.scale not in ("linear", "log"):
        raise DoeError(f"factor {factor.key} has scale {factor.scale!r}; expected linear or log")
    if factor.scale == "log" and min(numbers) <= 0:
        raise DoeError(
            f"factor {factor.key} has a log scale and the level {min(numbers)}; "
            "logarithms need numbers above 0"
        )


def check_variation(y: Floats, response: str) -> None:
    """Refuse fewer than two different values by a DoeError."""
    if len(y) < 2 or float(y.max()) == float(y.min()):
        raise DoeError(
            f"response {response!r} has {len(y)} values and no variation; "
            "expected at least two different ones"
        )


def state_text(state: str, reason: str) -> str:
    """State and reason of a run in one text."""
    return f"{state}: {reason}" if state and reason else state or reason
