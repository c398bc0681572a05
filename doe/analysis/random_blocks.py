"""Blocks as a random sample: restricted maximum likelihood.

With blocks alone as random the likelihood has one unknown, the ratio of the two variances, and is
maximised along it. It is the maximum of statsmodels' `MixedLM`, to more digits, and with standard
errors of generalised least squares as lme4 has them.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from msgspec import Struct
from scipy import linalg, optimize

from doe.analysis import distributions as stats
from doe.analysis.contrasts import Floats, Ints
from doe.analysis.anova import tested_sources
from doe.analysis.fit import Fit, wald
from doe.analysis.model import make_model
from doe.analysis.pvalues import f_upper
from doe.analysis.roots import root
from doe.numbers import share_text

FEWEST_BLOCKS = 6
"""Fewer blocks leave the variance between them hardly known: with 5 degrees of freedom its 95 %
interval still spans a factor of 15."""


class RandomTerm(Struct, frozen=True, gc=False):
    """One term with blocks as random."""

    term: str
    df: int
    f: float  # Wald's
    p: float  # on the degrees of freedom within blocks


class RandomBlocks(Struct, frozen=True):
    """The model with blocks drawn from many."""

    blocks: int
    variance_block: float
    variance_error: float
    share: float  # of the block in the variance of a run
    share_low: float
    share_high: float
    terms: tuple[RandomTerm, ...]
    enough: bool  # blocks enough to know their variance
    sentence: str


def random_blocks(fit: Fit, alpha: float) -> RandomBlocks | None:
    """Fit the terms with blocks as random; None without blocks or degrees of freedom.

    ``y = Xb + Zu + e`` with independent normal u and e, variances by restricted maximum
    likelihood (Patterson and Thompson 1971). Tests are Wald's F on the degrees of freedom that are
    left within blocks, exact where every block holds the same cells.
    """
    block = fit.block
    if block is None or fit.df_residual < 1 or fit.exact:
        return None
    model = make_model(replace(fit.runs, block=None), fit.model.terms, curved=not fit.pooled)
    X = model.fitted_columns  # without columns of blocks, which are no part of the mean
    ratio = variance_ratio(X, fit.u, block)
    coef, scale, error = _weighted(X, fit.u, block, ratio)[:3]
    terms = []
    for s in tested_sources(fit):
        own = model.columns(s)
        f = wald(coef[own], scale[np.ix_(own, own)]) / error / len(own)
        p = float(f_upper(np.array(f), len(own), fit.df_residual))
        terms.append(RandomTerm(model.name(s), len(own), f, p))
    count = int(block.max()) + 1
    share = ratio / (1.0 + ratio)
    low, high = share_interval(X, fit.u, block, alpha)
    return RandomBlocks(
        blocks=count,
        variance_block=ratio * error * fit.square,
        variance_error=error * fit.square,
        share=share,
        share_low=low,
        share_high=high,
        terms=tuple(terms),
        enough=count >= FEWEST_BLOCKS,
        sentence=_sentence(fit.runs.block_name, count, (share, low, high)),
    )


def variance_ratio(X: Floats, u: Floats, block: Ints) -> float:
    """Variance of blocks over that of runs, λ, where the restricted likelihood is largest.

    ``-2 l(λ) = (n - p) ln s²(λ) + Σ_b ln(1 + λ n_b) + ln|X'V^-1 X|`` with V = I + λ ZZ' and s² the
    weighted mean square of the residual.
    """
    sizes = np.bincount(block)
    df = len(u) - X.shape[1]

    def deviance(share: float) -> float:
        ratio = share / (1.0 - share)
        _, _, error, log_det = _weighted(X, u, block, ratio)
        added = float(np.log1p(ratio * sizes).sum())
        return float(df * np.log(error) + added + log_det)

    grid = np.linspace(0.0, 0.999, 60)
    values = [deviance(share) for share in grid.tolist()]
    at = int(np.argmin(values))
    ends = float(grid[max(at - 1, 0)]), float(grid[min(at + 1, len(grid) - 1)])
    least = optimize.minimize_scalar(
        deviance, bounds=ends, method="bounded", options={"xatol": 1e-11}
    )
    share: float = float(least.x)
    if deviance(0.0) <= float(least.fun) + 1e-10:
        share = 0.0
    return float(share / (1.0 - share))


def share_interval(X: Floats, u: Floats, block: Ints, alpha: float) -> tuple[float, float]:
    """Exact interval of the blocks' share λ/(1 + λ) (Harville and Fenech 1985).

    What X leaves of the blocks has independent components ``s_i ~ N(0, σ²(1 + λ d_i))`` with the
    eigenvalues d of ``Z'(I - P_X)Z``, so that the mean of ``s_i²/(1 + λ d_i)`` over the mean square
    within blocks is F. It falls with λ, and the interval holds every λ at which F is no surprise.
    """
    Z = np.eye(int(block.max()) + 1)[block]
    Q = linalg.qr(X, mode="economic")[0]
    left, target = Z - Q @ (Q.T @ Z), u - Q @ (Q.T @ u)
    sizes, vectors = linalg.eigh(left.T @ left)
    own = sizes > 1e-9 * len(u)
    sizes = sizes[own]
    squares = (vectors[:, own].T @ (left.T @ target)) ** 2 / sizes
    df = len(u) - X.shape[1] - len(sizes)
    within = max(float(target @ target) - float(squares.sum()), 1e-300) / df

    def beyond(quantile: float, share: float) -> float:
        shrunk = squares * (1.0 - share) / (1.0 - share + share * sizes)
        return float(shrunk.mean() / within - quantile)

    ends = []
    for quantile in stats.f.isf([alpha / 2.0, 1.0 - alpha / 2.0], len(sizes), df).tolist():
        inside = beyond(quantile, 0.0) > 0.0
        ends.append(root(partial(beyond, quantile), 0.0, 1.0) if inside else 0.0)
    return ends[0], ends[1]


def _weighted(
    X: Floats, u: Floats, block: Ints, ratio: float
) -> tuple[Floats, Floats, float, float]:
    """Generalised least squares: coefficients, (X'V^-1 X)^-1, mean square, ln|X'V^-1 X|.

    ``V^-1/2`` takes the part ``1 - 1 / sqrt(1 + λ n_b)`` of its block's mean from every value.
    """
    sizes = np.bincount(block)
    part = 1.0 - 1.0 / np.sqrt(1.0 + ratio * sizes)
    both = np.column_stack([X, u])
    sums = np.zeros((len(sizes), both.shape[1]))
    np.add.at(sums, block, both)
    both = both - (part / sizes * sums.T).T[block]
    columns, target = both[:, :-1], both[:, -1]
    Q, R = linalg.qr(columns, mode="economic")
    coef = linalg.solve_triangular(R, Q.T @ target)
    inverse = linalg.solve_triangular(R, np.eye(len(R)))
    rest = target - columns @ coef
    error = float(rest @ rest) / (len(u) - X.shape[1])
    log_det = 2.0 * float(np.log(np.abs(np.diag(R))).sum())
    return np.asarray(coef), np.asarray(inverse @ inverse.T), max(error, 1e-300), log_det


def _sentence(name: str, blocks: int, shares: tuple[float, float, float]) -> str:
    share, low, high = map(share_text, shares)
    lead = f"{name} as random carries {share} ({low} to {high}) of the variance of a run"
    if blocks >= FEWEST_BLOCKS:
        return f"{lead}, from {blocks} blocks."
    return (
        f"{lead}, but {blocks} blocks are too few to know that: rely on the tests with blocks as"
        f" fixed, which hold for these {blocks}."
    )
