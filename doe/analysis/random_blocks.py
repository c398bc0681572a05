"""Blocks as a random sample: variances by restricted maximum likelihood, tests by Kenward-Roger."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import scipy
from msgspec import Struct

from doe.analysis import distributions as stats
from doe.analysis.contrasts import Floats, Ints
from doe.analysis.distributions import root
from doe.analysis.fit import Fit
from doe.analysis.model import make_model
from doe.analysis.reml import reml
from doe.numbers import share_text
from doe.terms import MEAN

FEWEST_BLOCKS = 6
"""Fewer blocks leave the variance between them hardly known: with 5 degrees of freedom its 95 %
interval still spans a factor of 15."""


class RandomTerm(Struct, frozen=True, gc=False):
    """One term with blocks as random."""

    term: str
    df: int
    f: float
    df_error: float  # of the denominator, by Kenward and Roger
    p: float
    estimate: float | None  # effect of a two-level term
    se: float | None


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

    The fixed part has no columns of blocks, so a term that varies only between blocks is estimated
    too, against their variance. Each term has the degrees of freedom of its own error (Kenward and
    Roger 1997), exact where every block holds the same cells.
    """
    block = fit.block
    if block is None or fit.df_residual < 1 or fit.exact:
        return None
    asked = {*fit.model.terms, *fit.model.with_blocks}
    model = make_model(replace(fit.runs, block=None), list(asked), curved=not fit.pooled)
    X = model.fitted_columns
    if len(fit.u) - X.shape[1] - 1 < 1:
        return None
    fitted = reml(X, fit.u, [block])
    terms = []
    for source in sorted(set(model.fitted_source.tolist()) - {MEAN}, key=_by_source):
        own = model.columns(source)
        rows = np.zeros((len(own), X.shape[1]))
        rows[np.arange(len(own)), own] = 1.0
        test = fitted.test(rows)
        single = source in model.two_level_terms
        estimate = 2.0 * fit.unit * float(fitted.coef[own[0]]) if single else None
        se = float(np.sqrt(fitted.covariance[own[0], own[0]]))
        terms.append(
            RandomTerm(
                *(model.name(source), test.df, test.f, test.df_error, test.p, estimate),
                2.0 * fit.unit * se if single else None,
            )
        )
    count = int(block.max()) + 1
    between, within = fitted.variances.tolist()
    share = between / (between + within)
    low, high = share_interval(X, fit.u, block, alpha)
    return RandomBlocks(
        blocks=count,
        variance_block=between * fit.square,
        variance_error=within * fit.square,
        share=share,
        share_low=low,
        share_high=high,
        terms=tuple(terms),
        enough=count >= FEWEST_BLOCKS,
        sentence=_sentence(fit.runs.block_name, count, (share, low, high)),
    )


def _by_source(source: int) -> tuple[bool, int]:
    """Terms in standard order, then the curvature."""
    return source < 0, source


def share_interval(X: Floats, u: Floats, block: Ints, alpha: float) -> tuple[float, float]:
    """Exact interval of the blocks' share λ/(1 + λ) (Harville and Fenech 1985).

    What X leaves of the blocks has independent components ``s_i ~ N(0, σ²(1 + λ d_i))`` with the
    eigenvalues d of ``Z'(I - P_X)Z``, so that the mean of ``s_i²/(1 + λ d_i)`` over the mean square
    within blocks is F. It falls with λ, and the interval holds every λ at which F is no surprise.
    """
    Z = np.eye(int(block.max()) + 1)[block]
    Q = scipy.linalg.qr(X, mode="economic")[0]
    left, target = Z - Q @ (Q.T @ Z), u - Q @ (Q.T @ u)
    sizes, vectors = scipy.linalg.eigh(left.T @ left)
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


def _sentence(name: str, blocks: int, shares: tuple[float, float, float]) -> str:
    share, low, high = map(share_text, shares)
    lead = f"{name} as random carries {share} ({low} to {high}) of the variance of a run"
    if blocks >= FEWEST_BLOCKS:
        return f"{lead}, from {blocks} blocks."
    return (
        f"{lead}, but {blocks} blocks are too few to estimate it: rely on the tests with blocks as"
        f" fixed, which hold for these {blocks}."
    )
