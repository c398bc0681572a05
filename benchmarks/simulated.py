"""Data sets of which everything is known, for `benchmarks.calibrate`.

Every data set has one active factor A, whose effect is three of its standard errors, and blocks
that carry half of the variance within a cell, or more where they are confounded. Something may be
planted for a check to find, or to see what holds in spite of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import product
from math import sqrt
from typing import NamedTuple

import numpy as np

from doe.analysis.dataset import Covariate, Dataset, FactorColumn, Runs, runs_at

MEAN, FAR = 20.0, 1000.0
"""FAR: so large a mean that no interval with a fourfold σ reaches below 0."""
ACTIVE = 3.0
"""Effect of A in standard errors."""
BLOCKS = (0.0, 1.0, 5.0)
"""Spread of blocks over σ, by their number in a replicate; what confounds must be seen."""
SPLIT_BLOCKS = 2.0
"""The same where B hardly varies within blocks."""
Draw = Callable[[np.random.Generator, int], np.ndarray]
ERRORS: dict[str, Draw] = {
    "normal": lambda rng, n: rng.normal(size=n),
    "exponential": lambda rng, n: rng.exponential(size=n) - 1.0,
    "t₃": lambda rng, n: rng.standard_t(3, size=n) / sqrt(3.0),
}


class Plan(NamedTuple):
    """A design to simulate."""

    name: str
    sizes: tuple[int, ...]
    replicates: int
    blocks: int = 0
    """Blocks per replicate; two of them hide the interaction of all factors."""
    missing: int = 0
    order: int | None = None
    centre: int = 0
    """Runs in the middle of every factor."""
    layout: str = ""
    """What is no crossing of all levels: L18, uneven or split."""
    random: bool = False
    """Whether blocks are taken as random as well."""


PLANS = (
    Plan("2³ × 1", (2,) * 3, 1),
    Plan("2³ × 2", (2,) * 3, 2),
    Plan("2³ × 3, order 1", (2,) * 3, 3, order=1),
    Plan("2³ × 4", (2,) * 3, 4),
    Plan("2³ × 4 in blocks", (2,) * 3, 4, blocks=1),
    Plan("2⁴ × 1, order 2", (2,) * 4, 1, order=2),
    Plan("2⁴ × 2 in two blocks each", (2,) * 4, 2, blocks=2),
    Plan("2⁴ × 2 in blocks, 3 missing", (2,) * 4, 2, blocks=1, missing=3),
    Plan("2⁴ × 3, 6 missing", (2,) * 4, 3, missing=6),
    Plan("2⁵ × 2 in blocks", (2,) * 5, 2, blocks=1),
    Plan("2⁶ × 1", (2,) * 6, 1),
    Plan("2⁶ × 2 in blocks", (2,) * 6, 2, blocks=1),
    Plan(
        "2² × 3 × 2 in blocks, 2 missing", (2, 2, 3), 2, blocks=1, missing=2, order=2, random=True
    ),
    Plan("2³ with 4 centre runs", (2,) * 3, 1, centre=4, order=2),
    Plan("L18", (2, 3, 3, 3, 3), 1, order=1, layout="L18"),
    Plan("2³, 2 or 8 runs by A", (2,) * 3, 1, layout="uneven"),
    Plan("6 blocks of 6, B apart in 1", (2, 2), 1, blocks=1, order=1, layout="split", random=True),
)
NAMED = {plan.name: plan for plan in PLANS}
PLANTED = {
    "spread": "B at high multiplies the spread by 5",
    "drift": "a rise of 3 σ from the first run to the last",
    "slot": "one of four slots is off by 2 σ",
    "host": "one of two hosts is off by 2 σ",
    "tied": "the slot goes with A",
    "outlier": "one run is off by 6 σ",
    "skewed": "y is lognormal",
    "mild": "y is lognormal with a spread of a quarter",
    "interaction": "AB of three standard errors is left out of the model",
    "lost": "half of the runs with B at high are lost",
    "together": "5 of 6 runs with A and B at high are lost",
    "by value": "runs above the mean by σ diverge",
    "unequal": "A at low multiplies the spread by 4",
    "accuracy": "y is the share of 1000 items, .95 or .999 by A",
    "log odds": "the same, and the items are counted on the scale of log odds",
    "counts": "y is Poisson with mean 0.3 or 8 by A",
    "covariate": "a covariate that changes nothing is adjusted for",
}
LOGNORMAL = {"skewed": 0.8, "mild": 0.25}
"""Standard deviation of ln y where that is normal."""
ITEMS, RATES_OF_A = (
    1000,
    {
        "accuracy": (0.95, 0.999),
        "log odds": (0.95, 0.999),
        "counts": (0.3, 8.0),
    },
)
L18 = (
    "00000 00111 00222 01001 01112 01220 02010 02121 02202 "
    "10022 10100 10211 11012 11120 11201 12021 12102 12210"
)


@dataclass(frozen=True)
class Truth:
    """What a data set was made from: means of configurations over all blocks, by level numbers."""

    means: np.ndarray
    logs: np.ndarray  # of ln y
    exponent: float  # at which errors are normal
    share: float  # of the blocks in the variance within a cell
    observed: float = float("nan")  # what A does in these runs, had none been lost

    @property
    def effect(self) -> float:
        """What A does."""
        return float((self.means[1] - self.means[0]).mean())

    @property
    def log_effect(self) -> float:
        """What A does to ln y."""
        return float((self.logs[1] - self.logs[0]).mean())

    def mean(self, held: dict[int, int]) -> float:
        """Mean with some factors held at a level, over all others."""
        at = tuple(held.get(i, slice(None)) for i in range(self.means.ndim))
        return float(np.mean(self.means[at]))

    def mean_of(self, cells: Iterable[tuple[int, ...]]) -> float:
        """Mean of some configurations."""
        return float(np.mean([self.means[cell] for cell in cells]))


def levels_of(plan: Plan) -> tuple[np.ndarray, np.ndarray]:
    """Level numbers of the runs (runs x factors) and their replicates; centre runs are 0.5."""
    cells = np.array(list(product(*map(range, plan.sizes))), dtype=np.float64)
    if plan.layout == "L18":
        cells = np.array([list(map(float, row)) for row in L18.split()])
    if plan.layout == "uneven":
        cells = np.repeat(cells, np.where(cells[:, 0] > 0, 8, 2), axis=0)
    if plan.layout == "split":  # B is the block's own but for one run, A crosses
        block, run = np.divmod(np.arange(36), 6)
        return np.column_stack([run % 2, (block + (run == 5)) % 2]).astype(np.float64), block
    index = np.tile(cells, (plan.replicates, 1))
    centre = np.full((plan.centre, len(plan.sizes)), 0.5)
    replicate = np.repeat(np.arange(plan.replicates), len(cells))
    return np.vstack([index, centre]), np.append(replicate, np.zeros(plan.centre, np.int64))


def simulated(
    plan: Plan, draw: str, rng: np.random.Generator, planted: str = ""
) -> tuple[Dataset, Truth]:
    """One data set, and what is true of it."""
    levels, replicate = levels_of(plan)
    n, a = len(levels), levels[:, 0]
    order, host = rng.permutation(n), rng.permutation(n) % 2
    block, spread = replicate, BLOCKS[plan.blocks]
    if plan.blocks == 2:
        block = 2 * replicate + levels.sum(axis=1).astype(np.int64) % 2
    if plan.layout == "split":
        spread = SPLIT_BLOCKS
    shift = spread * rng.normal(size=block.max() + 1)
    effect, high = ACTIVE * 2.0 / sqrt(n), levels[:, 1] == 1
    slot = a.astype(np.int64) if planted == "tied" else order % 4
    errors = ERRORS[draw](rng, n) * (5.0 if planted == "spread" else 1.0) ** high
    errors *= (4.0 if planted == "unequal" else 1.0) ** (1.0 - a)
    mean = FAR if planted == "unequal" else MEAN
    y = mean + effect * (a - 0.5) + shift[block] + errors
    y += 3.0 * (planted == "drift") * order / (n - 1)
    y += 2.0 * (planted == "slot") * (slot == 0) + 2.0 * (planted == "host") * host
    y += 6.0 * (planted == "outlier") * (np.arange(n) == rng.integers(n))
    y += effect * (planted == "interaction") * (a - 0.5) * (2.0 * high - 1.0)
    middle = mean + float(shift.mean())
    truth = _truth(plan, (middle - effect / 2, middle + effect / 2), spread)
    if planted in LOGNORMAL:
        y, truth = _lognormal(plan, y, shift, effect, LOGNORMAL[planted])
    if planted in RATES_OF_A:
        rate = np.array(RATES_OF_A[planted])[a.astype(np.int64)]
        y = rng.poisson(rate) * 1.0 if planted == "counts" else rng.binomial(ITEMS, rate) / ITEMS
        truth = _truth(plan, RATES_OF_A[planted], spread)
    gone = np.zeros(n, dtype=bool)
    gone[rng.choice(n, plan.missing, replace=False)] = True
    gone |= (planted == "lost") & high & (rng.random(n) < 0.5)
    gone |= (planted == "together") & high & (a == 1) & (rng.random(n) < 5 / 6)
    gone |= (planted == "by value") & (y > middle + 1.0)
    state = "diverged" if planted == "by value" else ""
    truth = replace(truth, observed=float(y[a == 1].mean() - y[a == 0].mean()))
    y[gone] = np.nan
    runs = _runs(plan, levels, block, (order, slot, host), np.where(gone, state, ""))
    if planted == "covariate":
        runs = replace(runs, covariates=(Covariate("x", rng.normal(size=n)),))
    data = Dataset(runs, "y", y, goal="min" if planted == "by value" else "max")
    if planted == "log odds":
        data = replace(data, scale="logit", items=ITEMS)
    return data, truth


def _truth(plan: Plan, ends: tuple[float, float], spread: float) -> Truth:
    means = np.empty(plan.sizes)
    means[0], means[1] = ends
    return Truth(means, np.log(means), 1.0, spread**2 / (1.0 + spread**2))


def _lognormal(
    plan: Plan, y: np.ndarray, shift: np.ndarray, effect: float, spread: float
) -> tuple[np.ndarray, Truth]:
    """The same with ln y in the place of y; its means are those of blocks of different sizes."""
    level = float(np.exp(3.0 + spread * shift + spread**2 / 2).mean())
    logs = np.empty(plan.sizes)
    logs[0], logs[1] = -spread * effect / 2, spread * effect / 2
    truth = Truth(level * np.exp(logs), 3.0 + spread * float(shift.mean()) + logs, 0.0, 0.5)
    return np.exp(3.0 + spread * (y - MEAN)), truth


def _runs(
    plan: Plan,
    levels: np.ndarray,
    block: np.ndarray,
    course: tuple[np.ndarray, np.ndarray, np.ndarray],
    states: np.ndarray,
) -> Runs:
    order, slot, host = course
    factors = tuple(
        FactorColumn(key, key, tuple(map(float, range(size))), numeric=size > 2 or plan.centre > 0)
        for key, size in zip("ABCDEF", plan.sizes, strict=False)
    )
    columns = {f.key: levels[:, i].tolist() for i, f in enumerate(factors)}
    index, position = runs_at(columns, factors)
    return Runs(
        factors=factors,
        index=index,
        position=position,
        block=block if plan.blocks else None,
        run_order=tuple((order + 1).tolist()),
        slot=tuple(f"gpu{i}" for i in slot),
        host=tuple(f"node{i}" for i in host),
        states=tuple(states.tolist()),
    )
