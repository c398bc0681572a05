"""Permutation tests of terms: Freedman and Lane's, within blocks."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from doe.analysis.contrasts import Floats, exchanges
from doe.analysis.levels.anova import table_kind, type_two_basis
from doe.analysis.levels.fit import LevelFit

CHUNK = 1000
MOST_WORK = 2e11
"""Multiplications beyond which the responses are exchanged once for all terms."""


class PermutationTest(Struct, frozen=True, gc=False):
    """One term by permutation."""

    term: str
    p: float


class Permutations(Struct, frozen=True):
    """Permutation p of every term."""

    tests: tuple[PermutationTest, ...]
    method: str  # "Freedman and Lane", or "responses" exchanged as they are
    permutations: int
    seed: int


def permutation_tests(fit: LevelFit, permutations: int, seed: int = 42) -> Permutations:
    """Permutation p of each term, ``(1 + #{F* >= F}) / (1 + N)``, exchanges within blocks.

    Freedman and Lane (1983): what the model without the term leaves of the response is exchanged,
    put back, and fitted anew, so that other terms stay where they are. The statistic is F against
    the residual. A saturated design leaves nothing, and a large one too much to do: there the
    responses themselves are exchanged, and without a residual the statistic is the sum of squares.
    """
    terms = fit.matrix.terms
    work = float(permutations) * fit.n * fit.matrix.rank * max(len(terms), 1)
    lane = fit.df_residual > 0 and work <= MOST_WORK
    bases = [fit.Q @ _basis(fit, mask) for mask in terms]
    starts = [_left(fit, basis) if lane else fit.u - fit.u.mean() for basis in bases]
    observed = np.array(
        [_statistic(fit, b, s[None, :])[0] for b, s in zip(bases, starts, strict=True)]
    )
    # Ties count although they are rounded differently, of what is nothing but rounding too.
    limit = observed - 1e-9 * observed.max(initial=0.0)
    rng = np.random.default_rng(seed)
    beyond = np.zeros(len(terms))
    for start in range(0, permutations, CHUNK):
        count = min(CHUNK, permutations - start)
        order = exchanges(fit.matrix.layout.block, fit.n, count, rng)
        for i, (basis, values) in enumerate(zip(bases, starts, strict=True)):
            beyond[i] += (_statistic(fit, basis, values[order]) >= limit[i]).sum()
    p = (1.0 + beyond) / (1.0 + permutations)
    tests = zip((fit.matrix.name(mask) for mask in terms), p.tolist(), strict=True)
    method = "Freedman and Lane" if lane else "responses"
    return Permutations(tuple(PermutationTest(*t) for t in tests), method, permutations, seed)


def _basis(fit: LevelFit, mask: int) -> Floats:
    """The term's columns after those that do not contain it, in the coordinates of Q."""
    if fit.orthogonal or table_kind(fit) != "II":
        return np.asarray(np.eye(fit.matrix.rank)[:, fit.columns(mask)])
    return type_two_basis(fit, mask)


def _left(fit: LevelFit, basis: Floats) -> Floats:
    """What the model without the term leaves: the residual and the term's own part."""
    return np.asarray(fit.residual + basis @ (basis.T @ fit.u))


def _statistic(fit: LevelFit, basis: Floats, rows: Floats) -> Floats:
    """F of a term against the residual, or its sum of squares, for every row of responses."""
    own = ((rows @ basis) ** 2).sum(axis=1)
    if fit.df_residual < 1:
        return np.asarray(own)
    total = (rows**2).sum(axis=1)
    rest = np.maximum(total - ((rows @ fit.Q) ** 2).sum(axis=1), 1e-12 * total + 1e-300)
    return np.asarray(own / basis.shape[1] / (rest / fit.df_residual))
