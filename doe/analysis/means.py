"""Means of levels with every cell weighted alike, Tukey's differences, and conditional effects."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import combinations, product
from typing import NamedTuple

import numpy as np
from msgspec import Struct, structs

from doe.analysis import distributions as stats
from doe.analysis.contrasts import Floats, Ints
from doe.analysis.distributions import root
from doe.analysis.fit import Fit
from doe.analysis.pvalues import signed_quotient, t_critical, t_two_sided
from doe.analysis.scales.log import exponential, ratio_of
from doe.analysis.transform import Transformation
from doe.terms import BETWEEN, factors_in

Held = Mapping[int, int]
"""Number of a factor -> number of the level at which it is held."""
MOST_COMBINATIONS = 2000
"""Combinations of two factors' levels whose means are given; more are for no one to read."""
SHOWN_INTERACTIONS = 6
"""Interactions that are given as conditional effects, the strongest ones."""
NODES = np.polynomial.legendre.leggauss(160)
"""Gauss and Legendre's points and weights for integrals over normal values and over s."""


class LevelMean(Struct, frozen=True, gc=False):
    """The mean of a level, or of a combination of levels, over the cells of the other factors."""

    factor: str  # key, or the name of a term such as lr:optimizer
    level: str  # label, or labels as in a configuration
    mean: float | None  # None where no run has the level
    se: float | None  # None in a saturated design
    ci_low: float | None
    ci_high: float | None
    n: int  # runs with the level
    cells: int  # cells that are averaged
    of: int  # cells that there are; more than `cells` where some never ran
    at: tuple[int, ...]  # number of the level of each factor of `factor`


class LevelDifference(Struct, frozen=True, gc=False):
    """The mean of `level` minus that of `other`, over the same cells of the other factors."""

    factor: str
    level: str
    other: str
    difference: float | None  # None where no combination of the other factors has both
    se: float | None
    ci_low: float | None  # simultaneous for all pairs of the factor (Tukey)
    ci_high: float | None
    t: float | None
    p: float | None  # of this pair alone
    p_tukey: float | None  # for all pairs of the factor
    cells: int
    of: int
    ratio: float | None = None  # on a log scale: geometric mean, or odds, of `level` over `other`
    ratio_low: float | None = None
    ratio_high: float | None = None


class ConditionalEffect(Struct, frozen=True, gc=False):
    """Effect of a factor at one level of another: a difference, or a ratio on log scales."""

    level: str  # of the other factor
    effect: float | None  # None where the runs do not determine it
    ci_low: float | None  # intervals hold for all interactions at once
    ci_high: float | None


class Interaction(Struct, frozen=True):
    """Effects of a factor at each level of another one."""

    term: str
    factor: str  # the one that acts
    other: str  # the one on whose level it depends
    low: str  # levels of the factor that are compared: `high` minus `low`
    high: str
    at: tuple[ConditionalEffect, ...]  # a level of the other each
    ratio: bool
    p: float | None
    p_holm: float | None
    mask: int = 0


class LinearFunction(NamedTuple):
    """A linear function of the coefficients, and how many cells it averages."""

    row: Floats | None
    cells: int


def _filled(fit: Fit, held: Held) -> Ints:
    """Levels of the cells that have runs, with some factors held at a level."""
    levels = np.unique(fit.runs.fixed_index[~fit.runs.off], axis=0)
    inside = np.ones(len(levels), dtype=bool)
    for factor, level in held.items():
        inside &= levels[:, factor] == level
    return np.asarray(levels[inside])


def _combinations(fit: Fit, held: Held) -> int:
    """Number of combinations of the levels of the factors that are not held."""
    return math.prod(size for i, size in enumerate(fit.runs.sizes) if i not in held)


def mean_functions(fit: Fit, held: Sequence[Held]) -> list[LinearFunction]:
    """Averages over all cells where that is estimable, else over those that have runs.

    All hold the same factors, each at levels of its own.
    """
    rows = fit.model.margin_rows(held)
    return [
        LinearFunction(row, _combinations(fit, at)) if known else _filled_mean(fit, at)
        for row, known, at in zip(rows, fit.model.estimable(rows).tolist(), held, strict=True)
    ]


def _filled_mean(fit: Fit, held: Held) -> LinearFunction:
    """Average over the cells that have runs."""
    levels = _filled(fit, held)
    rows = fit.model.rows_at(levels)
    if len(levels) == 0 or not fit.model.estimable(rows.mean(axis=0)[None, :])[0]:
        return LinearFunction(None, 0)
    return LinearFunction(rows.mean(axis=0), len(levels))


def difference_function(
    fit: Fit, factor: int, pair: tuple[int, int], held: Held | None = None
) -> LinearFunction:
    """Second level minus first, over all cells where estimable, else over those that both have."""
    low, high = ({**(held or {}), factor: level} for level in pair)
    every = _combinations(fit, low)
    row = np.diff(fit.model.margin_rows([low, high]), axis=0)[0]
    if fit.model.estimable(row[None, :])[0]:
        return LinearFunction(row, every)
    sides = []
    for at in (low, high):
        levels = _filled(fit, at)
        levels[:, factor] = 0
        sides.append({tuple(line) for line in levels.tolist()})
    shared = np.array(sorted(sides[0] & sides[1]), np.int64)
    if len(shared) == 0:
        return LinearFunction(None, 0)
    ends = []
    for level in pair:
        shared[:, factor] = level
        ends.append(fit.model.rows_at(shared).mean(axis=0))
    row = ends[1] - ends[0]
    if not fit.model.estimable(row[None, :])[0]:
        return LinearFunction(None, 0)
    return LinearFunction(row, len(shared))


def _values(
    fit: Fit, functions: Sequence[LinearFunction]
) -> list[tuple[float, float, float] | None]:
    """Value and standard error of each function, both of u, and degrees of freedom.

    These are NaN where there is no error.
    """
    known = [function.row for function in functions if function.row is not None]
    if not known:
        return [None] * len(functions)
    rows = np.stack(known)
    columns = (fit.estimate(rows)[0], *fit.errors(rows))
    values = iter(zip(*(column.tolist() for column in columns), strict=True))
    return [None if function.row is None else next(values) for function in functions]


def _value(fit: Fit, function: LinearFunction) -> tuple[float, float, float] | None:
    return _values(fit, [function])[0]


def means_at(fit: Fit, held: Sequence[Held], alpha: float) -> tuple[LevelMean, ...]:
    """Means with some factors held at levels, each cell of the others weighted alike.

    ``m = ℓ'b`` with ℓ the average of the cells' rows, ``se = σ √(ℓ'(X'X)^-1 ℓ)``, interval by t:
    what the R package emmeans gives with equal weights (Searle, Speed and Milliken 1980). Where
    empty cells leave that undetermined, the average is over the cells that have runs. All hold the
    same factors.
    """
    functions = mean_functions(fit, held)
    return tuple(
        _mean(fit, at, function, estimate, alpha)
        for at, function, estimate in zip(held, functions, _values(fit, functions), strict=True)
    )


def _mean(
    fit: Fit,
    held: Held,
    function: LinearFunction,
    estimate: tuple[float, float, float] | None,
    alpha: float,
) -> LevelMean:
    runs = fit.runs
    label = BETWEEN.join(runs.factors[i].labels[held[i]] for i in sorted(held))
    inside = np.ones(fit.n, dtype=bool) if held else ~runs.off
    for factor, level in held.items():
        inside &= runs.index[:, factor] == level
    mean = se = low = high = None
    if estimate is not None:
        value, error, df = estimate
        mean = fit.shift + fit.unit * value
        if df > 0:
            reach = t_critical(alpha, df) * error
            se = fit.unit * error
            low, high = (fit.shift + fit.unit * (value + side * reach) for side in (-1.0, 1.0))
    name = fit.model.name(sum(1 << i for i in held))
    at = tuple(held[i] for i in sorted(held))
    every = _combinations(fit, held)
    count = int(inside.sum())
    return LevelMean(name, label, mean, se, low, high, count, function.cells, every, at)


def level_means(fit: Fit, factor: int, alpha: float = 0.05) -> tuple[LevelMean, ...]:
    """Return the mean of each level of a factor, in the order of its levels."""
    return means_at(fit, [{factor: i} for i in range(fit.runs.sizes[factor])], alpha)


def term_means(fit: Fit, term: int, alpha: float = 0.05) -> tuple[LevelMean, ...]:
    """Return the mean of each combination of the levels of a term's factors, the first one
    slowest.
    """
    own = factors_in(term)
    grid = product(*(range(fit.runs.sizes[i]) for i in own))
    return means_at(fit, [dict(zip(own, at, strict=True)) for at in grid], alpha)


def pair_means(fit: Fit, alpha: float) -> list[LevelMean]:
    """Means of the combinations of two factors' levels, while there are not too many."""
    sizes = fit.runs.sizes
    means: list[LevelMean] = []
    for term in fit.model.sorted_terms:
        own = [sizes[i] for i in factors_in(term)]
        if len(own) == 2 and len(means) + math.prod(own) <= MOST_COMBINATIONS:
            means += term_means(fit, term, alpha)
    return means


def level_differences(fit: Fit, factor: int, alpha: float = 0.05) -> tuple[LevelDifference, ...]:
    """Return all pairs of a factor's levels, later minus earlier, with Tukey's adjustment.

    ``t = d / se``, ``p = P(Q_{k,ν} >= √2 |t|)`` and ``d ± q se / √2`` with the standard error of
    the model's covariance: Tukey and Kramer's in one way, and exact for equal runs (Tukey 1953,
    Kramer 1956).
    """
    pairs = combinations(range(fit.runs.sizes[factor]), 2)
    return tuple(_difference(fit, factor, pair, alpha) for pair in pairs)


def _difference(fit: Fit, factor: int, pair: tuple[int, int], alpha: float) -> LevelDifference:
    """Return the second level of a pair minus the first."""
    column = fit.runs.factors[factor]
    groups = len(column.levels)
    function = difference_function(fit, factor, pair)
    difference = se = low = high = t = p = p_tukey = None
    if (estimate := _value(fit, function)) is not None:
        value, error, df = estimate
        difference = fit.unit * value
        if df > 0:
            se = fit.unit * error
            t = signed_quotient(value, error) or 0.0
            p = float(t_two_sided(np.array(t), df))
            p_tukey = tukey_p(t, groups, df) if math.isfinite(t) else 0.0
            reach = range_critical(alpha, groups, df) / np.sqrt(2.0) * error
            low, high = (fit.unit * float(value + side * reach) for side in (-1.0, 1.0))
    return LevelDifference(
        factor=column.key,
        level=column.labels[pair[1]],
        other=column.labels[pair[0]],
        difference=difference,
        se=se,
        ci_low=low,
        ci_high=high,
        t=t,
        p=p,
        p_tukey=p_tukey,
        cells=function.cells,
        of=_combinations(fit, {factor: 0}),
    )


def as_ratio(pair: LevelDifference) -> LevelDifference:
    """Return a difference of logarithms with the ratio that it stands for, of geometric means or
    odds.
    """
    ends = [
        None if v is None else ratio_of(v) for v in (pair.difference, pair.ci_low, pair.ci_high)
    ]
    return structs.replace(pair, ratio=ends[0], ratio_low=ends[1], ratio_high=ends[2])


def on_response_scale(
    means: Sequence[LevelMean], transform: Transformation, y: Floats
) -> tuple[LevelMean, ...]:
    """Means and their bounds on the scale of the response; errors do not go to another scale."""

    def response(value: float | None) -> float | None:
        return None if value is None else float(transform.to_response(np.array([value]), y)[0])

    return tuple(
        structs.replace(
            mean,
            mean=response(mean.mean),
            se=mean.se if transform.name == "none" else None,
            ci_low=response(mean.ci_low),
            ci_high=response(mean.ci_high),
        )
        for mean in means
    )


# Interactions as conditional effects ------------------------------------------------------------


def interactions(
    fit: Fit,
    pairs: Sequence[tuple[int, float | None, float | None]],
    transform: Transformation,
    alpha: float,
) -> tuple[Interaction, ...]:
    """Terms of two factors as what one of them does at each level of the other.

    `pairs` are terms with p and Holm's p, the strongest first. The factor that acts is the one
    whose levels differ most at some level of the other.
    """
    level = alpha / max(_conditional_effects(fit), 1)
    return tuple(_interaction(fit, *pair, transform, level) for pair in pairs[:SHOWN_INTERACTIONS])


def _conditional_effects(fit: Fit) -> int:
    """Return how many conditional effects there are to choose from, for Bonferroni's level."""
    sizes = fit.runs.sizes
    return sum(
        math.comb(size, 2) * other
        for i, size in enumerate(sizes)
        for j, other in enumerate(sizes)
        if i != j
    )


def _interaction(
    fit: Fit,
    term: int,
    p: float | None,
    p_holm: float | None,
    transform: Transformation,
    alpha: float,
) -> Interaction:
    first, second = factors_in(term)
    choices = [_widest(fit, factor, other) for factor, other in ((first, second), (second, first))]
    _, factor, other, pair = max(choices, key=lambda choice: choice[0])
    column, levels = fit.runs.factors[factor], fit.runs.factors[other].labels
    return Interaction(
        term=fit.model.name(term),
        factor=column.key,
        other=fit.runs.factors[other].key,
        low=column.labels[pair[0]],
        high=column.labels[pair[1]],
        at=tuple(
            _conditional(fit, factor, pair, {other: i}, label, transform, alpha)
            for i, label in enumerate(levels)
        ),
        ratio=bool(transform.scale.ratio),
        p=p,
        p_holm=p_holm,
        mask=term,
    )


def _widest(fit: Fit, factor: int, other: int) -> tuple[float, int, int, tuple[int, int]]:
    """Return the largest mean difference between two levels of a factor, and these levels.

    Of a factor of two levels its effect over all levels of the other; of more the widest anywhere.
    """
    sizes = fit.runs.sizes
    widest, pair = -1.0, (0, sizes[factor] - 1)
    held: list[Held] = [{}] if sizes[factor] == 2 else [{other: i} for i in range(sizes[other])]
    for low, high in combinations(range(sizes[factor]), 2):
        for at in held:
            estimate = _value(fit, difference_function(fit, factor, (low, high), at))
            if estimate is not None and abs(estimate[0]) > widest:
                widest, pair = abs(estimate[0]), (low, high)
    return widest, factor, other, pair


def _conditional(
    fit: Fit,
    factor: int,
    pair: tuple[int, int],
    held: Held,
    label: str,
    transform: Transformation,
    alpha: float,
) -> ConditionalEffect:
    estimate = _value(fit, difference_function(fit, factor, pair, held))
    if estimate is None:
        return ConditionalEffect(label, None, None, None)
    value, error, df = estimate
    reach = t_critical(alpha, df) * error if df > 0 else np.nan
    with np.errstate(over="ignore"):  # an end beyond all numbers is infinite
        ends = fit.unit * (value + np.array([0.0, -reach, reach]))
    if transform.scale.ratio:
        ends = exponential(ends)
    elif transform.name != "none":
        centre = _value(fit, mean_functions(fit, [held])[0])
        middle = fit.shift + fit.unit * (centre[0] if centre else np.nan)
        ends = transform.scale.back(middle + ends / 2) - transform.scale.back(middle - ends / 2)
    effect, low, high = (None if end != end else float(end) for end in ends.tolist())
    return ConditionalEffect(label, effect, low, high)


# Tukey's studentized range -----------------------------------------------------------------------


@lru_cache(maxsize=64)
def spread_nodes(df: float) -> tuple[Floats, Floats, Floats, Floats]:
    """Points and weights of the largest of normal values, and of ``ln s`` with s² = χ²_df / df."""
    x, w = NODES
    z, wz = 9.0 * x, 9.0 * w * stats.norm.pdf(9.0 * x)
    ends = 0.5 * np.log(stats.chi2.ppf([1e-30, 1.0], df) / df)
    ends[1] = 0.5 * np.log(stats.chi2.isf(1e-18, df) / df)
    t = 0.5 * (ends[1] - ends[0]) * x + 0.5 * (ends[1] + ends[0])
    s = np.exp(t)
    density = stats.chi2.logpdf(df * s**2, df) + np.log(2.0 * df) + 2.0 * t
    return z, wz, s, 0.5 * (ends[1] - ends[0]) * w * np.exp(density)


def range_upper(q: float, groups: int, df: float) -> float:
    """``P(Q >= q)`` of the studentized range of `groups` means.

    With z the largest of the values, ``Φ(z)^(k-1) - [Φ(z) - Φ(z - q s)]^(k-1)`` is integrated over
    ``k φ(z)`` and s: the tail itself and not one minus the rest, so that small p stay exact.
    """
    if q <= 0:
        return 1.0
    z, wz, s, ws = spread_nodes(df)
    below = stats.norm.cdf(z)[:, None]
    ratio = np.minimum(stats.norm.cdf(z[:, None] - q * s[None, :]) / below, 1.0 - 1e-16)
    tail = -(below ** (groups - 1)) * np.expm1((groups - 1) * np.log1p(-ratio))
    return float(min(1.0, groups * (wz @ tail @ ws)))


@lru_cache(maxsize=256)
def range_critical(alpha: float, groups: int, df: float) -> float:
    """Return the value that the studentized range exceeds with probability `alpha`."""
    if groups == 2:
        return float(np.sqrt(2.0) * t_critical(alpha, df))
    pairs = math.comb(groups, 2)
    single, bonferroni = (
        math.sqrt(2.0) * t_critical(level, df) for level in (alpha, alpha / pairs)
    )
    ends = range_upper(bonferroni, groups, df), range_upper(single, groups, df)
    if not ends[0] < alpha < ends[1]:  # beyond what the quadrature can tell
        return bonferroni
    return root(lambda q: math.log(range_upper(q, groups, df) / alpha), single, bonferroni)


def tukey_p(t: float, groups: int, df: float) -> float:
    """Adjusted p of a difference with ratio t to its standard error: ``P(Q >= √2 |t|)``."""
    if groups == 2:
        return float(t_two_sided(np.array(t), df))
    return range_upper(float(np.sqrt(2.0)) * abs(t), groups, df)
