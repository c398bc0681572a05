"""Items that were counted: a quasi-binomial model of the same terms, beside the least squares.

Least squares of log odds weigh all runs alike, and the log odds of a share near none or all vary
most. This model weighs runs by their counts, ``var k = φ N p (1 - p)``, with the dispersion φ from
the runs (McCullagh and Nelder 1989, chapter 4): seeds make them vary more than drawn items would,
or less where all are tested with the same items. Half an item is added to either side, as on the
scale of log odds, so that a configuration that gets all items right has finite odds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from doe.analysis import distributions as stats
from doe.analysis.contrasts import Floats
from doe.analysis.fitted import FittedResponse
from doe.analysis.pvalues import adjusted, none_for_nan, significant, t_critical
from doe.analysis.scales.log import ratio_of
from doe.errors import listed

if TYPE_CHECKING:
    from statsmodels.genmod.generalized_linear_model import GLMResults

MOST_TERMS = 128
"""Each is tested by a fit without it."""
NAMED = 8


class OddsTerm(Struct, frozen=True, gc=False):
    """A term with the F test of its deviance, and the ratio of odds that it makes."""

    term: str
    df: int
    f: float
    p: float
    p_holm: float
    p_bh: float
    odds_ratio: float | None  # at high over at low; None of a term with more degrees of freedom
    low: float | None
    high: float | None


class QuasiBinomial(Struct, frozen=True):
    """The terms of a response that counts items."""

    items: int
    dispersion: float  # φ: 1 where items are drawn anew in every run
    df: int
    terms: tuple[OddsTerm, ...]
    agree: bool  # whether least squares call the same terms significant
    sentence: str


def estimate(response: FittedResponse) -> QuasiBinomial | None:
    """Fit the model; None unless items were counted and runs are left for the dispersion."""
    fit, share = response.fit, response.transform.share
    own = [test for test in response.tests if fit.model.df(test.mask) > 0]
    if not share.items or fit.df_residual < 1 or fit.exact or not 0 < len(own) <= MOST_TERMS:
        return None
    if response.runs.looked is not None or fit.grouped:
        return None
    X, source = fit.model.fitted_columns, fit.model.fitted_source
    counts = np.clip(response.observed / share.top, 0.0, 1.0) * share.items
    full = _fitted(counts, X, share.items)
    dispersion = full.pearson_chi2 / fit.df_residual
    if not dispersion > 0.0:
        return None
    F = np.array(
        [
            (_fitted(counts, X[:, source != test.mask], share.items).deviance - full.deviance)
            / (fit.model.df(test.mask) * dispersion)
            for test in own
        ]
    )
    df = np.array([fit.model.df(test.mask) for test in own])
    p = np.asarray(stats.f.sf(np.maximum(F, 0.0), df, fit.df_residual))
    effects = {effect.mask for effect in response.effects}
    reach = t_critical(response.alpha, fit.df_residual)
    rows = []
    for test, f, *ps in zip(
        own, F.tolist(), none_for_nan(p), *map(none_for_nan, adjusted(p)), strict=True
    ):
        odds: tuple[float | None, ...] = (None, None, None)
        if test.mask in effects:
            at = int(fit.model.columns(test.mask)[0])
            size, error = 2.0 * full.params[at], 2.0 * full.bse[at] * np.sqrt(dispersion)
            odds = tuple(ratio_of(float(size + side * reach * error)) for side in (0, -1, 1))
        rows.append(OddsTerm(test.term, fit.model.df(test.mask), f, *ps, *odds))
    agreement = _agreement(rows, response)
    return QuasiBinomial(share.items, float(dispersion), fit.df_residual, tuple(rows), *agreement)


def _fitted(counts: Floats, X: Floats, items: int) -> GLMResults:
    """Maximum likelihood of counts of `items`, half an item added to either side."""
    from statsmodels.genmod.families import Binomial
    from statsmodels.genmod.generalized_linear_model import GLM

    both = np.column_stack([counts + 0.5, items - counts + 0.5])
    return GLM(both, X, family=Binomial()).fit(scale=1.0, tol=1e-12)


def _agreement(rows: Sequence[OddsTerm], response: FittedResponse) -> tuple[bool, str]:
    """Return whether the two ways call the same terms significant, and on which they differ."""
    alpha = response.alpha
    least = {test.term for test in response.tests if significant(test.p_holm, alpha)}
    counted = {row.term for row in rows if significant(row.p_holm, alpha)}
    only = [row.term for row in rows if row.term in counted ^ least]
    if not only:
        return True, "Counted items and least squares call the same terms significant (Holm)."
    parts = []
    for called, words in ((counted, "by counted items"), (least, "by least squares")):
        names = [term for term in only if term in called]
        parts += [f"{listed(names, NAMED)} {words} alone"] if names else []
    return False, (
        f"Significant after Holm's adjustment {', '.join(parts)}; where shares lie near none "
        "or all, the counted items have the right spread."
    )
