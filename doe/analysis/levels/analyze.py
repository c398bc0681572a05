"""One response of factors with levels, everything: the composition into one frozen value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from msgspec import Struct

from doe.analysis.anova import error_warnings, seed_warnings
from doe.analysis.best import leaves_range
from doe.analysis.both_scales import (
    BothScales,
    OnScale,
    both_scales,
    log_possible,
)
from doe.analysis.case import DEFAULTS, AnalysisOptions
from doe.analysis.contrasts import MOST_RUNS
from doe.analysis.effects import Effect
from doe.analysis.lenth import Lenth
from doe.analysis.levels.anova import (
    LevelAnova,
    TermTest,
    level_anova,
    sums_of_squares,
    table_kind,
    term_tests,
)
from doe.analysis.levels.best import LevelBest, level_best, with_geometric
from doe.analysis.levels.effects import (
    Curvature,
    HalfNormal,
    NumericPart,
    curvature,
    half_normal_plot,
    numeric_parts,
    two_level_effects,
)
from doe.analysis.levels.fit import LevelFit, fit_levels
from doe.analysis.levels.layout import FactorColumn, LevelObservations
from doe.analysis.levels.means import (
    LevelDifference,
    LevelMean,
    as_ratio,
    level_differences,
    level_means,
    mean_at,
    on_response_scale,
    term_means,
)
from doe.analysis.levels.mixed import RandomBlocks, random_blocks
from doe.analysis.levels.model import CURVATURE, chosen_terms
from doe.analysis.levels.permutation import Permutations, permutation_tests
from doe.analysis.levels.plan import DesignReport, matrix_report
from doe.analysis.levels.predictions import CellPrediction, cell_predictions
from doe.analysis.levels.sentences import term_sentences
from doe.analysis.scales import scale_of
from doe.analysis.scales.log import exponential
from doe.analysis.streams import Variation, variation
from doe.analysis.transform import (
    ScaleEffect,
    Transformation,
    back,
    box_cox_likelihood,
    choose,
)
from doe.errors import DoeError
from doe.terms import factors_in

MOST_COMBINATIONS = 2000
"""Combinations of two factors' levels whose means are given; more are for no one to read."""


class LevelAnalysis(Struct, frozen=True):
    """Everything about one response, enough to draw every view from.

    Numbers are Python floats; ``None`` stands for a quantity that does not exist.
    """

    response: str
    unit: str
    goal: str | None  # min, max, or None where neither is known
    n: int
    planned: int
    factors: tuple[FactorColumn, ...]
    block: str | None
    alpha: float
    transform: Transformation  # means and best configurations are on the response scale
    terms: tuple[str, ...]  # of the model, by rising order
    df_error: int
    sigma: float | None
    r2: float | None
    mean: LevelMean  # over all cells, each weighted alike
    anova: LevelAnova
    tests: tuple[TermTest, ...]
    effects: tuple[Effect, ...]  # of the terms of two-level factors
    response_scale: tuple[ScaleEffect, ...]  # of the effects; empty without a transformation
    levels: tuple[LevelMean, ...]
    combinations: tuple[LevelMean, ...]  # of the levels of every term of two factors
    differences: tuple[LevelDifference, ...]
    parts: tuple[NumericPart, ...]
    curvature: Curvature | None
    half_normal: HalfNormal
    best: LevelBest | None  # None where the goal is not known
    permutations: Permutations | None
    random_blocks: RandomBlocks | None
    design: DesignReport  # of the runs with a value
    runs: tuple[int, ...]  # numbers of the runs with a value, in the order of the next two
    fitted: tuple[float, ...]
    residuals: tuple[float, ...]
    predictions: tuple[CellPrediction, ...]  # of every combination; empty of more than 1024
    sentences: tuple[str, ...]  # one per significant term
    warnings: tuple[str, ...]
    scales: BothScales | None  # raw and log side by side; None where a value has no logarithm
    variation: Variation | None = None  # by stream of seeds; None where there is but one

    @property
    def lenth(self) -> Lenth | None:
        """Lenth's method on the single-degree contrasts."""
        return self.half_normal.lenth


def analyze_levels(
    observed: LevelObservations, options: AnalysisOptions = DEFAULTS
) -> LevelAnalysis:
    """Analyse one response.

    Raises
    ------
    DoeError
        If no run has a value, or an option does not fit.
    """
    _check(options, observed)
    kept = np.flatnonzero(np.isfinite(observed.y))
    masks, broken = chosen_terms(observed.layout.only(kept), options.terms, options.order)
    transform, fit = _on_scale(observed, masks, options)
    alpha, ratio = options.alpha, transform.scale.ratio
    # Of a factor whose main effect the model leaves out it knows no levels.
    factors = [i for i in range(len(observed.layout.factors)) if 1 << i in masks]
    plot = half_normal_plot(fit, alpha)
    design = matrix_report(fit.matrix, broken)
    kind = table_kind(fit)
    sums = sums_of_squares(fit, kind)
    table = level_anova(fit, kind, sums)
    # Robust tests take replicates as independent, which those that share seeds are not.
    robust = options.robust and fit.seeding is None
    tests = term_tests(fit, sums, robust=robust)
    count = options.permutations if robust else 0
    effects = two_level_effects(fit, plot, alpha)
    return LevelAnalysis(
        response=observed.response,
        unit=observed.unit,
        goal=observed.goal,
        n=fit.n,
        planned=observed.layout.runs,
        factors=observed.layout.factors,
        block=observed.layout.block_name if fit.matrix.layout.block is not None else None,
        alpha=alpha,
        transform=transform,
        terms=tuple(fit.matrix.name(mask) for mask in fit.matrix.terms),
        df_error=fit.df_error,
        sigma=fit.sigma,
        r2=table.r2,
        mean=_on_response(transform, [mean_at(fit, {}, alpha)])[0],
        anova=table,
        tests=tests,
        effects=effects,
        response_scale=back(effects, fit.shift, transform),
        levels=_on_response(
            transform, [mean for i in factors for mean in level_means(fit, i, alpha)]
        ),
        combinations=_on_response(transform, _combinations(fit, alpha)),
        differences=tuple(
            as_ratio(pair) if ratio else pair
            for i in factors
            for pair in level_differences(fit, i, alpha)
        ),
        parts=tuple(part for i in factors for part in numeric_parts(fit, i, alpha)),
        curvature=curvature(fit, alpha),
        half_normal=plot,
        best=_best(observed, fit, masks, transform, options),
        permutations=permutation_tests(fit, count, options.seed) if count > 0 else None,
        random_blocks=random_blocks(fit, alpha) if options.random_blocks else None,
        design=design,
        runs=tuple(fit.kept.tolist()),
        fitted=tuple((fit.shift + fit.unit * fit.fitted).tolist()),
        residuals=tuple((fit.unit * fit.residual).tolist()),
        predictions=cell_predictions(fit, tests, transform, alpha),
        sentences=term_sentences(
            fit, tests, plot, "" if ratio else observed.unit, alpha, transform.scale
        ),
        warnings=_warnings(observed, fit, design, plot.lenth, options),
        scales=_side_by_side(observed, fit, masks, transform, options),
        variation=variation(fit.y, fit.matrix.layout.cells, fit.seeding, alpha, options.seed),
    )


def _on_response(transform: Transformation, means: Sequence[LevelMean]) -> tuple[LevelMean, ...]:
    """Means on the scale of the response."""
    if transform.name == "none":
        return tuple(means)
    return on_response_scale(means, transform.scale.back)


def _side_by_side(
    observed: LevelObservations,
    fit: LevelFit,
    masks: Sequence[int],
    transform: Transformation,
    options: AnalysisOptions,
) -> BothScales | None:
    """The terms on the raw scale and on the log scale; None where a value has no logarithm."""
    y = observed.y[np.isfinite(observed.y)]
    if len(y) > MOST_RUNS or not log_possible(y):
        return None

    def on(scale: str) -> OnScale:
        full = fit
        if scale != transform.name:
            full = fit_levels(
                replace(observed, y=scale_of(scale).forward(observed.y)),
                masks,
                pooled=options.pooled,
            )
        tests = term_tests(full, sums_of_squares(full, table_kind(full)))
        plot = half_normal_plot(full, options.alpha)
        return OnScale(full, tests, two_level_effects(full, plot, options.alpha))

    return both_scales(on("none"), on("log"), options.alpha)


def _on_scale(
    observed: LevelObservations, masks: Sequence[int], options: AnalysisOptions
) -> tuple[Transformation, LevelFit]:
    """Settle the scale, and fit on it."""
    name = options.transform_of(observed.scale)
    y = observed.y[np.isfinite(observed.y)]
    if name == "boxcox":
        raise DoeError(
            "a power is looked for with two levels of each factor alone; take log, auto or none"
        )
    profile = None
    if name == "auto":
        raw = fit_levels(observed, masks, pooled=options.pooled)
        profile = box_cox_likelihood(raw.y, raw.Q, raw.df_residual, options.alpha)
    transform = choose(name, y, observed.response, profile)
    if transform.name != "none":
        observed = replace(observed, y=transform.scale.forward(observed.y))
    return transform, fit_levels(observed, masks, pooled=options.pooled)


def _best(
    observed: LevelObservations,
    fit: LevelFit,
    masks: Sequence[int],
    transform: Transformation,
    options: AnalysisOptions,
) -> LevelBest | None:
    """Configurations ranked; their intervals stay where the response can be."""
    if observed.goal is None:
        return None
    best = level_best(fit, observed.goal, options.alpha, transform.scale.back)
    low = np.array([np.nan if cell.ci_low is None else cell.ci_low for cell in best.cells])
    if not leaves_range(fit.y, low, transform.name) or len(fit.matrix.layout.cells) > MOST_RUNS:
        return best
    logs = fit_levels(replace(observed, y=np.log(observed.y)), masks, pooled=options.pooled)
    return with_geometric(best, level_best(logs, observed.goal, options.alpha, exponential))


def _combinations(fit: LevelFit, alpha: float) -> list[LevelMean]:
    """Means of the combinations of two factors' levels, while there are not too many."""
    sizes = fit.matrix.layout.sizes
    means: list[LevelMean] = []
    for mask in fit.matrix.terms:
        own = [sizes[i] for i in factors_in(mask)]
        if len(own) == 2 and len(means) + math.prod(own) <= MOST_COMBINATIONS:
            means += term_means(fit, mask, alpha)
    return means


def _check(options: AnalysisOptions, observed: LevelObservations) -> None:
    """Refuse what only two levels of each factor allow, and what shared seeds do not."""
    if options.drop:
        raise DoeError(
            f"terms of {', '.join(options.drop)} cannot be hidden beside factors with more levels; "
            "choose the terms of the model instead"
        )
    if options.beats:
        raise DoeError(
            "which configuration beats another is told of factors with two levels and all their "
            "terms; leave it out"
        )
    if options.random_blocks and observed.layout.seeding is not None:
        raise DoeError(
            "random blocks are drawn one by one, and these share seeds: their streams are the "
            "random part of the model already; leave random blocks out"
        )


def _warnings(
    observed: LevelObservations,
    fit: LevelFit,
    design: DesignReport,
    lenth: Lenth | None,
    options: AnalysisOptions,
) -> tuple[str, ...]:
    warnings = list(observed.layout.notes)
    lost = observed.layout.runs - fit.n
    if lost:
        warnings.append(
            f"{lost} of {observed.layout.runs} planned runs have no value;"
            f" the answers are least squares on the {fit.n} others."
        )
    df_left = fit.df_residual + fit.matrix.df(CURVATURE)
    return (
        *warnings,
        *design.sentences,
        *error_warnings(fit, df_left, lenth),
        *seed_warnings(fit, options.robust),
    )
