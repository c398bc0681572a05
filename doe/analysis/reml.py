"""Linear models with random groups: restricted maximum likelihood, and tests of the fixed part.

``y = X b + sum_k Z_k u_k + e`` with independent normal ``u_k ~ N(0, θ_k)`` and ``e ~ N(0, σ²)``.
All matrices are products of X, y and the indicators Z of the groups, so that the work grows with
the groups and not with the runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy

from doe.analysis.contrasts import Floats, Ints
from doe.analysis.pvalues import f_upper

SMALLEST = 1e-8
"""Ratio of variances below which a group has none."""
LARGEST = 30.0
"""Logarithm of a ratio beyond which it is not sought."""
VANISHING = 1e-8
"""Size below which a difference from 1 is rounding."""


class FixedTest(NamedTuple):
    """An F test of a linear hypothesis about the fixed part."""

    f: float
    df: int
    df_error: float
    p: float


@dataclass(frozen=True)
class Reml:
    """The fitted model: variances, the last of them that of single runs, and the fixed part."""

    variances: Floats  # θ of each group, then σ²
    groups: Ints  # number of the group of each column of Z
    sizes: tuple[int, ...]
    n: int
    coef: Floats
    covariance: Floats  # C = (X'V^-1 X)^-1
    zvx: Floats  # Z'V^-1 X
    zpz: Floats  # Z'PZ with P = V^-1 - V^-1 X C X' V^-1
    zpy: Floats
    ypy: float

    @property
    def error(self) -> float:
        """σ², the variance of single runs."""
        return float(self.variances[-1])

    @property
    def _theta(self) -> Floats:
        """Variance of each column of Z."""
        return np.asarray(self.variances[self.groups])

    @cached_property
    def _zppz(self) -> Floats:
        """``Z'PPZ``, from PVP = P."""
        return np.asarray((self.zpz - self.zpz * self._theta @ self.zpz) / self.error)

    @cached_property
    def xvvx(self) -> Floats:
        """``X'V^-2 X``."""
        inner = np.linalg.inv(self.covariance)
        return np.asarray((inner - (self.zvx.T * self._theta) @ self.zvx) / self.error)

    def _parts(self) -> list[Ints]:
        return [np.flatnonzero(self.groups == k) for k in range(len(self.sizes))]

    def information(self, *, expected: bool) -> Floats:
        """Information of the variances: ``½ tr(P V_i P V_j)``, or the observed one."""
        parts, count = self._parts(), len(self.sizes)
        traces = np.empty((count + 1, count + 1))
        for i, own in enumerate(parts):
            for j, other in enumerate(parts):
                traces[i, j] = (self.zpz[np.ix_(own, other)] ** 2).sum()
            traces[i, count] = traces[count, i] = np.trace(self._zppz[np.ix_(own, own)])
        theta = self.variances
        free = self.n - len(self.coef)
        trace = sum(theta[i] * np.trace(self.zpz[np.ix_(own, own)]) for i, own in enumerate(parts))
        trace_p = (free - trace) / self.error
        inner = sum(theta[i] * traces[i, count] for i in range(count))
        traces[count, count] = (trace_p - inner) / self.error
        if expected:
            return traces / 2.0
        zppy = (self.zpy - self.zpz @ (self._theta * self.zpy)) / self.error
        yppy = (self.ypy - float((self._theta * self.zpy**2).sum())) / self.error
        ypppy = (yppy - float((self._theta * self.zpy * zppy).sum())) / self.error
        squares = np.empty_like(traces)
        for i, own in enumerate(parts):
            for j, other in enumerate(parts):
                inner_y = self.zpz[np.ix_(own, other)]
                squares[i, j] = self.zpy[own] @ inner_y @ self.zpy[other]
            squares[i, count] = squares[count, i] = self.zpy[own] @ zppy[own]
        squares[count, count] = ypppy
        return squares - traces / 2.0

    def test(self, rows: Floats) -> FixedTest:
        """Kenward and Roger's (1997) F test of ``L b = 0``, exact where groups are balanced."""
        rank = len(rows)
        C, slopes, W = self.covariance, self._slopes, self._between_variances
        theta = rows.T @ np.linalg.solve(rows @ C @ rows.T, rows)
        products = [theta @ C @ slope @ C for slope in slopes]
        traces = np.array([np.trace(product) for product in products])
        a1 = float(traces @ W @ traces)
        a2 = float(
            sum(
                W[i, j] * np.trace(products[i] @ products[j])
                for i in range(len(slopes))
                for j in range(len(slopes))
            )
        )
        value = rows @ self.coef
        spread = rows @ self.adjusted @ rows.T
        statistic = float(value @ np.linalg.solve(spread, value)) / rank
        factor, df = _kenward_roger(a1, a2, rank)
        f = factor * statistic
        return FixedTest(f, rank, df, float(f_upper(np.array(f), rank, df)))

    def single(self, rows: Floats) -> tuple[Floats, Floats]:
        """Standard errors of single functions ``l'b`` and their degrees of freedom.

        With one function Kenward and Roger's factor is 1 and their degrees of freedom are 2 / A1.
        """
        C = self.covariance
        plain = ((rows @ C) * rows).sum(axis=1)
        turned = rows @ C
        shares = np.array([((turned @ s) * turned).sum(axis=1) for s in self._slopes]) / plain
        df = 2.0 / np.einsum("ir,ij,jr->r", shares, self._between_variances, shares)
        return np.sqrt(((rows @ self.adjusted) * rows).sum(axis=1)), np.asarray(df)

    @cached_property
    def _slopes(self) -> list[Floats]:
        """``X'V^-1 V_i V^-1 X`` of each variance."""
        return [*(self.zvx[own].T @ self.zvx[own] for own in self._parts()), self.xvvx]

    @cached_property
    def _between_variances(self) -> Floats:
        """Covariance of the estimated variances."""
        return np.asarray(np.linalg.inv(self.information(expected=True)), np.float64)

    @cached_property
    def adjusted(self) -> Floats:
        """Covariance of the fixed part that allows for the variances being estimated."""
        bias = self._bias(self._slopes, self._between_variances)
        return np.asarray(self.covariance + 2.0 * bias)

    def _bias(self, slopes: Sequence[Floats], W: Floats) -> Floats:
        """Return what the covariance of the fixed part lacks for the variances being estimated."""
        C = self.covariance
        parts = self._parts()
        left = [*(self.zvx[own] for own in parts)]
        total = np.zeros_like(C)
        for i in range(len(slopes)):
            for j in range(len(slopes)):
                second = self._second(i, j, parts, left)
                total += W[i, j] * (second - slopes[i] @ C @ slopes[j])
        return np.asarray(C @ total @ C)

    def _second(self, i: int, j: int, parts: list[Ints], left: list[Floats]) -> Floats:
        """``X'V^-1 V_i V^-1 V_j V^-1 X``."""
        last = len(parts)
        zvz = self._zvz
        if i < last and j < last:
            return np.asarray(left[i].T @ zvz[np.ix_(parts[i], parts[j])] @ left[j])
        if i < last or j < last:
            k = min(i, j)
            half = self._zvvx[parts[k]]
            return np.asarray(left[k].T @ half if i < last else half.T @ left[k])
        inner = (self._theta * self._zvvx.T) @ self.zvx
        return np.asarray((self.xvvx - (inner + inner.T) / 2.0) / self.error)

    @cached_property
    def _zvz(self) -> Floats:
        """``Z'V^-1 Z``."""
        return np.asarray(self.zpz + self.zvx @ self.covariance @ self.zvx.T)

    @cached_property
    def _zvvx(self) -> Floats:
        """``Z'V^-2 X``, from V^-1 V V^-1 = V^-1."""
        return np.asarray((self.zvx - (self._zvz * self._theta) @ self.zvx) / self.error)


def _kenward_roger(a1: float, a2: float, rank: int) -> tuple[float, float]:
    """Factor and denominator degrees of freedom that match the first two moments of F.

    F has no mean on 2 degrees of freedom and fewer: what vanishes there is taken at its limit, as
    pbkrtest does. The factor is 1 wherever groups are balanced.
    """
    b = (a1 + 6.0 * a2) / (2.0 * rank)
    g = ((rank + 1.0) * a1 - (rank + 4.0) * a2) / ((rank + 2.0) * a2)
    below = 3.0 * rank + 2.0 * (1.0 - g)
    c1, c2, c3 = g / below, (rank - g) / below, (rank + 2.0 - g) / below
    inverse_mean, slack = 1.0 - a2 / rank, 1.0 - c2 * b
    share = 1.0 if max(abs(inverse_mean), abs(slack)) < VANISHING else inverse_mean / slack
    spread = 1.0 - c3 * b  # 0 on 4 degrees of freedom, where F has no variance
    df = 4.0 + (rank + 2.0) * spread / (share**2 * (1.0 + c1 * b) - spread)
    factor = 1.0 if abs(df - 2.0) < 1e-2 else df * inverse_mean / (df - 2.0)
    return float(factor), float(df)


class _Products(NamedTuple):
    """Products of indicators, columns and response, from which every deviance follows."""

    zz: Floats
    zx: Floats
    zy: Floats
    xx: Floats
    xy: Floats
    yy: float
    n: int
    groups: Ints


class _Solved(NamedTuple):
    """The model at given ratios of variances, with σ² = 1."""

    zvz: Floats
    zvx: Floats
    zvy: Floats
    covariance: Floats
    coef: Floats
    ypy: float
    log_dets: float


def reml(X: Floats, y: Floats, groups: Sequence[Ints]) -> Reml:
    """Fit by restricted maximum likelihood (Patterson and Thompson 1971).

    Each of `groups` numbers the groups of the runs from 0. X has full rank.
    """
    data, sizes = _products(X, y, groups)
    ratios = _ratios(data, len(sizes), X.shape[1])
    at = _solved(data, ratios)
    return _fitted(data, sizes, ratios, at, at.ypy / (len(y) - X.shape[1]))


def planned(X: Floats, groups: Sequence[Ints], ratios: Floats) -> Reml:
    """Return the model before it runs, at given ratios of variances and with σ² = 1."""
    data, sizes = _products(X, np.zeros(len(X)), groups)
    return _fitted(data, sizes, ratios, _solved(data, ratios), 1.0)


def _products(X: Floats, y: Floats, groups: Sequence[Ints]) -> tuple[_Products, tuple[int, ...]]:
    """Products of the data, and how many groups there are of each kind."""
    sizes = tuple(int(group.max()) + 1 for group in groups)
    Z = np.column_stack([np.eye(s)[g] for s, g in zip(sizes, groups, strict=True)])
    numbers = np.repeat(np.arange(len(sizes)), sizes)
    zz, zx, zy = Z.T @ Z, Z.T @ X, Z.T @ y
    return _Products(zz, zx, zy, X.T @ X, X.T @ y, float(y @ y), len(y), numbers), sizes


def _fitted(
    data: _Products, sizes: tuple[int, ...], ratios: Floats, at: _Solved, error: float
) -> Reml:
    fixed = at.zvx @ at.covariance
    return Reml(
        variances=np.append(ratios * error, error),
        groups=data.groups,
        sizes=sizes,
        n=data.n,
        coef=at.coef,
        covariance=at.covariance * error,
        zvx=at.zvx / error,
        zpz=(at.zvz - fixed @ at.zvx.T) / error,
        zpy=(at.zvy - at.zvx @ at.coef) / error,
        ypy=at.ypy / error,
    )


def _ratios(data: _Products, count: int, columns: int) -> Floats:
    """Return the ratios of variances at the maximum, 0 where a group adds nothing.

    The slope of the deviance is ``tr(Z'PZ) - (n - p) |Z'Py|² / y'Py`` for each kind of groups. The
    search is over ``log(1 + ratio)``, which has its end at 0 and few steps to large ratios.
    """
    from scipy import optimize  # 0.4 s of imports, for mixed models alone

    free = data.n - columns

    def deviance(logs: Floats) -> tuple[float, Floats]:
        at = _solved(data, np.expm1(logs))
        traces = np.diag(at.zvz) - ((at.zvx @ at.covariance) * at.zvx).sum(axis=1)
        squares = (at.zvy - at.zvx @ at.coef) ** 2
        slopes = np.bincount(data.groups, traces - free * squares / at.ypy)
        return free * float(np.log(at.ypy)) + at.log_dets, np.asarray(slopes * np.exp(logs))

    found = [
        optimize.minimize(
            deviance,
            np.full(count, np.log1p(start)),
            jac=True,
            bounds=[(0.0, LARGEST)] * count,
            method="L-BFGS-B",
            options={"ftol": 0.0, "gtol": 1e-9, "maxiter": 500},
        )
        for start in (0.0, 0.3, 10.0)
    ]
    ratios = np.expm1(min(found, key=lambda result: float(result.fun)).x)
    return np.asarray(np.where(ratios < SMALLEST, 0.0, ratios))


def _solved(data: _Products, ratios: Floats) -> _Solved:
    """Generalised least squares at given ratios, by Woodbury's identity."""
    root = np.sqrt(ratios[data.groups])
    inner = np.eye(len(root)) + root[:, None] * data.zz * root[None, :]
    factor = scipy.linalg.cho_factor(inner)

    def left(columns: Floats) -> Floats:
        """``Z'V^-1 M`` from ``Z'M``."""
        scaled = root[:, None] * columns
        return np.asarray(
            columns - data.zz @ (root[:, None] * scipy.linalg.cho_solve(factor, scaled))
        )

    zvx, zvy = left(data.zx), left(data.zy[:, None])[:, 0]
    small = scipy.linalg.cho_solve(factor, root[:, None] * np.column_stack([data.zx, data.zy]))
    weighted = root[:, None] * small
    xvx = data.xx - data.zx.T @ weighted[:, :-1]
    xvy = data.xy - data.zx.T @ weighted[:, -1]
    covariance = np.linalg.inv(xvx)
    coef = covariance @ xvy
    ypy = data.yy - float(data.zy @ weighted[:, -1]) - float(xvy @ coef)
    dets = 2.0 * float(np.log(np.diag(factor[0])).sum()) + float(np.linalg.slogdet(xvx)[1])
    return _Solved(left(data.zz), zvx, zvy, covariance, coef, max(ypy, 1e-300), dets)
