"""Contrast effects: the fast Walsh-Hadamard transform, and least squares on what was observed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST_COLUMNS = 1024
"""Least squares on more columns than this would take minutes: such designs need a lower order."""
MOST_RUNS = 4096
"""Beyond this, whatever needs a matrix of runs by terms is left out."""


def fwht(values: Floats) -> Floats:
    """Fast Walsh-Hadamard transform over the last axis, in standard order.

    Entry m of the result is ``sum_r values[r] * prod_{i in m} x_ri`` with x = -1/+1 and the first
    factor fastest: the contrast of term m. Yates's algorithm, n log2 n additions.
    """
    spectrum = np.array(values, dtype=np.float64, order="C")
    n = spectrum.shape[-1]
    half = 1
    while half < n:
        pairs = spectrum.reshape(-1, 2, half)
        low = pairs[:, 0].copy()
        pairs[:, 0] += pairs[:, 1]
        pairs[:, 1] -= low
        half *= 2
    return spectrum


def evaluate(coef: Floats) -> Floats:
    """Value of the model at every cell in standard order, from one coefficient per mask.

    The inverse of ``fwht(values) / n``: ``sum_m coef[m] prod_{i in m} x_ri``.
    """
    parity = 1.0 - 2.0 * (np.bitwise_count(np.arange(coef.shape[-1])) & 1)
    return np.asarray(parity * fwht(parity * coef), dtype=np.float64)


def sign_columns(cells: Ints, masks: Sequence[int]) -> Floats:
    """Columns -1/+1 of the terms `masks` at the given cells: the product of their factors."""
    mask = np.asarray(masks, dtype=np.int64)
    low = mask[None, :] & ~cells[:, None]
    return np.asarray(1.0 - 2.0 * (np.bitwise_count(low) & 1), dtype=np.float64)


def block_columns(block: Ints | None, n: int) -> Floats:
    """Indicator columns of the blocks, the first one spanned by the mean."""
    if block is None:
        return np.empty((n, 0))
    count = int(block.max()) + 1 if n else 0
    return np.asarray(block[:, None] == np.arange(1, count)[None, :], dtype=np.float64)


def block_contrasts(block: Ints | None, n: int) -> Floats:
    """Deviation-coded columns of the blocks, which sum to zero over blocks."""
    columns = block_columns(block, n)
    return columns if block is None else columns - (block == 0)[:, None]


def exchanges(block: Ints | None, n: int, count: int, rng: np.random.Generator) -> Ints:
    """`count` orders of n runs, each exchanged at random within blocks."""
    block_of_run = np.zeros(n, np.int64) if block is None else block
    orders = np.empty((count, n), np.int64)
    for number in range(int(block_of_run.max()) + 1):
        runs = np.flatnonzero(block_of_run == number)
        orders[:, runs] = rng.permuted(np.tile(runs, (count, 1)), axis=1)
    return orders


def balanced(cells: Ints, factors: int, block: Ints | None) -> bool:
    """Return whether every cell, and every cell of every block, holds equally many runs.

    Walsh-Hadamard contrasts are then the least-squares estimates.
    """
    size = 1 << factors
    blocks = 1 if block is None else int(block.max()) + 1
    index = cells if block is None else block * size + cells
    counts = np.bincount(index, minlength=blocks * size).reshape(blocks, size)
    return bool((counts == counts[:, :1]).all() and counts.sum(axis=0).min() > 0)


def independent(X: Floats) -> tuple[NDArray[np.bool_], Floats]:
    """Return which columns are independent of those before them, and an orthonormal basis of these.

    Gram and Schmidt's orthogonalisation, each column twice (Giraud and others 2005).
    """
    rows, width = X.shape
    basis = np.empty((rows, min(rows, width)), order="F")
    kept = np.zeros(width, dtype=bool)
    rank = 0
    for j, column in enumerate(X.T):
        rest = column - basis[:, :rank] @ (basis[:, :rank].T @ column)
        rest = rest - basis[:, :rank] @ (basis[:, :rank].T @ rest)
        norm = float(np.linalg.norm(rest))
        if rank < basis.shape[1] and norm > 1e-9 * float(np.linalg.norm(column)):
            basis[:, rank] = rest / norm
            kept[j] = True
            rank += 1
    return kept, basis[:, :rank]
