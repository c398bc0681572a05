"""The polynomial of degree two that a fit is in its numeric factors, the others held.

A polynomial is known by what it says of a few points, so that each of its coefficients is a linear
function of the fit's: value, covariance and tests come from the one fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
import scipy
from msgspec import Struct

from doe.analysis.contrasts import Floats, Ints
from doe.analysis.dataset import OFF, Runs
from doe.analysis.model import Model, run_positions
from doe.analysis.region import Points

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
