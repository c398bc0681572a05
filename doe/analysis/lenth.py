"""Lenth's method for unreplicated designs, with t and with simulated critical values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from msgspec import Struct

from doe.analysis import distributions as stats
from doe.analysis.contrasts import Floats

SEED = 1989
DRAWS = 6_000_000
FEWEST, MOST = 100, 100_000
KNOWN = {
    3: (2.2806479454040502, 5.764531373977648),
    7: (2.29343523979187, 4.828160977363583),
    15: (2.1543748736381536, 4.22430725097656),
    31: (2.0624490737915036, 3.9063466548919656),
    63: (2.0162871122360224, 3.8120622754096956),
    127: (1.987776547670364, 3.8063270092010497),
    255: (1.9785693764686583, 3.876667881011963),
}
"""Critical values at α = .05 of full factorials: what `reference` takes a third of a second for."""


class HalfNormalPoint(Struct, frozen=True, gc=False):
    """A point of the half-normal plot: |effect| on x, half-normal quantile on y."""

    term: str
    magnitude: float
    quantile: float


class Lenth(Struct, frozen=True):
    """Lenth's pseudo standard error and margins of error of the effects."""

    m: int  # number of effects
    alpha: float
    s0: float
    pse: float
    me: float  # margins with simulated critical values
    sme: float
    me_t: float  # margins with t critical values on m/3 degrees of freedom
    sme_t: float
    p: tuple[float, ...]  # simulated, one per effect in standard order; empty where not asked for
    points: tuple[HalfNormalPoint, ...]  # by rising magnitude; reference line y = x / pse


def scale_estimates(effects: Floats) -> tuple[Floats, Floats]:
    """Lenth's s0 and pseudo standard error over the last axis.

    ``s0 = 1.5 median |c|`` and ``PSE = 1.5 median {|c| : |c| < 2.5 s0}``, trimming strictly below.
    """
    magnitude = np.sort(np.abs(effects), axis=-1)
    m = magnitude.shape[-1]
    s0 = 0.75 * (magnitude[..., (m - 1) // 2] + magnitude[..., m // 2])
    kept = (magnitude < 2.5 * s0[..., None]).sum(axis=-1)
    last = np.maximum(kept - 1, 0)
    lower = np.take_along_axis(magnitude, (last // 2)[..., None], axis=-1)[..., 0]
    upper = np.take_along_axis(magnitude, ((last + 1) // 2)[..., None], axis=-1)[..., 0]
    return s0, 0.75 * (lower + upper)


@dataclass(frozen=True)
class Reference:
    """Simulated null distributions of |c|/PSE and of the largest |c|/PSE, both ascending."""

    single: Floats
    largest: Floats


@lru_cache(maxsize=32)
def reference(m: int) -> Reference:
    """Simulate Lenth's ratios for `m` inert effects; seeded, and kept for the process's life."""
    rng = np.random.default_rng([SEED, m])
    count = int(np.clip(DRAWS // m, FEWEST, MOST))
    chunk = max(1, 1_000_000 // m)
    single: list[Floats] = []
    for start in range(0, count, chunk):
        draws = np.abs(rng.standard_normal((min(chunk, count - start), m), dtype=np.float32))
        _, pse = scale_estimates(draws)
        single.append(draws / pse[:, None])
    ratios = np.concatenate(single)
    return Reference(np.sort(ratios, axis=None), np.sort(ratios.max(axis=1)))


@lru_cache(maxsize=256)
def critical_values(m: int, alpha: float) -> tuple[float, float]:
    """Simulated multipliers of PSE: margin of error and simultaneous margin of error."""
    if alpha == 0.05 and m in KNOWN:
        return KNOWN[m]
    known = reference(m)
    return _upper(known.single, alpha), _upper(known.largest, alpha)


def _upper(ascending: Floats, alpha: float) -> float:
    """Quantile 1 - α of sorted values, linear between neighbours."""
    at = (len(ascending) - 1) * (1.0 - alpha)
    below = int(at)
    above = min(below + 1, len(ascending) - 1)
    low, high = float(ascending[below]), float(ascending[above])
    return low + (at - below) * (high - low)


@lru_cache(maxsize=256)
def critical_values_t(m: int, alpha: float) -> tuple[float, float]:
    """Lenth's own multipliers: t on m/3 degrees of freedom, the simultaneous one with
    ``gamma = (1 + (1 - alpha)^(1/m)) / 2``.
    """
    upper = -np.expm1(np.log1p(-alpha) / m) / 2.0
    return float(stats.t.isf(alpha / 2.0, m / 3.0)), float(stats.t.isf(upper, m / 3.0))


def simulated_p(ratio: Floats, m: int) -> Floats:
    """Share of simulated |c|/PSE at or above each ratio, never zero: (count + 1) / (N + 1)."""
    single = reference(m).single
    above = len(single) - np.searchsorted(single, np.abs(ratio).astype(np.float32), side="left")
    return np.asarray((above + 1.0) / (len(single) + 1.0))


def lenth(effects: Floats, terms: Sequence[str], alpha: float, tested: bool = True) -> Lenth | None:
    """Lenth's analysis of the effects of one response; None where the scale is 0 or undefined.

    Only a saturated design needs p values of Lenth; they are simulated where `tested`.
    """
    m = len(effects)
    if m < 3:
        return None
    s0, pse = (float(value) for value in scale_estimates(effects))
    if not pse > 0.0:
        return None
    me, sme = critical_values(m, alpha)
    me_t, sme_t = critical_values_t(m, alpha)
    return Lenth(
        m=m,
        alpha=alpha,
        s0=s0,
        pse=pse,
        me=me * pse,
        sme=sme * pse,
        me_t=me_t * pse,
        sme_t=sme_t * pse,
        p=tuple(simulated_p(effects / pse, m).tolist()) if tested else (),
        points=half_normal_points(effects, terms),
    )


def half_normal_points(effects: Floats, terms: Sequence[str]) -> tuple[HalfNormalPoint, ...]:
    """Coordinates of the half-normal plot, by rising |effect|; plotting position (i - 1/2)/m."""
    m = len(effects)
    magnitude = np.abs(effects)
    order = np.argsort(magnitude, kind="stable")
    return tuple(
        HalfNormalPoint(terms[i], size, q)
        for i, size, q in zip(
            order.tolist(), magnitude[order].tolist(), _half_quantiles(m), strict=True
        )
    )


@lru_cache(maxsize=32)
def _half_quantiles(m: int) -> tuple[float, ...]:
    """Half-normal quantiles of the plotting positions."""
    return tuple(stats.norm.ppf(0.5 + 0.5 * (np.arange(1, m + 1) - 0.5) / m).tolist())
