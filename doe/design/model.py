"""Columns of a model's terms at any points, and how well a design estimates them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from doe.design.configurations import Levels
from doe.errors import DoeError
from doe.study.values import Factor, Level
from doe.terms import factors_in, is_squared, parse_term, squared

Floats = NDArray[np.float64]
MODELS = ("linear", "interactions", "quadratic")


def named_terms(factors: Sequence[Factor], model: str | Sequence[str]) -> tuple[int, ...]:
    """Return terms of a model by its name, or by the names of its terms.

    Raises
    ------
    DoeError
        If there is no such model or factor, or a square is not of a number with three values.
    """
    numbers = range(len(factors))
    if isinstance(model, str) and "," in model:
        model = [term.strip() for term in model.split(",")]
    if not isinstance(model, str):
        return tuple(_read_term(text, factors) for text in model)
    if model not in MODELS:
        raise DoeError(f"model {model!r}: expected {', '.join(MODELS)}, or a list of terms")
    terms = [1 << i for i in numbers]
    if model != "linear":
        terms += [1 << i | 1 << j for i, j in combinations(numbers, 2)]
    if model == "quadratic":
        terms += [squared(i) for i in numbers if bends(factors[i])]
    return tuple(terms)


def bends(factor: Factor) -> bool:
    """Return whether a factor can have a square: a number with more than two values."""
    between = not factor.integer or abs(float(factor.high) - float(factor.low)) > 1
    return factor.numeric and (between if factor.ranged else len(factor.levels) > 2)


def _read_term(text: str, factors: Sequence[Factor]) -> int:
    term = parse_term(text, [factor.key for factor in factors])
    for i in factors_in(term):
        if is_squared(term, i) and not bends(factors[i]):
            raise DoeError(
                f"term {text!r}: expected the square of a number with more than two values"
            )
    return term


def factor_basis(factor: Factor, levels: Sequence[Level]) -> Floats:
    """Return levels x columns of a factor: 1, then its position and its square.

    Words have one contrast less than levels (Helmert's), with ``C'C = L I``: in an orthogonal
    design every column has the length of the mean's.
    """
    if factor.numeric:
        position = {level: factor.position(level) for level in dict.fromkeys(levels)}
        z = np.array([position[level] for level in levels])
        return np.column_stack([np.ones(len(z)), z, z**2])
    count = len(factor.levels)
    contrasts = np.zeros((count, count))
    contrasts[:, 0] = 1.0
    for j in range(1, count):
        contrasts[:j, j] = -1.0 / j
        contrasts[j, j] = 1.0
    contrasts *= np.sqrt(count / (contrasts**2).sum(axis=0))
    number = {level: i for i, level in enumerate(factor.levels)}
    return np.asarray(contrasts[np.array([number[level] for level in levels], np.int64)])


def column_basis(factors: Sequence[Factor], terms: Sequence[int]) -> NDArray[np.int64]:
    """Return columns x factors: the column of each factor's basis in each product."""
    rows = [[0] * len(factors)]
    for term in terms:
        inside = factors_in(term)
        choices = [
            [2 if is_squared(term, i) else 1]
            if factors[i].numeric
            else range(1, len(factors[i].levels))
            for i in inside
        ]
        for choice in product(*choices):
            row = [0] * len(factors)
            for i, column in zip(inside, choice, strict=True):
                row[i] = column
            rows.append(row)
    return np.array(rows, np.int64)


def model_matrix(
    factors: Sequence[Factor], points: Sequence[Levels], terms: Sequence[int]
) -> Floats:
    """Return points x columns: the mean, then the columns of each term."""
    index = column_basis(factors, terms)
    matrix = np.ones((len(points), len(index)))
    for i, factor in enumerate(factors):
        matrix *= factor_basis(factor, [point[i] for point in points])[:, index[:, i]]
    return matrix


def independent_columns(matrix: Floats) -> NDArray[np.bool_]:
    """Return which columns are not linear combinations of earlier ones."""
    R = np.linalg.qr(matrix, mode="r")
    size = np.linalg.norm(matrix, axis=0)
    return np.asarray(np.abs(np.diag(R)) > 1e-9 * np.maximum(size, 1.0))


def block_columns(blocks: Sequence[int]) -> Floats:
    """Return runs x contrasts of their blocks, one less than there are blocks."""
    names = tuple(str(block) for block in sorted(set(blocks)))
    if len(names) < 2:
        return np.empty((len(blocks), 0))
    return factor_basis(Factor("block", names), [str(block) for block in blocks])[:, 1:]


def d_efficiency(matrix: Floats) -> float:
    """Return ``100 |X'X|^(1/p) / n``: 100 if all columns are orthogonal and of length √n."""
    runs, columns = matrix.shape
    sign, log_det = np.linalg.slogdet(matrix.T @ matrix)
    singular = sign <= 0 or np.linalg.matrix_rank(matrix) < columns
    return 0.0 if singular else float(100.0 * np.exp(log_det / columns) / runs)
