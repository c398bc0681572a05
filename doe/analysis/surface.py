"""Response surfaces: stationary point, principal axes, optimum and path, all of one fit."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from doe.analysis.contrasts import Floats
from doe.analysis.dataset import Level
from doe.analysis.effects import single_test
from doe.analysis.fit import Fit, refitted
from doe.analysis.fitted import FittedResponse
from doe.analysis.model import Model, make_model, run_positions
from doe.analysis.optimum import Found, Optimum, OptimumRegion, Search
from doe.analysis.polynomial import (
    Held,
    Points,
    Polynomial,
    Region,
    coded_units,
    degree,
    features,
    matrix_form,
)
from doe.analysis.pvalues import none_for_nan
from doe.numbers import to_figures
from doe.terms import FACTORS, squared, term_name

FLAT = 0.1
"""Eigenvalues below this share of the largest are those of a ridge, as in R's rsm."""
STEPS = 5
"""Steps of a path of steepest ascent."""


class Coefficient(Struct, frozen=True, gc=False):
    """A coefficient of the surface in coded units, on the analysed scale."""

    term: str  # I for the mean at the centre
    estimate: float
    se: float | None
    ci_low: float | None
    ci_high: float | None
    t: float | None
    p: float | None


class CodedUnit(Struct, frozen=True, gc=False):
    """Coding of a factor: ``x = (value - centre) / unit``, of logarithms on a log scale."""

    factor: str
    centre: float
    unit: float  # on a log scale the ratio that one unit makes
    log: bool


class Axis(Struct, frozen=True):
    """A principal axis: how the surface bends along a direction in coded units."""

    eigenvalue: float
    ci_low: float | None  # of the bend along this direction (Bisgaard and Ankenman, 1996)
    ci_high: float | None
    direction: dict[str, float]


class PathPoint(Struct, frozen=True):
    """A point of the path of steepest ascent, or of descent where less is better."""

    step: int
    levels: dict[str, Level]
    mean: float
    ci_low: float | None  # of this point alone
    ci_high: float | None


class Surface(Struct, frozen=True, kw_only=True):
    """Optimum, axes and path of a fitted surface."""

    kind: str | None  # maximum, minimum, saddle or ridge; None without squares
    stationary: dict[str, float] | None  # in the factors' own units
    stationary_mean: float | None
    inside: bool | None  # whether the stationary point lies in the region of the runs
    eigenvalues: tuple[float, ...]
    axes: tuple[Axis, ...]
    optimum: Optimum | None  # None where no goal is known
    region: OptimumRegion | None  # None where there is no error to judge by
    path: tuple[PathPoint, ...]  # empty where the surface bends, or no goal is known
    at: dict[str, Level]  # levels of the other factors where all this holds
    units: tuple[CodedUnit, ...]
    coefficients: tuple[Coefficient, ...]
    polynomial: Polynomial


class Shape:
    """The polynomial of a fit at the levels of a point, estimated."""

    def __init__(self, fit: Fit, region: Region, middle: Points, coding: str) -> None:
        self.fit, self.region = fit, region
        index = middle.numbers[0]
        nested = region.limits.nested.items()
        off = [i for i, (other, absent) in nested if int(index[other]) in absent]
        self.factors = [i for i in region.smooth if i not in off]
        self.columns = [fit.runs.factors[i] for i in self.factors]
        self.unit = coded_units(fit.runs, self.factors, coding)
        self.held = Held(fit.model, self.factors, self.unit, index)
        self.rows = self.held.coefficient_rows()
        self.coef = np.asarray(self.rows[:, fit.model.fitted] @ fit.coef)
        self.covariance = fit.estimate(self.rows)[1]
        self.b, self.B = matrix_form(self.coef, len(self.factors))
        self.middle = region.places(middle, self.factors)[0] / self.unit

    @property
    def bends(self) -> bool:
        """Whether the model has squares."""
        return any(squared(i) in self.fit.model.terms for i in self.factors)

    def natural_units(self, x: Floats) -> dict[str, float]:
        """Return a point in the factors' own units."""
        places = (x * self.unit).tolist()
        return {f.key: f.value_at(z) for f, z in zip(self.columns, places, strict=True)}

    def coefficients(self, alpha: float) -> tuple[Coefficient, ...]:
        """Return the coefficients that the model has, each tested by t."""
        keys = self.fit.runs.keys
        pairs = [1 << i | 1 << j for n, i in enumerate(self.factors) for j in self.factors[n + 1 :]]
        terms = [0, *(1 << i for i in self.factors), *map(squared, self.factors), *pairs]
        tested = []
        for n, term in enumerate(terms):
            if not self.rows[n].any():
                continue
            test = single_test(self.fit, self.rows[n], alpha)
            shift = self.fit.shift if n == 0 else 0.0
            low, high = (
                None if end is None else end + shift for end in (test.ci_low, test.ci_high)
            )
            own = (test.se, low, high, test.t if n else None, test.p if n else None)
            tested.append(Coefficient(term_name(term, keys), test.value + shift, *own))
        return tuple(tested)

    def units(self) -> tuple[CodedUnit, ...]:
        """Return how each factor is coded."""
        coded = []
        for factor, unit in zip(self.columns, self.unit.tolist(), strict=True):
            log = factor.scale == "log"
            centre, one = factor.values_at(np.array([0.0, unit])).tolist()
            step = one / centre if log else one - centre
            centre, step = (float(to_figures(value, 6)) for value in (centre, step))
            coded.append(CodedUnit(factor.key, centre, step, log))
        return tuple(coded)

    def axes(self, alpha: float) -> tuple[Axis, ...]:
        """Return the principal axes, the eigenvalues falling as in R's rsm."""
        if not self.bends:
            return ()
        values, vectors = np.linalg.eigh(self.B)
        made = []
        for v in vectors.T[np.argsort(-values, kind="stable")]:
            row = features(v[None, :])[0]
            row[: 1 + len(v)] = 0.0  # v'Bv
            test = single_test(self.fit, row @ self.rows, alpha)
            v = v * (1.0 if v[np.abs(v).argmax()] > 0 else -1.0)
            direction = dict(zip((f.key for f in self.columns), v.tolist(), strict=True))
            made.append(Axis(test.value, test.ci_low, test.ci_high, direction))
        return tuple(made)

    def stationary(self) -> tuple[Floats, str]:
        """Return where the gradient vanishes, in coded units, and what is there.

        ``x_s = -B⁻¹b / 2``. Along the flat directions of a ridge it is not sought: the point is
        that of the ridge nearest the centre.
        """
        values, vectors = np.linalg.eigh(self.B)
        curved = np.abs(values) > FLAT * np.abs(values).max()
        V = vectors[:, curved]
        point = -0.5 * V @ ((V.T @ self.b) / values[curved])
        if not curved.all():
            return point, "ridge"
        kind = "maximum" if (values < 0).all() else "minimum" if (values > 0).all() else "saddle"
        return point, kind

    def path(self, response: FittedResponse, sign: float) -> tuple[PathPoint, ...]:
        """Return the path of steepest ascent from the centre, and the centre.

        Each factor moves in proportion to its slope in coded units, the one with the largest by one
        unit a step. Factors that take levels stay where they are best; the path ends before a
        number changes its sign, or one whose low is above 0 reaches that.
        """
        open_ = np.array([i in self.region.continuous for i in self.factors])
        slope = np.where(open_, self.b, 0.0)
        if not slope.any():
            return ()
        x = np.outer(np.arange(STEPS + 1), sign * slope / np.abs(slope).max())
        x[:, ~open_] = self.middle[~open_]
        points = self.held.points(x)
        values = self.region.values(points)[:, self.factors]
        lows = np.array([min(map(float, f.levels)) for f in self.columns])
        legal = np.where(lows > 0, values > 0, (values >= 0) | (lows < 0))
        number = int(np.append(legal.all(axis=1), False).argmin())
        made = []
        for step in range(number):
            row = features(x[step : step + 1])[0]
            test = single_test(self.fit, row @ self.rows, response.alpha)
            ends = [np.nan if end is None else end for end in (test.ci_low, test.ci_high)]
            mean, low, high = none_for_nan(
                response.back(np.array([test.value, *ends]) / self.fit.unit)
            )
            levels = self.region.levels_at(points.only(np.array([step])))
            made.append(PathPoint(step, levels, mean or 0.0, low, high))
        return tuple(made)


def surface(response: FittedResponse, coding: str) -> Surface | None:
    """Return what the fitted surface says; None where it has no factor that is a number.

    Terms of higher degree than two are left to the residual. Factors that are not numeric are held
    at their best levels, or at their first where no goal is known.
    """
    fit, options = _second_degree(response.fit), response.options
    region = Region(fit.runs, fit.model.terms, fit.runs.limits)
    if not region.smooth or _squares_lost(fit.model) or fit.strata is not None:
        return None
    search = Search(fit, region, options.alpha, options.seed)
    sign = 0.0 if response.goal is None else 1.0 if response.goal == "max" else -1.0
    best = search.best(sign) if sign else None
    middle = best or Points(search.points.numbers[:1], np.zeros_like(search.points.position[:1]))
    shape = Shape(fit, region, middle, coding)
    tested = np.abs(shape.rows).any(axis=1)
    if not fit.model.estimable(shape.rows[tested]).all():
        return None
    judged = best is not None and fit.df_error > 0
    found = search.confidence_region(best, sign) if best is not None and judged else None
    stationary, kind = shape.stationary() if shape.bends else (None, None)
    held = [i for i in sorted((*region.discrete, *region.limits.nested)) if i not in shape.factors]
    levels = region.levels_at(middle)
    return Surface(
        kind=kind,
        stationary=None if stationary is None else shape.natural_units(stationary),
        stationary_mean=None if stationary is None else _mean(response, shape, stationary),
        inside=None if stationary is None else _inside(shape, stationary),
        eigenvalues=tuple(axis.eigenvalue for axis in shape.axes(options.alpha)),
        axes=shape.axes(options.alpha),
        optimum=None if best is None else _optimum(response, search, best),
        region=None if found is None else _extent(region, found),
        path=shape.path(response, sign) if sign and not shape.bends else (),
        at={fit.runs.keys[i]: levels[fit.runs.keys[i]] for i in held},
        units=shape.units(),
        coefficients=shape.coefficients(options.alpha),
        polynomial=_polynomial(shape, found, search.critical if fit.df_error else 0.0),
    )


def _second_degree(fit: Fit) -> Fit:
    """Return the fit without terms of higher degree in its numeric factors than two."""
    region = Region(fit.runs, fit.model.terms, fit.runs.limits)
    kept = [t for t in fit.model.terms if degree(t, region.smooth) <= 2]
    if len(kept) == len(fit.model.terms):
        return fit
    return refitted(fit, model=make_model(fit.runs, kept, curved=not fit.pooled))


def _squares_lost(model: Model) -> bool:
    """Return whether some square is confounded with other terms."""
    aliased = [alias.term for chain in model.aliases.values() for alias in chain]
    return any(term > FACTORS for term in (*aliased, *model.inestimable, *model.with_blocks))


def _mean(response: FittedResponse, shape: Shape, x: Floats) -> float:
    return float(response.back(features(x[None, :]) @ shape.coef)[0])


def _inside(shape: Shape, x: Floats) -> bool:
    z = x * shape.unit
    return bool((np.abs(z) <= 1.0).all() and np.sqrt(z @ z) <= shape.region.radius)


def _optimum(response: FittedResponse, search: Search, best: Points) -> Optimum:
    fit, region = search.fit, search.region
    value = float(search.values(best)[0])
    mean = float(response.back(np.array([value]))[0])
    z = best.position[0, region.continuous]
    nudged = np.repeat(best.position, 2 * len(z), axis=0)
    for n, i in enumerate(region.continuous):
        nudged[2 * n : 2 * n + 2, i] += (-1e-3, 1e-3)
    around = Points(np.repeat(best.numbers, 2 * len(z), axis=0), nudged)
    inside = bool(region.allows(around).all()) if len(z) else False
    levels = region.levels_at(best)
    if fit.df_error == 0:
        return Optimum(levels, mean, None, None, None, inside)
    se = float(np.sqrt(fit.ms_error)) * float(np.linalg.norm(search.white(best)[0]))
    ends = value + search.critical * se * np.array([-1.0, 1.0])
    low, high = response.back(ends).tolist()
    return Optimum(levels, mean, se * fit.unit, low, high, inside)


def _extent(region: Region, found: Found) -> OptimumRegion:
    points = found.points.only(found.inside)
    low, high, levels = {}, {}, {}
    for i, factor in enumerate(region.runs.factors):
        numbers = points.numbers[:, i]
        if i in region.continuous:
            at = region.places(points, [i])
            low[factor.key] = factor.value_at(float(at.min()))
            high[factor.key] = factor.value_at(float(at.max()))
        elif i in region.discrete:
            levels[factor.key] = tuple(factor.levels[n] for n in sorted(set(numbers.tolist())))
    return OptimumRegion(low, high, levels)


def _polynomial(shape: Shape, found: Found | None, reach: float) -> Polynomial:
    fit = shape.fit
    own = shape.factors
    shift = fit.shift * (np.arange(len(shape.coef)) == 0)
    variance = fit.ms_error * fit.square if fit.df_error else 0.0
    among = np.empty((0, len(own)))
    if found is not None:
        points = found.points.only(found.inside)
        same = (points.numbers == shape.held.numbers)[:, shape.region.discrete].all(axis=1)
        among = shape.region.places(points.only(same), own) / shape.unit
    return Polynomial(
        factors=tuple(own),
        unit=tuple(shape.unit.tolist()),
        coef=tuple((fit.unit * shape.coef + shift).tolist()),
        covariance=tuple(map(tuple, (variance * shape.covariance).tolist())),
        reach=reach,
        middle=tuple(shape.middle.tolist()),
        runs=tuple(map(tuple, (run_positions(fit.runs)[:, own] / shape.unit).tolist())),
        among=tuple(map(tuple, among.tolist())),
    )
