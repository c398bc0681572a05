"""Covariates: what they account for, what that gains, and when they may not be used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from msgspec import Struct

from doe.analysis.anova import sums_of_squares
from doe.analysis.dataset import Covariate, Runs
from doe.analysis.effects import half_normal_plot, term_tests
from doe.analysis.fit import Fit, fit, refitted
from doe.analysis.fitted import FittedResponse
from doe.analysis.model import make_model
from doe.analysis.pvalues import quotient, signed_quotient, t_two_sided
from doe.errors import listed
from doe.numbers import cell_text, to_figures
from doe.terms import order, terms_up_to

ALPHA = 0.05
"""Level, over main effects and two-factor interactions, at which a factor changes a covariate."""
GAIN = 1.02
"""Runs that an adjustment is worth, over those there are, from which it is called a gain."""


class Adjustment(Struct, frozen=True):
    """One covariate: how the response, on the analysed scale, changes with it."""

    name: str
    slope: float  # per unit of the covariate
    se: float | None
    p: float | None


class Covariates(Struct, frozen=True):
    """Covariates that the analysis adjusts for, and the gain."""

    rows: tuple[Adjustment, ...]
    sigma_before: float | None  # of the same model without covariates
    sigma: float | None
    worth: float | None  # so many times the runs would have done the same without them
    sentence: str


def estimate(response: FittedResponse) -> Covariates | None:
    """Compare the error with that of the same model without covariates; None where it has none.

    An adjustment is worth the mean variance of effects without it over that with it: the error
    falls, and the slope takes a little of what the runs say of the effects.
    """
    full, own = response.fit, response.fit.model.adjusting
    if not len(own):
        return None
    plain = replace(full.runs, covariates=())
    model = make_model(plain, full.model.terms, curved=not full.pooled)
    before = refitted(full, model=model)
    rows = tuple(
        _adjustment(full, position, covariate.name)
        for position, covariate in zip(own.tolist(), full.runs.covariates, strict=True)
    )
    worth = quotient(_variance(before), _variance(full))
    return Covariates(
        rows, before.sigma, full.sigma, worth, _sentence(rows, before.sigma, full.sigma, worth)
    )


def _adjustment(full: Fit, position: int, name: str) -> Adjustment:
    slope = full.unit * float(full.coef[position])
    if full.df_error < 1:
        return Adjustment(name, slope, None, None)
    se = full.unit * float(np.sqrt(full.scale[position, position] * full.ms_error))
    t = signed_quotient(slope, se)
    p = None if t is None else float(t_two_sided(np.array(t), full.df_error))
    return Adjustment(name, slope, se, p)


def _variance(full: Fit) -> float:
    """Mean variance of the coefficients of terms, of u."""
    own = np.isin(full.model.fitted_source, full.model.terms)
    scale = full.scale if full.scale.ndim == 1 else np.diag(full.scale)
    return float(scale[own].mean() * full.ms_error)


def _sentence(
    rows: Sequence[Adjustment], before: float | None, sigma: float | None, worth: float | None
) -> str:
    names = listed([row.name for row in rows], 4)
    if worth is None or before is None or sigma is None:
        return f"Adjusted for {names}; without an error estimate the gain is not known."
    sigmas = f"from {to_figures(before, 3)} to {to_figures(sigma, 3)}"
    if worth < GAIN:
        return f"Adjusting for {names} gains nothing (σ {sigmas}); leave it out."
    return (
        f"Adjusting for {names} reduces σ {sigmas}, which is worth {to_figures(worth, 2)} times "
        "the runs."
    )


# What may be adjusted for -------------------------------------------------------------------------


def refusal(runs: Runs, terms: Sequence[int]) -> str | None:
    """Return why these runs cannot be adjusted for their covariates; None where they can.

    A factor that changes a covariate acts on the response through it, and the adjustment would take
    that part of its effect away. So each covariate is analysed as a response itself.
    """
    if not runs.covariates:
        return None
    if runs.stratified or runs.seeding is not None:
        return (
            "covariates are for runs with one error, and these share whole plots, stages, random "
            "conditions or streams of seeds; leave the covariates out"
        )
    plain = replace(runs, covariates=())
    for i, covariate in enumerate(runs.covariates):
        if reason := _refused(plain, covariate, runs.covariates[:i]):
            return reason
    adjusted, whole = make_model(runs, terms), make_model(plain, terms)
    if adjusted.rank < whole.rank + len(runs.covariates) or adjusted.rank >= runs.count:
        return (
            f"{listed([c.name for c in runs.covariates], 4)} cannot be adjusted for: the model "
            "leaves no runs to estimate the slope from; choose fewer terms, or add replicates"
        )
    return None


def _refused(runs: Runs, covariate: Covariate, others: Sequence[Covariate]) -> str | None:
    """Return why one covariate cannot be adjusted for, beside others that can."""
    name, values = covariate
    if not np.ptp(values) > 0.0:
        return f"{name} is the same in every run, so there is nothing to adjust for"
    if not len(make_model(replace(runs, covariates=(covariate,)), ()).adjusting):
        return f"{name} differs between {runs.block_name}s alone, within which runs are compared"
    if len(make_model(replace(runs, covariates=(*others, covariate)), ()).adjusting) <= len(others):
        return f"{name} is determined by {listed([other.name for other in others], 4)}"
    count = len(runs.factors)
    tested = fit(values, make_model(runs, terms_up_to(count, min(2, count))), name=name)
    if tested.exact:
        return f"{name} is the same in all runs of a configuration: the factors decide it"
    sums = sums_of_squares(tested, tested.kind)
    tests = [t for t in term_tests(tested, sums, half_normal_plot(tested, ALPHA)) if t.p_holm]
    surest = min(tests, key=lambda test: test.p_holm or 0.0, default=None)
    if surest is not None and (surest.p_holm or 0.0) < ALPHA:
        how = "differs between levels of" if order(surest.mask) == 1 else "depends on"
        return (
            f"{name} {how} {surest.term} (Holm-adjusted p {cell_text(surest.p_holm, 'p')}), so "
            "adjusting for it would remove a part of the factors' effects; a covariate must be "
            "measured before any factor acts"
        )
    return None
