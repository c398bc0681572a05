"""What the F test of each term can see, before anything runs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product

import numpy as np
from msgspec import Struct

from doe.analysis.anova import MOST_TYPE2
from doe.analysis.contrasts import Floats
from doe.analysis.levels.coding import contrasts
from doe.analysis.levels.layout import FactorColumn, LevelRuns
from doe.analysis.levels.model import ModelMatrix, chosen_terms, model_matrix

MOST_PATTERNS = 2000
"""Pairs of levels that are tried for the least favourable one; of more only the first are."""


class TermPower(Struct, frozen=True, gc=False):
    """A term of which the runs can estimate everything, as far as its power depends on it."""

    term: str
    df: int
    noncentrality: float  # of F, per (effect / σ)², for the least favourable levels


def term_powers(
    layout: LevelRuns, terms: Sequence[str] | None = None, order: int | None = None
) -> tuple[TermPower, ...]:
    """How the noncentrality of each term's F test follows from the size of its effect.

    An effect δ of a term is what it is with two levels: the product of one pair of levels of each
    of its factors has the mean δ/2 on one side and -δ/2 on the other, and the further levels have
    none of it. With coefficients b of this pattern and the covariance ``σ² V`` of the term's
    coefficients in the model of its type II test, ``λ = b' V^-1 b / σ²``: ``N δ² Π (2 / levels) /
    (4 σ²)`` in a balanced design. The pair of levels is that with the smallest λ.
    """
    matrix = model_matrix(layout, chosen_terms(layout, terms, order)[0])
    whole = [mask for mask in matrix.terms if matrix.df(mask) == matrix.df_asked(mask)]
    if len(matrix.terms) > MOST_TYPE2:
        return ()
    return tuple(
        TermPower(matrix.name(mask), matrix.df(mask), _noncentrality(matrix, mask))
        for mask in whole
    )


def _noncentrality(matrix: ModelMatrix, mask: int) -> float:
    source = matrix.fitted_source
    inside = np.array([s == mask or s & mask != mask or s < 0 for s in source.tolist()])
    X = matrix.fitted_columns[:, inside]
    own = source[inside] == mask
    others = X[:, ~own]
    Z = X[:, own]
    rest = Z - others @ np.linalg.lstsq(others, Z, rcond=None)[0]
    information = rest.T @ rest
    factors = [f for i, f in enumerate(matrix.layout.factors) if mask >> i & 1]
    patterns = product(*(_pairs(factor) for factor in factors))
    least = np.inf
    for _, pattern in zip(range(MOST_PATTERNS), patterns, strict=False):
        b = np.array([0.5])
        for part in pattern:
            b = (b[:, None] * part[None, :]).reshape(-1)
        least = min(least, float(b @ information @ b))
    return least


def _pairs(factor: FactorColumn) -> list[Floats]:
    """Coefficients of +1 at one level and -1 at another, for every two levels."""
    columns = contrasts(factor)
    coefficients = []
    for low, high in combinations(range(len(columns)), 2):
        values = np.zeros(len(columns))
        values[[low, high]] = -1.0, 1.0
        coefficients.append(columns.T @ values / len(columns))  # C'C = L I
    return coefficients
