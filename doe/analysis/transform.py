"""Transformations of the response: Box-Cox with its profile, and the way back."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy import optimize, stats

from doe.analysis.contrasts import Floats
from doe.analysis.fit import Fit, design_matrix
from doe.analysis.values import BoxCox, Effect, ScaleEffect, Transformation
from doe.errors import DoeError

CHOICES = ("none", "log", "boxcox", "auto")
GRID = np.round(np.linspace(-2.0, 2.0, 81), 10)


def power(y: Floats, exponent: float) -> Floats:
    """Box-Cox: ``(y^λ - 1) / λ``, and ln y at λ = 0."""
    return np.log(y) if exponent == 0.0 else np.expm1(exponent * np.log(y)) / exponent


def unpower(z: Floats, exponent: float) -> Floats:
    """Inverse of `power`; NaN where no response maps there."""
    if exponent == 0.0:
        return np.exp(z)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.exp(np.log1p(exponent * z) / exponent))


def box_cox(fit: Fit, alpha: float) -> BoxCox | None:
    """Maximum-likelihood exponent under the fitted model, with its likelihood-ratio interval.

    ``l(λ) = -n/2 ln(SSE_λ / n) + (λ - 1) Σ ln y``; the interval holds every λ with
    ``l(λ) >= l(λ̂) - χ²_1(1 - α) / 2``. None unless all values are positive and error is left.
    """
    y = fit.y
    if fit.df_residual < 1 or not (y > 0).all() or fit.ss_residual <= 0 or len(y) > 4096:
        return None
    X = design_matrix(fit.cells, fit.block, fit.model)
    basis = np.linalg.qr(X)[0]
    log_sum = float(np.log(y).sum())
    scale = float(np.exp(log_sum / len(y)))

    def loglik(exponent: float) -> float:
        z = power(y / scale, exponent)
        rest = z - basis @ (basis.T @ z)
        return -0.5 * len(y) * math.log(max(float((rest**2).sum()), 1e-300) / len(y))

    # Dividing by the geometric mean turns the Jacobian into a constant, -Σ ln y.
    found = optimize.minimize_scalar(
        lambda exponent: -loglik(exponent), bounds=(-3.0, 3.0), method="bounded"
    )
    best, peak = float(found.x), -float(found.fun)
    drop = peak - 0.5 * float(stats.chi2.isf(alpha, 1))
    ends = []
    for edge in (-5.0, 5.0):
        inside = loglik(edge) >= drop
        ends.append(
            edge if inside else float(optimize.brentq(lambda e: loglik(e) - drop, best, edge))
        )
    low, high = min(ends), max(ends)
    suggestion = "none" if low <= 1.0 <= high else "log" if low <= 0.0 <= high else "boxcox"
    profile = tuple(loglik(float(e)) - log_sum for e in GRID)
    return BoxCox(best, low, high, suggestion, tuple(GRID.tolist()), profile)


def choose(asked: str, y: Floats, response: str, profile: BoxCox | None) -> Transformation:
    """Settle the transformation that was asked for, or say why it cannot be."""
    if asked not in CHOICES:
        raise DoeError(f"transform {asked!r} is not one of {', '.join(CHOICES)}")
    if asked == "none" or (asked == "auto" and (profile is None or profile.suggestion == "none")):
        return Transformation("none", None, asked)
    if not (y > 0).all():
        raise DoeError(
            f"--transform {asked} needs positive values, and {response!r} has {y.min():g}; "
            "analyse it with --transform none"
        )
    name = asked if asked != "auto" or profile is None else profile.suggestion
    if name == "log":
        return Transformation("log", 0.0, asked)
    if profile is None:
        raise DoeError(
            f"--transform boxcox needs replicates or a reduced model (--order) to find its "
            f"exponent for {response!r}; use --transform log"
        )
    exponent = round(profile.exponent, 2)
    return Transformation("log" if exponent == 0.0 else "boxcox", exponent, asked)


def apply(y: Floats, chosen: Transformation) -> Floats:
    """The response on the analysed scale."""
    return y if chosen.exponent is None else power(y, chosen.exponent)


def back(effects: Sequence[Effect], mean: float, chosen: Transformation) -> tuple[ScaleEffect, ...]:
    """Effects on the response scale.

    For log the ratio ``exp(effect)`` of the geometric means; for another exponent the difference
    of the back-transformed means ``g(mean + effect/2) - g(mean - effect/2)``.
    """
    if chosen.exponent is None:
        return ()
    exponent = chosen.exponent

    def ratio(effect: float) -> float:
        return math.exp(effect)

    def difference(effect: float) -> float:
        ends = unpower(np.array([mean + effect / 2, mean - effect / 2]), exponent)
        return float(ends[0] - ends[1])

    kind, scale = ("ratio", ratio) if exponent == 0.0 else ("difference", difference)
    return tuple(
        ScaleEffect(
            e.term,
            kind,
            scale(e.effect),
            None if e.ci_low is None else scale(e.ci_low),
            None if e.ci_high is None else scale(e.ci_high),
        )
        for e in effects
    )
