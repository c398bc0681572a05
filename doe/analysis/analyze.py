"""One response, everything: the composition of all analyses into one frozen value."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from doe.analysis import transform as scale
from doe.analysis.anova import anova
from doe.analysis.best import best
from doe.analysis.boxmeyer import box_meyer
from doe.analysis.contrasts import Floats, Ints, Model, estimable, names_of
from doe.analysis.data import Layout, Observations
from doe.analysis.diagnostics import diagnose
from doe.analysis.dispersion import dispersion
from doe.analysis.effects import effect_table
from doe.analysis.fit import Fit, fit
from doe.analysis.lenth import lenth
from doe.analysis.missing import missing
from doe.analysis.robust import MOST_RUNS, robust
from doe.analysis.values import Analysis, Anova, Effect, Lenth, Missing, Transformation
from doe.errors import DoeError, nearest
from doe.terms import MEAN, term_name


class Options(Struct, frozen=True):
    """What the user may choose."""

    transform: str = "none"
    order: int | None = None  # highest interaction; None for all
    drop: tuple[str, ...] = ()  # factors whose terms are not shown
    robust: bool = False
    permutations: int = 10_000
    alpha: float = 0.05
    seed: int = 42


class Core(Struct, frozen=True):
    """The parts that every analysis has: effects, analysis of variance, Lenth."""

    effects: tuple[Effect, ...]
    anova: Anova
    lenth: Lenth | None


def core(
    fitted: Fit, names: Sequence[str], shown: Sequence[bool], block: str | None, alpha: float
) -> Core:
    """Effects, ANOVA and Lenth of a fitted model."""
    tested = lenth(2.0 * fitted.coef, names, alpha)
    return Core(
        effects=effect_table(fitted, names, shown, tested, alpha),
        anova=anova(fitted, names, block),
        lenth=tested,
    )


DEFAULTS = Options()


def analyze(seen: Observations, options: Options = DEFAULTS) -> Analysis:
    """Analyse one response.

    Raises
    ------
    DoeError
        If no run has a value, an option does not fit, or the response is censored.
    """
    where = seen.layout
    if seen.censored:
        raise DoeError(f"response {seen.response!r} has limits such as >50; its effects are bounds")
    order = _order(options.order, where)
    kept = np.flatnonzero(~np.isnan(seen.y))
    if len(kept) < 2 or float(np.ptp(seen.y[kept])) == 0.0:
        raise DoeError(
            f"response {seen.response!r} has {len(kept)} values and no variation; "
            "expected at least two different ones"
        )
    cells, raw = where.cells[kept], seen.y[kept]
    block = _renumber(where.block, kept)
    model = estimable(cells, len(where.keys), order, block)
    chosen, fitted = _on_scale(raw, cells, block, model, seen, options)
    names = names_of(model.masks, where.keys)
    shown = _shown(model, options.drop, where.keys)
    parts = core(
        fitted, names, shown, where.block_name if block is not None else None, options.alpha
    )
    y = seen.y.copy()
    y[kept] = fitted.y
    lost = missing(where, y, parts.effects, order, options.alpha)
    small = fitted.n <= MOST_RUNS
    return Analysis(
        response=seen.response,
        unit=seen.unit,
        goal=seen.goal,
        n=fitted.n,
        factors=where.factors,
        block=where.block_name if block is not None else None,
        transform=chosen,
        alpha=options.alpha,
        order=order,
        df_error=fitted.df_error,
        sigma=float(np.sqrt(fitted.ms_error)) if fitted.df_error > 0 else None,
        r2=parts.anova.r2,
        mean=fitted.mean,
        effects=parts.effects,
        response_scale=scale.back(parts.effects, fitted.mean, chosen),
        anova=parts.anova,
        lenth=parts.lenth,
        diagnostics=diagnose(fitted, where, kept.tolist(), chosen, options.alpha),
        inestimable=tuple(
            term_name(m, where.keys) for m in (*model.with_blocks, *model.inestimable)
        ),
        aliases=_alias_chains(model, where.keys),
        missing=lost,
        dispersion=dispersion(
            fitted.y, cells, block, where.keys, order, options.alpha, where.config
        ),
        best=best(
            fitted, parts.effects, where.keys, seen.goal, chosen, options.alpha, where.config
        ),
        box_meyer=box_meyer(fitted.y, cells, where.keys, block),
        robust=robust(
            fitted, names, parts.effects, options.alpha, options.permutations, options.seed
        )
        if options.robust and small
        else None,
        warnings=_warnings(where, model, fitted, lost),
    )


def _order(asked: int | None, where: Layout) -> int:
    factors = len(where.keys)
    if asked is not None and not 1 <= asked <= factors:
        raise DoeError(f"--order {asked} does not fit {factors} factors; expected 1 to {factors}")
    return factors if asked is None else asked


def _renumber(block: Ints | None, kept: Ints) -> Ints | None:
    """Blocks of the observed runs, numbered without gaps; None when one is left."""
    if block is None:
        return None
    found = np.unique(block[kept], return_inverse=True)[1].astype(np.int64)
    return found if found.max() > 0 else None


def _on_scale(
    raw: Floats,
    cells: Ints,
    block: Ints | None,
    model: Model,
    seen: Observations,
    options: Options,
) -> tuple[Transformation, Fit]:
    """Settle the scale, and fit on it."""
    factors = len(seen.layout.keys)
    plain = fit(raw, cells, factors, block, model)
    profile = None
    if options.transform in ("boxcox", "auto"):
        profile = scale.box_cox(plain, options.alpha)
    chosen = scale.choose(options.transform, raw, seen.response, profile)
    if chosen.name == "none":
        return chosen, plain
    return chosen, fit(scale.apply(raw, chosen), cells, factors, block, model)


def _shown(model: Model, drop: Sequence[str], keys: Sequence[str]) -> list[bool]:
    gone = 0
    for key in drop:
        if key not in keys:
            raise DoeError(
                f"--drop {key}: no factor of that name{nearest(key, keys)}; "
                f"the factors are {', '.join(keys)}"
            )
        gone |= 1 << list(keys).index(key)
    return [not mask & gone for mask in model.masks]


def _alias_chains(model: Model, keys: Sequence[str]) -> tuple[str, ...]:
    """One line per group of aliased terms, the estimated one first."""
    return tuple(
        " = ".join(term_name(mask, keys) for mask in (leader, *others))
        for leader, others in model.aliases.items()
    )


def _warnings(where: Layout, model: Model, fitted: Fit, lost: Missing | None) -> tuple[str, ...]:
    keys = where.keys
    warnings = list(where.notes)
    if lost is not None:
        warnings.append(f"{lost.sentence} Effects are least squares on the {lost.observed} others.")
        if lost.empty_cells:
            named = ", ".join(lost.empty_cells[:6]) + (" …" if len(lost.empty_cells) > 6 else "")
            warnings.append(f"no run is left of {named}")
    if model.inestimable:
        named = ", ".join(term_name(mask, keys) for mask in model.inestimable[:8])
        more = f" and {len(model.inestimable) - 8} more" if len(model.inestimable) > 8 else ""
        warnings.append(f"not estimable on these runs, and assumed to be zero: {named}{more}")
    if model.with_blocks:
        named = ", ".join(term_name(mask, keys) for mask in model.with_blocks)
        warnings.append(f"confounded with blocks: {named}")
    if model.aliases:
        words = model.aliases.get(MEAN, ())
        relation = f" (I = {' = '.join(term_name(m, keys) for m in words[:4])})" if words else ""
        warnings.append(
            f"the runs are a fraction{relation}: each effect stands for its whole alias chain"
        )
    if fitted.error is None:
        warnings.append("the design is saturated: p is Lenth's, simulated, without intervals")
    return tuple(warnings)
