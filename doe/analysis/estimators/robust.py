"""Answers that lean on fewer assumptions: permutation, wild bootstrap, HC3, trimmed contrasts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from doe.analysis import distributions as stats
from doe.analysis.contrasts import MOST_RUNS, Floats, exchanges
from doe.analysis.effects import TermTest
from doe.analysis.fit import Fit, wald, without_blocks
from doe.analysis.fitted import FittedResponse
from doe.analysis.pvalues import adjusted
from doe.numbers import cell_text

BOOTSTRAPS = 2000
FEWEST_DF = 12
"""Residual degrees of freedom from which the wild bootstrap can say anything."""
FEWEST_HC3_DF = 2.0
"""Degrees of freedom of HC3's variance below which its test finds too much: 0.08 for 0.05."""
DECISIVE = 0.5
"""Leverage from which a run's residual says little of its error, as with two runs in a cell."""
TRIM = 0.25
CHUNK = 1000
MOST_DENSE = 2048
"""Runs for which a matrix of runs by runs is made."""
MOST_WORK = 2e9
"""Multiplications beyond which the responses are exchanged once for all terms."""


class RobustRow(Struct, frozen=True, gc=False):
    """One term by several methods."""

    term: str
    df: int
    effect: float | None  # of a term of two-level factors, where no cells are empty
    p: float | None  # the analysis's own
    p_hc3: float | None  # None where it is the test itself, or says nothing
    p_permutation: float | None
    p_maxt: float | None  # permutation, adjusted for all terms at once
    p_wild: float | None  # wild bootstrap, adjusted for all terms at once
    boot_low: float | None  # interval of the wild bootstrap for this effect alone
    boot_high: float | None
    trimmed: float | None  # effect from cell means, a quarter trimmed off each end
    median: float | None  # effect from cell medians
    verdicts: tuple[bool | None, ...]  # by Holm, HC3 with Holm, max-T, wild bootstrap
    agree: bool


class Robust(Struct, frozen=True):
    """Terms by several methods, and where the conclusions differ."""

    rows: tuple[RobustRow, ...]
    alpha: float
    permutations: int
    method: str  # what was exchanged: "Freedman and Lane", or "responses" as they are
    bootstraps: int
    seed: int
    sentence: str


# HC3 ---------------------------------------------------------------------------------------------


def hc3_covariance(fit: Fit) -> Floats | None:
    """MacKinnon and White's covariance of the coefficients of u.

    ``(X'X)^-1 X' diag(e_i² / (1 - h_i)²) X (X'X)^-1``; None where a run decides its own fit.
    """
    free = 1.0 - fit.leverage
    if fit.df_residual < 1 or fit.exact or (free < 1e-9).any():
        return None
    weighted = fit.maps * (fit.residual / free)
    return np.asarray(weighted @ weighted.T)


def hc3_freedom(fit: Fit) -> Floats | None:
    """Satterthwaite's degrees of freedom of the variance that HC3 gives each coefficient.

    ``(tr M)² / tr M²`` with ``M = Σ_i a_i² g_i g_i'``, ``g_i = (I - H)_i / (1 - h_i)`` and a the
    row of the coefficient: those of the residual in a balanced model, and fewer where it rests on
    runs of high leverage, as the corners beside centre runs. None of very many runs.
    """
    if fit.n > MOST_DENSE:
        return None
    free = 1.0 - fit.leverage
    own = np.eye(fit.n) - fit.Q @ fit.Q.T
    inner = (own / np.outer(free, free)) ** 2
    weights = fit.maps**2
    total = (weights / free).sum(axis=1)
    return np.asarray(total**2 / np.einsum("ci,ij,cj->c", weights, inner, weights, optimize=True))


def hc3(fit: Fit) -> dict[int, float]:
    """P values with HC3 in the place of one variance for all: Wald's F on the residual's df.

    The hypotheses are those of type III, about means with every cell weighted alike: type II would
    lean on the covariance with higher terms, which few replicates leave unknown. Nothing where a
    run decides its own fit or cells are empty; no term of which so many residuals are 0 that its
    covariance is singular, or whose variance rests on hardly more than one contrast; and none that
    weighs runs of equal leverage alike, as two-level terms of a balanced design: its variance is
    the pooled one, so that nothing is added to t.
    """
    even = float(np.ptp(fit.leverage)) < 1e-9
    if (even and fit.model.solved_by_transform) or not fit.model.full_rank:
        return {}
    V = hc3_covariance(fit)
    if V is None:
        return {}
    freedom = hc3_freedom(fit)
    p_values: dict[int, float] = {}
    for term in fit.model.sorted_terms:
        own = fit.model.columns(term)
        weight = np.abs(fit.maps[own])
        pooled = even and len(own) == 1 and float(np.ptp(weight)) < 1e-9 * float(weight.max())
        covariance = V[np.ix_(own, own)]
        known = freedom is None or float(freedom[own].min()) >= FEWEST_HC3_DF
        if pooled or not known or np.linalg.matrix_rank(covariance, hermitian=True) < len(own):
            continue
        f = wald(fit.coef[own], covariance) / len(own)
        p_values[term] = float(stats.f.sf(f, len(own), fit.df_residual))
    return p_values


# Terms as sums of squares of Q'y -----------------------------------------------------------------


def term_bases(fit: Fit) -> dict[int, Floats]:
    """Orthonormal columns of each term in the coordinates of Q, by the leading type of test."""
    terms = fit.model.sorted_terms
    if fit.orthogonal or fit.kind == "I":
        identity = np.eye(fit.model.rank)
        return {term: identity[:, fit.model.columns(term)] for term in terms}
    if fit.kind == "II":
        return {term: fit.type_two_basis(term) for term in terms}
    return {term: fit.term_basis(term) for term in terms}


def _statistics(fit: Fit, bases: Sequence[Floats], rows: Floats) -> Floats:
    """F of terms for every row of responses, or their mean squares where nothing is left.

    The rows hold the same values in different orders, so that they have the same sum of squares.
    """
    z = rows @ fit.Q
    if all(basis.shape[1] == 1 for basis in bases):
        own = (z @ np.column_stack(bases)) ** 2
    else:
        own = np.column_stack([((z @ b) ** 2).sum(axis=1) / b.shape[1] for b in bases])
    if fit.df_residual < 1:
        return np.asarray(own)
    total = float(rows[0] @ rows[0])
    rest = np.maximum(total - np.einsum("ij,ij->i", z, z), 1e-12 * total + 1e-300)
    return np.asarray(own / (rest / fit.df_residual)[:, None])


def _surprise(fit: Fit, f: Floats, df: Sequence[int]) -> Floats:
    """Return how far out statistics (… x terms) lie, comparable over terms of different df."""
    if len(set(df)) == 1:
        return f
    own = np.array(df)
    if fit.df_residual < 1:
        return np.asarray(-stats.chi2.sf(f * own / (fit.ss_total / (fit.n - 1)), own))
    return np.asarray(-stats.f.sf(f, own, fit.df_residual))


# Permutations ------------------------------------------------------------------------------------


class Permuted(NamedTuple):
    """Permutation p of every term in standard order."""

    alone: Floats
    largest: Floats  # adjusted for all terms at once
    method: str
    smallest: float  # the smallest p that there can be


def permutation(fit: Fit, permutations: int, seed: int) -> Permuted:
    """Permutation p of each term, ``(1 + #{F* >= F}) / (1 + N)``, exchanges within blocks.

    Freedman and Lane (1983): what the model without the term leaves of the response is exchanged,
    put back, and fitted anew, so that other terms stay where they are. The statistic is F against
    the residual. Where that is too much to do, the residuals of the full model are exchanged once
    for all terms (ter Braak 1992). A saturated design leaves no residual: there the responses
    themselves are exchanged, and the statistic is the mean square. All terms are exchanged alike:
    adjusted p is the share of exchanges in which the term that is farthest out is as far as this
    one, by F, or by its tail where degrees of freedom differ.
    """
    bases = term_bases(fit)
    df = [basis.shape[1] for basis in bases.values()]
    work = float(permutations) * fit.n * fit.model.rank * max(len(bases), 1)
    lane = fit.df_residual > 0 and work <= MOST_WORK
    shared = fit.residual if fit.df_residual > 0 else fit.u - fit.u.mean()
    starts = [fit.residual + fit.Q @ (basis @ (basis.T @ fit.rotated)) for basis in bases.values()]

    def drawn(orders: NDArray[np.uint16]) -> Floats:
        """Statistics of every term, exchanges x terms."""
        if lane:
            pairs = zip(bases.values(), starts, strict=True)
            return np.column_stack([_statistics(fit, [b], u[orders])[:, 0] for b, u in pairs])
        return _statistics(fit, list(bases.values()), shared[orders])

    observed = _statistics(fit, list(bases.values()), fit.u[None, :])[0]
    # Ties count although they are rounded differently, of what is nothing but rounding too.
    limit = observed - 1e-9 * observed.max(initial=0.0)
    far = _surprise(fit, limit, df)
    alone, largest = np.zeros(len(bases)), np.zeros(len(bases))
    block = None if fit.block is None else tuple(fit.block.tolist())
    for orders in _orders(block, fit.n, permutations, seed):
        values = drawn(orders)
        alone += (values >= limit).sum(axis=0)
        peak = np.sort(_surprise(fit, values, df).max(axis=1))
        largest += len(peak) - np.searchsorted(peak, far, side="left")
    method = "Freedman and Lane" if lane else "ter Braak" if fit.df_residual > 0 else "responses"
    p = [(1.0 + count) / (1.0 + permutations) for count in (alone, largest)]
    return Permuted(p[0], p[1], method, _smallest_p(fit, permutations))


@lru_cache(maxsize=1)  # all responses of the same runs are exchanged alike
def _orders(
    block: tuple[int, ...] | None, n: int, permutations: int, seed: int
) -> list[NDArray[np.uint16]]:
    """Exchanges x runs, in chunks: which run gives its response, one of the same block."""
    numbers = None if block is None else np.array(block)
    rng = np.random.default_rng(seed)
    sizes = [min(CHUNK, permutations - start) for start in range(0, permutations, CHUNK)]
    # Numbers of at most MOST_RUNS runs fit into 16 bits.
    return [exchanges(numbers, n, size, rng).astype(np.uint16) for size in sizes]


def _smallest_p(fit: Fit, permutations: int) -> float:
    """Return the smallest p of exchanges within blocks: one over their number."""
    sizes = [fit.n] if fit.block is None else np.bincount(fit.block).tolist()
    log_count = sum(math.lgamma(size + 1.0) for size in sizes)
    return max(1.0 / (1.0 + permutations), math.exp(-min(log_count, 700.0)))


# Wild bootstrap ----------------------------------------------------------------------------------


class Wild(NamedTuple):
    """Answers of the wild bootstrap, by term in standard order."""

    p: Floats  # over all terms at once
    critical: Floats  # quantile of √F* of each term alone, which is |t*| of one degree of freedom


def wild_bootstrap(fit: Fit, alpha: float, count: int, seed: int) -> Wild | None:
    """Wild bootstrap of F, which holds where the spread differs between runs (Wu 1986; Liu 1988).

    ``y* = ŷ + w e / sqrt(1 - h)`` with w = ±1 at random; F* is that of the deviation of a term's
    coefficients in y*. p is the share of draws whose farthest F* is at least as far as F. None
    where few residuals are left, and their signs alone leave the quantile undetermined.
    """
    free = 1.0 - fit.leverage
    if fit.df_residual < FEWEST_DF or (free < 1e-9).any():
        return None
    bases = term_bases(fit)
    df = [basis.shape[1] for basis in bases.values()]
    error = fit.residual / np.sqrt(free)
    total = float(error @ error)
    rng = np.random.default_rng(seed)
    z = (error * rng.choice(np.array([-1.0, 1.0]), size=(count, fit.n))) @ fit.Q
    rest = np.maximum(total - (z**2).sum(axis=1), 1e-12 * total) / fit.df_residual
    own = [((z @ basis) ** 2).sum(axis=1) / basis.shape[1] for basis in bases.values()]
    drawn = np.column_stack(own) / rest[:, None]
    ss = [float(((basis.T @ fit.rotated) ** 2).mean()) for basis in bases.values()]
    observed = np.array(ss) / (fit.ss_residual / fit.df_residual)
    peak = np.sort(_surprise(fit, drawn, df).max(axis=1))
    far = _surprise(fit, observed, df)
    p = (1.0 + count - np.searchsorted(peak, far, side="left")) / (1.0 + count)
    return Wild(np.asarray(p), np.quantile(np.sqrt(drawn), 1.0 - alpha, axis=0))


# Contrasts of trimmed means and medians ----------------------------------------------------------


def robust_contrasts(fit: Fit) -> tuple[dict[int, float], dict[int, float]]:
    """Effects from trimmed cell means (a quarter off each end) and from cell medians.

    Trimming needs four runs in every cell, medians three; with fewer they are the means. Of terms
    with one degree of freedom.
    """
    u = without_blocks(fit.u, fit.groups, fit.block)
    order = np.argsort(fit.groups, kind="stable")
    counts = np.bincount(fit.groups)
    groups = np.split(u[order], np.cumsum(counts)[:-1])
    trimmed: dict[int, float] = {}
    median: dict[int, float] = {}
    if counts.min() >= 4:
        trimmed = _cell_effects(fit, np.array([stats.trim_mean(g, TRIM) for g in groups]))
    if counts.min() >= 3:
        median = _cell_effects(fit, np.array([np.median(g) for g in groups]))
    return trimmed, median


def _cell_effects(fit: Fit, values: Floats) -> dict[int, float]:
    rows = fit.model.cell_rows(np.unique(fit.cells).tolist())[:, fit.model.fitted]
    coef = np.linalg.lstsq(rows, values, rcond=None)[0]
    single = [t for t in fit.model.sorted_terms if fit.model.df_asked(t) == 1]
    return {t: 2.0 * fit.unit * float(coef[fit.model.columns(t)[0]]) for t in single}


# All of them -------------------------------------------------------------------------------------


def estimate(response: FittedResponse) -> Robust | None:
    """Return the shown terms by every method, and where the conclusions differ; None unless asked.

    None where runs share seeds or whole plots, since every method takes them as independent, and
    where runs that should differ by chance are equal.
    """
    fit, options = response.fit, response.options
    if not options.robust or fit.n > MOST_RUNS or fit.grouped or fit.exact:
        return None
    wild = wild_bootstrap(fit, options.alpha, BOOTSTRAPS, options.seed)
    permuted = permutation(fit, options.permutations, options.seed)
    rows = _rows(response, permuted, wild)
    return Robust(
        rows=rows,
        alpha=options.alpha,
        permutations=options.permutations,
        method=permuted.method,
        bootstraps=BOOTSTRAPS if wild is not None else 0,
        seed=options.seed,
        sentence=_sentence([row.term for row in rows if not row.agree], options.alpha),
    )


def _rows(response: FittedResponse, permuted: Permuted, wild: Wild | None) -> tuple[RobustRow, ...]:
    fit, alpha = response.fit, response.alpha
    at = {term: i for i, term in enumerate(fit.model.sorted_terms)}
    effects = {e.mask: e for e in response.effects if fit.model.full_rank}
    p_hc3 = hc3(fit)
    hc3_holm = _holm(p_hc3)
    trimmed, median = robust_contrasts(fit)
    rows = []
    for test in response.tests:
        i, effect = at[test.mask], effects.get(test.mask)
        p_wild = None if wild is None else float(wild.p[i])
        reach = None
        if wild is not None and effect is not None:
            reach = float(wild.critical[i]) * residual_se(fit, test.mask)
        verdicts = _verdicts(
            fit, test, hc3_holm.get(test.mask), float(permuted.largest[i]), p_wild, permuted, alpha
        )
        rows.append(
            RobustRow(
                term=test.term,
                df=test.df,
                effect=None if effect is None else effect.effect,
                p=test.p,
                p_hc3=p_hc3.get(test.mask),
                p_permutation=float(permuted.alone[i]),
                p_maxt=float(permuted.largest[i]),
                p_wild=p_wild,
                boot_low=None if effect is None or reach is None else effect.effect - reach,
                boot_high=None if effect is None or reach is None else effect.effect + reach,
                trimmed=None if effect is None else trimmed.get(test.mask),
                median=None if effect is None else median.get(test.mask),
                verdicts=verdicts,
                agree=not {True, False} <= set(verdicts),
            )
        )
    return tuple(rows)


def residual_se(fit: Fit, term: int) -> float:
    """Standard error of an effect by the residual mean square."""
    scale = float(fit.coef_of((term,))[1][0])
    return 2.0 * fit.unit * math.sqrt(scale * fit.ss_residual / fit.df_residual)


def _holm(p: dict[int, float]) -> dict[int, float]:
    values = adjusted(np.array(list(p.values())))[0]
    return dict(zip(p, values.tolist(), strict=True))


def _verdicts(
    fit: Fit,
    test: TermTest,
    hc3_holm: float | None,
    largest: float,
    p_wild: float | None,
    permuted: Permuted,
    alpha: float,
) -> tuple[bool | None, ...]:
    """Return the verdicts by Holm, HC3, permutation and wild bootstrap; None if not possible.

    HC3 and the wild bootstrap go by single residuals, which say little where the model leaves half
    of them or less: with two runs in a cell they find a term, or they do not know.
    """
    weak = float(fit.leverage.max()) >= DECISIVE - 1e-9
    few = permuted.smallest >= alpha
    methods = ((test.p_holm, False), (hc3_holm, weak), (largest, few), (p_wild, weak))
    verdicts = [(_verdict(p, alpha), blind) for p, blind in methods]
    return tuple(None if verdict is False and blind else verdict for verdict, blind in verdicts)


def _verdict(p: float | None, alpha: float) -> bool | None:
    """Significant, or clearly not; None in between, where methods may differ by chance."""
    if p is None or alpha <= p <= 2.0 * alpha:
        return None
    return p < alpha


def _sentence(differ: Sequence[str], alpha: float) -> str:
    if not differ:
        level = cell_text(alpha, "short")
        return f"All methods agree on every term at {level}, adjusted for all terms."
    terms = ", ".join(differ[:8]) + (" …" if len(differ) > 8 else "")
    return f"The conclusion depends on the method for {terms}: treat these terms as open."
