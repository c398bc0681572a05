"""Runs without a value: who they are, which levels lose them, and what they could change."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from doe.analysis import distributions as stats
from doe.analysis.anova import sums_of_squares
from doe.analysis.censored import BoundedEffect, bounded, effect_bounds
from doe.analysis.coding import run_columns
from doe.analysis.contrasts import MOST_RUNS, Floats, Ints, independent
from doe.analysis.dataset import OFF, Runs
from doe.analysis.effects import term_figures
from doe.analysis.fit import coefficient_maps, fit
from doe.analysis.fitted import FittedResponse
from doe.analysis.model import make_model
from doe.analysis.pvalues import holm
from doe.terms import level_text

WAITING = ("pending", "running")
DIVERGED = "diverged"
ROUNDING = 1e-9
"""Log odds below which the levels lose equally many runs."""
FEWEST_RUNS = 2
"""Runs of a pair of levels below which it is not tested."""


class LevelLoss(Struct, frozen=True):
    """Runs of one level and how many of them have no value."""

    level: str
    lost: int
    n: int


class FactorLoss(Struct, frozen=True):
    """Lost runs by the levels of a factor."""

    factor: str
    levels: tuple[LevelLoss, ...]
    p_exact: float  # Fisher, of more than two levels Freeman and Halton
    log_odds: float | None  # second level against first, Firth's estimate; None of more levels
    p_firth: float | None  # penalised likelihood ratio, all factors together
    p_holm: float  # of the larger of the two, over the factors


class PairLoss(Struct, frozen=True):
    """Lost runs of two levels together."""

    factors: tuple[str, str]
    levels: tuple[str, str]
    lost: int
    n: int
    p: float  # Fisher, against all other runs
    p_holm: float  # over all pairs of levels
    together: bool  # whether either level alone loses fewer (Fisher, at level alpha)


class WorstRank(Struct, frozen=True, gc=False):
    """A term where every diverged run counts as worse than all others."""

    term: str
    df: int
    f: float
    p: float
    p_holm: float


class Missing(Struct, frozen=True):
    """Runs without a value, never dropped in silence."""

    planned: int
    observed: int
    runs: tuple[str, ...]
    states: tuple[str, ...]  # state and reason of each of them
    empty_cells: tuple[str, ...]
    rates: tuple[FactorLoss, ...]
    pairs: tuple[PairLoss, ...]  # the surest first; those with lost runs
    in_range: tuple[BoundedEffect, ...]  # if each lost value lay between the two ends observed
    range_low: float
    range_high: float
    beyond: tuple[BoundedEffect, ...]
    """If each diverged value lay at the worst end or beyond it, without limit, and each other lost
    one between the ends; empty where none has diverged or no goal says which end is worse."""
    worst_rank: tuple[WorstRank, ...]  # empty likewise
    finding: str  # which levels lose runs; empty where none is shown to
    sentence: str


# What loses runs ---------------------------------------------------------------------------------


def firth(X: Floats, lost: Floats, groups: Sequence[Ints]) -> tuple[Floats, Floats]:
    """Firth's penalised logistic regression, and a penalised likelihood ratio p per group.

    Maximises ``l(b) + ½ ln |X'WX|``, which stays finite where levels separate the outcomes. The
    test of a group of columns fixes their coefficients at 0 and keeps them in the penalty (Heinze
    and Schemper).
    """
    every = np.ones(X.shape[1], dtype=bool)
    b, top = _maximise(X, lost, every)
    p = np.ones(len(groups))
    for i, own in enumerate(groups):
        if len(own):
            free = every.copy()
            free[own] = False
            ratio = max(0.0, 2.0 * (top - _maximise(X, lost, free)[1]))
            p[i] = stats.chi2.sf(ratio, len(own))
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
        hat = weight * np.einsum("ij,jk,ik->i", X, inverse, X, optimize=True)
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


def loss_rates(runs: Runs, lost: Floats) -> tuple[FactorLoss, ...]:
    """Lost runs by factor level: an exact test, and Firth's with all factors together.

    Holm's adjustment takes the larger p of the two: far out in its tail, where few runs are lost
    and all of them at one level, Firth's likelihood ratio is smaller than the chance of that.
    """
    if lost.sum() in (0, len(lost)):
        return ()
    columns = [part.contrasts for part in run_columns(runs)]
    owner = np.repeat(np.arange(len(columns)), [part.shape[1] for part in columns])
    kept, _ = independent(np.column_stack([np.ones(len(lost)), *columns]))
    X = np.column_stack([np.ones(len(lost)), *columns])[:, kept]
    source = np.append(-1, owner)[kept]
    groups = [np.flatnonzero(source == i) for i in range(len(columns))]
    b, p_firth = firth(X, lost, groups) if X.shape[1] < len(lost) else (np.zeros(0), None)
    b[np.abs(b) < ROUNDING] = 0.0
    levels = [_level_losses(runs, i, lost) for i in range(len(columns))]
    exact = np.array(
        [
            stats.exact_rates(np.array([lv.lost for lv in own]), np.array([lv.n for lv in own]))
            for own in levels
        ]
    )
    p_holm = holm(exact if p_firth is None else np.maximum(exact, p_firth))
    return tuple(
        FactorLoss(
            factor=key,
            levels=levels[i],
            p_exact=float(exact[i]),
            log_odds=2.0 * float(b[groups[i][0]])
            if p_firth is not None and len(runs.factors[i].levels) == 2 and len(groups[i])
            else None,
            p_firth=None if p_firth is None else float(p_firth[i]),
            p_holm=float(p_holm[i]),
        )
        for i, key in enumerate(runs.keys)
    )


def _level_losses(runs: Runs, i: int, lost: Floats) -> tuple[LevelLoss, ...]:
    numbers, group = np.unique(runs.index[:, i], return_inverse=True)
    counts, gone = np.bincount(group), np.bincount(group, weights=lost)
    return tuple(
        LevelLoss(_level(runs, i, number), int(gone[j]), int(counts[j]))
        for j, number in enumerate(numbers.tolist())
    )


def _level(runs: Runs, factor: int, number: int) -> str:
    return "between levels" if number == OFF else level_text(runs.factors[factor].levels[number])


def pair_losses(runs: Runs, lost: Floats, alpha: float) -> tuple[PairLoss, ...]:
    """Lost runs by pairs of levels: Fisher's exact test of each against all other runs, with Holm.

    A factor that loses runs at a level loses them with every level of another as well. A pair
    loses them `together` where it has more than the other runs of either of its levels.
    """
    if lost.sum() in (0, len(lost)):
        return ()
    found = []
    for i, j in combinations(range(len(runs.factors)), 2):
        for a, b in np.unique(runs.index[:, [i, j]], axis=0).tolist():
            first, second = runs.index[:, i] == a, runs.index[:, j] == b
            both = first & second
            if both.sum() < FEWEST_RUNS or both.all():
                continue
            p = _fisher(lost, both, ~both)
            found.append((i, j, a, b, both, first, second, p))
    if not found:
        return ()
    p_holm = holm(np.array([item[-1] for item in found])).tolist()
    pairs = []
    for (i, j, a, b, both, first, second, p), adjusted_p in zip(found, p_holm, strict=True):
        rate = float(lost[both].mean())
        if rate == 0.0:
            continue
        alone = [own & ~both for own in (first, second)]
        more = [
            bool(rest.any()) and rate > lost[rest].mean() and _fisher(lost, both, rest) < alpha
            for rest in alone
        ]
        pairs.append(
            PairLoss(
                factors=(runs.keys[i], runs.keys[j]),
                levels=(_level(runs, i, a), _level(runs, j, b)),
                lost=int(lost[both].sum()),
                n=int(both.sum()),
                p=p,
                p_holm=adjusted_p,
                together=all(more),
            )
        )
    return tuple(sorted(pairs, key=lambda pair: (pair.p, -pair.lost)))


def _fisher(lost: Floats, one: NDArray[np.bool_], other: NDArray[np.bool_]) -> float:
    events = np.array([lost[one].sum(), lost[other].sum()], np.int64)
    return stats.exact_rates(events, np.array([one.sum(), other.sum()], np.int64))


# What they could change --------------------------------------------------------------------------


def missing(response: FittedResponse) -> Missing | None:
    """Everything about the runs without a value; None when there is none."""
    runs, gone = response.runs, np.ones(response.runs.count, dtype=bool)
    gone[response.observed_runs] = False
    if not gone.any():
        return None
    waiting = np.array([state.startswith(WAITING) for state in runs.states])
    judged = np.flatnonzero(~waiting)
    lost, ended = gone[judged].astype(np.float64), runs.only(judged)
    rates, pairs = loss_rates(ended, lost), pair_losses(ended, lost, response.alpha)
    diverged = gone & np.array([state.startswith(DIVERGED) for state in runs.states])
    known = diverged.any() and response.goal is not None and runs.count <= MOST_RUNS
    empty = sorted(set(runs.cells.tolist()) - set(response.fit.cells.tolist()))
    full = response.fit
    only_diverged = bool((diverged == (gone & ~waiting)).all())
    finding = _finding(rates, pairs, response.alpha, "diverges in" if only_diverged else "loses")
    valueless = np.flatnonzero(gone)
    return Missing(
        planned=runs.count,
        observed=full.n,
        runs=tuple(runs.run_ids[i] for i in valueless),
        states=tuple(runs.states[i] or "missing" for i in valueless),
        empty_cells=tuple(runs.config(cell) for cell in empty),
        rates=rates,
        pairs=pairs,
        in_range=_bounds(response, np.zeros_like(gone)) if runs.count <= MOST_RUNS else (),
        range_low=float(full.y.min()),
        range_high=float(full.y.max()),
        beyond=_bounds(response, diverged) if known else (),
        worst_rank=worst_ranks(response, diverged) if known else (),
        finding=finding,
        sentence=_sentence(finding, rates, len(valueless), runs.count),
    )


def _bounds(response: FittedResponse, beyond: NDArray[np.bool_]) -> tuple[BoundedEffect, ...]:
    """Bounds of the effects of the design as planned: lost values in the range, or beyond it."""
    runs, full = response.runs, response.fit
    model = make_model(runs, full.model.terms)
    planned = [e for e in response.effects if model.df(e.mask) == 1]
    if not planned:
        return ()
    rows = [int(model.columns(e.mask)[0]) for e in planned]
    least, most = float(full.u.min()), float(full.u.max())
    low, high = np.full(runs.count, least), np.full(runs.count, most)
    if response.goal == "min":
        low[beyond], high[beyond] = most, np.inf
    else:
        low[beyond], high[beyond] = -np.inf, least
    low[response.observed_runs] = high[response.observed_runs] = full.u
    ends = effect_bounds(2.0 * coefficient_maps(model)[rows], low, high, full.largest)
    names, values = [e.term for e in planned], [e.effect for e in planned]
    return bounded(names, values, ends[0] * full.unit, ends[1] * full.unit)


def worst_ranks(response: FittedResponse, diverged: NDArray[np.bool_]) -> tuple[WorstRank, ...]:
    """Test the terms on ranks, every diverged run in the worst one (Lachin 1999).

    The ranks of all runs with a value and of those that diverged are fitted by the same model
    (Conover and Iman 1981) and tested by the same type of sums of squares.
    """
    sign = 1.0 if response.goal == "min" else -1.0
    y = np.full(response.runs.count, np.nan)
    y[response.observed_runs] = sign * response.fit.u
    y[diverged] = np.inf
    ranked = np.flatnonzero(~np.isnan(y))
    runs = response.runs.only(ranked)
    model = make_model(runs, response.fit.model.terms)
    full = fit(stats.rankdata(y[ranked]), model, pooled=response.fit.pooled)
    if full.df_error == 0:
        return ()
    sums = sums_of_squares(full, full.kind)
    df = np.array([model.df(term) for term in model.sorted_terms])
    f, p, _ = term_figures(full, model.sorted_terms, sums)
    lines = zip(df.tolist(), f.tolist(), p.tolist(), holm(p).tolist(), strict=True)
    names = map(model.name, model.sorted_terms)
    return tuple(WorstRank(name, *line) for name, line in zip(names, lines, strict=True))


# In words ----------------------------------------------------------------------------------------


def _finding(
    rates: Sequence[FactorLoss], pairs: Sequence[PairLoss], alpha: float, verb: str
) -> str:
    """Return which levels lose runs: pairs of them first, then single ones that no pair explains.

    Where neither is shown, but a pair loses more than all other runs, the surest such pair.
    """
    shown = [pair for pair in pairs if pair.p_holm < alpha]
    called = [pair for pair in shown if pair.together]
    if not called and all(row.p_holm >= alpha for row in rates):
        called = shown[:1]
    parts = [
        f"{_at(pair.factors[0], pair.levels[0])} with {_at(pair.factors[1], pair.levels[1])} "
        f"{verb} {pair.lost} of {pair.n} runs"
        for pair in called[:3]
    ]
    explained = {key for pair in called for key in pair.factors}
    for row in rates:
        if row.p_holm < alpha and row.factor not in explained:
            worst = max(row.levels, key=lambda level: level.lost / level.n)
            others = [level for level in row.levels if level is not worst]
            lost, n = sum(level.lost for level in others), sum(level.n for level in others)
            parts.append(
                f"{_at(row.factor, worst.level)} {verb} {worst.lost} of {worst.n} runs, "
                f"its other level{'s' if len(others) > 1 else ''} {lost} of {n}"
            )
    return f"{'; '.join(parts)}: the remaining runs are not a fair sample." if parts else ""


def _at(factor: str, level: str) -> str:
    return f"{factor} = {level}"


def _sentence(finding: str, rates: Sequence[FactorLoss], lost: int, planned: int) -> str:
    count = f"{lost} of {planned} planned runs have no value."
    if finding:
        return f"{finding} {count}"
    if not rates:
        return f"{count} There are too few runs to say where runs are lost."
    return f"{count} No level and no pair of levels is shown to lose more runs than others."
