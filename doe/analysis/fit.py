"""Least squares of one response on blocks, terms and curvature: one fit, many questions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, wraps
from typing import NamedTuple, TypeVar

import numpy as np
import scipy

from doe.analysis.contrasts import Floats, Ints, block_columns, evaluate, fwht
from doe.analysis.dataset import Runs, check_variation
from doe.analysis.model import BLOCK, CURVATURE, Model
from doe.analysis.reml import FixedTest
from doe.analysis.strata import Strata, random_groups, strata_of
from doe.analysis.streams import SeedErrorTerm, Seeding, seed_error
from doe.terms import MEAN, contains

MOST_TYPE2 = 256
"""Type II needs one decomposition per term; of more terms type III or I is given alone."""
LARGEST_EXPONENT = 1023
"""Of a power of two that is a float."""
ROUNDING = 64 * float(np.finfo(np.float64).eps)
"""Differences below this share of the largest value are rounding, not error."""
CANCELLED = 8 * float(np.finfo(np.float64).eps)
"""Share of its summands up to which what is left of a sum is rounding, not an effect."""


Subject = TypeVar("Subject")
Answer = TypeVar("Answer")


def computed_once(function: Callable[[Subject], Answer]) -> Callable[[Subject], Answer]:
    """Compute the answer for a frozen value once; the value holds it like a cached property."""
    name = f"{function.__module__}.{function.__qualname__}"

    @wraps(function)
    def answer(subject: Subject) -> Answer:
        known = vars(subject)
        if name not in known:
            known[name] = function(subject)
        result: Answer = known[name]
        return result

    return answer


class Residuals(NamedTuple):
    """Residual of single runs, with everything that they share taken out."""

    values: Floats  # of u
    leverage: Floats
    ss: float
    df: int


@dataclass(frozen=True, kw_only=True)
class Fit:
    """A model fitted to one response. The work is done on ``u = (y - shift) / unit``, from -2 to 2.

    Squares of values near the limits of floating point would overflow or vanish; those of u do
    not. Coefficients, sums of squares, fitted values and covariances are those of u; `unit` takes
    what is shown back to the scale of y.
    """

    model: Model
    observed_runs: Ints  # the runs with a value, as numbers of those planned
    y: Floats
    u: Floats  # less what covariates account for
    shift: float
    unit: float
    coef: Floats  # of the fitted columns of the model
    scale: Floats  # (X'X)^-1 of the fitted columns; where the transform solves, its diagonal
    fitted: Floats
    leverage: Floats
    ss_total: float
    ss_residual: float
    df_residual: int
    ss_pure: float
    df_pure: int
    ss_block: float  # blocks first
    pooled: bool = False  # test against the residual even where there are replicates
    seed_error: SeedErrorTerm | None = None  # tested against where replicates share seeds
    strata: Strata | None = None  # errors where runs share whole plots or other random groups

    @property
    def runs(self) -> Runs:
        """The runs with a value."""
        return self.model.runs

    @property
    def cells(self) -> Ints:
        """Configuration of each run."""
        return self.runs.cells

    @cached_property
    def groups(self) -> Ints:
        """Configuration of each run, those that have runs numbered from 0."""
        return np.unique(self.cells, return_inverse=True)[1]

    @property
    def block(self) -> Ints | None:
        """Block of each run."""
        return self.runs.block

    @property
    def seeding(self) -> Seeding | None:
        """Seeds of the runs, where replicates share those of several streams."""
        return self.runs.seeding

    @property
    def grouped(self) -> bool:
        """Whether runs share seeds or other random groups, so that they are not exchangeable."""
        return self.seeding is not None or self.strata is not None

    @property
    def n(self) -> int:
        """Number of observed runs."""
        return len(self.y)

    @property
    def residual(self) -> Floats:
        """Observed minus fitted, of u, and minus what random groups add."""
        rest = without_rounding(self.u - self.fitted, self.largest)
        return rest if self.strata is None else rest - self.strata.group_part

    @cached_property
    def within(self) -> Residuals:
        """Residuals of single runs: of runs that share random groups those within the groups.

        These are independent of what varies between groups, whatever its variance.
        """
        if self.strata is None:
            return Residuals(self.residual, self.leverage, self.ss_residual, self.df_residual)
        basis = self.within_basis
        rest = without_rounding(self.u - basis @ (basis.T @ self.u), self.largest)
        df = self.n - basis.shape[1]
        return Residuals(rest, (basis**2).sum(axis=1), float((rest**2).sum()) * (df > 0), df)

    @cached_property
    def within_basis(self) -> Floats:
        """Orthonormal columns of the model and of random groups."""
        if self.strata is None:
            return self.Q
        groups = [np.eye(int(g.of.max()) + 1)[g.of] for g in random_groups(self.model)]
        every = np.column_stack([self.model.fitted_columns, *groups])
        vectors, sizes, _ = np.linalg.svd(every, full_matrices=False)
        return np.asarray(vectors[:, sizes > 1e-9 * sizes[0]])

    @property
    def df_block(self) -> int:
        """Degrees of freedom of the blocks."""
        return self.model.df(BLOCK)

    # The error ----------------------------------------------------------------------------------

    @property
    def from_pure(self) -> bool:
        """Whether replicates estimate the error, rather than the residual of the model."""
        return self.df_pure > 0 and not self.pooled and self.strata is None

    @property
    def error_line(self) -> tuple[float, int]:
        """Sum of squares and degrees of freedom of what is left for the error of single runs."""
        if self.strata is not None:
            return self.strata.ss_run, self.strata.df_run
        if self.from_pure:
            return self.ss_pure, self.df_pure
        return self.ss_residual, self.df_residual

    @cached_property
    def largest(self) -> float:
        """The largest value of y in units of u."""
        return float(np.abs(self.y).max()) / self.unit

    @property
    def rounding(self) -> float:
        """Differences of u up to this are rounding."""
        return ROUNDING * self.largest

    @cached_property
    def exact(self) -> bool:
        """Whether runs are left for the error and differ by rounding alone."""
        ss, df = self.error_line
        return df > 0 and ss <= self.n * self.rounding**2  # that of strata is not settled

    @property
    def error(self) -> str | None:
        """Source of the error: "pure error", "residual", "variation over seeds", or None."""
        if self.df_error == 0:
            return None
        if self.seed_error is not None:
            return "variation over seeds"
        if self.strata is not None:
            return "error of its stratum"
        return "pure error" if self.from_pure else "residual"

    @property
    def df_error(self) -> int:
        """Degrees of freedom of the error; 0 in a saturated design and where all fits exactly."""
        if self.exact:
            return 0
        return self.error_line[1] if self.seed_error is None else self.seed_error.integer_df

    @property
    def ms_error(self) -> float:
        """Mean square of the error, NaN where there is none."""
        if self.df_error == 0:
            return float("nan")
        if self.strata is not None and self.strata.method == "REML":
            return float(self.strata.lines[-1].variance or 0.0)
        return self.error_line[0] / self.df_error if self.seed_error is None else self.seed_error.ms

    @property
    def sigma(self) -> float | None:
        """Standard deviation of the error on the scale of y; None where there is none."""
        return None if self.df_error == 0 else float(np.sqrt(self.ms_error)) * self.unit

    @property
    def square(self) -> float:
        """Factor that takes a sum of squares to the scale of y; infinite if it overflows."""
        return self.unit * self.unit

    @property
    def lack_of_fit(self) -> tuple[float, int]:
        """Sum of squares and degrees of freedom of the residual beyond the pure error."""
        ss = float(without_rounding(np.array(self.ss_residual - self.ss_pure), self.ss_residual))
        return max(ss, 0.0), self.df_residual - self.df_pure

    def r_squared(self) -> tuple[float | None, float | None, float | None]:
        """R², adjusted R² and predicted R² (1 - PRESS / SS_total) of terms and blocks together."""
        if self.ss_total <= 0:
            return None, None, None
        r2 = float(without_rounding(np.array(1.0 - self.ss_residual / self.ss_total), 1.0))
        if self.df_residual == 0:
            return r2, None, None
        adjusted = 1.0 - (self.ss_residual / self.df_residual) / (self.ss_total / (self.n - 1))
        free = 1.0 - self.leverage
        if (free < 1e-9).any() or self.strata is not None:
            return r2, adjusted, None
        press = float(((self.residual / free) ** 2).sum())
        return r2, adjusted, 1.0 - press / self.ss_total

    # Questions ----------------------------------------------------------------------------------

    def estimate(self, rows: Floats) -> tuple[Floats, Floats]:
        """Linear functions of the coefficients, and their covariance over σ², both of u.

        `rows` has a column per column of the model, fitted or not; what the blocks do is left out.
        """
        inside, coef, scale = self._inside(rows)
        weighted = inside * scale if scale.ndim == 1 else inside @ scale
        size = np.abs(inside)
        shifted = size.max(axis=1, initial=0.0) * self.largest
        values = without_rounding(inside @ coef, np.maximum(size @ np.abs(coef), shifted))
        return values, np.asarray(weighted @ inside.T)

    def variance(self, rows: Floats) -> Floats:
        """Variance over σ² of linear functions of the coefficients, of u."""
        inside, _, scale = self._inside(rows)
        if scale.ndim == 1:
            return np.asarray((inside**2) @ scale)
        return np.asarray(((inside @ scale) * inside).sum(axis=1))

    def _inside(self, rows: Floats) -> tuple[Floats, Floats, Floats]:
        """Kept columns in which some row is not zero, with their coefficients and covariance."""
        inside = rows if self.model.full_rank else rows[:, self.model.fitted]
        own = np.flatnonzero(inside.any(axis=0))
        scale = self.scale[own] if self.scale.ndim == 1 else self.scale[np.ix_(own, own)]
        return inside[:, own], self.coef[own], scale

    def errors(self, rows: Floats) -> tuple[Floats, Floats]:
        """Standard errors, of u, and degrees of freedom of linear functions of the coefficients.

        NaN where there is no error. Each function has the error of its stratum.
        """
        if self.strata is not None:
            return self.strata.of(rows[:, self.model.fitted])
        se = np.sqrt(np.maximum(self.variance(rows), 0.0) * self.ms_error)
        return se, np.full(len(rows), self.df_error or np.nan, np.float64)

    def least_df(self, inside: Floats) -> float:
        """Return degrees of freedom that hold for several functions of the coefficients at once.

        Those of the error; of several errors the smallest of any function, 0 where one has none.
        """
        if self.strata is None:
            return float(self.df_error)
        df = self.strata.of(inside)[1]
        return 0.0 if self.df_error == 0 or np.isnan(df).any() else float(df.min())

    @cached_property
    def kind(self) -> str:
        """The type of sums of squares that leads, with the tests that are adjusted.

        Type III compares means with every cell weighted alike, as effects and level means do,
        whatever runs were lost. Where cells are empty these means do not exist, and type II leads:
        each term after all that do not contain it. Of very many such terms type I.
        """
        if self.orthogonal or self.model.full_rank:
            return "III"
        return "II" if len(self.model.terms) <= MOST_TYPE2 else "I"

    def type_two_basis(self, source: int) -> Floats:
        """Orthonormal columns, in the coordinates of Q, of a term after all without it."""
        groups = self.model.fitted_source.tolist()
        others = [
            s != source and not (s > 0 and source > 0 and contains(s, source)) for s in groups
        ]
        own = self.model.columns(source)
        columns = np.column_stack([self.R[:, others], self.R[:, own]])
        return np.asarray(scipy.linalg.qr(columns, mode="economic")[0][:, -len(own) :])

    def stratum_test(self, source: int) -> FixedTest | None:
        """F test of a source against the error of its stratum; None where that has no error."""
        assert self.strata is not None
        own = self.model.columns(source)
        rows = np.eye(self.model.rank)[own]
        if self.kind != "III":
            rows = self.type_two_basis(source).T @ self.R
        return self.strata.test(rows)

    def wald(self, source: int) -> float:
        """Wald's statistic ``b'[(X'X)^-1]^-1 b`` of a source: its sum of squares after all others.

        With contrasts that sum to zero it compares means with every cell weighted alike, type III.
        """
        own = self.model.columns(source)
        if self.scale.ndim == 1:
            return float((self.coef[own] ** 2 / self.scale[own]).sum())
        return wald(self.coef[own], self.scale[np.ix_(own, own)])

    def coef_of(self, terms: tuple[int, ...]) -> tuple[Floats, Floats]:
        """Coefficients of terms with one column each, and their variances over σ², of u."""
        at = self._position_of
        own = np.array([at[term] for term in terms], dtype=np.int64)
        scale = self.scale if self.scale.ndim == 1 else np.diag(self.scale)
        return self.coef[own], scale[own]

    @cached_property
    def _position_of(self) -> dict[int, int]:
        return {source: i for i, source in enumerate(self.model.fitted_source.tolist())}

    @cached_property
    def _decomposed(self) -> tuple[Floats, Floats]:
        return decomposed(self.model)

    @property
    def Q(self) -> Floats:  # noqa: N802 - its usual name
        """Orthonormal columns: each fitted column after those before it."""
        return self._decomposed[0]

    @property
    def R(self) -> Floats:  # noqa: N802 - its usual name
        """``X = QR``."""
        return self._decomposed[1]

    @cached_property
    def rotated(self) -> Floats:
        """``Q'u``: single-degree contrasts, independent and each with the variance of the error."""
        if self.model.solved_by_transform:  # of terms; the blocks' columns are not orthogonal
            return np.asarray(self.coef * np.sqrt(self.n))
        return without_rounding(self.Q.T @ self.u, self.largest * np.sqrt(self.n))

    def square_of(self, basis: Floats) -> float:
        """Sum of squares of u along orthonormal columns, in the coordinates of Q."""
        along = without_rounding(basis.T @ self.rotated, self.largest * np.sqrt(self.n))
        return float((along**2).sum())

    @cached_property
    def maps(self) -> Floats:
        """Matrix that takes u to the coefficients, fitted columns x runs."""
        return np.asarray(scipy.linalg.solve_triangular(self.R, self.Q.T))

    def term_basis(self, source: int) -> Floats:
        """Orthonormal columns, in the coordinates of Q, of a source after all others."""
        own = self.model.columns(source)
        inverse = scipy.linalg.solve_triangular(self.R, np.eye(len(self.R)))[own]
        return np.asarray(scipy.linalg.qr(inverse.T, mode="economic")[0])

    @cached_property
    def orthogonal(self) -> bool:
        """Whether no term shares anything with another, so that every type of test agrees."""
        if self.model.solved_by_transform:
            return True
        source = self.model.fitted_source
        gram = self.R.T @ self.R
        shared = np.abs(gram) > 1e-9 * self.n
        same = source[:, None] == source[None, :]
        constant = (source == MEAN) | (source == CURVATURE)
        return not bool((shared & ~same & ~(constant[:, None] & constant[None, :])).any())


def fit(
    y: Floats,
    model: Model,
    observed_runs: Ints | None = None,
    *,
    pooled: bool = False,
    name: str = "",
) -> Fit:
    """Fit a model to the values of its runs.

    Balanced two-level designs take the Walsh-Hadamard transform of the cell means,
    ``coef_m = 2^-k sum_r mean_r prod_{i in m} x_ri``; all others an orthogonal decomposition of
    the model matrix. Both are the least-squares estimate. A `pooled` error is the residual with
    lack of fit in it; else it is the spread of runs with the same levels.

    Raises
    ------
    DoeError
        If the values do not vary.
    """
    check_variation(y, name)
    shift, unit, u = standardized(y)
    solve = _by_transform if model.solved_by_transform else _by_qr
    coef, scale, fitted, leverage = solve(u, model)
    largest = float(np.abs(y).max()) / unit
    coef = without_rounding(coef, largest)
    none = len(y) * (ROUNDING * largest) ** 2
    strata = None
    if groups := random_groups(model):
        strata = strata_of(model, u, groups, ROUNDING * largest)
        if strata.df_run > 0:
            coef = strata.errors.coef
            fitted = model.fitted_columns @ coef
    df_residual = len(y) - model.rank
    cells = np.unique(model.runs.cells, return_inverse=True)[1]
    block, ss_total = model.runs.block, float(((u - u.mean()) ** 2).sum())
    beside = model.fitted_columns[:, model.adjusting] if len(model.adjusting) else None
    ss_pure, df_pure = pure_error(u, cells, block, model.solved_by_transform, beside)
    if beside is not None:
        adjustment = beside @ coef[model.adjusting]
        u, fitted = u - adjustment, fitted - adjustment
    full = Fit(
        model=model,
        observed_runs=np.arange(len(y)) if observed_runs is None else observed_runs,
        y=y,
        u=u,
        shift=shift,
        unit=unit,
        coef=coef,
        scale=scale,
        fitted=fitted,
        leverage=leverage,
        ss_total=ss_total,
        ss_residual=_settled(((u - fitted) ** 2).sum(), none) if df_residual > 0 else 0.0,
        df_residual=df_residual,
        ss_pure=_settled(ss_pure, none),
        df_pure=df_pure,
        ss_block=_settled(_between_blocks(u, block), none),
        pooled=pooled,
        seed_error=None if strata else seed_error(u, cells, model.runs.seeding),
        strata=strata,
    )
    if strata is not None and full.df_error > 0:  # so that variances over σ² are those of strata
        return replace(full, scale=strata.errors.covariance / full.ms_error)
    return full


def refitted(full: Fit, y: Floats | None = None, model: Model | None = None) -> Fit:
    """Fit the same runs with other values or another model."""
    values = full.y if y is None else y
    return fit(values, model or full.model, full.observed_runs, pooled=full.pooled)


def standardized(y: Floats) -> tuple[float, float, Floats]:
    """Return a value in the middle, about half the range, and the values on that scale, from -2 to
    2.

    The unit is a power of two and the middle a multiple of it, so that nothing is rounded where the
    values have few digits.
    """
    low, high = float(y.min()), float(y.max())
    half = high / 2.0 - low / 2.0 or high - low  # the smallest floats have no half
    unit = 2.0 ** min(round(math.log2(half)), LARGEST_EXPONENT)
    shift = round((low / 2.0 + high / 2.0) / unit) * unit
    return shift, unit, np.asarray((y - shift) / unit)


def without_rounding(values: Floats, summands: Floats | float) -> Floats:
    """Sums as they are, and 0 where summands of this size cancel but for their rounding."""
    return np.where(np.abs(values) <= CANCELLED * summands, 0.0, values)


def _settled(square: float, none: float) -> float:
    """Return a sum of squares, and 0 where it is `none` or less: that of rounding."""
    return float(square) if square > none else 0.0


def wald(b: Floats, covariance: Floats) -> float:
    """Wald's statistic ``b' V^-1 b``."""
    return float(b @ np.linalg.solve(covariance, b))


Solution = tuple[Floats, Floats, Floats, Floats]
"""Coefficients, their covariance over σ² or its diagonal, fitted values and leverages."""


def _by_transform(u: Floats, model: Model) -> Solution:
    runs, n = model.runs, len(u)
    size = 1 << len(runs.factors)
    spectrum = fwht(np.bincount(runs.cells, weights=u) / np.bincount(runs.cells)) / size
    terms = np.array(model.terms, dtype=np.int64)
    kept = np.zeros(size)
    kept[terms] = spectrum[terms]
    kept[MEAN] = spectrum[MEAN]
    fitted = evaluate(kept)[runs.cells]
    deviation = np.empty(0)
    if runs.block is not None:
        means = np.bincount(runs.block, weights=u) / np.bincount(runs.block)
        deviation = means - u.mean()
        fitted = fitted + deviation[runs.block]
    blocks = max(len(deviation) - 1, 0)
    coef = np.concatenate([[spectrum[MEAN]], deviation[1:], spectrum[terms]])
    scale = np.full(len(coef), 1.0 / n)
    scale[1 : 1 + blocks] = blocks / n  # of deviations from the mean of equal blocks
    return coef, scale, fitted, np.full(n, len(coef) / n)


def _by_qr(u: Floats, model: Model) -> Solution:
    first, row = model.distinct
    counts = np.bincount(row)
    root = np.sqrt(counts)[:, None]
    Q, R = scipy.linalg.qr(root * model.fitted_columns[first], mode="economic")
    means = np.bincount(row, weights=u) / counts
    coef = scipy.linalg.solve_triangular(R, Q.T @ (root[:, 0] * means))
    inverse = scipy.linalg.solve_triangular(R, np.eye(len(R)))
    fitted = model.fitted_columns @ coef
    leverage = ((Q**2).sum(axis=1) / counts)[row]
    return np.asarray(coef), np.asarray(inverse @ inverse.T), fitted, np.asarray(leverage)


def decomposed(model: Model) -> tuple[Floats, Floats]:
    """Q and R of the model's fitted columns, the diagonal of R positive.

    Runs of one cell and block share a row of X: the matrix that is decomposed does not grow with
    replicates.
    """
    if model.solved_by_transform:
        return _orthogonal_columns(model)
    first, row = model.distinct
    root = np.sqrt(np.bincount(row))[:, None]
    Q, R = scipy.linalg.qr(root * model.fitted_columns[first], mode="economic")
    sign = np.sign(np.diag(R))
    spread = np.asarray(Q * sign / root, dtype=np.float64)[row]
    return spread, np.asarray(R * sign[:, None], dtype=np.float64)


def coefficient_maps(model: Model) -> Floats:
    """Matrix that takes the values of a model's runs to its coefficients, fitted columns x runs."""
    if model.solved_by_transform:  # all columns but those of the blocks are orthogonal
        maps = model.fitted_columns.T / len(model.runs.cells)
        blocks = model.columns(BLOCK)
        maps[blocks] = np.linalg.pinv(model.fitted_columns[:, blocks])
        return maps
    Q, R = decomposed(model)
    maps = np.asarray(scipy.linalg.solve_triangular(R, Q.T))
    return np.where(np.abs(maps) < 1e-12 * np.abs(maps).max(), 0.0, maps)


def _orthogonal_columns(model: Model) -> tuple[Floats, Floats]:
    """Q and R where all columns but those of the blocks are orthogonal already."""
    X, n = model.X, model.runs.count
    own = model.columns(BLOCK)
    Q, R = X / np.sqrt(n), np.eye(X.shape[1]) * np.sqrt(n)
    if len(own):
        basis, triangle = np.linalg.qr(X[:, own])
        sign = np.sign(np.diag(triangle))
        Q[:, own], R[np.ix_(own, own)] = basis * sign, triangle * sign[:, None]
    return np.asarray(Q), np.asarray(R)


def _between_blocks(u: Floats, block: Ints | None) -> float:
    """Sum of squares of the blocks' means."""
    if block is None:
        return 0.0
    counts = np.bincount(block)
    means = np.bincount(block, weights=u) / counts
    return float(counts @ (means - float(u.mean())) ** 2)


# Runs with the same levels -----------------------------------------------------------------------


def pure_error(
    y: Floats,
    groups: Ints,
    block: Ints | None,
    orthogonal: bool = False,
    beside: Floats | None = None,
) -> tuple[float, int]:
    """Sum of squares and degrees of freedom left by cells, blocks and columns `beside` them.

    Without blocks this is the spread of replicates within cells; when a replicate is a block it
    is the interaction of block and cell. Blocks `orthogonal` to cells need no least squares.
    """
    within, _, df = within_cells(y, groups, block, orthogonal, beside=beside)
    return (float((within**2).sum()), df) if df > 0 else (0.0, 0)


def without_blocks(
    y: Floats, groups: Ints, block: Ints | None, weight: Floats | None = None
) -> Floats:
    """Responses less the effect of their block, which averages zero over blocks.

    A `weight` per run, the same for all runs of a cell, says how much it counts.
    """
    if block is None:
        return y
    shift = within_cells(y, groups, block, weight=weight)[1]
    return np.asarray(y - (shift - shift.mean())[block])


def within_cells(
    y: Floats,
    groups: Ints,
    block: Ints | None,
    orthogonal: bool = False,
    weight: Floats | None = None,
    beside: Floats | None = None,
) -> tuple[Floats, Floats, int]:
    """Deviations within cells after blocks, the block effects, and degrees of freedom.

    `groups` number the cells from 0; columns `beside` the blocks are taken out as these are.
    """
    counts = np.bincount(groups)
    filled = np.maximum(counts, 1)
    within = y - (np.bincount(groups, weights=y) / filled)[groups]
    df = len(y) - int(np.count_nonzero(counts))
    if block is None and beside is None:
        return within, np.zeros(1), df
    if orthogonal:
        assert block is not None
        shift = np.bincount(block, weights=within) / np.bincount(block)
        return within - shift[block], shift, df - len(shift) + 1
    columns = block_columns(block, len(y))
    blocks = columns.shape[1]
    if beside is not None:
        columns = np.column_stack([columns, beside])
    sums = [np.bincount(groups, weights=column) for column in columns.T]
    columns = columns - (np.stack(sums, axis=1) / filled[:, None])[groups]
    root = np.ones(len(y)) if weight is None else np.sqrt(weight)
    solution, _, rank, _ = np.linalg.lstsq(root[:, None] * columns, root * within, rcond=1e-10)
    shift = np.concatenate([[0.0], solution[:blocks]])
    return within - columns @ solution, shift, df - int(rank)


def satterthwaite(full: Fit) -> float:
    """Degrees of freedom of the pure error where cells differ in their variance.

    With the sum of squares ``S_i`` of the n_i runs of cell i after blocks,
    ``(sum S_i)² / sum(S_i² / (n_i - 1))``, less the share that blocks take (Satterthwaite, 1946).
    It is small where a few cells carry the error, and on the safe side: for equal variances and n
    runs a cell it is about ``1 / (1 + 2 / (n - 1))`` of the degrees of freedom.
    """
    groups = full.groups
    within = within_cells(full.u, groups, full.block, full.model.solved_by_transform)[0]
    counts = np.bincount(groups)
    several = counts > 1
    squares = np.bincount(groups, weights=within**2)[several]
    free = counts[several] - 1
    return float(squares.sum() ** 2 / (squares**2 / free).sum() * full.df_pure / free.sum())
