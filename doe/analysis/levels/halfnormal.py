"""Half-normal plot over orthonormal single-degree contrasts, and Lenth's method on them."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from doe.analysis.lenth import HalfNormalPoint, Lenth, half_normal_points, lenth
from doe.analysis.levels.fit import LevelFit


class SingleContrast(Struct, frozen=True, gc=False):
    """One degree of freedom of a term, on the scale of a two-level effect."""

    term: str
    label: str  # what it compares, such as ``optimizer adam − sgd``
    value: float
    p: float | None  # Lenth's, simulated; None with fewer than three contrasts


class HalfNormal(Struct, frozen=True):
    """The contrasts in the order of the model, and the points by rising size."""

    contrasts: tuple[SingleContrast, ...]
    points: tuple[HalfNormalPoint, ...]
    lenth: Lenth | None  # reference line y = x / pse


def half_normal_plot(fit: LevelFit, alpha: float = 0.05) -> HalfNormal:
    """Every degree of freedom of the terms as one contrast, all with the same variance.

    ``c_j = 2 q_j'y / √n`` where q_j is column j of the model after those before it, of length 1.
    The contrasts are independent with variance ``4σ²/n``; of a two-level term of a balanced
    design c is the effect. In an unbalanced design they depend on the order of the terms, which
    is the rising one.
    """
    source = fit.matrix.fitted_source
    chosen = np.flatnonzero(source > 0)
    values = 2.0 / np.sqrt(fit.n) * fit.rotated[chosen] * fit.unit
    every = [label for label, kept in zip(fit.matrix.labels, fit.matrix.kept, strict=True) if kept]
    labels = [every[j] for j in chosen.tolist()]
    margins = lenth(values, labels, alpha) if len(values) else None
    p = [None] * len(labels) if margins is None else list(margins.p)
    names = [fit.matrix.name(s) for s in source[chosen].tolist()]
    contrasts = tuple(
        SingleContrast(*line) for line in zip(names, labels, values.tolist(), p, strict=True)
    )
    return HalfNormal(contrasts, half_normal_points(values, labels), margins)
