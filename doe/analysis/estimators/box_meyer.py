"""Box and Meyer's posterior probabilities that factors are active (1993)."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
from msgspec import Struct

from doe.analysis.coding import FactorColumns, run_columns, term_columns
from doe.analysis.contrasts import Floats, block_columns
from doe.analysis.dataset import Runs
from doe.analysis.fitted import FittedResponse

PRIOR = 0.25
GAMMA = 2.0
ORDER = 3
ENUMERATED_FACTORS, ENUMERATED_RUNS = 8, 256
"""The largest design whose sets of factors are all gone through."""
MOST_EFFECTS = 512
"""Columns of all factors together up to which these sets are gone through."""
TOP_MODELS = 10


class FactorProbability(Struct, frozen=True):
    """Posterior probability that a factor is active."""

    factor: str
    probability: float


class ModelProbability(Struct, frozen=True):
    """Posterior probability of a set of active factors."""

    factors: tuple[str, ...]
    probability: float


class BoxMeyer(Struct, frozen=True):
    """Box and Meyer's posterior over the sets of active factors."""

    prior: float
    gamma: float
    order: int  # highest interaction among active factors
    factors: tuple[FactorProbability, ...]
    models: tuple[ModelProbability, ...]  # the most probable ones, best first
    rivals: int  # how many of them are at least half as probable as the first, itself included


def estimate(response: FittedResponse) -> BoxMeyer | None:
    """Posterior over the sets of active factors of one response.

    None where runs that should differ by chance are equal: no spread is left to weigh effects by.
    """
    fit = response.fit
    return (
        None
        if fit.exact or fit.strata is not None
        else box_meyer(fit.u, fit.runs, rounding=fit.rounding)
    )


def box_meyer(
    u: Floats, runs: Runs, *, gamma: float = GAMMA, order: int = ORDER, rounding: float = 0.0
) -> BoxMeyer | None:
    """Posterior over all sets of active factors; None for designs that are not small.

    A factor is active with prior probability π. A set of f active factors has all contrasts of
    their levels and their products up to `order`, the effects, each with prior variance γ²σ²; mean
    and blocks are flat. With Γ = I/γ² on the effects,
    ``p(set | y) ∝ (π / (1 - π))^f γ^-t |X0'X0|^½ / |Γ + X'X|^½ (S / S0)^(-(n - q) / 2)``
    where S = residual plus penalty, t the number of effects and q the columns of X0.
    """
    keys, factors = runs.keys, len(runs.factors)
    if factors > ENUMERATED_FACTORS or len(u) > ENUMERATED_RUNS:
        return None
    base = np.column_stack([np.ones(len(u)), block_columns(runs.block, len(u))])
    flat = np.linalg.qr(base)[0]
    centred = u - flat @ (flat.T @ u)
    if float(np.ptp(centred)) <= rounding:
        return None  # blocks take all of it
    columns = _effect_columns(run_columns(runs), flat, order)
    if sum(part.shape[1] for part in columns.values()) > MOST_EFFECTS:
        return None
    sets = [c for size in range(factors + 1) for c in combinations(range(factors), size)]
    logs = np.array([_log_weight(centred, flat, columns, chosen, gamma) for chosen in sets])
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    share = [
        float(sum(w for w, chosen in zip(weights, sets, strict=True) if i in chosen))
        for i in range(factors)
    ]
    rivals = int((weights >= weights.max() / 2.0).sum())
    ranked = np.argsort(-np.round(weights, 12), kind="stable")[: max(TOP_MODELS, rivals)].tolist()
    return BoxMeyer(
        prior=PRIOR,
        gamma=gamma,
        order=order,
        factors=tuple(FactorProbability(k, p) for k, p in zip(keys, share, strict=True)),
        models=tuple(
            ModelProbability(tuple(keys[j] for j in sets[i]), float(weights[i])) for i in ranked
        ),
        rivals=rivals,
    )


def _effect_columns(
    factors: list[FactorColumns], flat: Floats, order: int
) -> dict[tuple[int, ...], Floats]:
    """Columns of every product of factors up to an order, without mean and blocks."""
    columns = {}
    for size in range(1, min(order, len(factors)) + 1):
        for chosen in combinations(range(len(factors)), size):
            own = term_columns(factors, sum(1 << i for i in chosen))
            columns[chosen] = own - flat @ (flat.T @ own)
    return columns


def _log_weight(
    centred: Floats,
    flat: Floats,
    columns: dict[tuple[int, ...], Floats],
    chosen: tuple[int, ...],
    gamma: float,
) -> float:
    """Logarithm of the unnormalised posterior of one set of active factors."""
    free = len(centred) - int(flat.shape[1])
    odds = len(chosen) * math.log(PRIOR / (1.0 - PRIOR))
    parts = [own for factors, own in columns.items() if set(factors) <= set(chosen)]
    if not parts:
        return odds - 0.5 * free * math.log(float((centred**2).sum()))
    X = np.column_stack(parts)
    precision = X.T @ X + np.eye(X.shape[1]) / gamma**2
    moment = X.T @ centred
    rest = float(centred @ centred - moment @ np.linalg.solve(precision, moment))
    determinant = float(np.linalg.slogdet(precision)[1])
    spread = int(X.shape[1]) * math.log(gamma)
    return odds - spread - 0.5 * determinant - 0.5 * free * math.log(rest)
