"""Least squares of one response on blocks, terms and centre runs, by statsmodels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import linalg

from doe.analysis.contrasts import Floats, Ints
from doe.analysis.data import check_variation
from doe.analysis.fit import pure_error
from doe.analysis.fitted import Fitted
from doe.analysis.levels.layout import LevelObservations
from doe.analysis.levels.model import CURVATURE, ModelMatrix, distinct_rows, model_matrix
from doe.analysis.streams import over_seeds
from doe.terms import MEAN


@dataclass(frozen=True, kw_only=True)
class LevelFit(Fitted):
    """A fitted model. The work is done on ``u = (y - shift) / unit``, of size about one.

    Sums of squares, coefficients and covariances are those of u; what is shown is put back on the
    scale of y by `unit`.
    """

    matrix: ModelMatrix
    kept: Ints  # the runs with a value, as numbers of those planned
    u: Floats
    shift: float
    coef: Floats  # of the kept columns
    scale: Floats  # (X'X)^-1 of the kept columns
    Q: Floats  # orthonormal columns: each kept column after those before it
    R: Floats  # X = QR

    @property
    def residual(self) -> Floats:
        """Observed minus fitted, of u."""
        return self.u - self.fitted

    @cached_property
    def rotated(self) -> Floats:
        """``Q'u``: single-degree contrasts, independent and each with the variance of the error."""
        return np.asarray(self.Q.T @ self.u)

    @cached_property
    def orthogonal(self) -> bool:
        """Whether no term shares anything with another, so that every type of test agrees."""
        source = self.matrix.fitted_source
        gram = self.R.T @ self.R
        shared = np.abs(gram) > 1e-9 * self.n
        same = source[:, None] == source[None, :]
        constant = (source == MEAN) | (source == CURVATURE)
        return not bool((shared & ~same & ~(constant[:, None] & constant[None, :])).any())

    def columns(self, source: int) -> Ints:
        """Positions of a source among the kept columns."""
        return np.flatnonzero(self.matrix.fitted_source == source)

    def wald(self, own: Ints) -> float:
        """Wald's statistic ``b'[(X'X)^-1]^-1 b`` of some coefficients: a sum of squares of u."""
        return wald(self.coef[own], self.scale[np.ix_(own, own)])

    def estimate(self, rows: Floats) -> tuple[Floats, Floats]:
        """Linear functions of the coefficients, and their covariance over σ², both of u.

        `rows` has a column per column of the model, kept or not.
        """
        inside = rows[:, self.matrix.kept]
        return inside @ self.coef, np.asarray(inside @ self.scale @ inside.T)


def fit_levels(
    observed: LevelObservations, masks: Sequence[int], *, pooled: bool = False
) -> LevelFit:
    """Fit a model to the runs with a value.

    A `pooled` error is the residual with lack of fit in it, that of centre runs included, where a
    reduced model leaves replicates; else it is the spread of runs with the same levels.

    Raises
    ------
    DoeError
        If the values do not vary, or there are more columns than can be fitted.
    """
    kept = np.flatnonzero(np.isfinite(observed.y))
    y = np.asarray(observed.y[kept], dtype=np.float64)
    check_variation(y, observed.response)
    matrix = model_matrix(observed.layout.only(kept), masks, curved=not pooled)
    shift, unit, u = standardized(y)
    coef, scale, Q, R = least_squares(matrix, u)
    fitted = matrix.fitted_columns @ coef
    df_residual = len(y) - matrix.rank
    cells = np.unique(matrix.layout.cells, return_inverse=True)[1]
    ss_pure, df_pure = pure_error(u, cells, matrix.layout.block)
    return LevelFit(
        matrix=matrix,
        kept=kept,
        y=y,
        u=u,
        shift=shift,
        unit=unit,
        coef=coef,
        scale=scale,
        Q=Q,
        R=R,
        fitted=fitted,
        leverage=np.asarray((Q**2).sum(axis=1)),
        ss_total=float(((u - u.mean()) ** 2).sum()),
        ss_residual=float(((u - fitted) ** 2).sum()) if df_residual > 0 else 0.0,
        df_residual=df_residual,
        ss_pure=ss_pure,
        df_pure=df_pure,
        pooled=pooled,
        seeding=matrix.layout.seeding,
        over_seeds=over_seeds(u, cells, matrix.layout.seeding),
    )


def least_squares(matrix: ModelMatrix, u: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Coefficients, (X'X)^-1, and X = QR.

    Runs of one cell and block share a row of X. Their mean, weighted by their number, has the
    same least squares as they have, in a matrix that does not grow with replicates.
    """
    from statsmodels.regression.linear_model import WLS

    first, row = distinct_rows(matrix.layout)
    counts = np.bincount(row)
    X = matrix.fitted_columns[first]
    means = np.bincount(row, weights=u) / counts
    result = WLS(means, X, weights=counts).fit(method="qr")
    root = np.sqrt(counts)[:, None]
    Q, R = linalg.qr(root * X, mode="economic")
    sign = np.sign(np.diag(R))
    spread = np.asarray(Q * sign / root, dtype=np.float64)[row]
    return (
        np.asarray(result.params),
        np.asarray(result.normalized_cov_params),
        spread,
        np.asarray(R * sign[:, None], dtype=np.float64),
    )


def wald(b: Floats, covariance: Floats) -> float:
    """Wald's statistic ``b' V^-1 b``."""
    return float(b @ np.linalg.solve(covariance, b))


def standardized(y: Floats) -> tuple[float, float, Floats]:
    """Middle of the values, half their range, and the values on that scale, from -1 to 1.

    Squares of values near the limits of floating point would overflow or vanish; those of these
    do not.
    """
    low, high = float(y.min()), float(y.max())
    unit = high / 2.0 - low / 2.0
    shift = low + unit
    return shift, unit, np.asarray((y - shift) / unit)
