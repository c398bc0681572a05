"""Means of levels with every cell weighted alike, and Tukey's differences between levels."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations, product
from typing import NamedTuple

import numpy as np
from msgspec import Struct, structs

from doe.analysis.contrasts import Floats, Ints
from doe.analysis.levels.coding import contrasts, term_columns
from doe.analysis.levels.fit import LevelFit
from doe.analysis.levels.model import ModelMatrix
from doe.analysis.levels.tukey import range_critical, tukey_p
from doe.analysis.pvalues import signed_quotient, t_critical, t_two_sided
from doe.analysis.scales.log import ratio_of
from doe.terms import BETWEEN, MEAN, factors_in

Held = Mapping[int, int]
"""Number of a factor -> number of the level at which it is held."""


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
    ratio: float | None = None  # on a log scale: geometric mean of `level` over that of `other`
    ratio_low: float | None = None
    ratio_high: float | None = None


class _Function(NamedTuple):
    """A linear function of the coefficients, and how many cells it averages."""

    row: Floats | None
    cells: int


def margin_rows(matrix: ModelMatrix, levels: Ints) -> Floats:
    """Rows of the model matrix at combinations of levels, blocks averaged.

    `levels` has a row per combination and a column per factor; -1 averages over a factor's
    levels, which leaves nothing of its contrasts, as they sum to zero.
    """
    columns = []
    for factor, index in zip(matrix.layout.factors, levels.T, strict=True):
        values = contrasts(factor)[np.maximum(index, 0)]
        columns.append(np.where(index[:, None] < 0, 0.0, values))
    rows = np.zeros((len(levels), len(matrix.source)))
    rows[:, matrix.source == MEAN] = 1.0
    for mask in matrix.masks:
        rows[:, matrix.source == mask] = term_columns(columns, mask)
    return rows


def _combinations(fit: LevelFit, held: Held) -> int:
    """Number of combinations of the levels of the factors that are not held."""
    sizes = fit.matrix.layout.sizes
    return math.prod(size for i, size in enumerate(sizes) if i not in held)


def _filled(fit: LevelFit, held: Held) -> Ints:
    """Levels of the cells that have runs, with some factors held at a level."""
    layout = fit.matrix.layout
    cells = np.unique(layout.cells[~layout.is_centre])
    levels = np.array([layout.cell_levels(c) for c in cells.tolist()], np.int64)
    inside = np.ones(len(levels), dtype=bool)
    for factor, level in held.items():
        inside &= levels[:, factor] == level
    return np.asarray(levels[inside])


def _mean_function(fit: LevelFit, held: Held) -> _Function:
    """Average over all cells where that is estimable, else over those that have runs."""
    margin = np.full((1, len(fit.matrix.layout.factors)), -1, np.int64)
    for factor, level in held.items():
        margin[0, factor] = level
    row = margin_rows(fit.matrix, margin)
    if fit.matrix.estimable(row)[0]:
        return _Function(row[0], _combinations(fit, held))
    levels = _filled(fit, held)
    if len(levels) == 0:
        return _Function(None, 0)
    return _Function(margin_rows(fit.matrix, levels).mean(axis=0), len(levels))


def difference_function(fit: LevelFit, factor: int, pair: tuple[int, int]) -> _Function:
    """Second level minus first, over all cells where estimable, else over those that both have."""
    low, high = ({factor: level} for level in pair)
    means = [_mean_function(fit, at) for at in (low, high)]
    rows = [mean.row for mean in means]
    every = _combinations(fit, low)
    if rows[0] is not None and rows[1] is not None and all(m.cells == every for m in means):
        return _Function(rows[1] - rows[0], every)
    sides = []
    for at in (low, high):
        levels = _filled(fit, at)
        levels[:, factor] = 0
        sides.append({tuple(line) for line in levels.tolist()})
    shared = np.array(sorted(sides[0] & sides[1]), np.int64)
    if len(shared) == 0:
        return _Function(None, 0)
    ends = []
    for level in pair:
        shared[:, factor] = level
        ends.append(margin_rows(fit.matrix, shared).mean(axis=0))
    return _Function(ends[1] - ends[0], len(shared))


def _value(fit: LevelFit, function: _Function) -> tuple[float, float] | None:
    """Value and standard error of a function, both of u; the error is NaN when saturated."""
    if function.row is None:
        return None
    value, covariance = fit.estimate(function.row[None, :])
    return float(value[0]), float(np.sqrt(max(covariance[0, 0], 0.0) * fit.ms_error))


def mean_at(fit: LevelFit, held: Held, alpha: float) -> LevelMean:
    """The mean with some factors held at a level, each cell of the others weighted alike.

    ``m = ℓ'b`` with ℓ the average of the cells' rows, ``se = σ √(ℓ'(X'X)^-1 ℓ)``, interval by t:
    what the R package emmeans gives with equal weights (Searle, Speed and Milliken 1980). Where
    empty cells leave that undetermined, the average is over the cells that have runs.
    """
    layout = fit.matrix.layout
    label = BETWEEN.join(layout.factors[i].labels[held[i]] for i in sorted(held))
    inside = np.ones(fit.n, dtype=bool)
    for factor, level in held.items():
        inside &= layout.index[:, factor] == level
    function = _mean_function(fit, held)
    mean = se = low = high = None
    if (estimate := _value(fit, function)) is not None:
        value, error = estimate
        mean = fit.shift + fit.unit * value
        if fit.df_error > 0:
            reach = t_critical(alpha, fit.df_error) * error
            se = fit.unit * error
            low, high = (fit.shift + fit.unit * (value + side * reach) for side in (-1.0, 1.0))
    name = fit.matrix.name(sum(1 << i for i in held))
    count = int((inside if held else ~layout.is_centre).sum())
    at = tuple(held[i] for i in sorted(held))
    every = _combinations(fit, held)
    return LevelMean(name, label, mean, se, low, high, count, function.cells, every, at)


def level_means(fit: LevelFit, factor: int, alpha: float = 0.05) -> tuple[LevelMean, ...]:
    """The mean of each level of a factor, in the order of its levels."""
    return tuple(mean_at(fit, {factor: i}, alpha) for i in range(fit.matrix.layout.sizes[factor]))


def term_means(fit: LevelFit, mask: int, alpha: float = 0.05) -> tuple[LevelMean, ...]:
    """The mean of each combination of the levels of a term's factors, the first one slowest."""
    own = factors_in(mask)
    grid = product(*(range(fit.matrix.layout.sizes[i]) for i in own))
    return tuple(mean_at(fit, dict(zip(own, at, strict=True)), alpha) for at in grid)


def level_differences(
    fit: LevelFit, factor: int, alpha: float = 0.05
) -> tuple[LevelDifference, ...]:
    """All pairs of a factor's levels, later minus earlier, with Tukey's adjustment.

    ``t = d / se``, ``p = P(Q_{k,ν} >= √2 |t|)`` and ``d ± q se / √2`` with the standard error of
    the model's covariance: Tukey and Kramer's in one way, and exact for equal runs (Tukey 1953,
    Kramer 1956).
    """
    count = fit.matrix.layout.sizes[factor]
    return tuple(_difference(fit, factor, pair, alpha) for pair in combinations(range(count), 2))


def _difference(fit: LevelFit, factor: int, pair: tuple[int, int], alpha: float) -> LevelDifference:
    """The second level of a pair minus the first."""
    column = fit.matrix.layout.factors[factor]
    groups = len(column.levels)
    function = difference_function(fit, factor, pair)
    difference = se = low = high = t = p = p_tukey = None
    if (estimate := _value(fit, function)) is not None:
        value, error = estimate
        difference = fit.unit * value
        if fit.df_error > 0:
            se = fit.unit * error
            t = signed_quotient(value, error) or 0.0
            p = float(t_two_sided(np.array(t), fit.df_error))
            p_tukey = tukey_p(t, groups, fit.df_error) if math.isfinite(t) else 0.0
            reach = range_critical(alpha, groups, fit.df_error) / np.sqrt(2.0) * error
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
    """A difference of logarithms with the ratio of geometric means that it stands for."""
    ends = [
        None if v is None else ratio_of(v) for v in (pair.difference, pair.ci_low, pair.ci_high)
    ]
    return structs.replace(pair, ratio=ends[0], ratio_low=ends[1], ratio_high=ends[2])


def on_response_scale(
    means: Sequence[LevelMean], back: Callable[[Floats], Floats]
) -> tuple[LevelMean, ...]:
    """Means and their bounds taken back from a transformed scale; errors do not go there."""

    def response(value: float | None) -> float | None:
        return None if value is None else float(back(np.array([value]))[0])

    return tuple(
        structs.replace(
            mean,
            mean=response(mean.mean),
            se=None,
            ci_low=response(mean.ci_low),
            ci_high=response(mean.ci_high),
        )
        for mean in means
    )
