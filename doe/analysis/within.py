"""A configuration that is known to be close to the best, at declared looks."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from doe.analysis import distributions as stats
from doe.analysis.contrasts import Floats, Ints
from doe.analysis.dataset import Dataset, Runs
from doe.analysis.estimators.covariates import refusal
from doe.analysis.fit import Fit, fit
from doe.analysis.model import make_model
from doe.analysis.sequential import EARLY_ORDER, LEAST_DF
from doe.analysis.spending import Rule
from doe.errors import DoeError
from doe.terms import config_name, terms_up_to

MOST_CONFIGURATIONS = 1024
"""Configurations up to which all pairs are compared."""
MISFIT = 0.05
"""Level at which a model is given up for one with interactions of the next order."""
DRAWS, SEED, ROUNDS = 4000, 42, 4
"""Of the number of pairs: draws, their seed, and how often it is refined; it settles to 1 %."""
ROUNDING = 1e-9
"""Share of the largest variance below which one is rounding."""


class CloseToBest(NamedTuple):
    """The configuration of a response that is known to be closest to the best."""

    response: str
    config: str
    gap: float
    """Upper bound of its distance from the best, over all looks so far."""
    is_known: bool
    """Whether that is as close as asked for."""
    replicates: float
    """At the look that showed it, or at the last one."""


def closest(data: Dataset, portion: Ints, rule: Rule, family: int, within: float) -> CloseToBest:
    """Return the configuration with the least bound at the first look that shows it within
    `within`.

    The bounds of all looks hold together, so each configuration has the least of its own so far.
    The error is shared by `family` responses (Bonferroni).
    """
    best = CloseToBest(data.response, "–", math.inf, False, 0.0)
    bounds: dict[str, float] = {}
    for n in rule.looks:
        observed = np.flatnonzero((portion <= n) & ~np.isnan(data.y))
        if n > int(portion.max()) or len(observed) < 2 or not np.ptp(data.y[observed]):
            continue
        for config, bound in gaps_to_best(data, observed, rule, n, family).items():
            bounds[config] = min(bound, bounds.get(config, math.inf))
        if not bounds:
            continue
        config = min(bounds, key=bounds.__getitem__)
        gap, when = bounds[config], rule.replicates(n)
        best = CloseToBest(data.response, config, gap, gap <= within, when)
        if best.is_known:
            break
    return best


def gaps_to_best(
    data: Dataset, observed: Ints, rule: Rule, portions: int, family: int
) -> dict[str, float]:
    """``max_c (m_c - m_s + t s_cs)`` of each configuration s; empty without an error.

    A bound is false only if the comparison of s with the best configuration fails, which is one of
    k - 1, so t has the one-sided level of one of `effective_pairs` comparisons at this look. Means
    are those of main effects and two-factor interactions against their residual, and of higher
    interactions as well where repeated runs show a lack of fit. Conditions are averaged over.
    """
    runs = data.runs.only(observed)
    y = data.y[observed]
    factors = len(runs.factors)
    if refusal(runs, terms_up_to(factors, EARLY_ORDER)):
        return {}
    for order in range(min(EARLY_ORDER, factors), factors + 1):
        full = fit(y, make_model(runs, terms_up_to(factors, order)), pooled=True)
        if rule.is_early(portions) or not _misfit(full):
            break
    if full.df_error < LEAST_DF:
        return {}
    rows, configs = _choices(full, data.runs)
    if len(configs) < 2 or not full.model.estimable(rows - rows[0]).all():
        return {}
    means, covariance = full.estimate(rows)
    own = np.diag(covariance)
    se = np.sqrt(np.maximum(own[:, None] + own[None, :] - 2.0 * covariance, 0.0) * full.ms_error)
    pairs = effective_pairs(covariance.tobytes(), len(configs), rule.alpha / family)
    level = rule.negligible_levels(family * pairs)[rule.looks.index(portions)] / 2.0
    t = float(stats.t.isf(level, full.df_error))
    better = means if data.goal == "max" else -means
    bound = (better[None, :] - better[:, None] + t * se).max(axis=1)  # 0 with itself
    return dict(zip(configs, (full.unit * np.maximum(bound, 0.0)).tolist(), strict=True))


@lru_cache(maxsize=256)
def effective_pairs(covariance: bytes, count: int, level: float) -> float:
    """Return the number of independent comparisons that err as often as those of one mean with all.

    With Z the m standardized differences from one mean, ``P(max Z > z) = m P(Z > z) E[1/N]``: a
    difference drawn at random is put beyond z, and N is how many are there then (Naiman and Priebe,
    2001). So it is m E[1/N], at the z that is exceeded with probability `level`. The mean that is
    known best represents all: its differences share the least.
    """
    matrix = np.frombuffer(covariance).reshape(count, count)
    values, vectors = np.linalg.eigh(matrix)
    known = values > ROUNDING * values[-1]
    root = vectors[:, known] * np.sqrt(values[known])
    one = int(np.argmin(np.diag(matrix)))
    directions = np.delete(root, one, axis=0) - root[one]
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    rng, m = np.random.default_rng(SEED), len(directions)
    chosen, share = directions[rng.integers(m, size=DRAWS)], rng.random(DRAWS)
    free = rng.standard_normal((DRAWS, root.shape[1]))
    free -= (free * chosen).sum(axis=1)[:, None] * chosen
    pairs = float(m)
    for _ in range(ROUNDS):
        tail = level / pairs
        z, beyond = stats.norm.ppf(tail), stats.norm.ppf(share * tail)  # of the lower tail
        drawn = (free + beyond[:, None] * chosen) @ directions.T
        pairs = m * float((1.0 / np.maximum((drawn <= z).sum(axis=1), 1)).mean())
    return pairs


def _misfit(full: Fit) -> bool:
    """Return whether repeated runs show that the model leaves something out."""
    ss, df = full.lack_of_fit
    if df < 1 or full.df_pure < 1 or full.ss_pure <= 0:
        return False
    f = (ss / df) / (full.ss_pure / full.df_pure)
    return float(stats.f.sf(f, df, full.df_pure)) < MISFIT


def _choices(full: Fit, runs: Runs) -> tuple[Floats, tuple[str, ...]]:
    """Rows of the model at every choice of the planned runs, and their names."""
    met = sum(1 << i for i, f in enumerate(runs.factors) if f.role == "condition")
    chosen = (1 << len(runs.factors)) - 1 & ~met
    cells = np.unique(runs.cells)
    rows = full.model.cell_rows(cells.tolist())
    names = [
        config_name(runs.keys, runs.levels_of(cell, chosen)) if met else runs.config(cell)
        for cell in cells.tolist()
    ]
    groups: dict[str, list[int]] = {}
    for i, name in enumerate(names):
        groups.setdefault(name, []).append(i)
    if len(groups) > MOST_CONFIGURATIONS:
        raise DoeError(
            f"{len(groups)} configurations are too many to compare each with the best; expected at "
            f"most {MOST_CONFIGURATIONS}"
        )
    return np.stack([rows[own].mean(axis=0) for own in groups.values()]), tuple(groups)
