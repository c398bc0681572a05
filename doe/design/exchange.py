"""Coordinate exchange (Meyer and Nachtsheim 1995) from many random starts at once.

One coordinate of one run is set to the candidate that improves the criterion most, run by run and
factor by factor, until nothing improves. With ``D = (X'X)^-1``, exchanging a row x for y multiplies
``|X'X|`` by ``(1 + y'Dy)(1 - x'Dx) + (x'Dy)²``; the mean prediction variance ``tr(DW)``, with W the
moments of the region, changes by a fraction of the same quantities.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
RIDGE = 1e-7
"""Added to X'X, so that a start that cannot estimate everything can still be improved."""
IMPROVES = 1e-8
MOST_SWEEPS = 100


class Region(NamedTuple):
    """Combinations of candidates that may run."""

    values: tuple[Floats, ...]
    """For each factor: its candidates as numbers, 0 for words."""
    weights: Floats
    """Constraints x factors: a weighted sum of the values is at most `bounds`."""
    bounds: Floats
    excluded: tuple[dict[int, Ints], ...]
    """Factor -> candidates that are excluded in combination with those of the others."""

    def allows(self, codes: Ints) -> Bools:
        """Return which points, given by the numbers of their candidates, may run."""
        allowed = np.ones(len(codes), dtype=bool)
        if len(self.weights):
            at = np.column_stack([v[codes[:, i]] for i, v in enumerate(self.values)])
            allowed &= (at @ self.weights.T <= self.bounds).all(axis=1)
        for bad in self.excluded:
            allowed &= ~np.all([np.isin(codes[:, i], own) for i, own in bad.items()], axis=0)
        return allowed

    def candidates(self, codes: Ints, factor: int) -> Bools:
        """Return, starts x candidates, which candidates of a factor may run with the rest of a
        point."""
        own = self.values[factor]
        allowed = np.ones((len(codes), len(own)), dtype=bool)
        if len(self.weights):
            at = np.column_stack([v[codes[:, i]] for i, v in enumerate(self.values)])
            at[:, factor] = 0.0
            sums = (at @ self.weights.T)[:, None, :] + own[:, None] * self.weights[:, factor]
            allowed &= (sums <= self.bounds).all(axis=2)
        for bad in self.excluded:
            if factor in bad:
                others = [np.isin(codes[:, i], own) for i, own in bad.items() if i != factor]
                beside = np.all(others, axis=0) if others else np.ones(len(codes), dtype=bool)
                allowed[np.ix_(beside, bad[factor])] = False
        return allowed


class Problem(NamedTuple):
    """Specification of a search: rows of a model matrix, as products of a factor's candidates."""

    tables: tuple[Floats, ...]
    """For each factor: candidates x model columns, its part of each column."""
    region: Region
    beside: Floats
    """Runs x further columns that are fixed, such as blocks; part of every row."""
    fixed: Floats
    """Rows of existing runs, with their further columns."""
    moments: Floats | None = None
    """W, for the mean prediction variance; None for the determinant."""
    forced: int = 0
    """Number of initial runs that keep their levels."""

    def rows(self, codes: Ints) -> Floats:
        """Return starts x runs x columns of some designs."""
        rows = np.ones((*codes.shape[:2], self.tables[0].shape[1]))
        for i, table in enumerate(self.tables):
            rows *= table[codes[:, :, i]]
        beside = np.broadcast_to(self.beside, (len(codes), *self.beside.shape))
        return np.concatenate([rows, beside], axis=2)

    def criterion(self, codes: Ints) -> Floats:
        """Return for each design log |X'X|, or minus the log of the mean prediction variance."""
        information = _information(self.rows(codes), self.fixed)
        if self.moments is None:
            return np.asarray(np.linalg.slogdet(information)[1])
        variance = np.trace(np.linalg.inv(information) @ self.moments, axis1=1, axis2=2)
        return np.asarray(-np.log(variance))


def _information(rows: Floats, fixed: Floats) -> Floats:
    ridge = RIDGE * np.eye(rows.shape[2])
    return np.asarray(rows.transpose(0, 2, 1) @ rows + fixed.T @ fixed + ridge)


def exchanged(problem: Problem, codes: Ints) -> Ints:
    """Improve designs (starts x runs x factors, numbers of candidates) until none improves."""
    done = codes.copy()
    left = np.arange(len(codes))
    for _ in range(MOST_SWEEPS):
        improved = _sweep(problem, done, left)
        left = left[improved]
        if not len(left):
            break
    return done


def _sweep(problem: Problem, designs: Ints, left: Ints) -> Bools:
    """Visit every coordinate of some designs once; return which of them have improved."""
    codes = designs[left]
    rows = problem.rows(codes)
    D: Floats = np.linalg.inv(_information(rows, problem.fixed)).astype(np.float64)
    improved = np.zeros(len(left), dtype=bool)
    starts = np.arange(len(left))
    searched = [i for i, table in enumerate(problem.tables) if len(table) > 1]
    columns = problem.tables[0].shape[1]
    for run in range(problem.forced, codes.shape[1]):
        for factor in searched:
            others = np.ones((len(left), columns))
            for i, table in enumerate(problem.tables):
                if i != factor:
                    others *= table[codes[:, run, i]]
            table = problem.tables[factor]
            beside = np.broadcast_to(
                problem.beside[run], (len(left), len(table), problem.beside.shape[1])
            )
            new = np.concatenate([table * others[:, None, :], beside], axis=2)
            gain = _gains(problem.moments, D, rows[:, run], new)
            gain[~problem.region.candidates(codes[:, run], factor)] = -np.inf
            best = gain.argmax(axis=1)
            better = np.flatnonzero(gain[starts, best] > IMPROVES)
            if len(better):
                y = new[better, best[better]]
                D[better] = _replaced(D[better], rows[better, run], y)
                rows[better, run] = y
                codes[better, run, factor] = best[better]
                improved[better] = True
    designs[left] = codes
    return improved


def _gains(moments: Floats | None, D: Floats, x: Floats, new: Floats) -> Floats:
    """Return starts x candidates: the relative improvement of the criterion."""
    solved = new @ D
    a = (solved * new).sum(axis=2)
    xD = np.einsum("sp,spq->sq", x, D)
    b = (xD * x).sum(axis=1)[:, None]
    c = np.einsum("scp,sp->sc", solved, x)
    ratio = (1.0 + a) * (1.0 - b) + c**2
    if moments is None:
        return np.asarray(ratio - 1.0)
    G = D @ moments @ D
    A = ((new @ G) * new).sum(axis=2)
    xG = np.einsum("sp,spq->sq", x, G)
    B = (xG * x).sum(axis=1)[:, None]
    C = np.einsum("scp,sp->sc", new, xG)
    with np.errstate(divide="ignore", invalid="ignore"):
        less = ((1.0 - b) * A + 2.0 * c * C - (1.0 + a) * B) / ratio
    variance = np.trace(D @ moments, axis1=1, axis2=2)[:, None]
    return np.where(ratio > 1e-9, less / variance, -np.inf)


def _replaced(D: Floats, x: Floats, y: Floats) -> Floats:
    """Return ``(X'X)^-1`` of several designs after a row x has become y (Sherman and Morrison)."""
    Dy = np.einsum("spq,sq->sp", D, y)
    D = D - Dy[:, :, None] * Dy[:, None, :] / (1.0 + (Dy * y).sum(axis=1))[:, None, None]
    Dx = np.einsum("spq,sq->sp", D, x)
    return np.asarray(
        D + Dx[:, :, None] * Dx[:, None, :] / (1.0 - (Dx * x).sum(axis=1))[:, None, None]
    )


def random_points(region: Region, sizes: Sequence[int], number: int, seed: int) -> Ints:
    """Draw allowed points at random, as numbers of their candidates; fewer if they are rare."""
    chance = np.random.default_rng(seed)
    found = np.empty((0, len(sizes)), np.int64)
    for _ in range(50):
        drawn = np.column_stack([chance.integers(size, size=4 * number) for size in sizes])
        found = np.concatenate([found, drawn[region.allows(drawn)]])
        if len(found) >= number:
            return found[:number]
    return found if not len(found) else found[chance.integers(len(found), size=number)]


# Split plots --------------------------------------------------------------------------------------


RATIO = 1.0
"""η, the assumed ratio of the variance between whole plots to that of runs."""


class Plots(NamedTuple):
    """Assignment of runs to whole plots, and the factors that these share."""

    of: Ints  # plot of each run, from 0
    hard: tuple[int, ...]

    def coordinates(self, factors: int) -> list[tuple[Ints, int]]:
        """Return the runs and the factor that are exchanged together, whole plots first."""
        plots = [np.flatnonzero(self.of == g) for g in range(int(self.of.max()) + 1)]
        easy = [f for f in range(factors) if f not in self.hard]
        single = [(np.array([run]), f) for run in range(len(self.of)) for f in easy]
        return [(runs, f) for runs in plots for f in self.hard] + single

    def shared(self, codes: Ints) -> Ints:
        """Give all runs the hard coordinates of the first run of their plot."""
        first = np.unique(self.of, return_index=True)[1][self.of]
        with_hard = codes.copy()
        hard = list(self.hard)
        with_hard[:, :, hard] = codes[:, first][:, :, hard]
        return with_hard

    def repeated(self, codes: Ints) -> Ints:
        """Make all runs equal to the first of their plot, so that each may run."""
        return codes[:, np.unique(self.of, return_index=True)[1][self.of]]


def information(problem: Problem, codes: Ints, plots: Plots) -> Floats:
    """Return ``X'V^-1 X`` of some designs."""
    rows = problem.rows(codes)
    Z = np.eye(int(plots.of.max()) + 1)[plots.of]
    sums = Z.T @ rows
    weight = RATIO / (1.0 + RATIO * Z.sum(axis=0))
    inner = rows.transpose(0, 2, 1) @ rows - sums.transpose(0, 2, 1) @ (weight[:, None] * sums)
    return np.asarray(inner + RIDGE * np.eye(rows.shape[2]))


def criterion(problem: Problem, codes: Ints, plots: Plots) -> Floats:
    """Return for each design log |X'V^-1 X|, or minus the log of the mean prediction variance."""
    inner = information(problem, codes, plots)
    if problem.moments is None:
        return np.asarray(np.linalg.slogdet(inner)[1])
    variance = np.trace(np.linalg.inv(inner) @ problem.moments, axis1=1, axis2=2)
    return np.asarray(-np.log(variance))


def exchanged_plots(problem: Problem, codes: Ints, plots: Plots) -> Ints:
    """Improve split-plot designs (starts x runs x factors, numbers of candidates) until none
    improves."""
    starts = plots.shared(codes)
    allowed = [problem.region.allows(design).all() for design in starts]
    starts = np.where(np.array(allowed)[:, None, None], starts, plots.repeated(codes))
    coordinates = plots.coordinates(codes.shape[2])
    return np.stack([_improved(problem, start, plots, coordinates) for start in starts])


def _improved(
    problem: Problem, start: Ints, plots: Plots, coordinates: Sequence[tuple[Ints, int]]
) -> Ints:
    design = start.copy()
    value = float(criterion(problem, design[None], plots)[0])
    for _ in range(MOST_SWEEPS):
        before = value
        for runs, factor in coordinates:
            trials = np.repeat(design[None], len(problem.tables[factor]), axis=0)
            trials[:, runs, factor] = np.arange(len(trials))[:, None]
            values = criterion(problem, trials, plots)
            values[[not problem.region.allows(trial[runs]).all() for trial in trials]] = -np.inf
            best = int(values.argmax())
            if values[best] > value + IMPROVES:
                design, value = trials[best], float(values[best])
        if value <= before + IMPROVES:
            break
    return design
