"""Error spending: the nominal level of each look, so that all looks together keep alpha.

A share ``f(t; alpha)`` of the error may be spent until the share t of the largest sample is seen
(Lan and DeMets, 1983). The levels follow by recursive integration for normal statistics (Armitage,
McPherson and Rowe, 1969); used at the quantiles of t they are Jennison and Turnbull's (2000)
significance-level approach.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
from scipy import special

from doe.analysis.contrasts import Floats

NODES = 128
"""Gauss-Legendre nodes of the density between the boundaries."""
FARTHEST = 12.0
"""Standard deviations beyond which nothing is spent that a float could tell."""
GRID = 10.0 ** np.arange(-12.0, 0.0, 0.5)
"""Levels between which sequential p values are interpolated; below, the line goes on."""


def obrien_fleming(share: float, alpha: float) -> float:
    """``4 - 4 Phi(z_{alpha/4} / sqrt(t))``: little at the first looks, nearly all at the last."""
    return float(4.0 * special.ndtr(special.ndtri(alpha / 4.0) / math.sqrt(share)))


def pocock(share: float, alpha: float) -> float:
    """``alpha log(1 + (e - 1) t)``: about as much at each look."""
    return alpha * math.log1p((math.e - 1.0) * share)


SHAPES: dict[str, Callable[[float, float], float]] = {
    "obrien-fleming": obrien_fleming,
    "pocock": pocock,
}
"""Ways to spend alpha, by name."""


@lru_cache(maxsize=512)
def nominal_levels(shares: tuple[float, ...], alpha: float, shape: str) -> tuple[float, ...]:
    """Two-sided level of each look; `shares` of the largest sample are increasing, up to 1.

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
    """The b with probability `due` beyond ±b; by bisection, for it falls with b."""
    low, high = 0.0, FARTHEST * scale
    for _ in range(60):
        middle = 0.5 * (low + high)
        beyond = special.ndtr((nodes - middle) / step) + special.ndtr((-middle - nodes) / step)
        low, high = (middle, high) if float(density @ beyond) > due else (low, middle)
    return 0.5 * (low + high)


def sequential_p(nominal: Floats, shares: Sequence[float], alpha: float, shape: str) -> Floats:
    """The smallest level at which some look so far would have rejected (Liu and Anderson, 2008).

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
