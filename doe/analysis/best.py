"""The best configuration: cell means, Hsu's comparisons with the best, a reduced model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from doe.analysis.case import Case
from doe.analysis.contrasts import Floats, Model, evaluate
from doe.analysis.fit import Fit, design_matrix, fit, without_blocks
from doe.analysis.hsu import with_the_best
from doe.analysis.pvalues import t_critical
from doe.terms import parse_term, term_name

MOST_CELLS = 1024
"""Hsu's comparisons need a table of all pairs of cells; of more cells the best are listed."""


class CellMean(Struct, frozen=True, gc=False):
    """One configuration on the response scale."""

    config: str
    coded: tuple[int, ...]
    n: int
    mean: float
    ci_low: float | None
    ci_high: float | None
    mcb_low: float | None  # Hsu: this mean minus the best of the others
    mcb_high: float | None
    among_best: bool  # cannot be told from the best


class Prediction(Struct, frozen=True):
    """A configuration under the reduced model."""

    config: str
    mean: float
    ci_low: float | None
    ci_high: float | None


class ReducedModel(Struct, frozen=True):
    """The active terms closed under strong heredity, and what they predict to be best."""

    terms: tuple[str, ...]
    added: tuple[str, ...]  # parents that heredity brought in
    coefficients: tuple[float, ...]  # the mean first
    sigma: float | None
    r2: float | None
    best: Prediction


class Best(Struct, frozen=True):
    """Configurations ranked, the best first."""

    goal: str
    cells: tuple[CellMean, ...]  # at most 1024
    critical: float | None  # Hsu's d, for the cell that is best
    among_best: tuple[str, ...]
    reduced: ReducedModel
    sentence: str


def best(case: Case) -> Best:
    """Rank the configurations, the best first; intervals are back on the response scale,
    Hsu's bounds on the analysed one.
    """
    full, alpha = case.fit, case.alpha
    unique, counts = np.unique(full.cells, return_counts=True)
    adjusted = without_blocks(full.y, full.cells, full.block)
    means = np.bincount(np.searchsorted(unique, full.cells), weights=adjusted) / counts
    sign = 1.0 if case.goal == "max" else -1.0
    order = np.argsort(-sign * means, kind="stable")
    sigma = float(np.sqrt(full.ms_error)) if full.df_error > 0 else float("nan")
    reach = np.full(len(means), np.nan)
    low = high = np.full(len(means), np.nan)
    critical = None
    among = np.zeros(len(means), dtype=bool)
    among[order[0]] = True
    if full.df_error > 0:
        reach = t_critical(alpha, full.df_error) * sigma / np.sqrt(counts)
        if 1 < len(means) <= MOST_CELLS and sigma > 0:
            lower, upper, d = with_the_best(sign * means, counts, sigma, full.df_error, alpha)
            low, high = (lower, upper) if sign > 0 else (-upper, -lower)
            among, critical = upper > 0, float(d[order[0]])
    view = case.transform.scale.back
    columns = (view(means), view(means - reach), view(means + reach), low, high)
    listed = [_optional(column) for column in columns]
    cells = tuple(
        CellMean(
            config=case.runs.config(int(unique[i])),
            coded=tuple(1 if unique[i] >> j & 1 else -1 for j in range(len(case.keys))),
            n=int(counts[i]),
            mean=float(columns[0][i]),
            ci_low=listed[1][i],
            ci_high=listed[2][i],
            mcb_low=listed[3][i],
            mcb_high=listed[4][i],
            among_best=bool(among[i]),
        )
        for i in order[:MOST_CELLS].tolist()
    )
    names = tuple(cell.config for cell in cells if cell.among_best)
    return Best(
        goal=case.goal,
        cells=cells,
        critical=critical,
        among_best=names,
        reduced=reduced_model(case),
        sentence=_sentence(cells[0].config, names, len(means), critical),
    )


def _optional(values: Floats) -> list[float | None]:
    return [None if value != value else value for value in values.tolist()]


def reduced_model(case: Case) -> ReducedModel:
    """Terms significant at false discovery rate α and all their parents, fitted again.

    Strong heredity: an interaction stays only with every term that it contains, which keeps the
    model's predictions independent of how levels are coded.
    """
    full, keys, alpha = case.fit, case.keys, case.alpha
    active = {
        parse_term(e.term, keys) for e in case.effects if e.p_bh is not None and e.p_bh < alpha
    }
    parents = {mask for mask in full.model.masks if any(mask & a == mask for a in active)}
    masks = tuple(sorted(active | parents))
    model = Model(masks, {}, (), (), full.model.balanced)
    small = fit(full.y, full.cells, full.factors, full.block, model)
    coef = np.zeros(1 << full.factors)
    coef[0] = small.mean
    coef[list(masks)] = small.coef
    predicted = evaluate(coef)
    cell = int(np.argmax(predicted) if case.goal == "max" else np.argmin(predicted))
    reach = _reach(small, cell, alpha)
    view = case.transform.scale.back
    ends = view(predicted[cell] + reach * np.array([0.0, -1.0, 1.0])).tolist()
    return ReducedModel(
        terms=tuple(term_name(mask, keys) for mask in masks),
        added=tuple(term_name(mask, keys) for mask in sorted(parents - active)),
        coefficients=(small.mean, *small.coef.tolist()),
        sigma=float(np.sqrt(small.ms_error)) if small.df_error > 0 else None,
        r2=1.0 - small.ss_residual / small.ss_total if small.ss_total > 0 else None,
        best=Prediction(
            case.runs.config(cell),
            float(view(predicted[cell : cell + 1])[0]),
            None if np.isnan(reach) else ends[1],
            None if np.isnan(reach) else ends[2],
        ),
    )


def _reach(small: Fit, cell: int, alpha: float) -> float:
    """Half width of the interval for the mean of a cell, averaged over blocks."""
    if small.df_error == 0:
        return float("nan")
    if small.model.balanced:
        scale = (1 + len(small.coef)) / small.n
    else:
        X = design_matrix(small.cells, small.block, small.model)
        at = np.zeros(X.shape[1])
        first = X.shape[1] - len(small.coef)
        at[0] = 1.0
        odd = [(mask & ~cell).bit_count() & 1 for mask in small.model.masks]
        at[first:] = [1.0 - 2.0 * bit for bit in odd]
        scale = float(at @ np.linalg.solve(X.T @ X, at))
    return t_critical(alpha, small.df_error) * float(np.sqrt(scale * small.ms_error))


def _sentence(top: str, among: Sequence[str], cells: int, critical: float | None) -> str:
    if critical is None:
        return f"{top} has the best value; without an error estimate no other can be ruled out."
    if len(among) == 1:
        return f"{top} is the best configuration."
    others = f"{len(among) - 1} other configuration{'s' if len(among) > 2 else ''}"
    return f"{top} is best; {others} of {cells} cannot be told from it."
