"""Looking at a study after each complete replicate without fooling oneself.

At every look each term has a repeated confidence interval (Jennison and Turnbull, 1989): all of
them, over all looks and over the whole family of terms and responses, hold together with
probability 1 - alpha. So a term may be decided at any look, and the study may stop, or go on, for
any reason.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar, Literal, NamedTuple

import numpy as np
from msgspec import Struct

from doe.analysis.contrasts import Floats, Ints, blocks_of, estimable
from doe.analysis.fit import fit, satterthwaite
from doe.analysis.pvalues import t_critical, t_two_sided
from doe.analysis.rescale import units
from doe.analysis.spending import nominal_levels, sequential_p

FIRST_LOOK = 2
"""Replicates that give an error to test against."""
RESERVE = 0.95
"""Share of alpha that is spent; the rest covers what the significance-level approach, exact for
normal statistics alone, may lose on t with cells of unequal variance (see the simulation)."""
DRAWS, SEED = 2000, 42
"""Simulated futures of a study, and their seed."""

TermVerdict = Literal["effect", "negligible", "open"]


class Rule(Struct, frozen=True):
    """How a study is looked at: after every complete replicate from the second on."""

    replicates: int  # at most
    alpha: float = 0.05
    spending: str = "obrien-fleming"

    @property
    def looks(self) -> range:
        """Complete replicates at each look."""
        return range(FIRST_LOOK, self.replicates + 1)

    @property
    def shares(self) -> tuple[float, ...]:
        """Share of the largest sample at each look."""
        return tuple(n / self.replicates for n in self.looks)

    def levels(self, family: int = 1) -> tuple[float, ...]:
        """Nominal two-sided level of each look for one of `family` intervals."""
        return nominal_levels(self.shares, RESERVE * self.alpha / family, self.spending)

    def p(self, nominal: Floats, family: int) -> Floats:
        """P values that know the looks, from those of the looks so far (looks x terms)."""
        unit = family / RESERVE
        return np.minimum(
            1.0, unit * sequential_p(nominal, self.shares, self.alpha / unit, self.spending)
        )


class Look(NamedTuple):
    """Effects after some complete replicates."""

    replicates: int
    masks: tuple[int, ...]
    effect: Floats
    se: Floats
    df: float
    """Of the error, as if the cells' variances differed (Satterthwaite)."""

    @property
    def p(self) -> Floats:
        """Two-sided p of each term as if this look were the only one."""
        return t_two_sided(self.effect / self.se, self.df)

    def reach(self, level: float) -> Floats:
        """Half the width of the intervals at a nominal two-sided level."""
        return critical(level, self.df) * self.se


def critical(level: float, df: float) -> float:
    """Quantile of t with level / 2 beyond it; infinite where nothing may be spent."""
    return t_critical(level, df) if level > 0.0 else math.inf


def looks_at(
    y: Floats, cells: Ints, block: Ints, replicate: Ints, factors: int, rule: Rule
) -> list[Look]:
    """What each look saw: the runs with a value among the first 2, 3, … replicates.

    A look whose runs leave no error to test against is left out, as if nobody had looked.
    """
    looks = []
    for n in rule.looks:
        if n > int(replicate.max()):
            break
        observed = np.flatnonzero((replicate <= n) & ~np.isnan(y))
        if len(observed) < 2:
            continue
        inside = blocks_of(block, observed)
        model = estimable(cells[observed], factors, factors, inside)
        fitted = fit(y[observed], cells[observed], factors, inside, model)
        if fitted.df_error > 0 and fitted.from_pure:
            df = satterthwaite(fitted)
            looks.append(Look(n, model.masks, fitted.effect, fitted.effect_se, df))
    return looks


class TermDecision(Struct, frozen=True):
    """What is known of one term: its interval at the last look holds with all the others."""

    UNITS: ClassVar = units(effect=1, se=1, low=1, high=1)
    mask: int
    effect: float | None  # None where no look could estimate it
    se: float | None
    low: float | None
    high: float | None
    p: float | None  # over all looks and the whole family
    verdict: TermVerdict
    decided_at: int | None  # replicates


def decide(
    looks: Sequence[Look], masks: Sequence[int], family: int, rule: Rule, matters: float
) -> tuple[TermDecision, ...]:
    """Judge the terms of one response.

    A term is decided by the first look whose interval excludes zero (`effect`), or lies within
    ± `matters` (`negligible`). It stays decided: the intervals of all looks hold together.
    """
    levels = rule.levels(family)
    verdicts: dict[int, tuple[TermVerdict, int]] = {}
    last: dict[int, tuple[float, float, float]] = {}
    nominal = np.ones((len(rule.looks), len(masks)))
    for look in looks:
        index = rule.looks.index(look.replicates)
        columns = (look.effect, look.se, look.reach(levels[index]), look.p)
        for mask, *numbers in zip(look.masks, *(c.tolist() for c in columns), strict=True):
            if mask not in masks:
                continue
            effect, se, reach, p = numbers
            nominal[index, masks.index(mask)] = p
            last[mask] = (effect, se, reach)
            if mask not in verdicts and abs(effect) > reach:
                verdicts[mask] = ("effect", look.replicates)
            elif mask not in verdicts and abs(effect) + reach < matters:
                verdicts[mask] = ("negligible", look.replicates)
    adjusted = rule.p(nominal, family).tolist()
    return tuple(
        TermDecision(
            mask, effect, se, effect - reach, effect + reach, p, *verdicts.get(mask, ("open", None))
        )
        if mask in last
        else TermDecision(mask, *(None,) * 5, "open", None)
        for mask, p in zip(masks, adjusted, strict=True)
        for effect, se, reach in [last.get(mask, (0.0, 0.0, 0.0))]
    )


# What is to be expected --------------------------------------------------------------------------


class Start(NamedTuple):
    """Where a study of one response stands; at 0 replicates the effects are the true ones."""

    replicates: int
    effect: Floats
    sigma: float
    """Standard deviation of single runs."""
    decided: Ints
    """1 where a term is decided already."""


def futures(start: Start, cells: int, family: int, rule: Rule, matters: float) -> Floats:
    """Which terms are decided at each further look, in simulated futures of the study.

    The true effects are those given at 0 replicates, else drawn from around the estimates with
    their standard error; errors are normal with one variance.

    Returns
    -------
    (draws, looks to come, terms) array of bool
    """
    rng = np.random.default_rng(SEED)
    n, terms = start.replicates, start.effect.shape[-1]
    unit = 2.0 * start.sigma / np.sqrt(cells)  # standard deviation of an effect in one replicate
    to_come = [look for look in rule.looks if look > n]
    levels = rule.levels(family)
    estimate = np.broadcast_to(start.effect, (DRAWS, terms)).copy()
    truth = estimate + (rng.standard_normal((DRAWS, terms)) * unit / np.sqrt(n) if n else 0.0)
    squares = np.full(DRAWS, start.sigma**2 * (cells - 1) * max(n - 1, 0))
    decided = np.broadcast_to(start.decided > 0, (DRAWS, terms)).copy()
    history = np.zeros((DRAWS, len(to_come), terms), dtype=bool)
    for i, look in enumerate(to_come):
        new = look - n
        block = truth + unit / np.sqrt(new) * rng.standard_normal((DRAWS, terms))
        estimate = (n * estimate + new * block) / look
        gained = (cells - 1) * (new if n else new - 1)
        squares = squares + start.sigma**2 * rng.chisquare(gained, DRAWS)
        n = look
        variance = squares / ((cells - 1) * (n - 1))
        df = (cells - 1) * (n - 1) / (1.0 + 2.0 / (n - 1))  # Satterthwaite's, of equal variances
        reach = critical(levels[rule.looks.index(look)], df) * 2.0 * np.sqrt(variance / (n * cells))
        size = np.abs(estimate)
        decided |= (size > reach[:, None]) | (size + reach[:, None] < matters)
        history[:, i] = decided
    return history


class Expected(Struct, frozen=True):
    """What a study that stops when it is decided is expected to take."""

    replicates: float  # mean
    stopped_by: tuple[float, ...]  # chance that all is decided, at each look
    decided: tuple[float, ...]  # mean share of the terms that are, at each look


def expected(
    effects: Floats, sigma: float, cells: int, family: int, rule: Rule, matters: float
) -> Expected:
    """Mean replicates and the course of the decision, where these are the true effects."""
    start = Start(0, effects, sigma, np.zeros(len(effects), dtype=np.int64))
    decided = futures(start, cells, family, rule, matters)
    over = np.asarray(decided.all(axis=2))
    return Expected(
        replicates=float(FIRST_LOOK + (~over[:, :-1]).sum(axis=1).mean()),
        stopped_by=tuple(over.mean(axis=0).tolist()),
        decided=tuple(decided.mean(axis=(0, 2)).tolist()),
    )
