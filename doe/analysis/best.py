"""The best configuration: cell means, Hsu's comparisons with the best, a reduced model."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from doe.analysis.contrasts import Floats, Model, evaluate
from doe.analysis.fit import Fit, design_matrix, fit, without_blocks
from doe.analysis.hsu import with_the_best
from doe.analysis.tails import t_critical
from doe.analysis.transform import unpower
from doe.analysis.values import Best, CellMean, Effect, Prediction, ReducedModel, Transformation
from doe.terms import parse_term, term_name

MOST_CELLS = 1024
"""Hsu's comparisons need a table of all pairs of cells; of more cells the best are listed."""


def best(
    full: Fit,
    effects: Sequence[Effect],
    keys: Sequence[str],
    goal: str,
    chosen: Transformation,
    alpha: float,
    label: Callable[[int], str],
) -> Best:
    """Rank the configurations, the best first; intervals are back on the response scale,
    Hsu's bounds on the analysed one.
    """
    unique, counts = np.unique(full.cells, return_counts=True)
    adjusted = without_blocks(full.y, full.cells, full.block)
    place = np.searchsorted(unique, full.cells)
    means = np.bincount(place, weights=adjusted) / counts
    sign = 1.0 if goal == "max" else -1.0
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
    view = _viewer(chosen)
    columns = (view(means), view(means - reach), view(means + reach), low, high)
    listed = [_optional(column) for column in columns]
    cells = tuple(
        CellMean(
            config=label(int(unique[i])),
            coded=tuple(1 if unique[i] >> j & 1 else -1 for j in range(len(keys))),
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
        goal=goal,
        cells=cells,
        critical=critical,
        among_best=names,
        reduced=reduced_model(full, effects, keys, goal, chosen, alpha, label),
        sentence=_sentence(cells[0].config, names, len(means), critical),
    )


def _viewer(chosen: Transformation) -> Callable[[Floats], Floats]:
    exponent = chosen.exponent
    return (lambda z: z) if exponent is None else (lambda z: unpower(z, exponent))


def _optional(values: Floats) -> list[float | None]:
    return [None if value != value else value for value in values.tolist()]


def reduced_model(
    full: Fit,
    effects: Sequence[Effect],
    keys: Sequence[str],
    goal: str,
    chosen: Transformation,
    alpha: float,
    label: Callable[[int], str],
) -> ReducedModel:
    """Terms significant at false discovery rate α and all their parents, fitted again.

    Strong heredity: an interaction stays only with every term that it contains, which keeps the
    model's predictions independent of how levels are coded.
    """
    active = {parse_term(e.term, keys) for e in effects if e.p_bh is not None and e.p_bh < alpha}
    parents = {mask for mask in full.model.masks if any(mask & a == mask for a in active)}
    masks = tuple(sorted(active | parents))
    model = Model(masks, {}, (), (), full.model.balanced)
    small = fit(full.y, full.cells, full.factors, full.block, model)
    coef = np.zeros(1 << full.factors)
    coef[0] = small.mean
    coef[list(masks)] = small.coef
    predicted = evaluate(coef)
    cell = int(np.argmax(predicted) if goal == "max" else np.argmin(predicted))
    reach = _reach(small, cell, alpha)
    view = _viewer(chosen)
    ends = view(predicted[cell] + reach * np.array([0.0, -1.0, 1.0])).tolist()
    return ReducedModel(
        terms=tuple(term_name(mask, keys) for mask in masks),
        added=tuple(term_name(mask, keys) for mask in sorted(parents - active)),
        coefficients=(small.mean, *small.coef.tolist()),
        sigma=float(np.sqrt(small.ms_error)) if small.df_error > 0 else None,
        r2=1.0 - small.ss_residual / small.ss_total if small.ss_total > 0 else None,
        best=Prediction(
            label(cell),
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
