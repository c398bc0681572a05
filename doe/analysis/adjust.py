"""Adjustment of p values for many tests."""

from __future__ import annotations

import numpy as np

from doe.analysis.contrasts import Floats


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


def _unsort(values: Floats, order: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> Floats:
    result = np.empty_like(values)
    result[order] = values
    return result
