"""Optimal designs: any number of runs, for a given model, region and mix of factors."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import product
from typing import Literal, NamedTuple

import msgspec
import numpy as np

from doe.design.configurations import Levels, Point
from doe.design.exchange import (
    Floats,
    Ints,
    Plots,
    Problem,
    Region,
    criterion,
    exchanged,
    exchanged_plots,
    random_points,
)
from doe.design.model import (
    bends,
    block_columns,
    column_basis,
    d_efficiency,
    factor_basis,
    independent_columns,
    model_matrix,
    named_terms,
)
from doe.errors import DoeError, counted, nearest, short
from doe.study.levels import conditions, exclusions, read_level
from doe.study.values import Factor, Level, Study

COARSE, FINE = 5, 41
"""Candidates per range for all starts, and for refining the best ones."""
WORK = 60e6
"""Products per sweep of all starts, which determines their number: about a second."""
MOST_STARTS, FEWEST_STARTS = 200, 4
SPLIT_PLOT_STARTS = 10
"""Starts of a search over whole plots, where every exchange is evaluated in full."""
REGION_POINTS = 2000
"""Points over which the prediction variance is averaged."""
MOST_RUNS = 10_000
MOST_CORNERS = 8192
"""Maximum number of corner and mid points that are all examined; of more, a random sample."""


class Settings(msgspec.Struct, frozen=True):
    """Settings of an optimal design."""

    runs: int = 0
    """Runs per replicate."""
    model: str | tuple[str, ...] = ""
    """linear, interactions, quadratic, or a list of terms; by default quadratic if a number can
    have three values, else interactions."""
    criterion: Literal["D", "I"] = "D"
    """D for the coefficients together, I for the mean prediction variance over the region."""
    constraints: tuple[str, ...] = ()
    """Linear inequalities of numeric factors, as in "batch + 4*depth <= 100"."""
    include: tuple[str, ...] = ()
    """Configurations that must run, as in "lr=0.01, batch=64"."""
    blocks: int = 1
    """Blocks per replicate, of nearly equal size."""
    whole_plots: int = 0
    """Whole plots per replicate, of nearly equal size, if factors are hard to change."""
    starts: int = 0
    """Random starts of the search; by default as many as take about a second."""


def points(study: Study, settings: Settings) -> list[Point]:
    """Search the design: coordinate exchange from random starts, seeded by `order_seed`."""
    if not 1 <= settings.runs <= MOST_RUNS:
        raise DoeError(
            f"design.runs = {settings.runs}: expected the number of runs per replicate, from 1 to "
            f"{MOST_RUNS}"
        )
    if not 1 <= settings.blocks <= settings.runs:
        raise DoeError(f"design.blocks = {settings.blocks}: expected 1 to {settings.runs} blocks")
    if settings.starts < 0:
        raise DoeError(f"design.starts = {settings.starts}: expected a number above 0")
    if len(settings.include) > settings.runs:
        raise DoeError(f"design.include names more than the {settings.runs} runs of design.runs")
    forced = [_configuration(text, study) for text in settings.include]
    if forced:
        _check_allowed(study, settings, forced)
    blocks = [i * settings.blocks // settings.runs for i in range(settings.runs)]
    plots = _whole_plots(study, settings)
    found = optimal_points(study, settings, terms(study, settings), forced, blocks, plots=plots)
    numbers = [0] * settings.runs if plots is None else plots.of.tolist()
    return [Point(*line) for line in zip(found, blocks, numbers, strict=True)]


def _check_allowed(study: Study, settings: Settings, forced: Sequence[Levels]) -> None:
    """Refuse a required configuration that is not allowed."""
    candidates = _candidates(study.factors, 3, forced)
    allowed = _region(study, settings, candidates).allows(candidates.codes(forced))
    for text, may_run in zip(settings.include, allowed.tolist(), strict=True):
        if not may_run:
            raise DoeError(
                f"design.include: {short(text)} is forbidden by exclude, when or design.constraints"
            )


def _whole_plots(study: Study, settings: Settings) -> Plots | None:
    """Return the whole plot of each run; None if no factor is hard to change."""
    hard, number = study.whole_plot_factors, settings.whole_plots
    if not hard:
        if number:
            raise DoeError("design.whole_plots: no factor is hard to change; set hard = true")
        return None
    if not 2 <= number < settings.runs or number % settings.blocks:
        raise DoeError(
            f"design.whole_plots = {number}: {hard[0]} is hard to change; expected the number of "
            f"whole plots per replicate, from 2 to {settings.runs - 1} and the same in each block"
        )
    if settings.include:
        raise DoeError(
            "design.include: not allowed with whole plots, whose runs are searched "
            "together; remove it"
        )
    of = np.array([i * number // settings.runs for i in range(settings.runs)])
    return Plots(of, tuple(study.keys.index(key) for key in hard))


def terms(study: Study, settings: Settings) -> tuple[int, ...]:
    """Return the model that the design is made for."""
    try:
        return named_terms(study.factors, settings.model or _usual_model(study))
    except DoeError as error:
        raise DoeError(f"design.model: {error}") from None


def _usual_model(study: Study) -> str:
    return "quadratic" if any(map(bends, study.factors)) else "interactions"


def describe(study: Study, settings: Settings) -> str:
    """Describe criterion, model and size."""
    model = settings.model or _usual_model(study)
    named = f"the {model} model" if isinstance(model, str) else "the terms of design.model"
    region = _Search(study, settings, terms(study, settings))
    count = int(region.estimable.sum())
    left_out = len(region.estimable) - count
    lost = f"; {left_out} cannot be estimated within the allowed region" if left_out else ""
    plots = f" in {counted(settings.whole_plots, 'whole plot')}" if settings.whole_plots else ""
    size = f"{counted(settings.runs, 'run')}{plots}"
    return (
        f"{settings.criterion}-optimal design of {size} for {named}, "
        f"{counted(count, 'coefficient')}{lost}."
    )


class Candidates(NamedTuple):
    """Candidate levels of each factor."""

    levels: tuple[Levels, ...]

    @property
    def sizes(self) -> list[int]:
        """Number of candidates of each factor."""
        return [len(levels) for levels in self.levels]

    def codes(self, found: Sequence[Levels]) -> Ints:
        """Return numbers of the candidates in some points."""
        return np.array([[c.index(v) for c, v in zip(self.levels, p, strict=True)] for p in found])

    def points(self, codes: Ints) -> list[Levels]:
        """Return levels of some points."""
        return [tuple(c[n] for c, n in zip(self.levels, p, strict=True)) for p in codes.tolist()]


def _candidates(factors: Sequence[Factor], number: int, forced: Sequence[Levels]) -> Candidates:
    """Return equally spaced values of each range, and all levels of the other factors."""
    tried: list[Levels] = []
    for i, factor in enumerate(factors):
        values = dict.fromkeys([factor.low, factor.high] if factor.ranged else factor.levels)
        if factor.ranged:
            for position in np.linspace(-1.0, 1.0, number)[1:-1].tolist():
                values[factor.level_at(position)] = None
        values |= dict.fromkeys(levels[i] for levels in forced)
        tried.append(tuple(sorted(values)) if factor.ranged else tuple(values))
    return Candidates(tuple(tried))


def optimal_points(
    study: Study,
    settings: Settings,
    wanted: Sequence[int],
    forced: Sequence[Levels],
    blocks: Sequence[int],
    done: Sequence[tuple[Levels, int]] = (),
    plots: Plots | None = None,
) -> list[Levels]:
    """Return the levels of the runs of an optimal design, the required ones first.

    `blocks` has the block of each run; `done` are levels and blocks of runs that are there already.
    Runs of a whole plot share the levels of the factors that are hard to change.

    Raises
    ------
    DoeError
        If no point may run, or the runs cannot estimate the model.
    """
    beside = block_columns([*(block for _, block in done), *blocks])
    search = _Search(study, settings, wanted, forced, [levels for levels, _ in done], beside)
    search.check(len(blocks))
    problem = search.problem(search.coarse)
    starts = settings.starts or _starts(problem, len(blocks))
    codes = _drawn(study, settings, search.coarse, starts * len(blocks))
    codes = codes.reshape(starts, len(blocks), -1)
    if forced:
        codes[:, : len(forced)] = search.coarse.codes(forced)
    codes, values = _searched(problem, codes, plots)
    ranked = np.argsort(-values, kind="stable")
    found = search.coarse.points(codes[ranked[0]])
    if search.fine != search.coarse:
        problem = search.problem(search.fine)
        better = ranked[: 1 if plots else _starts(problem, len(blocks))]
        codes = np.array([search.fine.codes(search.coarse.points(codes[i])) for i in better])
        codes, values = _searched(problem, codes, plots)
        found = search.fine.points(codes[int(values.argmax())])
    if not d_efficiency(search.matrix(found)):
        more = "runs or whole plots" if plots else "runs"
        raise DoeError(
            f"design.runs = {len(blocks)}: no design was found that can estimate the model; add "
            f"{more}, or use a smaller model (design.model)"
        )
    return found


def _searched(problem: Problem, codes: Ints, plots: Plots | None) -> tuple[Ints, Floats]:
    """Improve designs by coordinate exchange; return them with their criterion."""
    if plots is None:
        codes = exchanged(problem, codes)
        return codes, problem.criterion(codes)
    codes = exchanged_plots(problem, codes[:SPLIT_PLOT_STARTS], plots)
    return codes, criterion(problem, codes, plots)


def region_points(study: Study, settings: Settings, forced: Sequence[Levels] = ()) -> list[Levels]:
    """Draw points at random from the allowed region.

    Raises
    ------
    DoeError
        If nothing may run.
    """
    candidates = _candidates(study.factors, FINE, forced)
    return candidates.points(_drawn(study, settings, candidates, REGION_POINTS))


def corner_points(study: Study, settings: Settings) -> list[Levels]:
    """Return allowed points at the ends and the middle of ranges: all, or a random sample."""
    candidates = _candidates(study.factors, 3, ())
    if math.prod(candidates.sizes) > MOST_CORNERS:
        return candidates.points(_drawn(study, settings, candidates, REGION_POINTS))
    codes = np.array(list(product(*map(range, candidates.sizes))))
    return candidates.points(codes[_region(study, settings, candidates).allows(codes)])


def _drawn(study: Study, settings: Settings, candidates: Candidates, number: int) -> Ints:
    """Draw allowed points at random, as numbers of their candidates."""
    region = _region(study, settings, candidates)
    drawn = random_points(region, candidates.sizes, number, study.order_seed)
    if not len(drawn):
        raise DoeError("no configuration satisfies exclude and design.constraints; relax them")
    return drawn


def _starts(problem: Problem, runs: int) -> int:
    tried, width = sum(map(len, problem.tables)), problem.tables[0].shape[1]
    return int(np.clip(WORK / (runs * tried * width**2), FEWEST_STARTS, MOST_STARTS))


class _Search:
    """Specification of a search, for any candidates."""

    def __init__(
        self,
        study: Study,
        settings: Settings,
        wanted: Sequence[int],
        forced: Sequence[Levels] = (),
        done: Sequence[Levels] = (),
        beside: Floats | None = None,
    ) -> None:
        self.study, self.settings, self.terms = study, settings, wanted
        self.forced, self.done = len(forced), done
        self.coarse, self.fine = (_candidates(study.factors, n, forced) for n in (COARSE, FINE))
        rows = model_matrix(study.factors, region_points(study, settings, forced), wanted)
        self.estimable = independent_columns(rows)
        self.index = column_basis(study.factors, wanted)[self.estimable]
        self.beside = np.empty((len(done), 0)) if beside is None else beside
        self.moments = self._moments(rows) if settings.criterion == "I" else None

    def check(self, runs: int) -> None:
        """Refuse fewer runs than coefficients."""
        count = len(self.index) + self.beside.shape[1]
        if runs + len(self.done) < count:
            blocks = " with its blocks" if self.beside.shape[1] else ""
            raise DoeError(
                f"design.runs = {runs}: the model{blocks} has {count} coefficients; expected at "
                "least as many runs, or a smaller model (design.model)"
            )

    def matrix(self, found: Sequence[Levels]) -> Floats:
        """Return the model matrix of all runs, existing ones first."""
        rows = model_matrix(self.study.factors, [*self.done, *found], self.terms)
        return np.column_stack([rows[:, self.estimable], self.beside[: len(rows)]])

    def _moments(self, rows: Floats) -> Floats:
        """Return the moments of the region, with blocks at their mean."""
        columns = len(self.index) + self.beside.shape[1]
        moments = np.zeros((columns, columns))
        inside = rows[:, self.estimable]
        moments[: len(self.index), : len(self.index)] = inside.T @ inside / len(rows)
        return moments

    def problem(self, candidates: Candidates) -> Problem:
        """Return the search over some candidates."""
        tables = tuple(
            factor_basis(factor, levels)[:, self.index[:, i]]
            for i, (factor, levels) in enumerate(
                zip(self.study.factors, candidates.levels, strict=True)
            )
        )
        region = _region(self.study, self.settings, candidates)
        beside = self.beside[len(self.done) :]
        return Problem(tables, region, beside, self.matrix(()), self.moments, self.forced)


def _region(study: Study, settings: Settings, candidates: Candidates) -> Region:
    weights, bounds = _constraints(study, settings.constraints)
    values = tuple(
        np.array([float(v) if factor.numeric else 0.0 for v in levels])
        for factor, levels in zip(study.factors, candidates.levels, strict=True)
    )

    def numbers(factor: int, levels: Sequence[int]) -> Ints:
        own, tried = study.factors[factor].levels, candidates.levels[factor]
        return np.array([tried.index(own[level]) for level in levels])

    excluded = [{i: numbers(i, [number]) for i, number in b.items()} for b in exclusions(study)]
    for i, (other, absent) in conditions(study).items():
        tried = np.arange(len(candidates.levels[i]))
        excluded.append({other: numbers(other, absent), i: np.setdiff1d(tried, numbers(i, [0]))})
    return Region(values, weights, bounds, tuple(excluded))


def constraints_of(study: Study) -> tuple[Floats, Floats]:
    """Return the weights of the factors and the bounds of their sums for an optimal design."""
    texts = study.design.get("constraints", ()) if study.kind == "optimal" else ()
    return _constraints(study, tuple(texts))


def _constraints(study: Study, texts: Sequence[str]) -> tuple[Floats, Floats]:
    read = [_constraint(text, study) for text in texts]
    weights = np.array([w for w, _ in read]).reshape(len(read), len(study.factors))
    return weights, np.array([b for _, b in read])


def _constraint(text: str, study: Study) -> tuple[list[float], float]:
    """Parse "2*a + b <= 3" or ">=" into weights of the factors and the bound of their sum."""
    sides = re.fullmatch(r"(.+?)(<=|>=)(.+)", text.replace(" ", ""))
    path = f"design.constraints: {short(text)}"
    if sides is None:
        raise DoeError(f"{path}: expected a sum of factors, <= or >=, and a number")
    sign = 1.0 if sides[2] == "<=" else -1.0
    weights = dict.fromkeys(study.keys, 0.0)
    numeric = [factor.key for factor in study.factors if factor.numeric]
    parts = re.findall(r"[+-]?[^+-]+(?:e[+-]\d+[^+-]*)?", sides[1], re.IGNORECASE)
    for part in parts:
        term = re.fullmatch(r"([+-]?)(?:([0-9.eE+-]+)\*?)?([A-Za-z]\w*)", part)
        if term is None or term[3] not in numeric:
            name = term[3] if term else part
            raise DoeError(
                f"{path}: {name!r} is not a numeric factor{nearest(name, numeric)}; expected "
                f"a number times one of {', '.join(numeric)}"
            )
        try:
            factor = float(f"{term[1]}{term[2] or 1}")
        except ValueError:
            raise DoeError(f"{path}: {term[2]!r} is not a number") from None
        weights[term[3]] += sign * factor
    try:
        bound = sign * float(sides[3])
    except ValueError:
        raise DoeError(
            f"{path}: {sides[3]!r} is not a number; expected a number as the bound"
        ) from None
    return list(weights.values()), bound + 1e-9 * max(1.0, abs(bound))


def _configuration(text: str, study: Study) -> Levels:
    """Return levels of all factors from "lr=0.01, batch=64"."""
    given = dict(part.partition("=")[::2] for part in text.replace(" ", "").split(","))
    path = f"design.include: {short(text)}"
    if missing := [key for key in study.keys if key not in given]:
        raise DoeError(f"{path}: no level of {missing[0]}; expected a level for every factor")
    if strange := [key for key in given if key not in study.keys]:
        raise DoeError(f"{path}: {strange[0]!r} is not a factor{nearest(strange[0], study.keys)}")
    try:
        return tuple(_level(given[factor.key], factor) for factor in study.factors)
    except DoeError as error:
        raise DoeError(f"{path}: {error}") from None


def _level(text: str, factor: Factor) -> Level:
    """Return a level by its text, or any number within a range."""
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not factor.ranged:
        return factor.levels[read_level(text, factor)]
    low, high = sorted(map(float, factor.levels))
    if not low <= number <= high or (factor.integer and not number.is_integer()):
        kind = "whole number" if factor.integer else "number"
        raise DoeError(f"{factor.key}={text}: expected a {kind} from {low:g} to {high:g}")
    return int(number) if factor.integer else number
