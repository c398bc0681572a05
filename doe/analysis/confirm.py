"""Confirmation: fresh runs of the configuration that came out best, beside what was predicted.

The best of many is optimistic: it was chosen for its luck as well. Fresh seeds have no part in the
choice, so plain paired differences on them are honest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from scipy import special

from doe.analysis.best import (
    Best,
    Prediction,
    cell_estimates,
    cell_values,
    choice_of,
    choices_met,
    in_range,
    mean_over,
    prediction,
)
from doe.analysis.contrasts import Floats, Ints
from doe.analysis.dataset import FreshRuns
from doe.analysis.diagnostics import Diagnostics, shows_spread, spread_checks
from doe.analysis.fit import Fit
from doe.analysis.fitted import FittedResponse
from doe.analysis.optimum import Optimum
from doe.analysis.pvalues import none_for_nan, t_critical
from doe.analysis.strata import drawn_groups
from doe.analysis.streams import combined, decompose
from doe.errors import DoeError, nearest

ConfirmationVerdict = Literal["confirmed", "refuted", "open"]


class Gain(Struct, frozen=True):
    """The best minus another configuration, over the fresh seeds that both have."""

    against: str
    seeds: int
    difference: float
    low: float | None  # None where seeds share whole plots, so that nothing tells the error
    high: float | None
    verdict: ConfirmationVerdict


class Confirmation(Struct, frozen=True):
    """Evidence of fresh runs on the configuration that came out best."""

    config: str
    seeds: int
    mean: float
    predicted: float | None
    predicted_low: float | None  # of the mean of so many fresh runs; None where nobody can say
    predicted_high: float | None
    gains: tuple[Gain, ...]  # over the baseline first
    verdict: ConfirmationVerdict
    """Over the baseline, or over the runner-up where it is the baseline itself."""
    over_conditions: bool = False  # whether configurations are choices, and means over conditions


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
    single = fresh
    fresh = over_all_conditions(response, fresh, best)
    alpha, chosen = response.alpha, fresh.configs[0]
    values = fresh.y[0][~np.isnan(fresh.y[0])]
    gains = [
        replace(gain, low=None, high=None, verdict="open") if _fresh_share(fresh, 0, i) else gain
        for i in reversed(range(1, len(fresh.configs)))
        if (gain := paired_gain(fresh.y[0], fresh.y[i], fresh.configs[i], best.goal, alpha))
        is not None
    ]
    cells = {cell.config: cell.cell for cell in best.cells}
    predicted = predicted_at(response, cells[chosen]) if chosen in cells else None
    if predicted is None and optimum is not None:
        predicted = Prediction(chosen, (), optimum.mean, optimum.ci_low, optimum.ci_high)
    low, high = prediction_interval(predicted, len(values), fitted, alpha)
    if low is not None:
        low, high = none_for_nan(
            response.transform.to_response(np.array([low, high]), response.fit.y)
        )
    return Confirmation(
        config=chosen,
        seeds=len(values),
        mean=float(values.mean()),
        predicted=None if predicted is None else predicted.mean,
        predicted_low=low,
        predicted_high=high,
        gains=tuple(gains),
        verdict=gains[0].verdict if gains else "open",
        over_conditions=fresh is not single,
    )


def predicted_at(response: FittedResponse, cell: int) -> Prediction:
    """Return what the reduced model says of a configuration."""
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
    """Return where the mean of fresh runs is expected to lie.

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
    """Configurations by what the reduced model predicts, then by their mean, the best first."""
    cells = [cell.cell for cell in best.cells]
    predicted = cell_values(in_range(response).reduced, cells)
    sign = 1.0 if best.goal == "min" else -1.0
    order = np.argsort(np.round(sign * predicted, 12), kind="stable")  # cells stand by their mean
    return [cells[i] for i in order.tolist()]


def cells_to_confirm(response: FittedResponse, best: Best) -> tuple[int, ...]:
    """Return the predicted best, the best observed and the predicted runner-up, each once.

    Where conditions are met and not chosen: the choices with the best mean over all of them, the
    best worst case and the second mean, each in its best condition.
    """
    choices = choices_met(response, best.cells)
    if len(choices) > 1 and best.over_conditions:
        rank = {name: mean_over(own) for name, own in choices.items()}
        second = sorted(rank, key=rank.__getitem__, reverse=best.goal == "max")[1]
        names = dict.fromkeys((*(of.config for of in best.over_conditions), second))
        return tuple(choices[name][0].cell for name in names)
    first, second_cell, *_ = by_prediction(response, best)
    return tuple(dict.fromkeys((first, best.cells[0].cell, second_cell)))


def in_all_conditions(
    response: FittedResponse, best: Best, cells: Sequence[int]
) -> tuple[int, ...]:
    """Return configurations with those of the same choice in every condition, by condition."""
    choices = choices_met(response, best.cells)
    rows = [choices.get(choice_of(response, cell)) for cell in cells]
    if not choices or any(row is None for row in rows):
        return tuple(cells)
    return tuple(
        dict.fromkeys(c.cell for line in zip(*filter(None, rows), strict=True) for c in line)
    )


def over_all_conditions(response: FittedResponse, fresh: FreshRuns, best: Best) -> FreshRuns:
    """Return fresh runs as means of each choice over the conditions that it has met.

    Unchanged where there are none, or where runs share whole plots.
    """
    numbers = {cell.config: cell.cell for cell in best.cells}
    choices = choices_met(response, best.cells)
    if not choices or fresh.plots or not set(fresh.configs) <= set(numbers):
        return fresh
    names = [choice_of(response, numbers[config]) for config in fresh.configs]
    met = len(next(iter(choices.values())))
    whole = [name for name in dict.fromkeys(names) if names.count(name) == met]
    if whole[:1] != names[:1]:
        return fresh
    rows = [[i for i, own in enumerate(names) if own == name] for name in whole]
    return FreshRuns(tuple(whole), np.stack([fresh.y[own].mean(axis=0) for own in rows]))


# Which of two wins --------------------------------------------------------------------------------


BEST, RUNNER_UP, BASELINE = "best", "runner-up", "baseline"
CHOSEN_PAIRS = ((BEST, RUNNER_UP), (BEST, BASELINE))
"""Pairs that are compared where nobody names others."""
Basis = Literal["all runs", "own runs", "seeds won", "nothing"]
"""Source of the error: that of all configurations, the pair's own differences, or no more than
which of the two has won with each seed; nothing where replicates share whole plots or a random
condition."""
UNKNOWN = (None, None, None)
"""Neither a probability nor an interval: there is no estimate of the error."""


class WinProbability(Struct, frozen=True):
    """Probability that a configuration beats another, both with the same fresh seed."""

    config: str
    against: str
    asked: str  # "best against runner-up", or nothing where configurations were named
    seeds: int  # replicates that both have
    fresh: bool  # whether these had no part in the choice of the configurations
    basis: Basis
    probability: float | None  # None where nothing tells the error
    low: float | None
    high: float | None


class _Difference(NamedTuple):
    """A difference of two configurations in the better direction."""

    delta: float
    scale: float  # Var(delta) over the mean square
    ms: float
    df: float
    single: float  # variance of one run

    def probability(self, alpha: float) -> tuple[float, float, float]:
        """Φ of the standardised difference, with its interval."""
        t = self.delta / math.sqrt(self.ms * self.scale)
        standard = math.sqrt(self.ms * self.scale / (2.0 * self.single))
        low, high = special.ndtr(standard * noncentrality(t, self.df, alpha)).tolist()
        return float(special.ndtr(standard * t)), low, high


def noncentrality(t: float, df: float, alpha: float) -> Floats:
    """Interval of the noncentrality of an observed t.

    ``P(T <= t) = E Φ(t √(χ² / df) - nc)``, by the trapezoidal rule over the normal score of χ²,
    inverted by bisection; SciPy's inverse loses the far tails.
    """
    z = np.linspace(-9.0, 9.0, 181)
    weight = np.exp(-(z**2) / 2.0)
    weight /= weight.sum()
    half = np.where(
        z < 0.0,
        special.gammaincinv(df / 2.0, special.ndtr(z)),
        special.gammainccinv(df / 2.0, special.ndtr(-z)),
    )
    point = t * np.sqrt(2.0 * half / df)
    ends = []
    for sign in (1.0, -1.0):  # beyond either end a tail of α/2 is left
        low, high = point.min() - 10.0, point.max() + 10.0
        for _ in range(60):
            middle = (low + high) / 2.0
            beyond = float(weight @ special.ndtr(sign * (middle - point)))
            if (beyond > alpha / 2.0) == (sign > 0):
                high = middle
            else:
                low = middle
        ends.append(middle)
    return np.array(ends)


def wins(won: float, seeds: int, alpha: float) -> tuple[float, float, float]:
    """Share of seeds won, with the interval of Clopper and Pearson (1934), whatever the errors."""
    lost = seeds - won
    low = special.betaincinv(won, lost + 1.0, alpha / 2.0) if won > 0.0 else 0.0
    high = special.betaincinv(won + 1.0, lost, 1.0 - alpha / 2.0) if lost > 0.0 else 1.0
    return won / seeds, float(low), float(high)


def basis_of(fit: Fit, checks: Diagnostics, alpha: float) -> Basis:
    """Return the source of the error, by the p values of the checks one by one.

    An alarm of all checks together comes too late: with four replicates of eight configurations it
    misses most spreads that differ by a factor of four, and two configurations with little of it
    are then compared by an error that is not theirs.
    """
    doubted = [f for f in checks.findings if f.p is not None and f.p < alpha]
    if any(f.check == "normality" for f in doubted):
        return "seeds won"
    if fit.strata is not None:  # a fresh seed brings fresh whole plots, as each replicate did
        return "own runs"
    even = shows_spread(fit) and not any(f in doubted for f in spread_checks(checks))
    return "all runs" if even else "own runs"


def beats(
    response: FittedResponse, best: Best | None, checks: Diagnostics
) -> tuple[WinProbability, ...]:
    """Return every pair that was asked for; the usual ones where seeds have streams."""
    asked_for = response.options.beats
    if best is None and asked_for:
        raise DoeError("without a goal no configuration beats another; give a goal, min or max")
    pairs = asked_for or (CHOSEN_PAIRS if response.fit.seeding is not None else ())
    if best is None or not pairs:
        return ()
    roles = _roles(response, best)
    basis = basis_of(response.fit, checks, response.alpha)
    answers = []
    for words in pairs:
        pair = (roles.get(words[0], words[0]), roles.get(words[1], words[1]))
        asked = f"{words[0]} against {words[1]}" if set(words) & roles.keys() else ""
        if pair[0] != pair[1] or not asked:  # the best may be the baseline itself
            answers.append(_pair(response, pair, asked, basis))
    return tuple(answers)


def _roles(response: FittedResponse, best: Best) -> dict[str, str]:
    """Return the configurations that words name: those that were confirmed, if some were."""
    runs, fresh = response.runs, response.data.fresh
    cells = () if fresh is not None else by_prediction(response, best)[:2]
    order = list(map(runs.config, cells)) if fresh is None else list(fresh.configs)
    baseline = response.data.baseline or runs.config(0)
    return {BASELINE: baseline} | dict(zip((BEST, RUNNER_UP), order, strict=False))


def _pair(
    response: FittedResponse, pair: tuple[str, str], asked: str, basis: Basis
) -> WinProbability:
    full, runs, fresh = response.fit, response.runs, response.data.fresh
    cells = np.unique(full.cells).tolist()
    numbers = runs.config_names(cells)
    for config in pair:
        if config not in numbers:
            raise DoeError(
                f"{config!r} is not a configuration with runs{nearest(config, numbers)}; expected "
                f"one such as {next(iter(numbers))!r}, or {BEST}, {RUNNER_UP}, {BASELINE}"
            )
    first, second = (numbers[config] for config in pair)
    pair = (runs.config(first), runs.config(second))
    if first == second:
        raise DoeError(f"{pair[0]} is compared with itself; expected two configurations")
    sign = 1.0 if response.goal == "max" else -1.0
    if fresh is not None and fresh.complete and set(pair) <= set(fresh.configs):
        forward = response.transform.scale.forward
        i, j = map(fresh.configs.index, pair)
        x, y = (forward(fresh.y[of]) / full.unit for of in (i, j))
        differences = sign * (x - y)[~np.isnan(x - y)]
        if _fresh_share(fresh, i, j):
            return WinProbability(*pair, asked, len(differences), True, "nothing", *UNKNOWN)
        own: Basis = "seeds won" if basis == "seeds won" else "own runs"
        answer = _of_runs(differences, None, own, response.alpha)
        return WinProbability(*pair, asked, len(differences), True, own, *(answer or UNKNOWN))
    of, other = _paired(full, first, second)
    differences = full.u[of] - full.u[other]
    alpha = response.alpha / _choices(len(cells), asked)
    if any(shares_plots(group.of[of], group.of[other]) for group in drawn_groups(full.model)):
        return WinProbability(*pair, asked, len(differences), False, "nothing", *UNKNOWN)
    if basis == "all runs":
        pooled = _pooled(full, first, second, sign)
        answer = None if pooled is None else pooled.probability(alpha)
    else:
        labels = None if full.seeding is None else full.seeding.seeds[:, of]
        answer = _of_runs(sign * differences, labels, basis, alpha)
    return WinProbability(*pair, asked, len(differences), False, basis, *(answer or UNKNOWN))


def _of_runs(
    differences: Floats, labels: Ints | None, basis: Basis, alpha: float
) -> tuple[float, float, float] | None:
    """Probability and interval from a pair's own runs; None where these are too few."""
    if basis == "own runs":
        difference = _of_series(differences, labels)
        return None if difference is None else difference.probability(alpha)
    if len(differences) == 0:
        return None
    # Replicates that share seeds tell no less than as many as the stream with the fewest has.
    rows = [] if labels is None else [len(np.unique(row)) for row in labels]
    seeds = min(rows, default=len(differences))
    won = float((differences > 0.0).mean() + (differences == 0.0).mean() / 2.0)
    return wins(won * seeds, seeds, alpha)


def _choices(cells: int, asked: str) -> int:
    """Pairs that the data chose from; by Bonferroni the interval holds whichever they chose."""
    if not asked:
        return 1
    return cells * (cells - 1) // 2 if RUNNER_UP in asked else cells - 1


def _pooled(fit: Fit, x: int, y: int, sign: float) -> _Difference | None:
    """Return the difference of two cells against the error of all."""
    if fit.df_error < 1 or not fit.ms_error > 0.0:
        return None
    estimates = cell_estimates(fit)
    i, j = np.searchsorted(estimates.cells, [x, y])
    weight = np.zeros(len(estimates.cells))
    weight[[i, j]] = 1.0, -1.0
    delta = sign * float(estimates.means[i] - estimates.means[j])
    over = fit.seed_error
    df, single = (float(fit.df_error), fit.ms_error) if over is None else (over.df, over.single)
    return _Difference(delta, estimates.variance_of(weight), fit.ms_error, df, single)


def _paired(fit: Fit, x: int, y: int) -> tuple[Ints, Ints]:
    """Runs of two cells, in pairs over the blocks and random conditions that have both.

    Without these all runs are independent, and those of the two cells pair up in their order.
    """
    runs = [np.flatnonzero(fit.cells == cell).tolist() for cell in (x, y)]
    met = [fit.runs.index[:, i] for i, factor in enumerate(fit.runs.factors) if factor.random]
    if fit.block is not None:
        met.append(fit.block)
    if not met:
        pairs = list(zip(*runs, strict=False))
    else:
        labels = np.column_stack(met).tolist()
        first, second = ({tuple(labels[r]): r for r in of} for of in runs)
        pairs = [(first[block], second[block]) for block in sorted(first.keys() & second.keys())]
    first_runs, second_runs = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return first_runs, second_runs


def shares_plots(first: Ints, second: Ints) -> bool:
    """Return whether pairs of runs share whole plots with other pairs, where these do not
    cancel.
    """
    apart = np.stack([first, second])[:, first != second]
    return len(np.unique(apart)) < apart.size


def _fresh_share(fresh: FreshRuns, i: int, j: int) -> bool:
    """Return whether the fresh runs of two configurations share whole plots from seed to seed."""
    both = ~np.isnan(fresh.y[i] + fresh.y[j])
    return any(shares_plots(plot[i, both], plot[j, both]) for plot in fresh.plots)


def _of_series(differences: Floats, labels: Ints | None) -> _Difference | None:
    """Return the difference of two configurations against its own spread over replicates."""
    n = len(differences)
    if n < 2 or float(np.ptp(differences)) == 0.0:
        return None
    rows = np.empty((0, n), dtype=np.int64) if labels is None else labels
    split = decompose(tuple(map(str, range(len(rows)))), rows)
    if split.df.min() < 1:
        return None
    ms, df, single = combined(split, differences[None] / np.sqrt(2.0))
    return _Difference(float(differences.mean()), 2.0 / n, ms, df, single)
