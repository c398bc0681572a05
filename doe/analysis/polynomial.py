"""The polynomial of degree two that a fit is in its numeric factors, the others held.

A polynomial is known by what it says of a few points, so that each of its coefficients is a linear
function of the fit's: value, covariance and tests come from the one fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product
from typing import Any, NamedTuple

import numpy as np
import scipy
from msgspec import Struct
from numpy.typing import NDArray

from doe.analysis.coding import AVERAGED
from doe.analysis.contrasts import Floats, Ints
from doe.analysis.dataset import OFF, FactorColumn, Level, Limits, Runs
from doe.analysis.model import Model, run_positions
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
                value = round(value) if self.limits.integer[i] else value
            levels[factor.key] = value
        return levels


def is_smooth(factor: FactorColumn) -> bool:
    """Return whether a factor acts through its position alone: a line, or a line and a square."""
    return factor.numeric and (factor.degree == 1 or len(factor.levels) == 2)


def degree(term: int, factors: list[int]) -> int:
    """Return the degree of a term in some factors."""
    return sum(1 + is_squared(term, i) for i in factors_in(term) if i in factors)


SAME = 0.05
"""Distances of factorial points from the centre that are the same but for rounding."""


def features(x: Floats) -> Floats:
    """Return the columns of a polynomial of degree two: 1, x_i, x_i², x_i x_j."""
    pairs = [x[:, i] * x[:, j] for i, j in combinations(range(x.shape[1]), 2)]
    return np.column_stack([np.ones(len(x)), x, x**2, *pairs])


def matrix_form(coef: Floats, number: int) -> tuple[Floats, Floats]:
    """Return b and B of ``y = b0 + x'b + x'Bx``."""
    b, B = coef[1 : 1 + number], np.diag(coef[1 + number : 1 + 2 * number])
    for value, (i, j) in zip(coef[1 + 2 * number :], combinations(range(number), 2), strict=True):
        B[i, j] = B[j, i] = value / 2.0
    return np.asarray(b), np.asarray(B)


class Held(NamedTuple):
    """A model in some of its factors, in coded units, the others at fixed levels."""

    model: Model
    factors: list[int]
    unit: Floats  # position that is one coded unit of each factor
    numbers: Ints  # levels of all factors, OFF for those that are open

    def points(self, x: Floats) -> Points:
        """Return points in coded units as the model takes them."""
        index = np.tile(self.numbers, (len(x), 1))
        index[:, self.factors] = OFF
        position = np.zeros(index.shape)
        position[:, self.factors] = x * self.unit
        return Points(index, position)

    def coefficient_rows(self) -> Floats:
        """Return the coefficients as functions of the fit's, in the order of `features`."""
        number = len(self.factors)
        pairs = list(combinations(range(number), 2))
        steps = np.eye(number)
        x = [np.zeros(number), *steps, *-steps, *(steps[i] + steps[j] for i, j in pairs)]
        at = self.model.rows_at(*self.points(np.array(x).reshape(-1, number)))
        zero, high, low = at[0], at[1 : 1 + number], at[1 + number : 1 + 2 * number]
        both = at[1 + 2 * number :]
        products = [both[n] - high[i] - high[j] + zero for n, (i, j) in enumerate(pairs)]
        return np.array([zero, *(high - low) / 2.0, *((high + low) / 2.0 - zero), *products])


def coded_units(runs: Runs, factors: Sequence[int], coding: str) -> Floats:
    """Return the position that is one coded unit of each factor.

    Factorial points lie one unit from the centre, as in books and in R's rsm, where every run with
    all factors off the centre has the same distance; else, or where the `coding` is "range", the
    ends of the range do.
    """
    z = np.abs(run_positions(runs)[:, list(factors)])
    cube = z[(z > SAME).all(axis=1)]
    if coding == "range" or not len(cube) or (np.ptp(cube, axis=0) > SAME).any():
        return np.ones(len(factors))
    return np.asarray(np.median(cube, axis=0))


class Polynomial(Struct, frozen=True):
    """The polynomial with its covariance, on the analysed scale, and the runs on it: for charts."""

    factors: tuple[int, ...]
    unit: tuple[float, ...]  # position that is one coded unit
    coef: tuple[float, ...]
    covariance: tuple[tuple[float, ...], ...]
    reach: float  # standard errors that a band is wide, over the whole region at once
    middle: tuple[float, ...]  # where factors are held: the optimum, in coded units
    runs: tuple[tuple[float, ...], ...]  # in coded units
    among: tuple[tuple[float, ...], ...]  # points of the confidence region of the optimum

    def at(self, x: Floats) -> tuple[Floats, Floats]:
        """Return the mean at points in coded units, and how far its band reaches."""
        rows = features(x)
        variance = ((rows @ np.array(self.covariance)) * rows).sum(axis=1)
        return rows @ np.array(self.coef), self.reach * np.sqrt(np.maximum(variance, 0.0))

    def outline(self, i: int, j: int) -> Floats:
        """Return the hull of the optimum's confidence region in two factors, closed."""
        points = np.array(self.among).reshape(-1, len(self.factors))[:, [i, j]]
        if len(points) < 3 or np.linalg.matrix_rank(points - points.mean(axis=0)) < 2:
            return np.empty((0, 2))
        corners = scipy.spatial.ConvexHull(points).vertices
        return np.asarray(points[[*corners, corners[0]]])

    def grid(self, factors: Sequence[int], number: int) -> Floats:
        """Return points over the ranges of some of its factors, the others held."""
        axes = [np.linspace(-1.0, 1.0, number) / self.unit[i] for i in factors]
        x = np.tile(np.array(self.middle), (number ** len(axes), 1))
        for i, column in zip(factors, np.meshgrid(*axes, indexing="ij"), strict=True):
            x[:, i] = column.ravel()
        return x
