"""Report on a design before anything runs: what it can estimate, and what its F tests detect."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations, product

import numpy as np
from msgspec import Struct

from doe.analysis.coding import contrasts, run_columns, term_columns, term_width
from doe.analysis.contrasts import MOST_COLUMNS, Floats
from doe.analysis.dataset import FactorColumn, Runs
from doe.analysis.fit import MOST_TYPE2, pure_error
from doe.analysis.model import Model, chosen_terms, empty_cells, make_model, margin_df
from doe.errors import listed
from doe.terms import MEAN, by_order, contains, factors_in, is_squared, terms_of_order

SHOWN = 12
"""Empty cells that are named; of more the number is said."""
MOST_PATTERNS = 2000
"""Pairs of levels that are tried for the least favourable one; of more only the first are."""


class Confounding(Struct, frozen=True, gc=False):
    """Another term that a term cannot be told from, wholly or in part."""

    term: str
    strength: float  # what one unit of the other adds to this one: 1 is the whole of it
    sign: int = 1  # -1 where one column each has opposite signs


class TermPlan(Struct, frozen=True):
    """Estimability of a term."""

    term: str
    df: int  # degrees of freedom that it gets
    df_asked: int  # and that it would have with runs in every cell
    confounded: tuple[Confounding, ...]  # strongest first
    gvif: float | None  # generalised variance inflation; 1 where it shares nothing
    vif: float | None  # per degree of freedom, gvif^(1/df), as of a single column
    variance: float | None  # mean variance of its contrasts times n / σ²; 1 in a balanced design
    mask: int = 0


class DesignReport(Struct, frozen=True):
    """Report on what a design can and cannot estimate."""

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


def design_report(
    runs: Runs, order: int | None = None, terms: Sequence[int] | None = None
) -> DesignReport:
    """Rank, confounding and variance inflation of a model on a design, without any response.

    The model has `terms`, or all up to `order`, or those that suit the runs. Terms that are left
    out are looked at up to the next order: they bias what they are confounded with.
    """
    return model_report(make_model(runs, terms or chosen_terms(runs, None, order)))


def model_report(model: Model) -> DesignReport:
    """Return the report on a model that is built already."""
    runs = model.runs
    lost = (*model.with_blocks, *model.inestimable)
    links = _links(model)
    inflation = variance_inflation(model)
    plans = tuple(
        TermPlan(
            term=model.name(term),
            df=model.df(term),
            df_asked=term_width(runs.factors, term),
            confounded=links.get(term, ()),
            gvif=inflation[term][0] if term in inflation else None,
            vif=inflation[term][0] ** (1.0 / model.df(term)) if term in inflation else None,
            variance=inflation[term][1] if term in inflation else None,
            mask=term,
        )
        for term in sorted((*model.terms, *lost), key=by_order)
    )
    count, empty = empty_cells(runs, SHOWN)
    groups = np.unique(runs.cells, return_inverse=True)[1]
    return DesignReport(
        runs=runs.count,
        cells=runs.every - count,
        of=runs.every,
        empty=tuple(runs.config(cell) for cell in empty),
        coefficients=len(model.source) + sum(term_width(runs.factors, term) for term in lost),
        rank=model.rank,
        df_residual=runs.count - model.rank,
        df_pure=pure_error(np.zeros(runs.count), groups, runs.block)[1],
        balanced=all(abs(value - 1.0) < 1e-9 for pair in inflation.values() for value in pair),
        terms=plans,
        inestimable=tuple(model.name(term) for term in lost),
        sentences=(*_hierarchy(model), *_sentences(model, plans, count)),
    )


def _hierarchy(model: Model) -> list[str]:
    """Return a sentence for each term whose parts are not all in the model."""
    return [
        f"{model.name(term)} is in the model without {', '.join(map(model.name, absent))}: the "
        "hierarchy is broken, and its test depends on how the levels are coded."
        for term, absent in model.broken
    ]


def variance_inflation(model: Model) -> dict[int, tuple[float, float]]:
    """Generalised variance inflation of each term, and the mean variance of its contrasts.

    ``GVIF = |R_tt| |R_oo| / |R|`` with R the correlation of the coefficients without the mean,
    of the term t and of all others o (Fox and Monette 1992). The variance is
    ``n trace[(X'X)^-1]_tt / df``: 1 where every level and combination has equally many runs.
    """
    if model.solved_by_transform:
        return dict.fromkeys(model.terms, (1.0, 1.0))
    X, source = model.fitted_columns, model.fitted_source
    covariance = np.linalg.inv(X.T @ X)
    inside = source != MEAN
    spread = np.sqrt(np.diag(covariance))
    R = (covariance / np.outer(spread, spread))[np.ix_(inside, inside)]
    groups = source[inside]
    whole = float(np.linalg.slogdet(R)[1])
    inflation = {}
    for mask in model.terms:
        own = groups == mask
        parts = [np.linalg.slogdet(R[np.ix_(side, side)])[1] for side in (own, ~own)]
        gvif = float(np.exp(parts[0] + parts[1] - whole))
        columns = source == mask
        trace = float(np.trace(covariance[np.ix_(columns, columns)]))
        inflation[mask] = (gvif, len(X) * trace / int(columns.sum()))
    return inflation


# Confounding ------------------------------------------------------------------------------------


def _links(model: Model) -> dict[int, tuple[Confounding, ...]]:
    """Return for each term of the model the terms that it is confounded with, strongest first."""
    links: dict[int, dict[int, tuple[float, int]]] = {}
    if model.solved_by_transform and len(model.terms) == model.runs.every - 1:
        return {}

    def link(term: int, other: int, added: Floats) -> None:
        strength = float(np.abs(added).max())
        if strength > 1e-7 and other not in (term, MEAN) and term > 0:
            known = links.setdefault(term, {})
            sign = -1 if added.size == 1 and added.sum() < 0 else 1
            known[other] = max(known.get(other, (0.0, 1)), (strength, sign))

    kept, lost = model.fitted_source, model.source[~model.fitted]
    for j, term in enumerate(lost.tolist()):
        for other in np.unique(kept).tolist():
            # An empty cell ties an interaction to its own parts; that is no confounding.
            inside = other > 0 and (other == term or contains(term, other))
            added = model.null[kept == other, j]
            if not inside:
                link(term, other, added)
                link(other, term, added)
    gone = {*model.with_blocks, *model.inestimable}
    for other, alias in _left_out(model):
        for term in model.terms:
            added = alias[kept == term]
            if other not in gone or not contains(other, term):
                link(term, other, added)
                if other in gone:
                    link(other, term, added)
    return {
        term: tuple(
            Confounding(model.name(other), *added)
            for other, added in sorted(known.items(), key=_strongest_first)
        )
        for term, known in links.items()
    }


def _strongest_first(link: tuple[int, tuple[float, int]]) -> tuple[float, tuple[int, int]]:
    """Key that sorts confounded terms by strength, and equals by rising order."""
    return -round(link[1][0], 9), by_order(link[0])


def _left_out(model: Model) -> list[tuple[int, Floats]]:
    """Terms outside the model up to the next order, with their alias matrix.

    ``A = (X'X)^-1 X'Z``: the expectation of the coefficients is ``b + A g`` where the columns Z
    that were left out have coefficients g (Box and Wilson 1951).
    """
    runs = model.runs
    highest = max((mask.bit_count() for mask in model.terms), default=0)
    count = len(runs.factors)
    others: list[int] = []
    terms = set(model.terms)
    for degree in range(1, min(highest + 1, count) + 1):
        if math.comb(count, degree) > MOST_COLUMNS:
            break
        others += [term for term in terms_of_order(count, degree) if term not in terms]
    if not others or sum(term_width(runs.factors, mask) for mask in others) > MOST_COLUMNS:
        return []
    columns = run_columns(runs)
    X = model.fitted_columns
    Z = [term_columns(columns, mask) for mask in others]
    alias = np.linalg.lstsq(X, np.column_stack(Z), rcond=None)[0]
    ends = np.cumsum([part.shape[1] for part in Z])[:-1]
    return list(zip(others, np.split(alias, ends, axis=1), strict=True))


def _sentences(model: Model, plans: Sequence[TermPlan], empty: int) -> tuple[str, ...]:
    runs = model.runs
    sentences = []
    if empty and not runs.has_surface and all(factor.degree is None for factor in runs.factors):
        verb = "has" if empty == 1 else "have"
        sentences.append(f"{empty} of {runs.every} combinations {verb} no run.")
    never_run: list[str] = []
    for plan in plans:
        if plan.df == plan.df_asked or plan.mask in model.with_blocks:
            continue
        share = f"{plan.term} has {plan.df} of its {plan.df_asked} degrees of freedom"
        partners = [c.term for c in plan.confounded]
        own = margin_df(runs, plan.mask)
        if plan.df < own and partners:
            sentences.append(f"{share}: it is confounded with {listed(partners, 4)}.")
        else:
            few = f"{plan.term} {plan.df} of {plan.df_asked}"
            never_run.append(few if never_run else share)
    if never_run:
        whose = "its" if len(never_run) == 1 else "their"
        told = listed(never_run, SHOWN)
        sentences.append(f"{told}: no run has the other combinations of {whose} levels.")
    biased = [
        p for p in plans if p.df == p.df_asked and any(c.strength > 0.1 for c in p.confounded)
    ]
    if biased and any(factor.is_curve for factor in runs.factors):  # values that cross nowhere
        names = listed([plan.term for plan in biased], SHOWN)
        return (*sentences, f"Partly confounded with terms that are left out: {names}.")
    links: dict[str, list[str]] = {}
    for plan in biased[:SHOWN]:
        strong = [c for c in plan.confounded if c.strength > 0.1]
        kind = "confounded" if strong[0].strength > 1.0 - 1e-9 else "partly confounded"
        found = links.setdefault(kind, [])
        verb = "" if found else f" is {kind}"
        found.append(f"{plan.term}{verb} with {listed([c.term for c in strong], 4)}")
    sentences += [f"{'; '.join(found)}." for found in links.values()]
    return tuple(sentences)


# Power ------------------------------------------------------------------------------------------


class TermPower(Struct, frozen=True, gc=False):
    """A term of which the runs can estimate everything, as far as its power depends on it."""

    term: str
    df: int
    noncentrality: float  # of F, per (effect / σ)², for the least favourable levels


def term_powers(runs: Runs, order: int | None = None) -> tuple[TermPower, ...]:
    """Return how the noncentrality of each term's F test follows from the size of its effect.

    An effect δ of a term is what it is with two levels: the product of one pair of levels of each
    of its factors has the mean δ/2 on one side and -δ/2 on the other, and the further levels have
    none of it. With coefficients b of this pattern and the covariance ``σ² V`` of the term's
    coefficients in the model of its leading test, ``λ = b' V^-1 b / σ²``: ``N δ² Π (2 / levels) /
    (4 σ²)`` in a balanced design. The pair of levels is that with the smallest λ. The effect of a
    square is how far the ends of the range stand above its middle.
    """
    model = make_model(runs, chosen_terms(runs, None, order))
    whole = [t for t in model.terms if model.df(t) == model.df_asked(t)]
    if model.solved_by_transform:
        return tuple(TermPower(model.name(mask), 1, runs.count / 4.0) for mask in whole)
    if len(model.terms) > MOST_TYPE2:
        return ()
    return tuple(
        TermPower(model.name(mask), model.df(mask), _noncentrality(model, mask)) for mask in whole
    )


def _noncentrality(model: Model, mask: int) -> float:
    source = model.fitted_source
    inside = np.array([s < 0 or model.full_rank or not contains(s, mask) for s in source.tolist()])
    X = model.fitted_columns[:, inside]
    own = source[inside] == mask
    others = X[:, ~own]
    Z = X[:, own]
    rest = Z - others @ np.linalg.lstsq(others, Z, rcond=None)[0]
    information = rest.T @ rest
    factors = model.runs.factors
    patterns = product(
        *(
            [np.array([2.0])] if is_squared(mask, i) else _pairs(factors[i])
            for i in factors_in(mask)
        )
    )
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
