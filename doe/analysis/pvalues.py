"""P values: statistics, tails of t and F, and adjustment for many tests."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from doe.analysis import distributions as stats
from doe.analysis.contrasts import Floats, Ints


def t_two_sided(t: Floats, df: float) -> Floats:
    """``P(|T| >= |t|) = 2 sf(|t|)`` of Student's t."""
    return np.asarray(2.0 * stats.t.sf(np.abs(t), df))


def f_upper(f: Floats, df1: float, df2: float) -> Floats:
    """``P(F >= f) = sf(f)`` of Fisher's F."""
    return np.asarray(stats.f.sf(f, df1, df2))


@lru_cache(maxsize=1024)
def t_critical(alpha: float, df: float) -> float:
    """Quantile of t with α/2 beyond it."""
    return float(stats.t.isf(alpha / 2.0, df))


def quotient(value: float, divisor: float) -> float | None:
    """Return the quotient of two values that are not negative; infinite over 0, None for 0 / 0."""
    if divisor > 0.0:
        return float(value / divisor)
    return float("inf") if value > 0.0 else None


def signed_quotient(value: float, se: float) -> float | None:
    """``t = value / se``; infinite over 0, None for 0 / 0."""
    size = quotient(abs(value), se)
    return None if size is None else math.copysign(size, value)


def holm(p: Floats) -> Floats:
    """Holm's step-down adjustment: ``max_{j<=i} min(1, (m - j + 1) p_(j))``."""
    order = np.argsort(p, kind="stable")
    factor = np.arange(len(p), 0, -1)
    adjusted = np.minimum(1.0, np.maximum.accumulate(factor * p[order]))
    return _unsort(adjusted, order)


def benjamini_hochberg(p: Floats) -> Floats:
    """Benjamini and Hochberg's step-up adjustment: ``min_{j>=i} min(1, m p_(j) / j)``."""
    order = np.argsort(p, kind="stable")
    scaled = p[order] * len(p) / np.arange(1, len(p) + 1)
    adjusted = np.minimum(1.0, np.minimum.accumulate(scaled[::-1])[::-1])
    return _unsort(adjusted, order)


def adjusted(p: Floats) -> tuple[Floats, Floats]:
    """Holm's and Benjamini and Hochberg's p over the tests that exist; NaN for the others."""
    known = np.isfinite(p)
    p_holm, p_bh = np.full((2, len(p)), np.nan)
    p_holm[known], p_bh[known] = holm(p[known]), benjamini_hochberg(p[known])
    return p_holm, p_bh


def significant(p: float | None, alpha: float) -> bool:
    """Return whether a test is significant at a level; one that does not exist is not."""
    return p is not None and p <= alpha


def none_for_nan(values: Floats) -> list[float | None]:
    """Floats of Python, with None for what does not exist."""
    if np.isfinite(values).all():
        return list(values.tolist())
    return [None if value != value else value for value in values.tolist()]


def _unsort(values: Floats, order: Ints) -> Floats:
    result = np.empty_like(values)
    result[order] = values
    return result
