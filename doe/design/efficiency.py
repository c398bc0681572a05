"""Efficiency of a design for its model, before anything runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from doe.design.configurations import Levels
from doe.design.kinds import chosen_kind, optimal
from doe.design.model import (
    Floats,
    block_columns,
    d_efficiency,
    independent_columns,
    model_matrix,
    named_terms,
)
from doe.design.runs import Design
from doe.study.values import Factor, Study
from doe.terms import FACTORS, level_text, order

SHARES = 41
"""Points of the curve of the prediction variance over fractions of the region."""


class Efficiency(NamedTuple):
    """Efficiency of a design for a model, relative to an orthogonal design of the same size."""

    percent: float
    coefficients: int
    """Coefficients of the model and the blocks."""
    words: str
    """The terms of the model in words."""
    mean_variance: float | None = None
    """Variance of the predicted mean over the region, relative to the variance of a run; None if
    the model of this kind is chosen after the runs."""
    largest_variance: float | None = None
    profile: tuple[float, ...] = ()
    """Variance not exceeded in fractions of the region, from none to all in equal steps."""


def design_efficiency(study: Study, design: Design) -> Efficiency:
    """Compute the D-efficiency of a design for its usual model, with its blocks.

    Where the kind leaves the model to the runs: two-factor interactions where the runs can tell
    them apart, else main effects. More than two levels of a factorial are compared each by itself.
    """
    terms, factors, runs = chosen_kind(study).terms(), study.factors, design.runs
    points = [run.level_values for run in runs]
    if terms is None and not study.two_level:
        factors = tuple(Factor(f.key, tuple(map(level_text, f.levels))) for f in factors)
        texts = [tuple(map(level_text, levels)) for levels in points]
        at_levels = [all(t in f.levels for t, f in zip(p, factors, strict=True)) for p in texts]
        points = [p for p, inside in zip(texts, at_levels, strict=True) if inside]
        runs = tuple(r for r, inside in zip(runs, at_levels, strict=True) if inside)
    blocks = block_columns([run.block for run in runs])
    models = (
        [terms]
        if terms is not None
        else [
            named_terms(factors, "interactions"),
            named_terms(factors, "linear"),
        ]
    )
    for model in models:
        matrix = np.column_stack([model_matrix(factors, points, model), blocks])
        if percent := d_efficiency(matrix):
            break
    kept = independent_columns(matrix)  # excluded cells take columns from their interaction
    matrix = matrix[:, kept]
    told = Efficiency(percent or d_efficiency(matrix), matrix.shape[1], _words(model))
    if terms is None:
        return told
    inside = kept[: len(kept) - blocks.shape[1]]
    given = study.design.get("constraints", ())
    settings = optimal.Settings(constraints=tuple(given) if study.kind == "optimal" else ())
    inverse = np.linalg.inv(matrix.T @ matrix)[: inside.sum(), : inside.sum()]

    radius = _distance(factors, points).max()

    def variance(places: Sequence[Levels]) -> Floats:
        """Compute the prediction variance no farther from the centre than the runs, at the mean
        block."""
        near = _distance(factors, places) <= radius + 1e-6
        at = model_matrix(factors, places, model)[near][:, inside]
        return np.asarray(((at @ inverse) * at).sum(axis=1))

    spread = variance(optimal.region_points(study, settings))
    corners = variance(optimal.corner_points(study, settings))
    profile = np.quantile(spread, np.linspace(0.0, 1.0, SHARES))
    profile[-1] = max(profile[-1], corners.max(initial=0.0))
    return told._replace(
        mean_variance=float(spread.mean()),
        largest_variance=float(profile[-1]),
        profile=tuple(profile.tolist()),
    )


def _distance(factors: Sequence[Factor], points: Sequence[Levels]) -> Floats:
    """Return the distance of points from the centre of the ranges."""
    ranged = [i for i, factor in enumerate(factors) if factor.ranged]
    places = [[factors[i].position(point[i]) for i in ranged] for point in points]
    return np.asarray(np.linalg.norm(np.array(places).reshape(len(points), -1), axis=1))


def _words(terms: Sequence[int]) -> str:
    orders = {order(term) for term in terms}
    words = ["main effects"] if 1 in orders else []
    words += ["interactions"] if orders - {1} else []
    words += ["squares"] if any(term > FACTORS for term in terms) else []
    return ", ".join(words)
