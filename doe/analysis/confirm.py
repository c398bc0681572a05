"""Confirmation: fresh runs of the configuration that came out best, beside what was predicted.

The best of many is optimistic: it was chosen for its luck as well. Fresh seeds have no part in the
choice, so plain paired differences on them are honest.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from msgspec import Struct

from doe.analysis.best import Best, Prediction, cell_estimates, cell_values, prediction
from doe.analysis.contrasts import Floats
from doe.analysis.dataset import FreshRuns
from doe.analysis.fit import Fit, refitted
from doe.analysis.fitted import FittedResponse
from doe.analysis.optimum import Optimum
from doe.analysis.pvalues import plain, t_critical

ConfirmationVerdict = Literal["confirmed", "refuted", "open"]


class Gain(Struct, frozen=True):
    """The best minus another configuration, over the fresh seeds that both have."""

    against: str
    seeds: int
    difference: float
    low: float
    high: float
    verdict: ConfirmationVerdict


class Confirmation(Struct, frozen=True):
    """What fresh runs say of the configuration that came out best."""

    config: str
    seeds: int
    mean: float
    predicted: float | None
    predicted_low: float | None  # of the mean of so many fresh runs; None where nobody can say
    predicted_high: float | None
    gains: tuple[Gain, ...]  # over the baseline first
    verdict: ConfirmationVerdict
    """Over the baseline, or over the runner-up where it is the baseline itself."""


def confirm(
    response: FittedResponse,
    fresh: FreshRuns,
    best: Best,
    fitted: Fit | None,
    optimum: Optimum | None = None,
) -> Confirmation:
    """Judge fresh runs; without a fit on the scale of the response there is no interval.

    The `optimum` of a surface is predicted by it, where no run of the design has it.
    """
    alpha, chosen = response.alpha, fresh.configs[0]
    values = fresh.y[0][~np.isnan(fresh.y[0])]
    gains = [
        gain
        for config, other in zip(reversed(fresh.configs[1:]), fresh.y[:0:-1], strict=True)
        if (gain := paired_gain(fresh.y[0], other, config, best.goal, alpha)) is not None
    ]
    cells = {cell.config: cell.cell for cell in best.cells}
    predicted = predicted_at(response, cells[chosen]) if chosen in cells else None
    if predicted is None and optimum is not None:
        predicted = Prediction(chosen, (), optimum.mean, optimum.ci_low, optimum.ci_high)
    low, high = prediction_interval(predicted, len(values), fitted, alpha)
    if low is not None:
        low, high = plain(response.transform.to_response(np.array([low, high]), response.fit.y))
    return Confirmation(
        config=chosen,
        seeds=len(values),
        mean=float(values.mean()),
        predicted=None if predicted is None else predicted.mean,
        predicted_low=low,
        predicted_high=high,
        gains=tuple(gains),
        verdict=gains[0].verdict if gains else "open",
    )


def predicted_at(response: FittedResponse, cell: int) -> Prediction:
    """What the reduced model says of a configuration."""
    value = float(cell_values(response.reduced, [cell])[0])
    return prediction(response, cell_estimates(response.fit), cell, value)


def paired_gain(best: Floats, other: Floats, against: str, goal: str, alpha: float) -> Gain | None:
    """Mean difference over seeds with its t interval; None where fewer than two seeds have both."""
    difference = (best - other)[~np.isnan(best - other)]
    n = len(difference)
    if n < 2:
        return None
    mean = float(difference.mean())
    unit = float(np.abs(difference).max()) or 1.0  # squares of very large values have no number
    spread = float((difference / unit).std(ddof=1)) * unit
    reach = t_critical(alpha, n - 1) * spread / math.sqrt(n)
    better = -1.0 if goal == "min" else 1.0
    verdict: ConfirmationVerdict = "open"
    if abs(mean) > reach:
        verdict = "confirmed" if mean * better > 0.0 else "refuted"
    return Gain(against, n, mean, mean - reach, mean + reach, verdict)


def prediction_interval(
    predicted: Prediction | None, seeds: int, fitted: Fit | None, alpha: float
) -> tuple[float | None, float | None]:
    """Where the mean of fresh runs is expected to lie.

    To the model's interval, which allows for the choice, comes the spread of the new runs and of
    their blocks: ``t sqrt(MS_error / N + MS_block / runs per block * (1 / N + 1 / blocks))`` with
    Satterthwaite's degrees of freedom. ``MS_block / runs per block`` is never below the variance
    between blocks, on average, and its few degrees of freedom make the interval as wide as they
    must.
    """
    low, high = (None, None) if predicted is None else (predicted.ci_low, predicted.ci_high)
    if low is None or high is None or fitted is None or fitted.df_error < 1 or seeds < 1:
        return None, None
    parts = [(fitted.ms_error / seeds, fitted.df_error)]
    if fitted.df_block > 0:
        blocks = fitted.df_block + 1
        variance = fitted.ss_block / fitted.df_block / (fitted.n / blocks)
        parts.append((variance * (1.0 / seeds + 1.0 / blocks), fitted.df_block))
    total = sum(part for part, _ in parts)
    df = total**2 / sum(part**2 / free for part, free in parts)
    spread = t_critical(alpha, df) * math.sqrt(total) * fitted.unit
    return low - spread, high + spread


def by_prediction(response: FittedResponse, best: Best) -> list[int]:
    """Configurations by what the reduced model predicts, then by their mean, the best first.

    Of positive values some of which it predicts at 0 or below, the same model of their logarithms
    ranks: one that is cut at the end of the range would win against all others.
    """
    small, cells = response.reduced, [cell.cell for cell in best.cells]
    predicted = cell_values(small, cells)
    leaves = bool((small.shift + small.unit * predicted <= 0.0).any())
    if response.transform.name == "none" and bool((small.y > 0.0).all()) and leaves:
        predicted = cell_values(refitted(small, np.log(small.y)), cells)
    sign = 1.0 if best.goal == "min" else -1.0
    order = np.argsort(np.round(sign * predicted, 12), kind="stable")  # cells stand by their mean
    return [cells[i] for i in order.tolist()]


def cells_to_confirm(response: FittedResponse, best: Best) -> tuple[int, ...]:
    """The predicted best, the best observed and the predicted runner-up, each once."""
    first, second, *_ = by_prediction(response, best)
    return tuple(dict.fromkeys((first, best.cells[0].cell, second)))
