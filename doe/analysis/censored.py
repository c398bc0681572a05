"""Effects as intervals: exact bounds from values that are only known to lie between limits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from doe.analysis.contrasts import MOST_RUNS, Floats
from doe.analysis.dataset import Dataset, FactorColumn
from doe.analysis.fit import coefficient_maps, without_rounding
from doe.analysis.model import chosen_terms, make_model
from doe.analysis.options import DEFAULTS, AnalysisOptions
from doe.analysis.scales import Scale, scale_of
from doe.errors import DoeError
from doe.numbers import cell_text

NEED_VALUES = ("terms", "random_blocks", "error", "beats")
"""Options that ask for more than bounds."""


class BoundedEffect(Struct, frozen=True, gc=False):
    """An effect that is only known to lie between two values."""

    term: str
    effect: float | None  # complete-case answer, or None for a censored table
    low: float
    high: float
    sign: str  # "+", "-" or "?" where the interval holds 0


class CensoredAnalysis(Struct, frozen=True):
    """Effects of a published table with censored cells, as exact intervals."""

    response: str
    label: str  # the response on the analysed scale
    unit: str
    n: int
    censored: int
    ceiling: float | None  # upper end of the highest class
    factors: tuple[FactorColumn, ...]
    effects: tuple[BoundedEffect, ...]
    warnings: tuple[str, ...]


def effect_bounds(
    maps: Floats, low: Floats, high: Floats, largest: float = 0.0
) -> tuple[Floats, Floats]:
    """Smallest and largest value of the contrasts ``maps @ y`` for all low <= y <= high.

    A contrast is linear, so each bound takes every value at the end that its sign asks for. What
    is left where values cancel is 0; they were rounded at the size of the `largest`, or their own.
    """
    up, down = np.maximum(maps, 0.0), np.minimum(maps, 0.0)
    ends = np.maximum(np.abs(low), np.abs(high))
    size = np.abs(maps) @ np.maximum(np.where(np.isfinite(ends), ends, 0.0), largest)
    least, most = _times(up, low) + _times(down, high), _times(up, high) + _times(down, low)
    return without_rounding(least, size), without_rounding(most, size)


def _times(maps: Floats, values: Floats) -> Floats:
    """Product in which a zero weight cancels an infinite value."""
    finite = np.where(np.isfinite(values), values, 0.0)
    result = maps @ finite
    for sign in (1.0, -1.0):
        infinite = np.isinf(values) & (np.sign(values) == sign)
        if infinite.any():
            weight = maps[:, infinite].sum(axis=1)
            result = result + np.where(weight == 0.0, 0.0, np.copysign(np.inf, weight * sign))
    return np.asarray(result)


def sign_of(low: float, high: float) -> str:
    """Sign of a value between two bounds, or "?" where both are possible."""
    return "+" if low > 0 else "-" if high < 0 else "?"


def bounded(
    names: Sequence[str], effects: Sequence[float | None], low: Floats, high: Floats
) -> tuple[BoundedEffect, ...]:
    """Put bounds beside names."""
    lines = zip(names, effects, low.tolist(), high.tolist(), strict=True)
    return tuple(BoundedEffect(n, e, a, b, sign_of(a, b)) for n, e, a, b in lines)


def analyze_censored(
    observed: Dataset, options: AnalysisOptions, ceiling: float | None
) -> CensoredAnalysis:
    """Effect intervals of a table with censored or rounded values.

    A printed number may be off by half of its last digit; ``>50`` lies between 50 and the next
    printed limit, or the ceiling for the highest one. A transformation moves the ends of each
    interval.

    Raises
    ------
    DoeError
        If something is asked for that limits cannot answer, or a factor has more than two levels.
    """
    runs = observed.runs
    if more := [factor.key for factor in runs.factors if len(factor.levels) > 2]:
        raise DoeError(
            f"{observed.response!r} has limits, of which bounds are known for effects between two "
            f"levels; {', '.join(more)} has more: take two of them"
        )
    for name in NEED_VALUES:
        if getattr(options, name) != getattr(DEFAULTS, name):
            raise DoeError(
                f"{name.replace('_', ' ')}: {observed.response!r} has limits, which allow only "
                "bounds of effects; leave it out"
            )
    least, most = limits_of(observed)
    scale = _scale(observed, options.transform_of(observed.scale))
    kept = np.flatnonzero(~np.isnan(least))
    if len(kept) > MOST_RUNS:
        raise DoeError(f"{len(kept)} runs are too many for a censored table; at most {MOST_RUNS}")
    inside = runs.only(kept)
    model = make_model(inside, chosen_terms(inside, None, options.order))
    hidden = options.hidden(runs.keys)
    shown = [term for term in model.sorted_terms if not term & hidden]
    rows = [int(model.columns(term)[0]) for term in shown]
    with np.errstate(divide="ignore"):
        ends = scale.forward(least[kept]), scale.forward(most[kept])
    low, high = effect_bounds(2.0 * coefficient_maps(model)[rows], *ends)
    names = [model.name(term) for term in shown]
    censored = int(np.isnan(observed.y[kept]).sum())
    return CensoredAnalysis(
        response=observed.response,
        label=scale.label.format(observed.response),
        unit=observed.unit,
        n=len(kept),
        censored=censored,
        ceiling=ceiling,
        factors=runs.factors,
        effects=bounded(names, [None] * len(names), low, high),
        warnings=_warnings(observed, options, ceiling, len(kept)),
    )


def limits_of(observed: Dataset) -> tuple[Floats, Floats]:
    """Ends between which each value lies; NaN where there is none at all."""
    return (observed.y, observed.y) if observed.limits is None else observed.limits


def _scale(observed: Dataset, transform: str) -> Scale:
    """Return the scale that was asked for; an exponent cannot be estimated from limits."""
    if transform not in ("none", "log"):
        raise DoeError(
            f"the transformation {transform} needs values, and {observed.response!r} has limits; "
            "expected none or log"
        )
    scale = scale_of(transform)
    low, high = limits_of(observed)
    if (low < scale.low).any() or (high > scale.high).any():
        least = cell_text(scale.low, "short")
        raise DoeError(
            f"the transformation {transform} needs values above {least}, and "
            f"{observed.response!r} has lower ones; analyse it as it is"
        )
    return scale


def _warnings(
    observed: Dataset, options: AnalysisOptions, ceiling: float | None, n: int
) -> tuple[str, ...]:
    warnings = list(observed.runs.notes)
    if options.robust:
        warnings.append("The robust methods are left out: limits leave no error to judge by.")
    if ceiling is None and np.isinf(limits_of(observed)[1]).any():
        warnings.append(
            "The highest limit has no upper end, so that effects are unbounded: a ceiling, the "
            "largest possible value, would bound them."
        )
    if n < len(observed.y):
        warnings.append(f"{len(observed.y) - n} of {len(observed.y)} runs have no value at all.")
    return tuple(warnings)
