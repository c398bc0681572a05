"""Optimal split plots: coordinate exchange in both strata (Jones and Goos 2007).

Runs of a whole plot share the levels of the factors that are hard to change, and an error. With
``V = I + η ZZ'`` the information is ``X'V^-1 X = X'X - sum_g η / (1 + η m_g) t_g t_g'``, t_g the
sum of the m_g rows of plot g. A coordinate that is hard to change is exchanged in all runs of its
plot.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from doe.design.exchange import IMPROVES, MOST_SWEEPS, RIDGE, Floats, Ints, Problem

RATIO = 1.0
"""η, the variance between whole plots over that of runs, for which designs are made."""


class Plots(NamedTuple):
    """Which runs are a whole plot, and which factors they share."""

    of: Ints  # plot of each run, from 0
    hard: tuple[int, ...]

    def coordinates(self, factors: int) -> list[tuple[Ints, int]]:
        """Runs and the factor that are exchanged together, whole plots first."""
        plots = [np.flatnonzero(self.of == g) for g in range(int(self.of.max()) + 1)]
        easy = [f for f in range(factors) if f not in self.hard]
        single = [(np.array([run]), f) for run in range(len(self.of)) for f in easy]
        return [(runs, f) for runs in plots for f in self.hard] + single

    def shared(self, codes: Ints) -> Ints:
        """Designs whose runs have the hard coordinates of the first run of their plot."""
        first = np.unique(self.of, return_index=True)[1][self.of]
        with_hard = codes.copy()
        hard = list(self.hard)
        with_hard[:, :, hard] = codes[:, first][:, :, hard]
        return with_hard

    def repeated(self, codes: Ints) -> Ints:
        """Designs whose runs are all like the first of their plot, so that each may run."""
        return codes[:, np.unique(self.of, return_index=True)[1][self.of]]


def information(problem: Problem, codes: Ints, plots: Plots) -> Floats:
    """``X'V^-1 X`` of some designs."""
    rows = problem.rows(codes)
    Z = np.eye(int(plots.of.max()) + 1)[plots.of]
    sums = Z.T @ rows
    weight = RATIO / (1.0 + RATIO * Z.sum(axis=0))
    inner = rows.transpose(0, 2, 1) @ rows - sums.transpose(0, 2, 1) @ (weight[:, None] * sums)
    return np.asarray(inner + RIDGE * np.eye(rows.shape[2]))


def criterion(problem: Problem, codes: Ints, plots: Plots) -> Floats:
    """Of each design: log |X'V^-1 X|, or minus the log of the mean prediction variance."""
    inner = information(problem, codes, plots)
    if problem.moments is None:
        return np.asarray(np.linalg.slogdet(inner)[1])
    variance = np.trace(np.linalg.inv(inner) @ problem.moments, axis1=1, axis2=2)
    return np.asarray(-np.log(variance))


def exchanged_plots(problem: Problem, codes: Ints, plots: Plots) -> Ints:
    """Designs (starts x runs x factors, numbers of candidates) improved until none improves."""
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
