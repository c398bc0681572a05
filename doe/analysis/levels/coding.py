"""Contrasts of the levels of a factor, and the columns of a model's terms."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
from scipy import linalg

from doe.analysis.contrasts import Floats
from doe.analysis.levels.layout import MIDDLE, FactorColumn, LevelRuns
from doe.terms import factors_in, single_letters

DEGREES = ("linear", "quadratic", "cubic")


def contrasts(factor: FactorColumn) -> Floats:
    """Contrasts of a factor's L levels, one per column, L x (L - 1), with ``C'C = L I``.

    Every column sums to zero, so a term's coefficients do not depend on which levels other
    factors have. Two levels are -1 and +1. Three or more numbers give orthogonal polynomials on
    the factor's scale (Robson 1959), words Helmert's contrasts: each level against the mean of
    those before it.
    """
    count = len(factor.levels)
    if count == 2:
        return np.array([[-1.0], [1.0]])
    if factor.numeric:
        basis, _ = _polynomials(factor)
        return basis
    columns = np.zeros((count, count - 1))
    for j in range(1, count):
        columns[:j, j - 1] = -1.0 / j
        columns[j, j - 1] = 1.0
    return np.asarray(columns * np.sqrt(count / (columns**2).sum(axis=0)))


def _polynomials(factor: FactorColumn) -> tuple[Floats, Floats]:
    """Orthogonal polynomials of degree 1 and more at the levels, and at the middle of the scale."""
    z = factor.positions
    count = len(z)
    powers = np.polynomial.legendre.legvander(np.append(z, 0.0), count - 1)
    R = linalg.qr(powers[:count], mode="r")[0][:count]
    values = linalg.solve_triangular(R, powers.T, trans="T").T * np.sign(np.diag(R))
    values = values * np.sqrt(count)
    return np.asarray(values[:count, 1:]), np.asarray(values[count, 1:])


def centre_row(factor: FactorColumn) -> Floats:
    """The contrasts' value at the middle of a numeric factor's scale."""
    if len(factor.levels) == 2:
        return np.zeros(1)
    return _polynomials(factor)[1]


def contrast_labels(factor: FactorColumn) -> tuple[str, ...]:
    """What each contrast of a factor compares; an empty text for the one of two levels."""
    count = len(factor.levels)
    if count == 2:
        return ("",)
    if factor.numeric:
        return tuple(DEGREES[j] if j < 3 else f"degree {j + 1}" for j in range(count - 1))
    labels = factor.labels
    return tuple(
        f"{labels[j]} − {labels[0] if j == 1 else f'mean of {j} before'}" for j in range(1, count)
    )


def factor_columns(layout: LevelRuns) -> list[Floats]:
    """Contrasts of each factor at every run, runs x (levels - 1)."""
    columns = []
    for i, factor in enumerate(layout.factors):
        at_levels = contrasts(factor)
        values = at_levels[np.maximum(layout.index[:, i], 0)]
        if (middle := layout.index[:, i] == MIDDLE).any():
            values = np.where(middle[:, None], centre_row(factor)[None, :], values)
        columns.append(values)
    return columns


def term_columns(columns: Sequence[Floats], mask: int) -> Floats:
    """Columns of a term: all products of one contrast of each of its factors."""
    rows = len(columns[0])
    products = np.ones((rows, 1))
    for i in factors_in(mask):
        products = (products[:, :, None] * columns[i][:, None, :]).reshape(rows, -1)
    return products


def column_labels(layout: LevelRuns, mask: int) -> list[str]:
    """Label of each column of a term, such as ``lr linear : optimizer adam − sgd``."""
    parts = [
        [f"{factor.key} {label}".strip() for label in contrast_labels(factor)]
        for factor in (layout.factors[i] for i in factors_in(mask))
    ]
    single = all(len(part) == 1 for part in parts)
    separator = " : " if not single else "" if single_letters(layout.keys) else ":"
    return [separator.join(labels) for labels in product(*parts)]
