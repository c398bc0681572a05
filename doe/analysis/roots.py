"""Roots and minima of smooth functions of one variable, without the import of `scipy.optimize`."""

from __future__ import annotations

from collections.abc import Callable

Function = Callable[[float], float]
GOLDEN = (5.0**0.5 - 1.0) / 2.0
SHORTEST = 1e-8
"""Length of the section in which a minimum is known well enough."""


def root(function: Function, low: float, high: float, xtol: float = 1e-12) -> float:
    """A root between two points where the function has opposite signs (Chandrupatla, 1997)."""
    a, b = low, high
    fa, fb = function(a), function(b)
    if fa * fb > 0:
        raise ValueError(f"no sign change between {low} and {high}")
    t = 0.5
    for _ in range(200):
        x = a + t * (b - a)
        fx = function(x)
        if (fx > 0) == (fa > 0):
            c, fc, a, fa = a, fa, x, fx
        else:
            c, fc, b, a, fb, fa = b, fb, a, x, fa, fx
        best = a if abs(fa) < abs(fb) else b
        limit = (xtol + 4e-16 * abs(best)) / abs(b - c)
        if limit > 0.5 or fa == 0.0:
            return best
        xi, phi = (a - b) / (c - b), (fa - fb) / (fc - fb)
        t = 0.5
        if phi**2 < xi and (1.0 - phi) ** 2 < 1.0 - xi:  # inverse quadratic interpolation is safe
            t = fa / (fb - fa) * fc / (fb - fc)
            t += (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
        t = min(max(t, limit), 1.0 - limit)
    return best


def minimum(function: Function, low: float, high: float) -> float:
    """Where a function with one minimum between two points has it, by golden sections."""
    a, b = low, high
    x, y = b - GOLDEN * (b - a), a + GOLDEN * (b - a)
    fx, fy = function(x), function(y)
    while b - a > SHORTEST:
        if fx < fy:
            b, y, fy = y, x, fx
            x = b - GOLDEN * (b - a)
            fx = function(x)
        else:
            a, x, fx = x, y, fy
            y = a + GOLDEN * (b - a)
            fy = function(y)
    return (a + b) / 2.0
