"""Several responses at once: the Pareto front with its uncertainty, and the best within limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from doe.analysis import distributions as stats
from doe.analysis.best import MOST_CELLS, maximum_modulus
from doe.analysis.contrasts import Floats, Ints
from doe.analysis.dataset import Runs
from doe.analysis.fit import Fit
from doe.analysis.fitted import FittedResponse
from doe.analysis.model import BLOCK
from doe.analysis.pvalues import none_for_nan
from doe.analysis.unequal_spread import unequal_spread
from doe.errors import DoeError, are
from doe.goals import Constraint
from doe.numbers import confidence

Bools = NDArray[np.bool_]
Place = Literal["front", "dominated", "undecided"]
Kept = Literal["yes", "no", "unclear"]


class GoalMean(Struct, frozen=True):
    """The mean of one response at a configuration, on the response scale."""

    response: str
    mean: float
    ci_low: float | None  # intervals hold for all configurations and responses at once
    ci_high: float | None


class ParetoPoint(Struct, frozen=True):
    """A configuration among several goals."""

    config: str
    place: Place
    n: int
    means: tuple[GoalMean, ...]
    dominated_by: str  # the configuration that shows it most clearly; empty where none does
    estimated: bool  # whether no other is better by the means alone
    keeps: Kept | None  # whether it keeps the constraints; None where there are none


class WithinLimits(Struct, frozen=True):
    """The best by one response of all configurations that keep the constraints."""

    response: str
    goal: str
    constraints: tuple[str, ...]
    config: str  # empty where no configuration keeps them
    means: tuple[GoalMean, ...]
    keeps: Kept | None
    ran: bool  # False for a prediction of the model at a configuration without runs


# Means of configurations -------------------------------------------------------------------------


@dataclass(frozen=True)
class Candidates:
    """Configurations to choose from, and what the fits say of them."""

    responses: tuple[FittedResponse, ...]
    runs: Runs
    cells: Ints
    u: tuple[Floats, ...]  # of each response, on the scale of its fit
    rows: tuple[Floats, ...]  # of each response, at the kept columns of its model

    @property
    def means(self) -> Floats:
        """Responses x configurations, on the response scale."""
        pairs = zip(self.responses, self.u, strict=True)
        return np.stack([response.back(u) for response, u in pairs])

    def config(self, i: int) -> str:
        """Return a configuration as it is shown."""
        return self.runs.config(int(self.cells[i]))

    def only(self, kept: Bools) -> Candidates:
        """Return some of the configurations."""
        u, rows = (tuple(part[kept] for part in parts) for parts in (self.u, self.rows))
        return Candidates(self.responses, self.runs, self.cells[kept], u, rows)


def candidates(responses: Sequence[FittedResponse], runs: Runs, cells: Ints) -> Candidates:
    """Return the configurations of which every model says something."""
    rows = [response.fit.model.cell_rows(cells.tolist(), runs) for response in responses]
    pairs = list(zip(responses, rows, strict=True))
    known = np.all([r.fit.model.estimable(row) for r, row in pairs], axis=0)
    inside = tuple(row[known][:, r.fit.model.fitted] for r, row in pairs)
    u = tuple(row @ r.fit.coef for r, row in zip(responses, inside, strict=True))
    return Candidates(tuple(responses), runs, cells[known], u, inside)


def observed(responses: Sequence[FittedResponse]) -> Candidates:
    """Return the configurations with runs.

    Raises
    ------
    DoeError
        If there are more than can be compared.
    """
    runs = responses[0].runs
    cells = np.unique(runs.cells)
    if len(cells) > MOST_CELLS:
        raise DoeError(
            f"{len(cells)} configurations are too many to compare by several responses; expected "
            f"at most {MOST_CELLS}"
        )
    return candidates(responses, runs, cells)


def standard_errors(response: FittedResponse, rows: Floats) -> Floats:
    """Standard errors of means on the scale of the fit."""
    fit = response.fit
    scale = fit.scale
    weighted = rows * scale if scale.ndim == 1 else rows @ scale
    return np.asarray(np.sqrt((weighted * rows).sum(axis=1) * fit.ms_error))


def goal_means(of: Candidates, chosen: Sequence[int], alpha: float) -> list[tuple[GoalMean, ...]]:
    """Return the means of some configurations, with intervals that hold for all and every response.

    The largest of as many studentized means as there are configurations, or Scheffé's bound for all
    points of the model where that is shorter.
    """
    columns = []
    for response, u, rows in zip(of.responses, of.u, of.rows, strict=True):
        fit, own = response.fit, np.asarray(chosen)
        reach = np.full(len(own), 0.0 if fit.exact else np.nan)
        if (df := fit.least_df(rows)) > 0:
            level = alpha / len(of.responses)
            width = scheffe(fit, df, level)
            if len(of.cells) <= MOST_CELLS:
                width = min(width, maximum_modulus(len(of.cells), df, level))
            reach = width * standard_errors(response, rows[own])
            told = len(u) <= MOST_CELLS and fit.strata is None
            unequal = unequal_spread(fit, rows @ fit.maps) if told else None
            if unequal is not None:
                reach = np.maximum(reach, unequal.of_means(level)[own])
        low, high = (none_for_nan(response.back(u[own] + side)) for side in (-reach, reach))
        means = response.back(u[own]).tolist()
        name = response.data.response
        columns.append([GoalMean(name, *line) for line in zip(means, low, high, strict=True)])
    return [tuple(line) for line in zip(*columns, strict=True)]


def scheffe(fit: Fit, df: float, alpha: float) -> float:
    """Scheffé's quantile, which holds for all linear functions of a model without its blocks."""
    rank = fit.model.rank - fit.model.df(BLOCK)
    return float(np.sqrt(rank * stats.f.isf(alpha, rank, df)))


# The front ----------------------------------------------------------------------------------------


class Comparison(NamedTuple):
    """Comparison of every two configurations by one response: rows against columns."""

    p: Floats  # one-sided, of the row being better
    equal: Bools  # no error and no difference
    ahead: Floats  # by how much the means differ, for the better


def compare(response: FittedResponse, u: Floats, rows: Floats) -> Comparison:
    """Compare every two configurations, each pair by its own t.

    Where spreads differ by Welch's t, if that is less sure.
    """
    fit, k = response.fit, len(u)
    sign = 1.0 if response.goal == "max" else -1.0
    ahead = sign * (u[:, None] - u[None, :])
    certain, equal = (ahead > fit.rounding), np.abs(ahead) <= fit.rounding
    if fit.exact:
        return Comparison(np.where(certain, 0.0, 1.0), equal, ahead)
    df_error = fit.least_df(rows)
    if df_error == 0 or k < 2:
        return Comparison(np.ones((k, k)), np.zeros((k, k), dtype=bool), ahead)
    scale = fit.scale
    weighted = rows * scale if scale.ndim == 1 else rows @ scale
    covariance = weighted @ rows.T
    own = np.diag(covariance)
    variance = np.maximum(own[:, None] + own[None, :] - 2.0 * covariance, 0.0)
    variance[variance < 1e-12 * own.max()] = 0.0
    se = np.sqrt(fit.ms_error * variance)
    p = _one_sided(ahead, se, df_error)
    unequal = unequal_spread(fit, rows @ fit.maps) if fit.strata is None else None
    if unequal is not None:
        df, error = unequal.pairs
        p = np.maximum(p, _one_sided(ahead, error, df))
        se = np.maximum(se, error)
    known = se <= fit.rounding
    return Comparison(np.where(known, np.where(certain, 0.0, 1.0), p), known & equal, ahead)


def _one_sided(ahead: Floats, se: Floats, df: float | Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        p: Floats = np.asarray(stats.t.sf(ahead / se, df))
    return np.nan_to_num(p, nan=1.0)


def places(comparisons: Sequence[Comparison], alpha: float) -> tuple[list[Place], list[int]]:
    """Return the place of each configuration, and the one that dominates it most clearly, or -1.

    Dominated: another one is better in some response and not worse in any. Each of k configurations
    is on the front or dominated, so that at most one statement about it can be wrong, which alpha/k
    is for. That it is dominated is wrong only if, of one of k - 1 others, the response in which
    that one is not better errs: (k - 1) times the largest p over responses. That it is on the front
    is wrong only if it errs against a configuration of the front that dominates it: the number of
    responses times their least p, at the worst of all that are not called dominated.
    """
    p, equal = np.stack([c.p for c in comparisons]), np.stack([c.equal for c in comparisons])
    m, k, same = len(p), p.shape[1], equal.all(axis=0)
    beats = np.where(same, 1.0, np.where(equal, 0.0, p).max(axis=0))
    dominated = (k - 1) * beats.min(axis=0) <= alpha / k
    escapes = np.where(same | np.eye(k, dtype=bool), 0.0, p.min(axis=0))
    front = ~dominated & (m * escapes[:, ~dominated].max(axis=1, initial=0.0) <= alpha / k)
    by = np.where(dominated, beats.argmin(axis=0), -1)
    names: list[Place] = [
        "dominated" if below else "front" if on else "undecided"
        for below, on in zip(dominated, front, strict=True)
    ]
    return names, by.tolist()


def estimated_front(comparisons: Sequence[Comparison]) -> list[bool]:
    """Return which configurations no other beats, by the means alone."""
    ahead = np.stack([c.ahead for c in comparisons])
    dominates = np.asarray((ahead >= 0).all(axis=0) & (ahead > 0).any(axis=0))
    return [not below for below in np.asarray(dominates.any(axis=0))]


def pareto(
    of: Candidates, constraints: Sequence[Constraint], alpha: float
) -> tuple[ParetoPoint, ...]:
    """Return the place of each configuration among the goals, in standard order."""
    comparisons = [
        compare(response, u, rows)
        for response, u, rows in zip(of.responses, of.u, of.rows, strict=True)
        if response.goal
    ]
    names, by = places(comparisons, alpha)
    on_front = estimated_front(comparisons)
    means = goal_means(of, range(len(of.cells)), alpha)
    counts = dict(zip(*np.unique(of.runs.cells, return_counts=True), strict=True))
    return tuple(
        ParetoPoint(
            config=of.config(i),
            place=names[i],
            n=int(counts[of.cells[i]]),
            means=means[i],
            dominated_by="" if by[i] < 0 else of.config(by[i]),
            estimated=on_front[i],
            keeps=keeps(means[i], constraints),
        )
        for i in range(len(of.cells))
    )


# Constraints --------------------------------------------------------------------------------------


def keeps(means: Sequence[GoalMean], constraints: Sequence[Constraint]) -> Kept | None:
    """Return whether a configuration keeps all constraints, as far as the intervals show."""
    if not constraints:
        return None
    answers = set()
    for constraint in constraints:
        own = next(mean for mean in means if mean.response == constraint.response)
        low, high = (own.ci_low, own.ci_high) if constraint.upper else (own.ci_high, own.ci_low)
        if low is None or high is None:
            answers.add("unclear" if _within(own.mean, constraint) else "no")
        elif _within(high, constraint):
            answers.add("yes")
        else:
            answers.add("unclear" if _within(low, constraint) else "no")
    return "no" if "no" in answers else "unclear" if "unclear" in answers else "yes"


def _within(value: float, constraint: Constraint) -> bool:
    return value <= constraint.limit if constraint.upper else value >= constraint.limit


def violation(of: Candidates, constraints: Sequence[Constraint]) -> Floats:
    """Return by how much of the range of its response each mean is beyond its limit, at most."""
    names = [response.data.response for response in of.responses]
    means = of.means
    worst = np.zeros(len(of.cells))
    for constraint in constraints:
        own = means[names.index(constraint.response)]
        over = (own - constraint.limit) * (1.0 if constraint.upper else -1.0)
        worst = np.maximum(worst, over / max(float(np.ptp(own)), 1e-300))
    return worst


def within_limits(
    of: Candidates,
    constraints: Sequence[Constraint],
    response: FittedResponse,
    alpha: float,
    ran: bool,
) -> WithinLimits:
    """Return the configuration with the best mean of those whose means keep the constraints."""
    at = of.responses.index(response)
    sign = 1.0 if response.goal == "max" else -1.0
    kept = violation(of, constraints) <= 0
    score = np.where(kept, sign * of.u[at], -np.inf)
    texts = tuple(constraint.text for constraint in constraints)
    goal = response.goal or ""
    if not kept.any():
        return WithinLimits(response.data.response, goal, texts, "", (), None, ran)
    best = int(np.argmax(score))
    means = goal_means(of, [best], alpha)[0]
    name = of.config(best)
    return WithinLimits(
        response.data.response, goal, texts, name, means, keeps(means, constraints), ran
    )


def front_sentence(points: Sequence[ParetoPoint], responses: Sequence[str], alpha: float) -> str:
    """Say how many configurations are on the front, dominated, or neither for certain."""
    count = {place: sum(p.place == place for p in points) for place in ("front", "dominated")}
    left = len(points) - sum(count.values())
    of = " and ".join((", ".join(responses[:-1]), responses[-1]))
    if all(mean.ci_low is None for point in points for mean in point.means):
        return f"Without an error estimate no configuration can be placed on the front of {of}."
    return (
        f"Of {len(points)} configurations {count['front']} {are(count['front'])} shown to be on "
        f"the Pareto front of {of}, {count['dominated']} to be dominated, and {left} {are(left)} "
        f"undecided; all of this holds simultaneously with {confidence(alpha)}."
    )
