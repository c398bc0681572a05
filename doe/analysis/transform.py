"""Transformations of the response: which scale, Box-Cox with its profile, and the way back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from doe.analysis import distributions as stats
from doe.analysis.contrasts import MOST_RUNS, Floats
from doe.analysis.distributions import minimum, root
from doe.analysis.scales import Scale, scale_names, scale_of
from doe.analysis.scales.log import exponential
from doe.analysis.scales.logit import logit_scale
from doe.errors import DoeError
from doe.numbers import cell_text

if TYPE_CHECKING:
    from doe.analysis.fit import Fit

LARGEST = float(np.finfo(np.float64).max)
WIDEST = 100.0
"""Largest effect on the scale of logarithms or log odds."""
FIXED_SCALES = ("log", "logit")
"""Scales that a study declares; others are found from its results, which looks must not do."""
GRID = np.round(np.linspace(-2.0, 2.0, 81), 10)


def to_power(y: Floats, exponent: float) -> Floats:
    """Box-Cox: ``(y^λ - 1) / λ``, and ln y at λ = 0."""
    return np.log(y) if exponent == 0.0 else np.expm1(exponent * np.log(y)) / exponent


def from_power(z: Floats, exponent: float) -> Floats:
    """Inverse of `to_power`; NaN where no response maps there."""
    if exponent == 0.0:
        return exponential(z)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        return np.asarray(np.exp(np.log1p(exponent * z) / exponent))


class Share(Struct, frozen=True):
    """The range of a response that is a share, from 0 to `top`, and the items that were counted."""

    top: float = 1.0
    items: int = 0  # 0 where none were counted


WHOLE = Share()


class Transformation(Struct, frozen=True):
    """The scale on which the response was analysed."""

    name: str  # none, log, boxcox
    exponent: float | None  # 0 for log, None for a scale that is no power
    asked: str  # what the user asked for: none, log, boxcox, auto
    share: Share = WHOLE  # of what the response is a share, where that is known

    @property
    def scale(self) -> Scale:
        """The functions there and back."""
        if self.name == "logit":
            return logit_scale(self.share.top, self.share.items)
        if self.name != "boxcox" or self.exponent is None:
            return scale_of(self.name)
        exponent = self.exponent
        return Scale(
            lambda y: to_power(y, exponent), lambda z: from_power(z, exponent), f"{{}}^{exponent}"
        )

    def to_response(self, values: Floats, y: Floats) -> Floats:
        """Means and bounds on the response scale, cut at 0 where all analysed values y lie above.

        Those of counted items are cut at none and at all of them. A bound that is cut where the
        truth cannot be keeps its coverage.
        """
        back = np.asarray(self.scale.back(values))
        if self.share.items:
            return np.clip(back, 0.0, self.share.top)
        if self.name == "none" and bool((y > 0).all()):
            back = np.where(back < 0.0, 0.0, back)
        return back

    def difference(self, effect: float, middle: float) -> float:
        """Return an effect in units of the response, ``g(middle + effect/2) - g(middle -
        effect/2)``.
        """
        if self.name == "none":
            return effect
        ends = self.scale.back(middle + np.array([0.5, -0.5]) * effect)
        return float(ends[0] - ends[1])

    def effect_of(self, difference: float, middle: float) -> float:
        """Return the effect on this scale that makes such a difference; the widest where none
        does.
        """
        if self.name == "none" or not difference:
            return difference
        if self.difference(WIDEST, middle) <= difference:
            return WIDEST
        return root(lambda effect: self.difference(effect, middle) - difference, 0.0, WIDEST)

    def label(self, response: str) -> str:
        """Return the response as analysed: "loss", "ln loss" or "loss^0.5"."""
        return self.scale.label.format(response)


AS_IT_IS = Transformation("none", None, "none")


class BoxCox(Struct, frozen=True):
    """Profile log-likelihood of the Box-Cox exponent under the model."""

    exponent: float
    low: float
    high: float
    suggestion: str  # none, log or boxcox
    p_none: float  # likelihood-ratio test of no transformation
    grid: tuple[float, ...]
    loglik: tuple[float, ...]


def box_cox(fit: Fit, alpha: float) -> BoxCox | None:
    """Maximum-likelihood exponent under the fitted model, with its likelihood-ratio interval.

    ``l(λ) = -ν/2 [ln(SSE_λ / ν) - 2 (λ - 1) mean(ln y)]`` on the ν residual degrees of freedom: the
    n of Box and Cox (1964) would make intervals far too short where the model takes half of the
    runs. What random groups share is taken out as the model is. The interval holds every λ with
    ``l(λ) >= l(λ̂) - χ²_1(1 - α) / 2``. None unless all values are positive and error is left.
    """
    if fit.df_residual < 1 or fit.exact or fit.n > MOST_RUNS:
        return None
    return box_cox_likelihood(fit.y, fit.within_basis, fit.within.df, alpha)


def box_cox_likelihood(y: Floats, basis: Floats, df: int, alpha: float) -> BoxCox | None:
    """Return the profile of `box_cox` for any model, whose columns have the orthonormal `basis`."""
    if df < 1 or not (y > 0).all():
        return None
    log_mean = float(np.log(y).mean())
    scale = float(np.exp(log_mean))

    def logliks(exponents: Sequence[float]) -> Floats:
        with np.errstate(over="ignore", invalid="ignore"):
            z = np.column_stack([to_power(y / scale, exponent) for exponent in exponents])
            rest = ((z - basis @ (basis.T @ z)) ** 2).sum(axis=0)
        rest = np.nan_to_num(rest, nan=LARGEST, posinf=LARGEST)  # a power beyond all floats
        return np.asarray(-0.5 * df * np.log(np.maximum(rest, 1e-300) / df))

    def loglik(exponent: float) -> float:
        return float(logliks([exponent])[0])

    # Dividing by the geometric mean turns the Jacobian into a constant, -mean(ln y).
    best = minimum(lambda exponent: -loglik(exponent), -3.0, 3.0)
    peak = loglik(best)
    drop = peak - 0.5 * float(stats.chi2.isf(alpha, 1))
    ends = []
    for edge in (-5.0, 5.0):
        inside = loglik(edge) >= drop
        ends.append(edge if inside else root(lambda e: loglik(e) - drop, best, edge))
    low, high = min(ends), max(ends)
    suggestion = "none" if low <= 1.0 <= high else "log" if low <= 0.0 <= high else "boxcox"
    p_none = float(stats.chi2.sf(max(0.0, 2.0 * (peak - loglik(1.0))), 1))
    profile = tuple((logliks(GRID.tolist()) - df * log_mean).tolist())
    return BoxCox(best, low, high, suggestion, p_none, tuple(GRID.tolist()), profile)


def share_of(y: Floats, unit: str, items: int, response: str) -> Share:
    """Return the whole that values are a share of: 1, 100 if they are in %, or the items counted.

    Raises
    ------
    DoeError
        If some values can be no share of that many items.
    """
    least, most = float(y.min()), float(y.max())
    top = 100.0 if unit == "%" else 1.0
    if most > top:
        top = float(items) if items and bool((y == np.round(y)).all()) else 100.0
    if items and not 0.0 <= least <= most <= top:
        wrong = cell_text(least if least < 0.0 else most, "short")
        raise DoeError(
            f"{response!r} has {wrong}, which is not a share of {items} items; expected values "
            f"from 0 to 1, 0 to 100 % or 0 to {items}"
        )
    return Share(top, items)


def choose(
    asked: str, y: Floats, response: str, profile: BoxCox | None, share: Share = WHOLE
) -> Transformation:
    """Settle the transformation that was asked for, or say why it cannot be."""
    name = asked
    if asked == "auto":  # the interval of the exponent holds 0 and not 1
        name = "log" if profile is not None and profile.suggestion == "log" else "none"
    fixed = name in scale_names()
    power = None if fixed else 0.0  # a power needs what a logarithm does
    scale = Transformation(name if fixed else "log", power, asked, share).scale
    low, high = scale.low, scale.high
    if not ((y > low) & (y < high)).all():
        needs = (
            "positive values"
            if (low, high) == (0.0, math.inf)
            else " < y < ".join(cell_text(end, "short") for end in (low, high))
        )
        wrong = y[(y <= low) | (y >= high)][0] if high < math.inf else y.min()
        raise DoeError(
            f"the transformation {asked} needs {needs}, and {response!r} has "
            f"{cell_text(float(wrong), 'short')}; analyse it as it is"
            f"{', or say of how many items it is the share' * (name == 'logit')}"
        )
    if fixed:
        return Transformation(name, 0.0 if name == "log" else None, asked, share)
    if profile is None:
        raise DoeError(
            f"Box-Cox needs replicates or a model of lower order to find its exponent for "
            f"{response!r}; take logarithms instead"
        )
    exponent = round(profile.exponent, 2)
    with np.errstate(over="ignore"):
        powers = to_power(y, exponent)
    if not np.isfinite(powers).all() or float(np.ptp(powers)) == 0.0:
        raise DoeError(
            f"the values of {response!r} reach {cell_text(float(y.max()), 'short')}; give them in "
            "another unit to find a power"
        )
    return Transformation("log" if exponent == 0.0 else "boxcox", exponent, asked, share)
