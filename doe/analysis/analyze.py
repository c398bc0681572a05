"""One response, everything: the composition of all analyses into one frozen value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, TypeVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace as replace_struct

from doe.analysis.anova import Anova, anova, error_warnings, seed_warnings
from doe.analysis.beats import Beats, beats
from doe.analysis.best import Best, best
from doe.analysis.both_scales import (
    BothScales,
    OnScale,
    both_scales,
    log_possible,
)
from doe.analysis.case import DEFAULTS, AnalysisOptions, Case
from doe.analysis.confirm import Confirmation, confirm
from doe.analysis.contrasts import MOST_RUNS, Floats, Ints, Model, blocks_of, estimable, names_of
from doe.analysis.data import FactorLevels, Fresh, Observations, Runs, check_variation
from doe.analysis.diagnostics import Diagnostics, diagnose, shows_spread, spread_checks
from doe.analysis.effects import Effect, effect_table, plain
from doe.analysis.estimators import estimate_all
from doe.analysis.fit import Fit, fit, refitted
from doe.analysis.lenth import Lenth, lenth
from doe.analysis.missing import Missing, missing
from doe.analysis.pvalues import adjusted
from doe.analysis.rescale import power_of_two, rescaled, units
from doe.analysis.scales import scale_of
from doe.analysis.sequential import decide, looks_at
from doe.analysis.streams import Variation, variation
from doe.analysis.transform import ScaleEffect, Transformation, back, box_cox, choose
from doe.errors import DoeError, listed
from doe.numbers import to_figures
from doe.terms import MEAN, model_order, term_name

Estimate = TypeVar("Estimate", bound=Struct)


class Analysis(Struct, frozen=True):
    """Everything about one response, enough to draw every view from.

    Numbers are Python floats; ``None`` stands for a quantity that does not exist (the standard
    error in a saturated design). Tuples keep the order of the terms (standard order).
    """

    UNITS: ClassVar = units(sigma=1, mean=1)
    response: str
    unit: str
    goal: str | None  # min, max, or None where nobody said
    n: int
    factors: tuple[FactorLevels, ...]
    block: str | None
    transform: Transformation
    alpha: float
    order: int  # highest interaction in the model
    df_error: int
    sigma: float | None
    r2: float | None
    mean: float
    effects: tuple[Effect, ...]
    response_scale: tuple[ScaleEffect, ...]  # empty without a transformation
    anova: Anova
    lenth: Lenth | None
    diagnostics: Diagnostics
    inestimable: tuple[str, ...]  # terms that the runs cannot tell from others
    aliases: tuple[str, ...]  # "D = −ABC": aliased terms, the estimated one first
    missing: Missing | None
    best: Best | None  # None where the goal is not known
    estimates: dict[str, Struct | None]  # by module of `doe.analysis.estimators`
    warnings: tuple[str, ...]
    scales: BothScales | None  # raw and log side by side; None where a value has no logarithm
    confirmation: Confirmation | None = None  # None until fresh runs have confirmed the best
    looks: bool = False  # whether p and intervals of effects are those of declared looks
    variation: Variation | None = None  # by stream of seeds; None where there is but one
    beats: tuple[Beats, ...] = ()  # how likely one configuration beats another with a fresh seed

    def get(self, kind: type[Estimate]) -> Estimate | None:
        """The estimate of a kind, such as `Dispersion`; None where there is none."""
        return next((e for e in self.estimates.values() if isinstance(e, kind)), None)


class Core(Struct, frozen=True):
    """The parts that every analysis has: effects, analysis of variance, Lenth."""

    effects: tuple[Effect, ...]
    anova: Anova
    lenth: Lenth | None


def core(
    fitted: Fit, names: Sequence[str], shown: Sequence[bool], block: str | None, alpha: float
) -> Core:
    """Effects, ANOVA and Lenth of a fitted model."""
    margins = lenth(fitted.effect, names, alpha, tested=fitted.df_error == 0)
    return Core(
        effects=effect_table(fitted, names, shown, margins, alpha),
        anova=anova(fitted, names, block, alpha),
        lenth=margins,
    )


WORDS = 16
"""Words of the defining relation that a warning shows; all of them are in `Analysis.aliases`."""


def analyze(observed: Observations, options: AnalysisOptions = DEFAULTS) -> Analysis:
    """Analyse one response.

    Raises
    ------
    DoeError
        If no run has a value, an option does not fit, or the response is censored.
    """
    response = observed.response
    if observed.censored:
        raise DoeError(f"response {response!r} has limits such as >50; its effects are bounds")
    if np.isnan(observed.y).all():
        raise DoeError(f"response {response!r} has no value in any run")
    factor = power_of_two(float(np.nanmax(np.abs(observed.y))))
    options = replace_struct(options, transform=options.transform_of(observed.scale))
    if factor == 1.0 or options.transform == "log":
        return _analyze(observed, options)
    if options.transform != "none":
        largest = to_figures(float(np.nanmax(np.abs(observed.y))), 1)
        raise DoeError(
            f"the values of {response!r} reach {largest}; give them in another unit to find a power"
        )
    return rescaled(_analyze(_divided(observed, factor), options), factor)


def _divided(observed: Observations, factor: float) -> Observations:
    fresh = observed.fresh and replace(observed.fresh, y=observed.fresh.y / factor)
    return replace(observed, y=observed.y / factor, fresh=fresh)


def _case(observed: Observations, options: AnalysisOptions) -> tuple[Case, Core]:
    """The response with its fitted model, and the parts that every analysis has."""
    runs = observed.runs
    order = model_order(options.order, len(runs.keys))
    kept = np.flatnonzero(~np.isnan(observed.y))
    check_variation(observed.y[kept], observed.response)
    block = blocks_of(runs.block, kept)
    model = estimable(runs.cells[kept], len(runs.keys), order, block)
    transform, fitted = _on_scale(observed, kept, block, model, options)
    names = names_of(model.masks, runs.keys)
    shown = options.shown(model.masks, runs.keys)
    parts = core(fitted, names, shown, None if block is None else runs.block_name, options.alpha)
    if runs.looked is not None:
        parts = _with_looks(parts, runs, fitted, kept, options.alpha)
    case = Case(
        runs=runs,
        kept=kept.tolist(),
        fit=fitted,
        names=names,
        effects=parts.effects,
        goal=observed.goal,
        transform=transform,
        order=order,
        options=options,
    )
    return case, parts


def _analyze(observed: Observations, options: AnalysisOptions) -> Analysis:
    case, parts = _case(observed, options)
    runs, fitted, model = case.runs, case.fit, case.fit.model
    lost = missing(case)
    checks = diagnose(case)
    top = best(case, observed.goal) if observed.goal else None
    return Analysis(
        response=observed.response,
        unit=observed.unit,
        goal=observed.goal,
        n=fitted.n,
        factors=runs.factors,
        block=None if fitted.block is None else runs.block_name,
        transform=case.transform,
        alpha=options.alpha,
        order=case.order,
        df_error=fitted.df_error,
        sigma=fitted.sigma,
        r2=parts.anova.r2,
        mean=fitted.mean,
        effects=parts.effects,
        response_scale=back(parts.effects, fitted.mean, case.transform),
        anova=parts.anova,
        lenth=parts.lenth,
        diagnostics=checks,
        inestimable=tuple(
            term_name(m, runs.keys) for m in (*model.with_blocks, *model.inestimable)
        ),
        aliases=_alias_chains(model, runs.keys),
        missing=lost,
        best=top,
        estimates=estimate_all(case),
        warnings=(
            *_warnings(runs, model, lost),
            *error_warnings(fitted, fitted.df_residual, parts.lenth),
            *_left_out(fitted, options),
            *seed_warnings(fitted, options.robust),
        ),
        scales=_side_by_side(case),
        looks=runs.looked is not None,
        confirmation=_confirmation(case, top, observed.fresh, checks),
        variation=variation(fitted.y, fitted.cells, fitted.seeding, options.alpha, options.seed),
        beats=beats(case, top, observed.baseline, observed.fresh, checks),
    )


def _side_by_side(case: Case) -> BothScales | None:
    """The terms on the raw scale and on the log scale, from the same model.

    None where a value has no logarithm, and where looks were declared: they are on one scale.
    """
    y = case.transform.scale.back(case.fit.y)
    if case.runs.looked is not None or case.fit.n > MOST_RUNS or not log_possible(y):
        return None
    factor = power_of_two(float(y.max()))  # squares on the raw scale stay within the floats
    raw, log = _on(case, y / factor, "none"), _on(case, y, "log")
    return rescaled(both_scales(raw, log, case.alpha), factor)


def _on(case: Case, y: Floats, scale: str) -> OnScale:
    """The same model of a response on a scale."""
    full, effects = case.fit, case.effects
    if scale != case.transform.name:
        full = refitted(full, scale_of(scale).forward(y), full.model)
        margins = lenth(full.effect, case.names, case.alpha) if full.df_error == 0 else None
        terms = {effect.term for effect in effects}
        shown = [name in terms for name in case.names]
        effects = effect_table(full, case.names, shown, margins, case.alpha)
    return OnScale(full, effects, effects)


def _confirmation(
    case: Case, top: Best | None, fresh: Fresh | None, checks: Diagnostics
) -> Confirmation | None:
    """What fresh runs say of the best configuration, once enough of them have run."""
    if fresh is None or top is None or not fresh.complete:
        return None
    return confirm(fresh, top, predicting(case.fit, case.transform, checks), case.alpha)


def predicting(fitted: Fit, transform: Transformation, checks: Diagnostics) -> Fit | None:
    """The fit that tells where fresh runs will lie; None where its one variance is not all runs'.

    The chosen configuration may have a larger one, which its few runs do not tell, and with two
    replicates the checks see too little of it. Where blocks share seeds, their spread does not tell
    that of fresh ones.
    """
    usable = transform.name == "none" and fitted.seeding is None
    even = shows_spread(fitted) and all(f.ok for f in spread_checks(checks))
    return fitted if usable and even else None


def _with_looks(parts: Core, runs: Runs, fitted: Fit, kept: Ints, alpha: float) -> Core:
    """The same effects with p and intervals that hold over all looks so far."""
    looked = runs.looked
    assert looked is not None
    y = np.full(len(runs.run_ids), np.nan)
    y[kept] = fitted.y
    block = np.zeros(len(y), dtype=np.int64) if runs.block is None else runs.block
    rule = replace_struct(looked.rule, alpha=alpha)
    looks = looks_at(y, runs.cells, block, looked.replicate, fitted.factors, rule)
    terms = {term_name(mask, runs.keys): mask for mask in fitted.model.masks}
    judged = decide(looks, [terms[e.term] for e in parts.effects], 1, rule, 0.0)
    p = np.array([np.nan if j.p is None else j.p for j in judged])
    p_holm, p_bh = adjusted(p)
    effects = tuple(
        replace_struct(e, ci_low=j.low, ci_high=j.high, p=j.p, p_holm=h, p_bh=b)
        for e, j, h, b in zip(parts.effects, judged, plain(p_holm), plain(p_bh), strict=True)
    )
    known = {e.term: e.p for e in effects}
    table = replace_struct(
        parts.anova,
        rows=tuple(replace_struct(r, p=known.get(r.source, r.p)) for r in parts.anova.rows),
        type2=None,
    )
    return replace_struct(parts, effects=effects, anova=table)


def _left_out(fitted: Fit, options: AnalysisOptions) -> list[str]:
    """What was asked for and is not done."""
    if options.robust and fitted.n > MOST_RUNS:
        return [f"The robust methods are left out: {fitted.n} runs are more than {MOST_RUNS}."]
    return []


def _on_scale(
    observed: Observations, kept: Ints, block: Ints | None, model: Model, options: AnalysisOptions
) -> tuple[Transformation, Fit]:
    """Settle the scale, and fit on it."""
    y, cells, factors = observed.y[kept], observed.runs.cells[kept], len(observed.runs.keys)
    pooled = options.pooled
    seeding = observed.runs.seeding and observed.runs.seeding.of(kept)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        untransformed = fit(y, cells, factors, block, model, pooled=pooled, seeding=seeding)
    profile = None
    if options.transform in ("boxcox", "auto"):
        profile = box_cox(untransformed, options.alpha)
    transform = choose(options.transform or "none", y, observed.response, profile)
    if transform.name == "none":
        return transform, untransformed
    scaled = transform.scale.forward(y)
    return transform, fit(scaled, cells, factors, block, model, pooled=pooled, seeding=seeding)


def _alias_chains(model: Model, keys: Sequence[str]) -> tuple[str, ...]:
    """One line per group of aliased terms, the estimated one first: "AB = −CD"."""
    return tuple(
        " = ".join(
            (
                term_name(leader, keys),
                *(f"{'−' * (a.sign < 0)}{term_name(a.mask, keys)}" for a in chain),
            )
        )
        for leader, chain in model.aliases.items()
    )


def _warnings(runs: Runs, model: Model, lost: Missing | None) -> list[str]:
    keys = runs.keys
    warnings = list(runs.notes)
    if lost is not None:
        warnings.append(f"{lost.sentence} Effects are least squares on the {lost.observed} others.")
        if lost.empty_cells:
            warnings.append(f"No run is left of {listed(lost.empty_cells, 6)}.")
    if model.inestimable:
        terms = listed([term_name(mask, keys) for mask in model.inestimable], 8)
        warnings.append(f"Not estimable on these runs, and assumed to be zero: {terms}.")
    if model.with_blocks:
        terms = ", ".join(term_name(mask, keys) for mask in model.with_blocks)
        warnings.append(f"Confounded with blocks: {terms}.")
    if chains := _alias_chains(model, keys):
        words = chains[0].split(" = ")[1:] if MEAN in model.aliases else []
        shown = " = ".join(["I", *words[:WORDS]])
        more = f" and {len(words) - WORDS} more words" if len(words) > WORDS else ""
        relation = f" ({shown}{more})" if words else ""
        warnings.append(
            f"The runs are a fraction{relation}: each effect stands for its whole alias chain."
        )
    return warnings
