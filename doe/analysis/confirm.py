"""Confirmation: fresh runs of the configuration that came out best, beside what was predicted.

The best of many is optimistic: it was chosen for its luck as well. Fresh seeds have no part in the
choice, so plain paired differences on them are honest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar, Literal

import numpy as np
from msgspec import Struct

from doe.analysis.best import Best, Prediction
from doe.analysis.contrasts import Floats, cell_index, sign_columns
from doe.analysis.data import Fresh
from doe.analysis.fit import Fit
from doe.analysis.pvalues import t_critical
from doe.analysis.rescale import units
from doe.terms import parse_term

ConfirmationVerdict = Literal["confirmed", "refuted", "open"]


class Gain(Struct, frozen=True):
    """The best minus another configuration, over the fresh seeds that both have."""

    UNITS: ClassVar = units(difference=1, low=1, high=1)
    against: str
    seeds: int
    difference: float
    low: float
    high: float
    verdict: ConfirmationVerdict


class Confirmation(Struct, frozen=True):
    """What fresh runs say of the configuration that came out best."""

    UNITS: ClassVar = units(mean=1, predicted=1, predicted_low=1, predicted_high=1)
    config: str
    seeds: int
    mean: float
    predicted: float
    predicted_low: float | None  # of the mean of so many fresh runs; None where nobody can say
    predicted_high: float | None
    gains: tuple[Gain, ...]  # over the baseline first
    verdict: ConfirmationVerdict
    """Over the baseline, or over the runner-up where it is the baseline itself."""


def confirm(fresh: Fresh, best: Best, fitted: Fit | None, alpha: float) -> Confirmation:
    """Judge fresh runs; without a fit on the scale of the response there is no prediction."""
    values = fresh.y[0][~np.isnan(fresh.y[0])]
    gains = [
        gain
        for config, other in zip(reversed(fresh.configs[1:]), fresh.y[:0:-1], strict=True)
        if (gain := paired_gain(fresh.y[0], other, config, best.goal, alpha)) is not None
    ]
    predicted = best.reduced.best
    low, high = prediction_interval(predicted, len(values), fitted, alpha)
    return Confirmation(
        config=fresh.configs[0],
        seeds=len(values),
        mean=float(values.mean()),
        predicted=predicted.mean,
        predicted_low=low,
        predicted_high=high,
        gains=tuple(gains),
        verdict=gains[0].verdict if gains else "open",
    )


def paired_gain(best: Floats, other: Floats, against: str, goal: str, alpha: float) -> Gain | None:
    """Mean difference over seeds with its t interval; None where fewer than two seeds have both."""
    difference = (best - other)[~np.isnan(best - other)]
    n = len(difference)
    if n < 2:
        return None
    mean = float(difference.mean())
    reach = t_critical(alpha, n - 1) * float(difference.std(ddof=1)) / math.sqrt(n)
    better = -1.0 if goal == "min" else 1.0
    verdict: ConfirmationVerdict = "open"
    if abs(mean) > reach:
        verdict = "confirmed" if mean * better > 0.0 else "refuted"
    return Gain(against, n, mean, mean - reach, mean + reach, verdict)


def prediction_interval(
    predicted: Prediction, seeds: int, fitted: Fit | None, alpha: float
) -> tuple[float | None, float | None]:
    """Where the mean of fresh runs is expected to lie.

    To the model's interval, which allows for the choice, comes the spread of the new runs and of
    their blocks: ``t sqrt(MS_error / N + MS_block / runs per block * (1 / N + 1 / blocks))`` with
    Satterthwaite's degrees of freedom. ``MS_block / runs per block`` is never below the variance
    between blocks, on average, and its few degrees of freedom make the interval as wide as they
    must.
    """
    low, high = predicted.ci_low, predicted.ci_high
    if low is None or high is None or fitted is None or fitted.df_error < 1 or seeds < 1:
        return None, None
    parts = [(fitted.ms_error / seeds, fitted.df_error)]
    if fitted.df_block > 0:
        blocks = fitted.df_block + 1
        variance = fitted.ss_block / fitted.df_block / (fitted.n / blocks)
        parts.append((variance * (1.0 / seeds + 1.0 / blocks), fitted.df_block))
    total = sum(part for part, _ in parts)
    df = total**2 / sum(part**2 / free for part, free in parts)
    spread = t_critical(alpha, df) * math.sqrt(total)
    return low - spread, high + spread


def by_prediction(best: Best, keys: Sequence[str]) -> list[str]:
    """Configurations by what the reduced model predicts, then by their mean, the best first."""
    sign = 1.0 if best.goal == "min" else -1.0
    coded = np.array([cell.coded for cell in best.cells])
    masks = [parse_term(term, keys) for term in best.reduced.terms]
    predicted = sign * sign_columns(cell_index(coded), masks) @ best.reduced.coefficients[1:]
    order = np.argsort(np.round(predicted, 12), kind="stable")  # cells stand by their mean already
    return [best.cells[i].config for i in order.tolist()]
