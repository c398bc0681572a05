"""Contrasts of the levels of a factor, and the columns of a model's terms at any points."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations, product
from typing import NamedTuple

import numpy as np
import scipy

from doe.analysis.contrasts import Floats, Ints
from doe.analysis.dataset import OFF, FactorColumn, Runs
from doe.terms import factors_in, is_squared, single_letters

DEGREES = ("linear", "quadratic", "cubic")
AVERAGED = -2
"""Level number of a factor over whose levels a row is averaged."""


class FactorColumns(NamedTuple):
    """Contribution of one factor to the columns of terms, at some points."""

    contrasts: Floats  # points x degrees of freedom
    square: Floats | None  # z² of a number's position z; None for words


@lru_cache(maxsize=256)
def contrasts(factor: FactorColumn) -> Floats:
    """Contrasts of a factor's L levels, one per column, with ``C'C = L I`` where there are L - 1.

    Every column sums to zero, so a term's coefficients do not depend on which levels other
    factors have. Two levels are -1 and +1. Three or more numbers give orthogonal polynomials on
    the factor's scale (Robson 1959), words Helmert's contrasts: each level against the mean of
    those before it. A factor of degree 1 is its position from -1 to 1, as in a response surface.
    """
    count = len(factor.levels)
    if factor.degree == 1:
        return factor.positions[:, None]
    if count == 2:
        return np.array([[-1.0], [1.0]])
    if factor.numeric:
        return _polynomials(factor, factor.positions)
    columns = np.zeros((count, count - 1))
    for j in range(1, count):
        columns[:j, j - 1] = -1.0 / j
        columns[j, j - 1] = 1.0
    return np.asarray(columns * np.sqrt(count / (columns**2).sum(axis=0)))


def _polynomials(factor: FactorColumn, z: Floats) -> Floats:
    """Polynomials of degree 1 and more, orthogonal at the factor's levels, at positions z."""
    levels = factor.positions
    count = len(levels)
    highest = count - 1 if factor.degree is None else min(factor.degree, count - 1)
    powers = np.polynomial.legendre.legvander(np.append(levels, z), highest)
    R = scipy.linalg.qr(powers[:count], mode="r")[0][: highest + 1]
    values = scipy.linalg.solve_triangular(R, powers.T, trans="T").T * np.sign(np.diag(R))
    return np.asarray(values[count:, 1:] * np.sqrt(count))


@lru_cache(maxsize=256)
def contrast_means(factor: FactorColumn) -> tuple[Floats, bool]:
    """Mean of each contrast over the levels, and whether that is nothing."""
    means = contrasts(factor).mean(axis=0)
    return means, not bool((np.abs(means) > 1e-12).any())


def width(factor: FactorColumn) -> int:
    """Degrees of freedom of a factor's main effect where every level has runs."""
    highest = len(factor.levels) - 1
    return highest if factor.degree is None else min(factor.degree, highest)


def contrasts_between(factor: FactorColumn, z: Floats) -> Floats:
    """Return the contrasts of a numeric factor at any positions of its scale."""
    if factor.degree == 1:
        return np.asarray(z[:, None])
    if len(factor.levels) == 2:  # the second level counts as high, also where it is the smaller
        return np.asarray(z[:, None] * factor.positions[1])
    return _polynomials(factor, z)


def contrast_labels(factor: FactorColumn) -> tuple[str, ...]:
    """Return what each contrast of a factor compares; an empty text where there is but one."""
    count = width(factor)
    if count == 1:
        return ("",)
    if factor.numeric:
        return tuple(DEGREES[j] if j < 3 else f"degree {j + 1}" for j in range(count))
    labels = factor.labels
    return tuple(
        f"{labels[j]} − {labels[0] if j == 1 else f'mean of {j} before'}"
        for j in range(1, count + 1)
    )


def columns_at(
    factors: Sequence[FactorColumn], index: Ints, position: Floats | None = None
) -> list[FactorColumns]:
    """Columns of each factor at points: level numbers, OFF with a position, or AVERAGED.

    Averaged over its levels a factor leaves the mean of each column, nothing of contrasts.
    """
    parts = []
    for i, factor in enumerate(factors):
        numbers = index[:, i]
        at_levels = contrasts(factor)
        values = at_levels[np.maximum(numbers, 0)]
        squares = factor.positions**2 if factor.numeric else None
        square = None if squares is None else squares[np.maximum(numbers, 0)]
        if (between := numbers == OFF).any():
            assert position is not None
            z = position[:, i]
            values = np.where(between[:, None], contrasts_between(factor, z), values)
            square = z**2 if square is None else np.where(between, z**2, square)
        if (averaged := numbers == AVERAGED).any():
            values = np.where(averaged[:, None], contrast_means(factor)[0], values)
            if square is not None and squares is not None:
                square = np.where(averaged, squares.mean(), square)
        parts.append(FactorColumns(values, square))
    return parts


def run_columns(runs: Runs) -> list[FactorColumns]:
    """Columns of each factor at every run."""
    return columns_at(runs.factors, runs.index, runs.position)


def term_columns(columns: Sequence[FactorColumns], term: int) -> Floats:
    """Columns of a term: all products of one contrast, or the square, of each of its factors."""
    rows = len(columns[0].contrasts)
    products = np.ones((rows, 1))
    for i in factors_in(term):
        square = columns[i].square if is_squared(term, i) else None
        own = columns[i].contrasts if square is None else square[:, None]
        width = products.shape[1] * own.shape[1]
        products = (products[:, :, None] * own[:, None, :]).reshape(rows, width)
    return products


def term_width(factors: Sequence[FactorColumn], term: int) -> int:
    """Degrees of freedom of a term where every cell has runs."""
    count = 1
    for i in factors_in(term):
        count *= 1 if is_squared(term, i) else width(factors[i])
    return count


def level_patterns(factors: Sequence[FactorColumn], term: int) -> tuple[Floats, list[str]]:
    """Return what a term does between two levels of each of its factors, and how that is called.

    Patterns x columns of the term: products of differences of two levels' contrasts, halved for
    each factor but the first, as the effect of a two-level term is twice its coefficient.
    """
    rows, labels = np.full((1, 1), 2.0), [""]
    for i in factors_in(term):
        factor = factors[i]
        values = (factor.positions**2)[:, None] if is_squared(term, i) else contrasts(factor)
        pairs = list(combinations(range(len(factor.levels)), 2))
        steps = np.array([values[b] - values[a] for a, b in pairs]) / 2.0
        rows = np.kron(rows, steps)
        names = [f"{factor.labels[b]} − {factor.labels[a]}" for a, b in pairs]
        labels = [" : ".join(filter(None, (lead, name))) for lead in labels for name in names]
    return rows, labels


def column_labels(factors: Sequence[FactorColumn], term: int) -> list[str]:
    """Label of each column of a term, such as ``lr linear : optimizer adam − sgd``."""
    parts = [
        [f"{factors[i].key}^2"]
        if is_squared(term, i)
        else [f"{factors[i].key} {label}".strip() for label in contrast_labels(factors[i])]
        for i in factors_in(term)
    ]
    single = all(len(part) == 1 for part in parts)
    letters = single_letters([factor.key for factor in factors])
    separator = " : " if not single else "" if letters else ":"
    return [separator.join(labels) for labels in product(*parts)]
