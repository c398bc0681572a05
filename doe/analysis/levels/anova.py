"""Analysis of variance of terms with any degrees of freedom: types I, II and III, and HC3."""

from __future__ import annotations

import numpy as np
from msgspec import Struct
from scipy import linalg

from doe.analysis.anova import MOST_TYPE2, AnovaRow, anova_row, closing_rows
from doe.analysis.contrasts import Floats
from doe.analysis.effects import plain
from doe.analysis.levels.fit import LevelFit, wald
from doe.analysis.levels.model import BLOCK, CURVATURE
from doe.analysis.pvalues import adjusted, f_upper

MOST_DENSE = 2048
"""Runs for which a matrix of runs by runs is made."""
FEWEST_DF = 2.0
"""Degrees of freedom of HC3's variance below which its test finds too much: 0.08 for 0.05."""


class TermTest(Struct, frozen=True, gc=False):
    """One term with its test; adjusted p values are over the terms."""

    term: str
    df: int
    df_asked: int  # with runs in every cell; more than `df` where cells are empty
    ss: float
    percent: float  # of the total sum of squares
    f: float | None  # None in a saturated design
    p: float | None
    p_holm: float | None
    p_bh: float | None
    p_hc3: float | None  # None where not asked for, or where a run decides its own fit


class LevelAnova(Struct, frozen=True):
    """The analysis of variance with the model's summary figures."""

    rows: tuple[AnovaRow, ...]  # Block, terms, Curvature, Lack of fit, Error, Total
    kind: str  # the type of the rows: I, II or III
    type3: tuple[AnovaRow, ...] | None  # only where it exists and differs
    balanced: bool  # no term shares anything with another: all types agree
    error: str | None  # "pure error", "residual", or None in a saturated design
    r2: float | None
    r2_adjusted: float | None
    r2_predicted: float | None


def level_anova(fit: LevelFit, kind: str, sums: dict[int, float]) -> LevelAnova:
    """Table with an F test of every term against the error, and the model's summary figures.

    `sums` are the sums of squares of type `kind`.
    """
    type3 = None
    if kind == "II" and not fit.orthogonal and fit.matrix.full_rank:
        type3 = anova_rows(fit, sums_of_squares(fit, "III"))
    r2, adjusted, predicted = fit.r_squared()
    return LevelAnova(
        rows=anova_rows(fit, sums),
        kind=kind,
        type3=type3,
        balanced=fit.orthogonal,
        error=fit.error,
        r2=r2,
        r2_adjusted=adjusted,
        r2_predicted=predicted,
    )


def table_kind(fit: LevelFit) -> str:
    """Type II, a decomposition for every term; of too many III, or I where cells are empty."""
    if fit.orthogonal or len(fit.matrix.terms) <= MOST_TYPE2:
        return "II"
    return "III" if fit.matrix.full_rank else "I"


def tested_sources(fit: LevelFit) -> list[int]:
    """The terms that can be estimated, and the curvature where there are centre runs."""
    return [*fit.matrix.terms, *([CURVATURE] if fit.matrix.df(CURVATURE) else [])]


def sums_of_squares(fit: LevelFit, kind: str) -> dict[int, float]:
    """Sum of squares of every term and of the curvature, of u.

    Type I: each after those before it, ``Σ (q_j'u)²`` over its columns of Q. Type II: each after
    all that do not contain it. Type III: each after all others, ``b'[(X'X)^-1]_tt^-1 b``, which
    with contrasts that sum to zero compares means with every cell weighted alike (Yates 1934).
    """
    sources = tested_sources(fit)
    if kind == "I" or fit.orthogonal:
        return {s: float((fit.rotated[fit.columns(s)] ** 2).sum()) for s in sources}
    if kind == "II":
        return {s: float(((type_two_basis(fit, s).T @ fit.rotated) ** 2).sum()) for s in sources}
    return {s: fit.wald(fit.columns(s)) for s in sources}


def contains(source: int, other: int) -> bool:
    """Whether a term contains another: all its factors and more."""
    return source > 0 and other > 0 and source != other and source & other == other


def type_two_basis(fit: LevelFit, source: int) -> Floats:
    """Orthonormal columns, in the coordinates of Q, of a term after all that do not contain it."""
    groups = fit.matrix.fitted_source
    others = [s != source and not contains(s, source) for s in groups.tolist()]
    own = fit.columns(source)
    Q, _ = linalg.qr(np.column_stack([fit.R[:, others], fit.R[:, own]]), mode="economic")
    return np.asarray(Q[:, -len(own) :])


def anova_rows(fit: LevelFit, sums: dict[int, float]) -> tuple[AnovaRow, ...]:
    """Lines of the table: Block without F, terms, Curvature, Lack of fit, Error, Total."""
    rows = []
    if df := fit.matrix.df(BLOCK):
        ss = float((fit.rotated[fit.columns(BLOCK)] ** 2).sum())
        rows.append(anova_row(fit, fit.matrix.name(BLOCK), df, ss))
    for source, ss in sums.items():
        name = fit.matrix.name(source)
        rows.append(anova_row(fit, name, fit.matrix.df(source), ss, tested=True))
    return (*rows, *closing_rows(fit))


# Robust tests and adjusted p values --------------------------------------------------------------


def hc3_covariance(fit: LevelFit) -> Floats | None:
    """MacKinnon and White's covariance of the coefficients of u.

    ``(X'X)^-1 X' diag(e_i² / (1 - h_i)²) X (X'X)^-1``; None where a run decides its own fit.
    """
    free = 1.0 - fit.leverage
    if fit.df_residual < 1 or fit.exact or (free < 1e-9).any():
        return None
    maps = fit.scale @ fit.matrix.fitted_columns.T
    weighted = maps * (fit.residual / free)
    return np.asarray(weighted @ weighted.T)


def hc3_freedom(fit: LevelFit) -> Floats | None:
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
    weights = (fit.scale @ fit.matrix.fitted_columns.T) ** 2
    total = (weights / free).sum(axis=1)
    return np.asarray(total**2 / np.einsum("ci,ij,cj->c", weights, inner, weights, optimize=True))


def hc3_tests(fit: LevelFit) -> dict[int, float | None] | None:
    """P values with HC3 in the place of one variance for all: Wald's F on the residual's df.

    The hypotheses are those of type III, about means with every cell weighted alike: type II would
    lean on the covariance with higher terms, which few replicates leave unknown. None where a run
    decides its own fit or cells are empty, and of a term where so many residuals are 0 that its
    covariance is singular, or where its variance rests on hardly more than one contrast.
    """
    V = hc3_covariance(fit)
    if V is None or not fit.matrix.full_rank:
        return None
    free = hc3_freedom(fit)
    p_values: dict[int, float | None] = {}
    for source in tested_sources(fit):
        own = fit.columns(source)
        covariance = V[np.ix_(own, own)]
        known = free is None or float(free[own].min()) >= FEWEST_DF
        if not known or np.linalg.matrix_rank(covariance, hermitian=True) < len(own):
            p_values[source] = None
            continue
        f = wald(fit.coef[own], covariance) / len(own)
        p_values[source] = float(f_upper(np.array(f), len(own), fit.df_residual))
    return p_values


def term_tests(
    fit: LevelFit, sums: dict[int, float], *, robust: bool = False
) -> tuple[TermTest, ...]:
    """Every term with its F test, Holm's and Benjamini and Hochberg's p, and HC3 where asked."""
    rows = {row.source: row for row in anova_rows(fit, sums)}
    terms = [(mask, rows[fit.matrix.name(mask)]) for mask in fit.matrix.terms]
    p = np.array([np.nan if row.p is None else row.p for _, row in terms])
    p_holm, p_bh = map(plain, adjusted(p))
    p_hc3 = hc3_tests(fit) if robust else None
    return tuple(
        TermTest(
            term=row.source,
            df=row.df,
            df_asked=fit.matrix.df_asked(mask),
            ss=row.ss,
            percent=100.0 * sums[mask] / fit.ss_total,
            f=row.f,
            p=row.p,
            p_holm=p_holm[i],
            p_bh=p_bh[i],
            p_hc3=None if p_hc3 is None else p_hc3[mask],
        )
        for i, (mask, row) in enumerate(terms)
    )
