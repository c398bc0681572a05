"""Error that looks may spend: levels of each look, and p values that hold over all of them.

A share ``f(t; alpha)`` of the error may be spent until the share t of the largest sample is seen
(Lan and DeMets, 1983). The nominal level of each look follows by recursive integration for normal
statistics (Armitage, McPherson and Rowe, 1969); used at the quantiles of t and F these are Jennison
and Turnbull's (2000) significance-level approach.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
from msgspec import Struct
from scipy import special

from doe.analysis.contrasts import Floats

SWITCH = 2
"""Replicates from which on the error is that of repeated runs."""
RESERVE = 0.95
"""Share of alpha that is spent; the rest covers what the significance-level approach, exact for
normal statistics alone, may lose on t with cells of unequal variance (see the simulation)."""
NODES = 128
"""Gauss-Legendre nodes of the density between the boundaries."""
FARTHEST = 12.0
"""Standard deviations beyond which nothing is spent that a float could tell."""
GRID = 10.0 ** np.arange(-12.0, 0.0, 0.5)
"""Levels between which sequential p values are interpolated; below, the line goes on."""


class Rule(Struct, frozen=True):
    """Schedule of looks: after every portion of runs from the `first` on.

    A portion is a replicate, or half of one. Effects and what is negligible have levels of their
    own: a term has no effect or one that matters, so at most one of the two can be said falsely,
    and each test may have all of the term's error. Under `two_sided` rules they share one interval.
    """

    portions: int  # at most
    alpha: float = 0.05
    spending: str = "quadratic"
    first: int = SWITCH
    per_replicate: int = 1
    two_sided: bool = False

    @property
    def looks(self) -> range:
        """Complete portions at each look."""
        return range(self.first, self.portions + 1)

    @property
    def shares(self) -> tuple[float, ...]:
        """Share of the largest sample at each look."""
        return tuple(n / self.portions for n in self.looks)

    def replicates(self, portions: int) -> float:
        """Replicates that so many portions make."""
        return (
            portions / self.per_replicate
            if portions % self.per_replicate
            else (portions // self.per_replicate)
        )

    def is_early(self, portions: int) -> bool:
        """Return whether the error is the residual of the model, for lack of repeated runs."""
        return portions < SWITCH * self.per_replicate

    def levels(self, family: float = 1) -> tuple[float, ...]:
        """Nominal two-sided level of each look for one of `family` intervals."""
        return nominal_levels(self.shares, RESERVE * self.alpha / family, self.spending)

    def negligible_levels(self, family: float = 1) -> tuple[float, ...]:
        """Nominal level of each look of both one-sided tests that a term is negligible.

        In the form of `levels`: twice the level of one side.
        """
        return (
            self.levels(family)
            if self.two_sided
            else nominal_levels(
                self.shares, min(2.0 * RESERVE * self.alpha / family, 1.0 - 1e-9), self.spending
            )
        )

    def p(self, nominal: Floats, family: int) -> Floats:
        """Return p values adjusted for the looks, from those of the looks so far (looks x
        terms).
        """
        unit = family / RESERVE
        return np.minimum(
            1.0, unit * sequential_p(nominal, self.shares, self.alpha / unit, self.spending)
        )


def obrien_fleming(share: float, alpha: float) -> float:
    """``4 - 4 Phi(z_{alpha/4} / sqrt(t))``: little at the first looks, nearly all at the last."""
    return float(4.0 * special.ndtr(special.ndtri(alpha / 4.0) / math.sqrt(share)))


def pocock(share: float, alpha: float) -> float:
    """``alpha log(1 + (e - 1) t)``: about as much at each look."""
    return alpha * math.log1p((math.e - 1.0) * share)


def quadratic(share: float, alpha: float) -> float:
    """``alpha t^2`` (Kim and DeMets, 1987): between the two others."""
    return alpha * share**2


SHAPES: dict[str, Callable[[float, float], float]] = {
    "obrien-fleming": obrien_fleming,
    "pocock": pocock,
    "quadratic": quadratic,
}
"""Ways to spend alpha, by name."""


@lru_cache(maxsize=512)
def nominal_levels(shares: tuple[float, ...], alpha: float, shape: str) -> tuple[float, ...]:
    """Return the two-sided level of each look; `shares` of the largest sample rise up to 1.

    The statistics are ``Z_j = S_j / sqrt(t_j)`` with independent increments of S. With the density
    g of S between the boundaries of all former looks, the boundary b solves
    ``int g(u) P(|S_j| >= b | u) du = f(t_j) - f(t_{j-1})``.
    """
    points, weights = _quadrature()
    spend = SHAPES[shape]
    levels: list[float] = []
    nodes, density = np.zeros(1), np.ones(1)  # S_0 = 0 with certainty
    before = spent = 0.0
    for share in shares:
        step = math.sqrt(share - before)
        due = spend(share, alpha) - spent
        edge = _boundary(nodes, density, step, math.sqrt(share), due)
        levels.append(float(2.0 * special.ndtr(-edge / math.sqrt(share))))
        inner = edge * points
        kernel = np.exp(-0.5 * ((inner[:, None] - nodes) / step) ** 2)
        density = edge * weights * (kernel @ density) / (step * math.sqrt(2.0 * math.pi))
        nodes, before, spent = inner, share, spent + due
    return tuple(levels)


@lru_cache(maxsize=1)
def _quadrature() -> tuple[Floats, Floats]:
    points, weights = np.polynomial.legendre.leggauss(NODES)
    return points, weights


def _boundary(nodes: Floats, density: Floats, step: float, scale: float, due: float) -> float:
    """Return the b with probability `due` beyond ±b; by bisection, for it falls with b."""
    low, high = 0.0, FARTHEST * scale
    for _ in range(60):
        middle = 0.5 * (low + high)
        beyond = special.ndtr((nodes - middle) / step) + special.ndtr((-middle - nodes) / step)
        low, high = (middle, high) if float(density @ beyond) > due else (low, middle)
    return 0.5 * (low + high)


def sequential_p(nominal: Floats, shares: Sequence[float], alpha: float, shape: str) -> Floats:
    """Return the smallest level at which some look so far would have rejected (Liu and Anderson,
    2008).

    Parameters
    ----------
    nominal : (looks so far, terms)
        Two-sided p of each look as if it were the only one.
    alpha : float
        Where the answer is exact: ``p <= alpha`` just when a look is beyond its boundary.
    """
    levels = np.unique([*GRID, alpha, 1.0 - 1e-9])
    table = np.array([nominal_levels(tuple(shares), float(a), shape) for a in levels])
    scale = special.ndtri(levels / 2.0)  # on the scale of z both are nearly linear
    p = np.ones(nominal.shape[1])
    for look, row in enumerate(nominal):
        known = table[:, look] > 2.0 * special.ndtr(0.01 - FARTHEST)
        at = special.ndtri(np.maximum(row, 1e-300) / 2.0)
        bounds, answers = special.ndtri(table[known, look] / 2.0), scale[known]
        z = np.interp(at, bounds, answers)
        slope = (answers[1] - answers[0]) / (bounds[1] - bounds[0])
        z = np.where(at < bounds[0], answers[0] + slope * (at - bounds[0]), z)
        p = np.minimum(p, 2.0 * special.ndtr(z))
    return np.asarray(np.minimum(p, 1.0))
