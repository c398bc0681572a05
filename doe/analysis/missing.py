"""Runs without a value: who they are, whether factors cause them, and what they could change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from doe.analysis import distributions as stats
from doe.analysis.case import Case
from doe.analysis.censored import BoundedEffect, bounded, effect_bounds
from doe.analysis.contrasts import MOST_RUNS, Floats, estimable
from doe.analysis.data import Runs
from doe.analysis.fit import estimator
from doe.analysis.pvalues import holm
from doe.analysis.rescale import units
from doe.terms import parse_term

WAITING = ("pending", "running")


class DivergenceRow(Struct, frozen=True):
    """Rate of missing or diverged runs at the two levels of a factor."""

    factor: str
    low_lost: int
    low_n: int
    high_lost: int
    high_n: int
    p_exact: float  # Fisher
    log_odds: float  # Firth's penalised estimate, all factors together
    p_firth: float  # penalised likelihood ratio
    p_holm: float  # of the larger of the two


class Missing(Struct, frozen=True):
    """Runs without a value, never dropped in silence."""

    UNITS: ClassVar = units(bound_low=1, bound_high=1)
    planned: int
    observed: int
    runs: tuple[str, ...]
    states: tuple[str, ...]  # state and reason of each of them
    empty_cells: tuple[str, ...]
    rates: tuple[DivergenceRow, ...]
    bounds: tuple[BoundedEffect, ...]  # every gone value anywhere in the two bounds
    bound_low: float
    bound_high: float
    sentence: str


def firth(X: Floats, lost: Floats) -> tuple[Floats, Floats]:
    """Firth's penalised logistic regression, and a penalised likelihood ratio p per column.

    Maximises ``l(b) + ½ ln |X'WX|``, which stays finite where levels separate the outcomes. The
    test of a column fixes its coefficient at 0 and keeps it in the penalty (Heinze and Schemper).
    The first column is the mean and has p = NaN.
    """
    every = np.ones(X.shape[1], dtype=bool)
    b, top = _maximise(X, lost, every)
    p = np.full(X.shape[1], np.nan)
    for j in range(1, X.shape[1]):
        free = every.copy()
        free[j] = False
        ratio = max(0.0, 2.0 * (top - _maximise(X, lost, free)[1]))
        p[j] = stats.chi2.sf(ratio, 1)
    return b, p


def _maximise(X: Floats, lost: Floats, free: NDArray[np.bool_]) -> tuple[Floats, float]:
    """Newton's method on the penalised score, with step halving."""
    b = np.zeros(X.shape[1])
    value = _penalised(X, lost, b)
    for _ in range(100):
        chance = 1.0 / (1.0 + np.exp(-(X @ b)))
        weight = np.maximum(chance * (1.0 - chance), 1e-300)
        information = X.T @ (weight[:, None] * X)
        inverse = np.linalg.inv(information)
        hat = weight * np.einsum("ij,jk,ik->i", X, inverse, X)
        score = X.T @ (lost - chance + hat * (0.5 - chance))
        step = np.zeros(len(b))
        step[free] = np.linalg.solve(information[np.ix_(free, free)], score[free])
        step *= min(1.0, 5.0 / max(float(np.abs(step).max()), 1e-300))
        size = 1.0
        while _penalised(X, lost, b + size * step) < value - 1e-12 and size > 1e-8:
            size *= 0.5
        b = b + size * step
        value = _penalised(X, lost, b)
        if float(np.abs(score[free]).max(initial=0.0)) < 1e-9:
            break
    return b, value


def _penalised(X: Floats, lost: Floats, b: Floats) -> float:
    eta = X @ b
    chance = 1.0 / (1.0 + np.exp(-eta))
    weight = np.maximum(chance * (1.0 - chance), 1e-300)
    likelihood = float(lost @ eta - np.logaddexp(0.0, eta).sum())
    return likelihood + 0.5 * float(np.linalg.slogdet(X.T @ (weight[:, None] * X))[1])


def divergence_rates(runs: Runs, lost: Floats, judged: Sequence[int]) -> tuple[DivergenceRow, ...]:
    """Lost runs by factor level: Fisher's exact test, and Firth's with all factors together.

    Holm's adjustment takes the larger p of the two: far out in its tail, where few runs are lost
    and all of them at one level, Firth's likelihood ratio is smaller than the chance of that.
    """
    coded = runs.coded[list(judged)].astype(np.float64)
    y = lost[list(judged)]
    if y.sum() == 0 or y.sum() == len(y):
        return ()
    b, p = firth(np.column_stack([np.ones(len(y)), coded]), y)
    counts = []
    for column in coded.T:
        high = column > 0
        low_lost, low_n = int(y[~high].sum()), int((~high).sum())
        counts.append((low_lost, low_n, int(y[high].sum()), int(high.sum())))
    exact = np.array(
        [stats.fisher_exact(np.array([[a, n - a], [c, m - c]]))[1] for a, n, c, m in counts]
    )
    adjusted = holm(np.maximum(exact, p[1:]))
    columns = zip(exact.tolist(), (2.0 * b[1:]).tolist(), p[1:].tolist(), adjusted, strict=True)
    return tuple(
        DivergenceRow(key, *count, *map(float, figures))
        for key, count, figures in zip(runs.keys, counts, columns, strict=True)
    )


def missing(case: Case) -> Missing | None:
    """Everything about the runs without a value; None when there is none."""
    runs, y = case.runs, case.y
    valueless = np.flatnonzero(np.isnan(y))
    if len(valueless) == 0:
        return None
    lost = np.isnan(y).astype(np.float64)
    judged = [i for i, state in enumerate(runs.states) if not state.startswith(WAITING)]
    rates = divergence_rates(runs, lost, judged)
    cells = runs.cells
    empty = sorted(set(cells.tolist()) - set(cells[~np.isnan(y)].tolist()))
    low, high = float(np.nanmin(y)), float(np.nanmax(y))
    return Missing(
        planned=len(y),
        observed=len(y) - len(valueless),
        runs=tuple(runs.run_ids[i] for i in valueless),
        states=tuple(runs.states[i] or "missing" for i in valueless),
        empty_cells=tuple(runs.config(cell) for cell in empty),
        rates=rates,
        bounds=_worst_case(case, (low, high)) if len(y) <= MOST_RUNS else (),
        bound_low=low,
        bound_high=high,
        sentence=_sentence(rates, len(valueless), len(y), case.alpha),
    )


def _worst_case(case: Case, ends: tuple[float, float]) -> tuple[BoundedEffect, ...]:
    """Effects of the design as planned, each gone value anywhere in the observed range."""
    runs, y = case.runs, case.y
    model = estimable(runs.cells, len(runs.keys), case.order, runs.block)
    row_of = {mask: i for i, mask in enumerate(model.masks)}
    effects = {parse_term(e.term, runs.keys): e for e in case.effects}
    planned = {mask: effect for mask, effect in effects.items() if mask in row_of}
    rows = [row_of[mask] for mask in planned]
    maps = 2.0 * estimator(runs.cells, runs.block, model)[rows]
    low = np.where(np.isnan(y), ends[0], y)
    high = np.where(np.isnan(y), ends[1], y)
    names = [effect.term for effect in planned.values()]
    values = [effect.effect for effect in planned.values()]
    return bounded(names, values, *effect_bounds(maps, low, high))


def _sentence(rates: Sequence[DivergenceRow], lost: int, planned: int, alpha: float) -> str:
    lead = f"{lost} of {planned} planned runs have no value."
    losing = [row for row in rates if row.p_holm < alpha]
    if not rates:
        return f"{lead} Nothing can be said yet about what loses runs."
    if not losing:
        return f"{lead} No factor is shown to lose runs."
    parts = [f"{r.factor} at {'high' if r.log_odds > 0 else 'low'}" for r in losing]
    return f"{lead} Runs are lost more often with {', '.join(parts)}: the rest is no fair sample."
