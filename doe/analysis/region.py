"""Where a response surface may be looked at: ranges, exclusions and linear constraints."""

from __future__ import annotations

from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from doe.analysis.coding import AVERAGED
from doe.analysis.contrasts import Floats, Ints
from doe.analysis.dataset import OFF, FactorColumn, Level, Limits, Runs
from doe.analysis.model import run_positions
from doe.terms import FACTORS, factors_in, is_squared

MOST_COMBINATIONS = 4096
"""Combinations of levels that are all searched; of more, a random choice."""
SLACK = 1e-7
TRIES = 50


class Points(NamedTuple):
    """Points as `Model.rows_at` takes them."""

    numbers: Ints  # of levels; OFF with a position, or AVERAGED
    position: Floats

    def only(self, which: NDArray[Any]) -> Points:
        """Return some of the points."""
        return Points(self.numbers[which], self.position[which])


class Region:
    """The ranges of the factors, no farther from the centre than the farthest run, and allowed.

    `continuous` are the factors that take any value of their range, `discrete` those that take
    levels; conditions are averaged over their levels.
    """

    def __init__(self, runs: Runs, terms: tuple[int, ...], limits: Limits | None) -> None:
        self.runs = runs
        none = (False,) * len(runs.factors)
        self.limits = limits or Limits(none, none)
        chosen = [i for i, f in enumerate(runs.factors) if f.role != "condition"]
        used = set(factors_in(sum({1 << i for t in terms for i in factors_in(t & FACTORS)})))
        self.smooth = [i for i in chosen if is_smooth(runs.factors[i]) and i in used]
        self.continuous = [i for i in self.smooth if not self.limits.listed[i]]
        self.discrete = [i for i in chosen if i not in self.continuous]
        at = run_positions(runs)[:, self.continuous]
        self.radius = float(np.sqrt((at**2).sum(axis=1)).max(initial=0.0)) + SLACK

    def allows(self, points: Points) -> NDArray[np.bool_]:
        """Return which points lie in the region."""
        z = points.position[:, self.continuous]
        inside = (np.abs(z) <= 1.0 + SLACK).all(axis=1)
        inside &= np.sqrt((z**2).sum(axis=1)) <= self.radius + SLACK
        if self.limits.weights is not None and self.limits.bounds is not None:
            sums = self.values(points) @ self.limits.weights.T
            room = SLACK * np.maximum(1.0, np.abs(self.limits.bounds))
            inside &= (sums <= self.limits.bounds + room).all(axis=1)
        for bad in self.limits.excluded:
            inside &= ~np.all([self._has(points, i, level) for i, level in bad.items()], axis=0)
        for i, (other, absent) in self.limits.nested.items():
            off = np.any([self._has(points, other, level) for level in absent], axis=0)
            inside &= ~off | self._has(points, i, 0)
        return np.asarray(inside)

    def _has(self, points: Points, factor: int, level: int) -> NDArray[np.bool_]:
        same = points.numbers[:, factor] == level
        if factor in self.continuous:
            z = self.runs.factors[factor].positions[level]
            same |= np.abs(points.position[:, factor] - z) < SLACK
        return np.asarray(same)

    def values(self, points: Points) -> Floats:
        """Return the number of each factor at points, 0 of words."""
        columns = []
        for i, factor in enumerate(self.runs.factors):
            if not factor.numeric:
                columns.append(np.zeros(len(points.numbers)))
                continue
            at_levels = np.array([float(level) for level in factor.levels])
            between = points.numbers[:, i] == OFF
            z = np.where(between, points.position[:, i], 0.0)
            known = at_levels[np.maximum(points.numbers[:, i], 0)]
            columns.append(np.where(between, factor.values_at(z), known))
        return np.column_stack(columns)

    def places(self, points: Points, factors: list[int]) -> Floats:
        """Return where points lie on the scales of some numeric factors."""
        columns = [
            np.where(
                points.numbers[:, i] == OFF,
                points.position[:, i],
                self.runs.factors[i].positions[np.maximum(points.numbers[:, i], 0)],
            )
            for i in factors
        ]
        return np.column_stack(columns) if columns else np.empty((len(points.numbers), 0))

    def combinations(self, rng: np.random.Generator) -> Ints:
        """Return the levels of the factors that take levels, one row per combination."""
        sizes = [len(self.runs.factors[i].levels) for i in self.discrete]
        if np.prod([float(size) for size in sizes]) <= MOST_COMBINATIONS:
            table = np.array(list(product(*map(range, sizes))), np.int64)
        else:
            table = rng.integers(0, sizes, (MOST_COMBINATIONS, len(sizes)))
        return table.reshape(len(table), len(sizes))

    def held(self, levels: Ints) -> Ints:
        """Return a row of level numbers: these, conditions averaged, and all others open."""
        row = np.full(len(self.runs.factors), AVERAGED, np.int64)
        row[self.discrete], row[self.continuous] = levels, OFF
        for i, (other, absent) in self.limits.nested.items():
            if i in self.continuous and int(row[other]) in absent:
                row[i] = 0
        return row

    def sample(self, number: int, rng: np.random.Generator) -> Points:
        """Draw points of the region: within it, on its faces and at its corners."""
        drawn = Points(*(np.empty((0, len(self.runs.factors)), kind) for kind in (int, float)))
        held = np.array([self.held(row) for row in self.combinations(rng)])
        for _ in range(TRIES):
            index = held[rng.integers(0, len(held), number)]
            z = rng.uniform(-1.0, 1.0, index.shape)
            ends = rng.choice([-1.0, 0.0, 1.0], index.shape)
            z = np.where(rng.random(index.shape) < 0.3, ends, z)
            if self.continuous:
                length = np.sqrt((z[:, self.continuous] ** 2).sum(axis=1))
                z *= np.minimum(1.0, self.radius / np.maximum(length, 1e-9))[:, None]
            more = Points(index, np.where(index == OFF, z, 0.0))
            more = more.only(self.allows(more))
            drawn = Points(
                np.concatenate([drawn.numbers, more.numbers]),
                np.concatenate([drawn.position, more.position]),
            )
            if len(drawn.numbers) >= number:
                break
        return drawn.only(np.arange(min(number, len(drawn.numbers))))

    def levels_at(self, point: Points) -> dict[str, Level]:
        """Return the level of every chosen factor at one point, as a user would write it."""
        levels: dict[str, Level] = {}
        for i in sorted((*self.discrete, *self.continuous)):
            factor, number = self.runs.factors[i], int(point.numbers[0, i])
            value: Level = factor.levels[number]
            if number == OFF:
                value = factor.value_at(float(point.position[0, i]))
                value = round(value) if self.limits.whole[i] else value
            levels[factor.key] = value
        return levels


def is_smooth(factor: FactorColumn) -> bool:
    """Return whether a factor acts through its position alone: a line, or a line and a square."""
    return factor.numeric and (factor.degree == 1 or len(factor.levels) == 2)


def degree(term: int, factors: list[int]) -> int:
    """Return the degree of a term in some factors."""
    return sum(1 + is_squared(term, i) for i in factors_in(term) if i in factors)
