"""What a design can and cannot estimate, and what its F tests can see, before anything runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations, product

import numpy as np
from msgspec import Struct

from doe.analysis.anova import MOST_TYPE2
from doe.analysis.contrasts import MOST_COLUMNS, Floats
from doe.analysis.fit import pure_error
from doe.analysis.levels.coding import contrasts, factor_columns, term_columns
from doe.analysis.levels.layout import FactorColumn, LevelRuns
from doe.analysis.levels.model import (
    ModelMatrix,
    chosen_terms,
    empty_cells,
    margin_df,
    model_matrix,
    terms_of_order,
    width_of,
)
from doe.errors import listed
from doe.terms import MEAN, factors_in

SHOWN = 12
"""Empty cells that are named; of more the number is said."""
MOST_PATTERNS = 2000
"""Pairs of levels that are tried for the least favourable one; of more only the first are."""


class Confounding(Struct, frozen=True, gc=False):
    """Another term that a term cannot be told from, wholly or in part."""

    term: str
    strength: float  # what one unit of the other adds to this one: 1 is the whole of it


class TermPlan(Struct, frozen=True):
    """What the runs can say about a term."""

    term: str
    df: int  # degrees of freedom that it gets
    df_asked: int  # and that it would have with runs in every cell
    confounded: tuple[Confounding, ...]  # strongest first
    gvif: float | None  # generalised variance inflation; 1 where it shares nothing
    vif: float | None  # per degree of freedom, gvif^(1/df), as of a single column
    variance: float | None  # mean variance of its contrasts times n / σ²; 1 in a balanced design


class DesignReport(Struct, frozen=True):
    """What a design can and cannot estimate."""

    runs: int
    cells: int  # combinations that run
    of: int  # combinations that there are
    empty: tuple[str, ...]  # the first combinations that never run
    coefficients: int  # of the model asked for
    rank: int  # of them estimable
    df_residual: int
    df_pure: int  # from runs with the same levels
    balanced: bool
    terms: tuple[TermPlan, ...]  # of the model, by rising order
    inestimable: tuple[str, ...]  # asked for, and nothing of them can be estimated
    sentences: tuple[str, ...]


def design_report(layout: LevelRuns, order: int | None = None) -> DesignReport:
    """Rank, confounding and variance inflation of a model on a design, without any response.

    The model has all terms up to `order`, or up to the highest order at which none is confounded
    with another. Terms that are left out are looked at up to the next order: they bias what they
    are confounded with.
    """
    masks, broken = chosen_terms(layout, None, order)
    return matrix_report(model_matrix(layout, masks), broken)


def matrix_report(matrix: ModelMatrix, broken: Sequence[str]) -> DesignReport:
    """The report on a model that is built already; `broken` says what its choice breaks."""
    layout = matrix.layout
    links = _links(matrix)
    inflation = variance_inflation(matrix)
    plans = tuple(
        TermPlan(
            term=matrix.name(mask),
            df=matrix.df(mask),
            df_asked=matrix.df_asked(mask),
            confounded=links.get(mask, ()),
            gvif=inflation[mask][0] if mask in inflation else None,
            vif=inflation[mask][0] ** (1.0 / matrix.df(mask)) if mask in inflation else None,
            variance=inflation[mask][1] if mask in inflation else None,
        )
        for mask in matrix.masks
    )
    count, empty = empty_cells(layout, SHOWN)
    cells = np.unique(layout.cells, return_inverse=True)[1]
    every = math.prod(layout.sizes)
    return DesignReport(
        runs=layout.runs,
        cells=every - count,
        of=every,
        empty=tuple(layout.config(cell) for cell in empty),
        coefficients=len(matrix.source),
        rank=matrix.rank,
        df_residual=layout.runs - matrix.rank,
        df_pure=pure_error(np.zeros(layout.runs), cells, layout.block)[1],
        balanced=all(abs(value - 1.0) < 1e-9 for pair in inflation.values() for value in pair),
        terms=plans,
        inestimable=tuple(plan.term for plan in plans if plan.df == 0),
        sentences=(*broken, *_sentences(matrix, plans, count)),
    )


def variance_inflation(matrix: ModelMatrix) -> dict[int, tuple[float, float]]:
    """Generalised variance inflation of each term, and the mean variance of its contrasts.

    ``GVIF = |R_tt| |R_oo| / |R|`` with R the correlation of the coefficients without the mean,
    of the term t and of all others o (Fox and Monette 1992). The variance is
    ``n trace[(X'X)^-1]_tt / df``: 1 where every level and combination has equally many runs.
    """
    X, source = matrix.fitted_columns, matrix.fitted_source
    covariance = np.linalg.inv(X.T @ X)
    inside = source != MEAN
    spread = np.sqrt(np.diag(covariance))
    R = (covariance / np.outer(spread, spread))[np.ix_(inside, inside)]
    groups = source[inside]
    whole = float(np.linalg.slogdet(R)[1])
    inflation = {}
    for mask in matrix.terms:
        own = groups == mask
        parts = [np.linalg.slogdet(R[np.ix_(side, side)])[1] for side in (own, ~own)]
        gvif = float(np.exp(parts[0] + parts[1] - whole))
        columns = source == mask
        trace = float(np.trace(covariance[np.ix_(columns, columns)]))
        inflation[mask] = (gvif, len(X) * trace / int(columns.sum()))
    return inflation


# Confounding ------------------------------------------------------------------------------------


def _links(matrix: ModelMatrix) -> dict[int, tuple[Confounding, ...]]:
    """Of each term of the model: the terms that it cannot be told from, strongest first."""
    links: dict[int, dict[int, float]] = {}

    def link(term: int, other: int, strength: float) -> None:
        if strength > 1e-7 and other not in (term, MEAN) and term > 0:
            known = links.setdefault(term, {})
            known[other] = max(known.get(other, 0.0), strength)

    kept, lost = matrix.fitted_source, matrix.source[~matrix.kept]
    for j, term in enumerate(lost.tolist()):
        for other in np.unique(kept).tolist():
            # An empty cell ties an interaction to its own parts; that is no confounding.
            inside = other > 0 and other & term == other
            strength = float(np.abs(matrix.null[kept == other, j]).max())
            if not inside:
                link(term, other, strength)
                link(other, term, strength)
    for other, alias in _left_out(matrix):
        for term in matrix.terms:
            link(term, other, float(np.abs(alias[kept == term]).max()))
    return {
        term: tuple(
            Confounding(matrix.name(other), strength)
            for other, strength in sorted(known.items(), key=lambda pair: (-pair[1], pair[0]))
        )
        for term, known in links.items()
    }


def _left_out(matrix: ModelMatrix) -> list[tuple[int, Floats]]:
    """Terms outside the model up to the next order, with their alias matrix.

    ``A = (X'X)^-1 X'Z``: the expectation of the coefficients is ``b + A g`` where the columns Z
    that were left out have coefficients g (Box and Wilson 1951).
    """
    layout = matrix.layout
    highest = max((mask.bit_count() for mask in matrix.masks), default=0)
    count = len(layout.factors)
    others: list[int] = []
    for order in range(1, min(highest + 1, count) + 1):
        if math.comb(count, order) > MOST_COLUMNS:
            break
        others += [mask for mask in terms_of_order(count, order) if mask not in matrix.masks]
    if not others or sum(width_of(layout, mask) for mask in others) > MOST_COLUMNS:
        return []
    columns = factor_columns(layout)
    X = matrix.fitted_columns
    Z = [term_columns(columns, mask) for mask in others]
    alias = np.linalg.lstsq(X, np.column_stack(Z), rcond=None)[0]
    ends = np.cumsum([part.shape[1] for part in Z])[:-1]
    return list(zip(others, np.split(alias, ends, axis=1), strict=True))


def _sentences(matrix: ModelMatrix, plans: Sequence[TermPlan], empty: int) -> tuple[str, ...]:
    layout = matrix.layout
    sentences = []
    if empty:
        verb = "has" if empty == 1 else "have"
        sentences.append(f"{empty} of {math.prod(layout.sizes)} combinations {verb} no run.")
    masks = {matrix.name(mask): mask for mask in matrix.masks}
    for plan in plans:
        if plan.df == plan.df_asked:
            continue
        share = f"{plan.term} has {plan.df} of its {plan.df_asked} degrees of freedom"
        partners = [c.term for c in plan.confounded]
        own = margin_df(layout, masks[plan.term])
        if plan.df < own and partners:
            sentences.append(f"{share}: it is confounded with {listed(partners, 4)}.")
        else:
            sentences.append(f"{share}: the other combinations of its levels never run.")
    biased = [
        p for p in plans if p.df == p.df_asked and any(c.strength > 0.1 for c in p.confounded)
    ]
    for plan in biased[:SHOWN]:
        strong = [c for c in plan.confounded if c.strength > 0.1]
        whole = "confounded" if strong[0].strength > 1.0 - 1e-9 else "partly confounded"
        sentences.append(f"{plan.term} is {whole} with {listed([c.term for c in strong], 4)}.")
    return tuple(sentences)


# Power ------------------------------------------------------------------------------------------


class TermPower(Struct, frozen=True, gc=False):
    """A term of which the runs can estimate everything, as far as its power depends on it."""

    term: str
    df: int
    noncentrality: float  # of F, per (effect / σ)², for the least favourable levels


def term_powers(layout: LevelRuns, order: int | None = None) -> tuple[TermPower, ...]:
    """How the noncentrality of each term's F test follows from the size of its effect.

    An effect δ of a term is what it is with two levels: the product of one pair of levels of each
    of its factors has the mean δ/2 on one side and -δ/2 on the other, and the further levels have
    none of it. With coefficients b of this pattern and the covariance ``σ² V`` of the term's
    coefficients in the model of its type II test, ``λ = b' V^-1 b / σ²``: ``N δ² Π (2 / levels) /
    (4 σ²)`` in a balanced design. The pair of levels is that with the smallest λ.
    """
    matrix = model_matrix(layout, chosen_terms(layout, None, order)[0])
    whole = [mask for mask in matrix.terms if matrix.df(mask) == matrix.df_asked(mask)]
    if len(matrix.terms) > MOST_TYPE2:
        return ()
    return tuple(
        TermPower(matrix.name(mask), matrix.df(mask), _noncentrality(matrix, mask))
        for mask in whole
    )


def _noncentrality(matrix: ModelMatrix, mask: int) -> float:
    source = matrix.fitted_source
    inside = np.array([s == mask or s & mask != mask or s < 0 for s in source.tolist()])
    X = matrix.fitted_columns[:, inside]
    own = source[inside] == mask
    others = X[:, ~own]
    Z = X[:, own]
    rest = Z - others @ np.linalg.lstsq(others, Z, rcond=None)[0]
    information = rest.T @ rest
    patterns = product(*(_pairs(matrix.layout.factors[i]) for i in factors_in(mask)))
    least = np.inf
    for _, pattern in zip(range(MOST_PATTERNS), patterns, strict=False):
        b = np.array([0.5])
        for part in pattern:
            b = (b[:, None] * part[None, :]).reshape(-1)
        least = min(least, float(b @ information @ b))
    return least


def _pairs(factor: FactorColumn) -> list[Floats]:
    """Coefficients of +1 at one level and -1 at another, for every two levels."""
    columns = contrasts(factor)
    coefficients = []
    for low, high in combinations(range(len(columns)), 2):
        values = np.zeros(len(columns))
        values[[low, high]] = -1.0, 1.0
        coefficients.append(columns.T @ values / len(columns))  # C'C = L I
    return coefficients
