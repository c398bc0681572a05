"""The fitted model: coefficients, sums of squares, pure error, fitted values and leverage."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy

from doe.analysis.contrasts import (
    Floats,
    Ints,
    Model,
    block_columns,
    block_contrasts,
    evaluate,
    fwht,
    sign_columns,
)
from doe.analysis.fitted import Fitted
from doe.analysis.streams import Seeding, over_seeds
from doe.terms import MEAN


@dataclass(frozen=True, kw_only=True)
class Fit(Fitted):
    """Least squares of one response on the mean, the blocks and the terms of `model`."""

    model: Model
    factors: int
    cells: Ints
    block: Ints | None
    mean: float  # the intercept: mean over cells, blocks weighted equally
    coef: Floats  # one per term
    scale: Floats  # Var(coef) / sigma²
    ss: Floats  # type III sum of squares of each term
    ss_block: float  # blocks first
    df_block: int

    @property
    def residual(self) -> Floats:
        """Observed minus fitted."""
        return self.y - self.fitted

    @property
    def effect(self) -> Floats:
        """Effect of each term, mean at high minus mean at low: twice its coefficient."""
        return 2.0 * self.coef

    @property
    def effect_se(self) -> Floats:
        """Standard error of each effect: ``2 sigma / sqrt(n)`` when balanced."""
        return np.asarray(2.0 * np.sqrt(self.scale * self.ms_error))

    def cell_values(self) -> Floats:
        """What the model says of every cell in standard order, blocks averaged."""
        coef = np.zeros(1 << self.factors)
        coef[[MEAN, *self.model.masks]] = [self.mean, *self.coef]
        return evaluate(coef)

    @cached_property
    def basis(self) -> Floats:
        """Orthonormal columns that span the model matrix."""
        return np.linalg.qr(design_matrix(self.cells, self.block, self.model))[0]


def fit(
    y: Floats,
    cells: Ints,
    factors: int,
    block: Ints | None,
    model: Model,
    *,
    pooled: bool = False,
    seeding: Seeding | None = None,
) -> Fit:
    """Fit `model` to the observed runs.

    Balanced designs take the Walsh-Hadamard transform of the cell means,
    ``coef_m = 2^-k sum_r mean_r prod_{i in m} x_ri``; all others an orthogonal decomposition of
    the model matrix. Both are the least-squares estimate.
    """
    if model.balanced:
        mean, coef, scale, fitted, leverage = _by_transform(y, cells, factors, block, model)
    else:
        mean, coef, scale, fitted, leverage = _by_qr(y, cells, block, model)
    ss_block, df_block = _between_blocks(y, block)
    ss_pure, df_pure = pure_error(y, cells, block, orthogonal=model.balanced)
    df_residual = len(y) - 1 - df_block - len(coef)
    return Fit(
        model=model,
        factors=factors,
        y=y,
        cells=cells,
        block=block,
        mean=mean,
        coef=coef,
        scale=scale,
        ss=coef**2 / scale,
        fitted=fitted,
        leverage=leverage,
        ss_total=float(((y - float(y.mean())) ** 2).sum()),
        ss_block=ss_block,
        df_block=df_block,
        ss_residual=float(((y - fitted) ** 2).sum()) if df_residual > 0 else 0.0,
        df_residual=df_residual,
        ss_pure=ss_pure,
        df_pure=df_pure,
        pooled=pooled,
        seeding=seeding,
        over_seeds=over_seeds(y, cells, seeding),
    )


def _between_blocks(y: Floats, block: Ints | None) -> tuple[float, int]:
    """Sum of squares and degrees of freedom of the blocks' means."""
    if block is None:
        return 0.0, 0
    counts = np.bincount(block)
    means = np.bincount(block, weights=y) / counts
    return float(counts @ (means - float(y.mean())) ** 2), len(counts) - 1


def refitted(full: Fit, y: Floats, model: Model) -> Fit:
    """The same runs with other values or another model."""
    return fit(
        *(y, full.cells, full.factors, full.block, model),
        pooled=full.pooled,
        seeding=full.seeding,
    )


Parts = tuple[float, Floats, Floats, Floats, Floats]
"""Mean, coefficients, their variances over sigma², fitted values and leverages."""


def _by_transform(y: Floats, cells: Ints, factors: int, block: Ints | None, model: Model) -> Parts:
    size, n = 1 << factors, len(y)
    spectrum = fwht(np.bincount(cells, weights=y) / np.bincount(cells)) / size
    masks = np.asarray(model.masks, dtype=np.int64)
    kept = np.zeros(size)
    kept[masks] = spectrum[masks]
    kept[0] = spectrum[0]
    fitted = evaluate(kept)[cells]
    if block is not None:
        means = np.bincount(block, weights=y) / np.bincount(block)
        fitted = fitted + (means - y.mean())[block]
    df_block = 0 if block is None else int(block.max())
    return (
        float(spectrum[0]),
        spectrum[masks],
        np.full(len(masks), 1.0 / n),
        fitted,
        np.full(n, (1 + df_block + len(masks)) / n),
    )


def design_matrix(cells: Ints, block: Ints | None, model: Model) -> Floats:
    """Columns of the mean, the blocks (deviation coded) and the terms, one row per run."""
    n = len(cells)
    return np.column_stack(
        [np.ones(n), block_contrasts(block, n), sign_columns(cells, model.masks)]
    )


def decomposed(cells: Ints, block: Ints | None, model: Model) -> tuple[Floats, Floats, int]:
    """Q and R of the model matrix ``X = QR``, and how many of its columns precede the terms."""
    X = design_matrix(cells, block, model)
    Q, R = (np.asarray(part, np.float64) for part in scipy.linalg.qr(X, mode="economic"))
    return Q, R, X.shape[1] - len(model.masks)


def _by_qr(y: Floats, cells: Ints, block: Ints | None, model: Model) -> Parts:
    X = design_matrix(cells, block, model)
    Q, R = scipy.linalg.qr(X, mode="economic")
    beta = scipy.linalg.solve_triangular(R, Q.T @ y)
    inverse = scipy.linalg.solve_triangular(R, np.eye(len(R)))
    first = X.shape[1] - len(model.masks)
    scale = (inverse**2).sum(axis=1)
    return float(beta[0]), beta[first:], scale[first:], X @ beta, (Q**2).sum(axis=1)


def estimator(cells: Ints, block: Ints | None, model: Model) -> Floats:
    """Matrix that takes the responses to the coefficients of the terms, one row per term."""
    if model.balanced:
        return np.asarray(sign_columns(cells, model.masks).T / len(cells))
    Q, R, first = decomposed(cells, block, model)
    return np.asarray(scipy.linalg.solve_triangular(R, Q.T)[first:])


def pure_error(
    y: Floats, cells: Ints, block: Ints | None, *, orthogonal: bool = False
) -> tuple[float, int]:
    """Sum of squares and degrees of freedom left by cells and blocks together.

    Without blocks this is the spread of replicates within cells; when a replicate is a block it
    is the interaction of block and cell. Blocks `orthogonal` to cells need no least squares.
    """
    within, _, df = _within_cells(y, cells, block, orthogonal)
    return (float((within**2).sum()), df) if df > 0 else (0.0, 0)


def without_blocks(
    y: Floats, cells: Ints, block: Ints | None, weight: Floats | None = None
) -> Floats:
    """Responses less the effect of their block, which averages zero over blocks.

    A `weight` per run, the same for all runs of a cell, says how much it counts.
    """
    if block is None:
        return y
    shift = _within_cells(y, cells, block, weight=weight)[1]
    return np.asarray(y - (shift - shift.mean())[block])


def _within_cells(
    y: Floats,
    cells: Ints,
    block: Ints | None,
    orthogonal: bool = False,
    weight: Floats | None = None,
) -> tuple[Floats, Floats, int]:
    """Deviations within cells after blocks, the block effects, and degrees of freedom."""
    counts = np.bincount(cells)
    filled = np.maximum(counts, 1)
    within = y - (np.bincount(cells, weights=y) / filled)[cells]
    df = len(y) - int(np.count_nonzero(counts))
    if block is None:
        return within, np.zeros(1), df
    if orthogonal:
        shift = np.bincount(block, weights=within) / np.bincount(block)
        return within - shift[block], shift, df - len(shift) + 1
    columns = block_columns(block, len(y))
    sums = [np.bincount(cells, weights=column) for column in columns.T]
    columns = columns - (np.stack(sums, axis=1) / filled[:, None])[cells]
    root = np.ones(len(y)) if weight is None else np.sqrt(weight)
    solution, _, rank, _ = np.linalg.lstsq(root[:, None] * columns, root * within, rcond=1e-10)
    return within - columns @ solution, np.concatenate([[0.0], solution]), df - int(rank)


def satterthwaite(fitted: Fit) -> float:
    """Degrees of freedom of the pure error where cells differ in their variance.

    With the sum of squares ``S_i`` of the n_i runs of cell i after blocks,
    ``(sum S_i)² / sum(S_i² / (n_i - 1))``, less the share that blocks take (Satterthwaite, 1946).
    It is small where a few cells carry the error, and on the safe side: for equal variances and n
    runs a cell it is about ``1 / (1 + 2 / (n - 1))`` of the degrees of freedom.
    """
    within, _, df = _within_cells(
        fitted.y, fitted.cells, fitted.block, orthogonal=fitted.model.balanced
    )
    counts = np.bincount(fitted.cells)
    several = counts > 1
    squares = np.bincount(fitted.cells, weights=within**2)[several]
    free = counts[several] - 1
    return float(squares.sum() ** 2 / (squares**2 / free).sum() * df / free.sum())
