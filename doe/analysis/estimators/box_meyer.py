"""Box and Meyer's posterior probabilities that factors are active (1993)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np
from msgspec import Struct

from doe.analysis.case import Case
from doe.analysis.contrasts import Floats, Ints, block_columns, sign_columns
from doe.analysis.fitted import ROUNDING

PRIOR = 0.25
GAMMA = 2.0
ORDER = 3
ENUMERATED_FACTORS, ENUMERATED_RUNS = 8, 256
"""The largest design whose sets of factors are all gone through."""
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


def estimate(case: Case) -> BoxMeyer | None:
    """Posterior over the sets of active factors of one response."""
    return box_meyer(case.fit.y, case.fit.cells, case.keys, case.fit.block)


def box_meyer(
    y: Floats,
    cells: Ints,
    keys: Sequence[str],
    block: Ints | None = None,
    *,
    gamma: float = GAMMA,
    order: int = ORDER,
) -> BoxMeyer | None:
    """Posterior over all sets of active factors; None for designs that are not small.

    A factor is active with prior probability π. A set of f active factors has all their effects
    and interactions up to `order`, each with prior variance γ²σ²; mean and blocks are flat. With
    Γ = I/γ² on the effects,
    ``p(set | y) ∝ (π / (1 - π))^f γ^-t |X0'X0|^½ / |Γ + X'X|^½ (S / S0)^(-(n - q) / 2)``
    where S = residual plus penalty, t the number of effects and q the columns of X0.
    """
    factors = len(keys)
    if factors > ENUMERATED_FACTORS or len(y) > ENUMERATED_RUNS or float(np.ptp(y)) == 0.0:
        return None
    base = np.column_stack([np.ones(len(y)), block_columns(block, len(y))])
    flat = np.linalg.qr(base)[0]
    centred = y - flat @ (flat.T @ y)
    if float(np.ptp(centred)) <= ROUNDING * float(np.abs(y).max()):
        return None  # blocks take all of it
    sets = [c for size in range(factors + 1) for c in combinations(range(factors), size)]
    logs = np.array([_log_weight(centred, flat, cells, chosen, gamma, order) for chosen in sets])
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


def _log_weight(
    centred: Floats,
    flat: Floats,
    cells: Ints,
    chosen: tuple[int, ...],
    gamma: float,
    order: int,
) -> float:
    """Logarithm of the unnormalised posterior of one set of active factors."""
    free = len(centred) - int(flat.shape[1])
    odds = len(chosen) * math.log(PRIOR / (1.0 - PRIOR))
    masks = [
        sum(1 << i for i in part)
        for size in range(1, min(order, len(chosen)) + 1)
        for part in combinations(chosen, size)
    ]
    if not masks:
        return odds - 0.5 * free * math.log(float((centred**2).sum()))
    columns = sign_columns(cells, masks)
    columns = columns - flat @ (flat.T @ columns)
    precision = columns.T @ columns + np.eye(len(masks)) / gamma**2
    moment = columns.T @ centred
    rest = float(centred @ centred - moment @ np.linalg.solve(precision, moment))
    determinant = float(np.linalg.slogdet(precision)[1])
    spread = len(masks) * math.log(gamma)
    return odds - spread - 0.5 * determinant - 0.5 * free * math.log(rest)
