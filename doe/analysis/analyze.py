"""One response, everything: the composition of all analyses into one frozen value."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from doe.analysis.anova import (
    Anova,
    anova,
    error_warnings,
    seed_warnings,
    sums_of_squares,
)
from doe.analysis.best import Best, Prediction, best, cell_predictions
from doe.analysis.both_scales import BothScales, both_scales, log_possible
from doe.analysis.confirm import Confirmation, WinProbability, beats, confirm
from doe.analysis.contrasts import MOST_RUNS
from doe.analysis.dataset import Dataset, FactorColumn
from doe.analysis.design_report import DesignReport, model_report
from doe.analysis.diagnostics import Diagnostics, diagnose, shows_spread, spread_checks
from doe.analysis.effects import (
    Curvature,
    Effect,
    HalfNormal,
    NumericPart,
    ScaleEffect,
    TermTest,
    back,
    curvature,
    half_normal_plot,
    numeric_parts,
    term_tests,
    two_level_effects,
)
from doe.analysis.estimators import estimate_all
from doe.analysis.estimators.covariates import refusal
from doe.analysis.fit import Fit, fit
from doe.analysis.fitted import FittedResponse
from doe.analysis.lenth import Lenth
from doe.analysis.means import (
    Interaction,
    LevelDifference,
    LevelMean,
    as_ratio,
    interactions,
    level_differences,
    level_means,
    means_at,
    on_response_scale,
    pair_means,
)
from doe.analysis.missing import Missing, missing
from doe.analysis.model import CURVATURE, Model, chosen_terms, make_model
from doe.analysis.optimum import Optimum
from doe.analysis.options import DEFAULTS, AnalysisOptions
from doe.analysis.pvalues import adjusted, none_for_nan, significant
from doe.analysis.random_blocks import RandomBlocks, random_blocks
from doe.analysis.sequential import decide, looks_at
from doe.analysis.strata import StrataReport, strata_report, strata_warnings
from doe.analysis.streams import Variation, variation
from doe.analysis.surface import Surface, surface
from doe.analysis.transform import Transformation, box_cox, choose, share_of
from doe.analysis.unequal_spread import doubted_terms
from doe.errors import DoeError, listed
from doe.terms import FACTORS, MEAN, order

Estimate = TypeVar("Estimate", bound=Struct)
WORDS = 16
"""Words of the defining relation that a warning shows; all of them are in `Analysis.aliases`."""
MOST_REPORTED = 1024
"""Terms up to which a design is reported on term by term."""


class Analysis(Struct, frozen=True):
    """Everything about one response, enough to draw every view from, whatever the design.

    Numbers are Python floats; ``None`` is a quantity that does not exist (the standard
    error in a saturated design). Tuples keep the order of the terms (standard order).
    """

    response: str
    unit: str
    goal: str | None  # min, max, or None where neither is known
    n: int
    planned: int
    factors: tuple[FactorColumn, ...]
    block: str | None
    transform: Transformation  # means and best configurations are on the response scale
    alpha: float
    order: int  # highest interaction in the model
    terms: tuple[str, ...]  # of the model
    df_error: int
    sigma: float | None
    r2: float | None
    exact: bool  # whether runs that should differ by chance agree to the last digit
    mean: LevelMean  # over all cells, each weighted alike
    effects: tuple[Effect, ...]  # of the terms of two-level factors
    tests: tuple[TermTest, ...]  # of all terms
    response_scale: tuple[ScaleEffect, ...]  # of the effects; empty without a transformation
    anova: Anova
    half_normal: HalfNormal
    levels: tuple[LevelMean, ...]
    combinations: tuple[LevelMean, ...]  # of the levels of every term of two factors
    differences: tuple[LevelDifference, ...]
    interactions: tuple[Interaction, ...]  # the strongest first, as conditional effects
    parts: tuple[NumericPart, ...]
    curvature: Curvature | None
    predictions: tuple[Prediction, ...]  # of every combination; empty of more than 1024
    diagnostics: Diagnostics
    inestimable: tuple[str, ...]  # terms that the runs cannot tell from others
    aliases: tuple[tuple[str, ...], ...]  # aliased terms, the estimated one first: D, −ABC
    missing: Missing | None
    best: Best | None  # None where the goal is not known
    design: DesignReport | None  # of the runs with a value; None of very many terms
    random_blocks: RandomBlocks | None
    estimates: dict[str, Struct | None]  # by module of `doe.analysis.estimators`
    warnings: tuple[str, ...]
    scales: BothScales | None  # raw and log side by side; None where a value has no logarithm
    confirmation: Confirmation | None = None  # None until fresh runs have confirmed the best
    looks: bool = False  # whether p and intervals of effects are those of declared looks
    variation: Variation | None = None  # by stream of seeds; None where there is but one
    strata: StrataReport | None = None  # where runs have more than one error
    beats: tuple[WinProbability, ...] = ()  # of one configuration over another, fresh seeds
    surface: Surface | None = None  # None where the model has no squares, unless it is asked for
    doubted: tuple[str, ...] = ()  # significant terms of which HC3 says otherwise

    @property
    def findings(self) -> tuple[TermTest, ...]:
        """Terms that are significant after Holm's adjustment, by HC3 too where spreads differ."""
        return tuple(
            test
            for test in self.tests
            if significant(test.p_holm, self.alpha) and test.term not in self.doubted
        )

    @property
    def lenth(self) -> Lenth | None:
        """Lenth's method on the single-degree contrasts."""
        return self.half_normal.lenth

    @property
    def keys(self) -> tuple[str, ...]:
        """Factor keys."""
        return tuple(factor.key for factor in self.factors)

    @property
    def two_level(self) -> bool:
        """Whether every factor has two levels, so that every term has one effect."""
        return all(len(factor.levels) == 2 for factor in self.factors)

    def get(self, kind: type[Estimate]) -> Estimate | None:
        """Return the estimate of a kind, such as `Dispersion`; None where there is none."""
        return next((e for e in self.estimates.values() if isinstance(e, kind)), None)


BEYOND_FLOATS = np.errstate(over="ignore", invalid="ignore", divide="ignore")
"""A number beyond the floats is infinite, and what follows from none is NaN: shown as such."""


@BEYOND_FLOATS
def analyze(data: Dataset, options: AnalysisOptions = DEFAULTS) -> Analysis:
    """Analyse one response.

    Raises
    ------
    DoeError
        If no run has a value, an option does not fit, or the response is censored.
    """
    return _analysis(*_fitted(data, options))


@BEYOND_FLOATS
def fit_response(data: Dataset, options: AnalysisOptions = DEFAULTS) -> FittedResponse:
    """Fit the model of one response and test its terms, and no more; raises as `analyze`."""
    return _fitted(data, options)[0]


def _fitted(data: Dataset, options: AnalysisOptions) -> tuple[FittedResponse, Anova, HalfNormal]:
    if data.censored:
        raise DoeError(f"response {data.response!r} has limits such as >50; its effects are bounds")
    if np.isnan(data.y).all():
        raise DoeError(f"response {data.response!r} has no value in any run")
    if options.random_blocks and data.runs.stratified:
        raise DoeError(
            "random blocks are the groups of runs that share an error, and these runs have such "
            "groups already; leave random blocks out"
        )
    if options.random_blocks and data.runs.seeding is not None:
        raise DoeError(
            "random blocks are drawn one by one, and these share seeds: their streams are the "
            "random part of the model already; leave random blocks out"
        )
    model = model_of(data, options)
    transform, fitted = _on_scale(data, model, options)
    sums = sums_of_squares(fitted, fitted.kind)
    plot = half_normal_plot(fitted, options.alpha)
    tests = term_tests(fitted, sums, plot, options.hidden(data.runs.keys))
    effects = two_level_effects(fitted, tests, plot, options.alpha)
    block = None if fitted.block is None else data.runs.block_name
    table = anova(fitted, fitted.kind, sums, block, options.alpha)
    response = FittedResponse(data, fitted, effects, tests, transform, options)
    if data.runs.looked is not None:
        response, table = _with_looks(response, table)
    return response, table, plot


def model_of(data: Dataset, options: AnalysisOptions) -> Model:
    """Return the model of the runs with a value that the options ask for, or that suits the
    design.
    """
    runs = data.runs.only(data.observed)
    terms = data.terms
    if terms is None or options.terms is not None or options.order is not None:
        terms = chosen_terms(runs, options.terms, options.order)
    random = [i for i, factor in enumerate(runs.factors) if factor.random]
    if options.terms is not None and any(term >> i & 1 for term in terms for i in random):
        raise DoeError(
            f"{runs.keys[random[0]]} is random, so a term with it has no effect but a "
            "variance; leave it out"
        )
    if reason := refusal(runs, terms):
        raise DoeError(reason)
    return make_model(runs, terms, curved=not options.pooled)


def _on_scale(data: Dataset, model: Model, options: AnalysisOptions) -> tuple[Transformation, Fit]:
    """Settle the scale, and fit on it."""
    name = options.transform_of(data.scale)
    y = np.asarray(data.y[data.observed], dtype=np.float64)
    profile = None
    if name in ("boxcox", "auto"):
        raw = fit(y, model, data.observed, pooled=options.pooled, name=data.response)
        profile = box_cox(raw, options.alpha)
    share = share_of(y, data.unit, data.items, data.response)
    transform = choose(name, y, data.response, profile, share)
    scaled = y if transform.name == "none" else transform.scale.forward(y)
    return transform, fit(scaled, model, data.observed, pooled=options.pooled, name=data.response)


def _analysis(response: FittedResponse, table: Anova, plot: HalfNormal) -> Analysis:
    data, fitted, options = response.data, response.fit, response.options
    runs, model, alpha, transform = data.runs, fitted.model, options.alpha, response.transform
    lost = missing(response)
    checks = diagnose(response)
    top = best(response, data.goal) if data.goal else None
    terms = set(model.terms)
    main = [i for i in range(len(runs.factors)) if 1 << i in terms]
    ratio = transform.scale.ratio
    y = fitted.y
    centre = fitted.shift + fitted.unit * float(fitted.coef[0])
    report = model_report(model) if len(model.terms) <= MOST_REPORTED else None
    seen = _surface(response)
    return Analysis(
        response=data.response,
        unit=data.unit,
        goal=data.goal,
        n=fitted.n,
        planned=runs.count,
        factors=runs.factors,
        block=None if fitted.block is None else runs.block_name,
        transform=transform,
        alpha=alpha,
        order=max((order(term) for term in model.terms), default=0),
        terms=tuple(test.term for test in response.tests),
        df_error=fitted.df_error,
        sigma=fitted.sigma,
        r2=table.r2,
        exact=fitted.exact,
        mean=on_response_scale(means_at(fitted, [{}], alpha), transform, y)[0],
        effects=response.effects,
        tests=response.tests,
        response_scale=back(response.effects, centre, transform),
        anova=table,
        half_normal=plot,
        levels=on_response_scale(
            [mean for i in main for mean in level_means(fitted, i, alpha)], transform, y
        ),
        combinations=on_response_scale(pair_means(fitted, alpha), transform, y),
        differences=tuple(
            as_ratio(pair) if ratio else pair
            for i in main
            if not runs.factors[i].is_curve
            for pair in level_differences(fitted, i, alpha)
        ),
        interactions=interactions(fitted, _strongest(response), transform, alpha),
        parts=tuple(part for i in main for part in numeric_parts(fitted, i, alpha)),
        curvature=curvature(fitted, alpha),
        predictions=cell_predictions(response),
        diagnostics=checks,
        inestimable=tuple(model.name(t) for t in (*model.with_blocks, *model.inestimable)),
        aliases=_alias_chains(model),
        missing=lost,
        best=top,
        design=report,
        random_blocks=random_blocks(fitted, alpha) if options.random_blocks else None,
        estimates=estimate_all(response),
        warnings=(*_warnings(response, lost, plot, report), *_beyond_share(response, top)),
        scales=_side_by_side(response),
        looks=runs.looked is not None,
        confirmation=_confirmation(response, top, checks, None if seen is None else seen.optimum),
        variation=variation(
            fitted.u, fitted.runs.combinations, fitted.seeding, alpha, options.seed, fitted.square
        ),
        strata=strata_report(fitted.strata, fitted.square),
        beats=beats(response, top, checks),
        surface=seen,
        doubted=doubted_terms(response),
    )


def _beyond_share(response: FittedResponse, top: Best | None) -> tuple[str, ...]:
    """Say where intervals of what may be a share reach beyond it."""
    y, whole = response.observed, response.transform.share
    known = response.data.unit == "%" or response.goal == "max"
    if not known or response.transform.name != "none" or whole.items or top is None:
        return ()
    if y.min() < 0.0 or not 0.5 * whole.top < y.max() <= whole.top:
        return ()
    if whole.top not in (1.0, 100.0):
        return ()
    ends = [cell.ci_high or 0.0 for cell in top.cells]
    if max(ends, default=0.0) <= whole.top:
        return ()
    return (
        f"Intervals of {response.data.response} reach beyond {whole.top:g}, and no value does: if "
        "it is a proportion, set its scale to logit.",
    )


def _surface(response: FittedResponse) -> Surface | None:
    """Return where to go next, of a model with squares and where it is asked for."""
    options = response.options
    if options.optimize:
        if response.fit.strata is not None:
            raise DoeError(
                "there is no surface to follow: it assumes independent runs, and these share "
                "whole plots or other groups; take the best of the configurations"
            )
        if (seen := surface(response, options.coding)) is None:
            raise DoeError(
                "there is no surface to follow: no factor of the model is numeric, or the runs "
                "do not determine the model; expected numbers, and as many runs as coefficients"
            )
        return seen
    if max(response.fit.model.terms, default=0) <= FACTORS:
        return None
    try:
        return surface(response, options.coding)
    except DoeError:  # said where it is asked for
        return None


def _strongest(response: FittedResponse) -> list[tuple[int, float | None, float | None]]:
    """Return the two-factor interactions with p and Holm's p, those that explain most first."""
    pairs = [t for t in response.tests if order(t.mask) == 2 and t.mask.bit_count() == 2]
    pairs.sort(key=lambda test: (-test.ss / test.df, test.term))
    return [(test.mask, test.p, test.p_holm) for test in pairs]


def _side_by_side(response: FittedResponse) -> BothScales | None:
    """Return the terms on the raw scale and on the log scale, from the same model.

    None where a value has no logarithm, and where looks were declared: they are on one scale.
    """
    y = response.observed
    looked = response.runs.looked is not None
    if looked or response.fit.n > MOST_RUNS or not log_possible(y):
        return None
    return both_scales(response)


def _confirmation(
    response: FittedResponse, top: Best | None, checks: Diagnostics, optimum: Optimum | None
) -> Confirmation | None:
    """Return what fresh runs say of the best configuration, once enough of them have run."""
    fresh = response.data.fresh
    if fresh is None or top is None or not fresh.complete:
        return None
    return confirm(response, fresh, top, predicting(response, checks), optimum)


def predicting(response: FittedResponse, checks: Diagnostics) -> Fit | None:
    """Return the fit that tells where fresh runs will lie; None where its one variance is not all
    runs'.

    The chosen configuration may have a larger one, which its few runs do not tell, and with two
    replicates the checks see too little of it. Where blocks share seeds, their spread does not tell
    that of fresh ones.
    """
    fitted = response.fit
    plain = fitted.seeding is None and fitted.strata is None
    usable = plain and response.transform.name == "none"
    even = shows_spread(fitted) and all(f.ok for f in spread_checks(checks))
    return fitted if usable and even else None


def _with_looks(response: FittedResponse, table: Anova) -> tuple[FittedResponse, Anova]:
    """Return the tests with p and intervals that hold over all looks so far."""
    looked = response.runs.looked
    assert looked is not None
    rule = replace(looked.rule, alpha=response.alpha)
    terms = response.fit.model.terms
    looks = looks_at(response.y, response.runs, looked.portion, rule, terms)
    judged = decide(looks, [test.mask for test in response.tests], 1, rule, 0.0)
    p = np.array([np.nan if j.p is None else j.p for j in judged])
    columns = zip(none_for_nan(p), *map(none_for_nan, adjusted(p)), strict=True)
    figures = {j.term: (j, *line) for j, line in zip(judged, columns, strict=True)}
    effects = []
    for e in response.effects:
        j, p_term, p_holm, p_bh = figures[e.mask]
        effects.append(replace(e, ci_low=j.low, ci_high=j.high, p=p_term, p_holm=p_holm, p_bh=p_bh))
    tests = []
    for test in response.tests:
        _, p_term, p_holm, p_bh = figures[test.mask]
        tests.append(replace(test, p=p_term, p_holm=p_holm, p_bh=p_bh))
    known = {test.term: test.p for test in tests}
    rows = tuple(replace(row, p=known.get(row.source, row.p)) for row in table.rows)
    changed = FittedResponse(
        response.data,
        response.fit,
        tuple(effects),
        tuple(tests),
        response.transform,
        response.options,
    )
    return changed, replace(table, rows=rows, type2=None)


def _alias_chains(model: Model) -> tuple[tuple[str, ...], ...]:
    """Return a line per group of aliased terms, the estimated one first: ("AB", "−CD")."""
    return tuple(
        (
            model.name(leader),
            *(f"{'−' * (alias.sign < 0)}{model.name(alias.term)}" for alias in chain),
        )
        for leader, chain in model.aliases.items()
    )


def _warnings(
    response: FittedResponse, lost: Missing | None, plot: HalfNormal, report: DesignReport | None
) -> tuple[str, ...]:
    fitted, model, options = response.fit, response.fit.model, response.options
    warnings = list(response.runs.notes)
    if lost is not None:
        warnings.append(f"{lost.sentence} Effects are least squares on the {lost.observed} others.")
        if lost.empty_cells:
            warnings.append(f"No run with a value is left of {listed(lost.empty_cells, 6)}.")
    if model.inestimable:
        terms = listed([model.name(term) for term in model.inestimable], 8)
        warnings.append(f"Not estimable on these runs, and assumed to be zero: {terms}.")
    if model.with_blocks:
        terms = ", ".join(model.name(term) for term in model.with_blocks)
        warnings.append(f"Confounded with blocks: {terms}.")
    if model.aliases:
        words = [f"{'−' * (a.sign < 0)}{model.name(a.term)}" for a in model.aliases.get(MEAN, ())]
        more = f" and {len(words) - WORDS} more words" if len(words) > WORDS else ""
        relation = f" ({' = '.join(['I', *words[:WORDS]])}{more})" if words else ""
        warnings.append(
            f"The runs are a fraction{relation}: each effect is that of its whole alias chain."
        )
    if report is not None:
        warnings += report.sentences
    if options.robust and fitted.n > MOST_RUNS:
        warnings.append(
            f"The robust methods are left out: {fitted.n} runs are more than {MOST_RUNS}."
        )
    if fitted.strata is not None:
        warnings.append(_left_out(response))
    df_left = fitted.df_residual + model.df(CURVATURE)
    return (
        *warnings,
        *(strata_warnings(fitted.strata) if fitted.strata else ()),
        *error_warnings(fitted, df_left, plot.lenth),
        *seed_warnings(fitted, options.robust),
    )


def _left_out(response: FittedResponse) -> str:
    """Say which analyses take runs as independent, so that runs that share an error have none."""
    possible = {
        "dispersion effects": True,
        "Box and Meyer's probabilities": True,
        "the quasi-binomial model": bool(response.transform.share.items),
        "the surface and its optimum": max(response.fit.model.terms, default=0) > FACTORS,
        "the interval of the confirming runs": response.data.fresh is not None,
    }
    names = [name for name, is_possible in possible.items() if is_possible]
    return (
        f"Left out, for runs that share an error are not independent: {', '.join(names[:-1])} and "
        f"{names[-1]}."
    )
