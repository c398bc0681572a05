"""The optimum of a fitted surface within its region, its interval, and where it may lie."""

from __future__ import annotations

from functools import cached_property
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import scipy
from msgspec import Struct
from numpy.typing import NDArray

from doe.analysis import distributions as stats
from doe.analysis.contrasts import Floats
from doe.analysis.dataset import OFF, Level
from doe.analysis.fit import Fit
from doe.analysis.polynomial import Held, Points, Region, matrix_form
from doe.analysis.pvalues import t_critical
from doe.errors import DoeError

SAMPLED, CANDIDATES, RIVALS = 2000, 400, 200
"""Points of the region; those that may be the optimum, and those that each is compared with."""
DRAWS = 1000
"""Simulated errors of which a quantile is taken."""
STARTS = 12
"""Combinations of levels, the most promising ones, from which an optimum is sought."""


class Optimum(Struct, frozen=True):
    """The best point of the region by the fitted surface, on the response scale."""

    levels: dict[str, Level]
    mean: float
    se: float | None  # on the analysed scale
    ci_low: float | None  # holds for every point of the region at once, so for the one chosen
    ci_high: float | None
    inside: bool  # whether no end of a range and no limit of the region holds it


class OptimumRegion(Struct, frozen=True):
    """Extent of the confidence region of the optimum."""

    low: dict[str, float]
    high: dict[str, float]
    levels: dict[str, tuple[Level, ...]]  # of the factors that take levels


class Found(NamedTuple):
    """Points that may be the optimum, and which of them."""

    points: Points
    inside: NDArray[np.bool_]


class Search:
    """A fit over points of its region."""

    def __init__(self, fit: Fit, region: Region, alpha: float, seed: int) -> None:
        self.fit, self.region, self.alpha = fit, region, alpha
        self.rng = np.random.default_rng(seed)
        drawn = region.sample(SAMPLED, self.rng)
        if not len(drawn.numbers):
            raise DoeError(
                "the exclusions and constraints leave nothing among the runs where an optimum "
                "could be sought; allow more"
            )
        self.points = drawn.only(fit.model.estimable(fit.model.rows_at(*drawn)))
        if not len(self.points.numbers):
            raise DoeError(
                "the runs do not determine the surface anywhere; add runs, or name fewer terms"
            )

    def values(self, points: Points) -> Floats:
        """Return what the fit says of points, of u."""
        rows = self.fit.model.rows_at(*points)
        return np.asarray(rows[:, self.fit.model.fitted] @ self.fit.coef)

    def white(self, points: Points) -> Floats:
        """Return rows g with ``variance = σ² g'g``."""
        rows = self.fit.model.rows_at(*points)[:, self.fit.model.fitted]
        scale = self.fit.scale
        return np.asarray(
            rows * np.sqrt(scale) if scale.ndim == 1 else rows @ np.linalg.cholesky(scale)
        )

    # The optimum --------------------------------------------------------------------------------

    def best(self, sign: float) -> Points:
        """Return the point with the largest value times `sign`."""
        values = sign * self.values(self.points)
        order = np.argsort(-values, kind="stable")
        starts: dict[bytes, int] = {}
        for i in order.tolist():
            starts.setdefault(self.points.numbers[i].tobytes(), i)
        found = [
            point
            for i in list(starts.values())[:STARTS]
            for point in (self.points.only(np.array([i])), self._climbed(i, sign))
        ]
        tried = Points(*(np.concatenate(part) for part in zip(*found, strict=True)))
        tried = tried.only(self.region.allows(tried))
        tried = self._rounded(tried)
        at = int((sign * self.values(tried)).argmax())
        return tried.only(np.array([at]))

    def _climbed(self, start: int, sign: float) -> Points:
        """Return the best point of the same levels, by sequential quadratic programming."""
        index = self.points.numbers[start]
        factors = [i for i in self.region.continuous if index[i] == OFF]
        held = Held(self.fit.model, factors, np.ones(len(factors)), index)
        if not factors:
            return held.points(np.zeros((1, 0)))
        coef = held.coefficient_rows()[:, self.fit.model.fitted] @ self.fit.coef
        b, B = matrix_form(coef, len(factors))
        radius = self.region.radius
        constraints: Any = [{"type": "ineq", "fun": lambda z: radius**2 - float(z @ z)}]
        limits = self.region.limits
        if limits.weights is not None and limits.bounds is not None:
            weights, bounds = limits.weights, limits.bounds

            def room(z: Floats) -> Floats:
                values = self.region.values(held.points(z[None, :]))[0]
                return np.asarray(bounds - weights @ values)

            constraints.append({"type": "ineq", "fun": room})
        minimize: Any = scipy.optimize.minimize
        solved = minimize(
            fun=lambda z: -sign * float(z @ b + z @ B @ z),
            x0=self.points.position[start, factors],
            jac=lambda z: np.asarray(-sign * (b + 2.0 * B @ z)),
            bounds=[(-1.0, 1.0)] * len(factors),
            constraints=constraints,
            method="SLSQP",
            options={"ftol": 1e-12, "maxiter": 200},
        )
        return held.points(np.clip(solved.x, -1.0, 1.0)[None, :])

    def _rounded(self, points: Points) -> Points:
        """Return the points with whole numbers below and above, where factors take these alone."""
        whole = [i for i in self.region.continuous if self.region.limits.integer[i]]
        if not whole:
            return points
        tried = []
        for n, values in enumerate(self.region.values(points)[:, whole]):
            for choice in product(*({np.floor(v), np.ceil(v)} for v in values)):
                index, position = points.numbers[n].copy(), points.position[n].copy()
                for i, value in zip(whole, choice, strict=True):
                    if index[i] == OFF:
                        place = self.region.runs.factors[i].position_of(np.array([value]))
                        position[i] = float(place[0])
                tried.append((index, position))
        nearby = Points(*(np.array(part) for part in zip(*tried, strict=True)))
        allowed = nearby.only(self.region.allows(nearby))
        return allowed if len(allowed.numbers) else points

    # What is uncertain --------------------------------------------------------------------------

    @cached_property
    def _errors(self) -> tuple[Floats, Floats]:
        """Simulated errors of the coefficients over σ, and of σ's estimate."""
        rng = np.random.default_rng(0)
        df = self.fit.df_error
        return rng.standard_normal((self.fit.model.rank, DRAWS)), np.sqrt(
            rng.chisquare(df, DRAWS) / df
        )

    @cached_property
    def critical(self) -> float:
        """Standard errors by which no mean of the region is off, with probability 1 - α."""
        z, s = self._errors
        white = self.white(self.points)
        white = white / np.linalg.norm(white, axis=1, keepdims=True)
        return float(np.quantile(np.abs(white @ z).max(axis=0) / s, 1.0 - self.alpha))

    def may_be_best(self, points: Points, best: Points, sign: float) -> NDArray[np.bool_]:
        """Return which points the true optimum may be (Peterson, Cahya and del Castillo, 2002).

        At the true optimum x0 the mean exceeds that of no other point, so that the largest
        ``t = (ŷ(x) - ŷ(x0)) / s(x, x0)`` over rivals x stays below the 1 - α quantile of its
        errors, which is simulated. Around a stationary point this is Box and Hunter's region, made
        wider by the rivals that lie farther away.
        """
        rivals = self.points.only(np.arange(min(RIVALS, len(self.points.numbers))))
        rivals = Points(*(np.concatenate(pair) for pair in zip(rivals, best, strict=True)))
        white, values = self.white(rivals), sign * self.values(rivals)
        own, means = self.white(points), sign * self.values(points)
        sigma, df = float(np.sqrt(self.fit.ms_error)), self.fit.df_error
        rank = white.shape[1]
        certain = float(np.sqrt(rank * stats.f.isf(self.alpha, rank, df)))
        z, s = self._errors
        inside = np.zeros(len(own), dtype=bool)
        for i, (g, mean) in enumerate(zip(own, means, strict=True)):
            away = white - g
            length = np.linalg.norm(away, axis=1)
            apart = length > 1e-9
            largest = float(((values - mean)[apart] / length[apart]).max(initial=-np.inf)) / sigma
            if largest <= t_critical(2.0 * self.alpha, df):
                inside[i] = True
            elif largest <= certain:
                errors = (away[apart] / length[apart, None]) @ z
                inside[i] = largest <= np.quantile(errors.max(axis=0) / s, 1.0 - self.alpha)
        return inside

    def candidates(self, best: Points) -> Points:
        """Return points of the region, half of them drawn towards the best one."""
        some = self.points.only(np.arange(min(CANDIDATES, len(self.points.numbers))))
        share = self.rng.random((len(some.numbers), 1)) ** 2
        near = best.position + share * (some.position - best.position)
        same = np.where(some.numbers == OFF, near, some.position)
        moved = Points(some.numbers, np.where(some.numbers == best.numbers, same, some.position))
        moved = moved.only(self.region.allows(moved))
        return Points(*(np.concatenate(part) for part in zip(some, moved, best, strict=True)))

    def confidence_region(self, best: Points, sign: float) -> Found:
        """Return candidates for the optimum, and which of them it may be."""
        points = self.candidates(best)
        return Found(points, self.may_be_best(points, best, sign))
