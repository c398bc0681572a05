"""Configurations ranked by their means, Hsu's comparisons with the best, and the model's optimum.

Critical values are found by numerical integration, not by simulation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from msgspec import Struct, structs
from numpy.typing import NDArray

from doe.analysis import distributions as stats
from doe.analysis.contrasts import MOST_COLUMNS, Floats, Ints, evaluate
from doe.analysis.dataset import Level, Runs
from doe.analysis.distributions import root
from doe.analysis.fit import Fit, computed_once, refitted
from doe.analysis.fitted import FittedResponse
from doe.analysis.means import spread_nodes
from doe.analysis.model import BLOCK, make_model
from doe.analysis.pvalues import none_for_nan, t_critical
from doe.analysis.scales.log import exponential
from doe.analysis.transform import Transformation
from doe.analysis.unequal_spread import UnequalSpread, unequal_spread
from doe.errors import are, counted, listed
from doe.terms import FACTORS, MEAN, config_in_words, config_name, order, term_name, terms_up_to

MOST_NAMED = 5
"""Terms that a sentence names."""
MOST_CELLS = 1024
"""Hsu's comparisons need a table of all pairs of cells; of more cells the best are listed."""
MOST_PREDICTED = 1 << 17
"""Combinations of levels up to which the model's optimum is sought over all of them."""
SMALLEST_ALPHA = 1e-9
"""Below this the quadrature cannot separate 1 - α from 1; Bonferroni's bound takes its place."""
MOST_CORRELATIONS = 256
"""Means for whose differences all correlations are looked through."""


class RankedCell(Struct, frozen=True, gc=False, kw_only=True):
    """One configuration on the response scale; Hsu's bounds are on the analysed one."""

    config: str
    cell: int  # number of the configuration, below 0 between levels
    levels: tuple[int, ...]  # number of the level of each factor, -1 between levels
    n: int
    mean: float
    ci_low: float | None  # intervals hold for all configurations at once
    ci_high: float | None
    mcb_low: float | None  # Hsu: this mean minus the best of the others
    mcb_high: float | None
    among_best: bool  # statistically tied with the best
    geometric: float | None = None  # the geometric mean, where the interval is that one's
    point: tuple[Level, ...] = ()  # value of each factor, of a point between levels


class Prediction(Struct, frozen=True, gc=False):
    """A configuration under the reduced model, on the response scale."""

    config: str  # of the factors in the model; the others are open
    levels: tuple[int, ...]
    mean: float | None  # None where the model says nothing of it
    ci_low: float | None  # None where no run has its levels of the factors in the model
    ci_high: float | None
    observed: float | None = None  # the mean of its runs after blocks; None where there are none
    n: int = 0
    outside: bool = False  # whether the interval leaves out what is predicted, or observed
    geometric: bool = False  # whether mean and interval are of geometric means


class ReducedModel(Struct, frozen=True):
    """The active terms closed under strong heredity, and what they predict to be best."""

    terms: tuple[str, ...]
    added: tuple[str, ...]  # parts that heredity brought in
    sigma: float | None
    r2: float | None
    best: Prediction


class ConditionBest(Struct, frozen=True):
    """The choice with the best observed mean where the conditions are these."""

    condition: str
    config: str  # of the choices
    mean: float


class OverConditions(Struct, frozen=True):
    """A choice judged over all conditions: by its mean, or by its worst condition."""

    by: str  # "mean" or "worst case"
    config: str  # of the choices
    value: float


class Best(Struct, frozen=True, kw_only=True):
    """Configurations ranked, the best first, and the model that predicts the best."""

    goal: str
    cells: tuple[RankedCell, ...]  # at most 1024
    critical: float | None  # Hsu's d, for the cell that is best
    among_best: tuple[str, ...]
    assumed: tuple[str, ...]  # terms taken as zero, because they are confounded with blocks
    reduced: ReducedModel
    sentence: str
    conditions: tuple[ConditionBest, ...] = ()  # empty where every factor is chosen
    over_conditions: tuple[OverConditions, ...] = ()
    spread: str = ""  # which spread intervals use, where one does not hold for all runs


# What the runs say of configurations -------------------------------------------------------------


class Estimates(NamedTuple):
    """Means of the configurations after blocks, and their covariance over σ², both of u."""

    cells: Ints
    counts: Ints
    means: Floats
    covariance: Floats  # 1/n of each where means are independent, else a matrix
    assumed: tuple[int, ...]  # terms taken as zero, because they are confounded with blocks
    unequal: UnequalSpread | None = None  # where one variance does not hold for all runs
    df: float = 0.0  # of the error of a difference, the smallest where they have several
    is_adjusted: bool = False  # for blocks that do not hold every cell equally often

    @property
    def variance(self) -> Floats:
        """Variance of each mean over σ²."""
        return self.covariance if self.covariance.ndim == 1 else np.diag(self.covariance)

    def variance_of(self, weight: Floats) -> float:
        """Variance of a weighted sum of the means over σ²."""
        if self.covariance.ndim == 1:
            return float(weight**2 @ self.covariance)
        return float(weight @ self.covariance @ weight)

    @property
    def comparable(self) -> bool:
        """Whether every two means differ by something that the runs estimate."""
        if self.covariance.ndim == 1:
            return True
        own = np.diag(self.covariance)
        variance = own[:, None] + own[None, :] - 2.0 * self.covariance
        return bool((variance[~np.eye(len(own), dtype=bool)] > 1e-9 * own.max()).all())


@computed_once
def cell_estimates(fit: Fit) -> Estimates:
    """Return what the runs say of each configuration, all blocks weighted alike.

    Where every block holds every cell equally often, or there is no block, these are the cells'
    means. Elsewhere they are predictions ``L b`` of the largest model that the runs can tell from
    the blocks, with covariance ``L (X'X)^-1 L'``: means of cells that share no block differ by
    their blocks as well.
    """
    runs = fit.runs
    cells, group, counts = np.unique(runs.cells, return_inverse=True, return_counts=True)
    if fit.strata is not None:
        return _in_strata(fit, cells, counts)
    if not runs.covariates and (runs.block is None or _complete(group, runs.block)):
        means = np.bincount(group, weights=fit.u) / counts
        weights = (group == np.arange(len(cells))[:, None]) / counts[:, None]
        unequal = unequal_spread(fit, weights) if len(cells) <= MOST_CELLS else None
        return Estimates(cells, counts, means, 1.0 / counts, (), unequal, fit.df_error)
    model = fit.model
    if min(runs.every, len(cells)) <= MOST_COLUMNS and len(runs.factors) <= 16:
        model = make_model(runs, [*terms_up_to(len(runs.factors)), *fit.model.terms])
    largest = refitted(fit, model=model)
    rows = model.cell_rows(cells.tolist())
    assumed = (
        ()
        if model.rank >= len(cells) + model.df(BLOCK) + len(model.adjusting)
        else (
            *model.with_blocks,
            *model.inestimable,
        )
    )
    if any(order(term) == 1 for term in assumed):  # nothing is known of what the blocks did
        means = np.bincount(group, weights=fit.u) / counts
        return Estimates(cells, counts, means, 1.0 / counts, assumed)
    inside = rows[:, model.fitted]
    covariance = largest.estimate(rows)[1] if len(cells) <= MOST_CELLS else largest.variance(rows)
    unequal = unequal_spread(fit, inside @ largest.maps) if len(cells) <= MOST_CELLS else None
    means = inside @ largest.coef
    return Estimates(cells, counts, means, covariance, assumed, unequal, fit.df_error, True)


def _in_strata(fit: Fit, cells: Ints, counts: Ints) -> Estimates:
    """Means of a model with an interaction of every order, where that leaves an error for all.

    Else of the model as it is. Means differ by the errors of several strata, and the smallest
    degrees of freedom of any mean hold for all differences.
    """
    used = fit
    if min(fit.runs.every, len(cells)) <= MOST_COLUMNS and len(fit.runs.factors) <= 16:
        every = terms_up_to(len(fit.runs.factors))
        largest = refitted(fit, model=make_model(fit.runs, [*every, *fit.model.terms]))
        rows = largest.model.cell_rows(cells.tolist())
        if largest.model.estimable(rows).all() and (largest.errors(rows)[1] > 0).all():
            used = largest
    rows = used.model.cell_rows(cells.tolist())
    means, covariance = used.estimate(rows)
    least = used.least_df(rows[:, used.model.fitted]) if fit.df_error > 0 else 0.0
    ratio = used.ms_error / fit.ms_error if least > 0.0 else 1.0
    return Estimates(cells, counts, means, covariance * ratio, (), None, least)


def _complete(group: Ints, block: Ints) -> bool:
    """Return whether every block holds every cell equally often."""
    shape = (int(block.max()) + 1, int(group.max()) + 1)
    table = np.bincount(block * shape[1] + group, minlength=shape[0] * shape[1]).reshape(shape)
    return bool((table == table[:, :1]).all())


class Ranking(NamedTuple):
    """The order of configurations, the best first, and what is certain of it."""

    order: list[int]  # at most 1024
    reach: Floats  # half the width of the intervals that hold for all means at once
    low: Floats  # Hsu: a mean minus the best of the others
    high: Floats
    among: NDArray[np.bool_]  # statistically tied with the best
    critical: float | None  # Hsu's d, for the one that is best


def margins(fit: Fit, estimates: Estimates, alpha: float) -> Floats:
    """Half the width of intervals that hold for all means at once; NaN without an error."""
    if estimates.df == 0:
        return np.full(len(estimates.means), np.nan)
    wide = maximum_modulus(len(estimates.means), estimates.df, alpha)
    pooled = wide * float(np.sqrt(fit.ms_error)) * np.sqrt(estimates.variance)
    if estimates.unequal is None:
        return np.asarray(pooled)
    return np.asarray(np.maximum(pooled, estimates.unequal.of_means(alpha)))


def ranked(fit: Fit, estimates: Estimates, goal: str, alpha: float) -> Ranking:
    """Rank the configurations by their means on the scale of the fit."""
    means, k = estimates.means, len(estimates.means)
    sign = 1.0 if goal == "max" else -1.0
    order = np.argsort(-sign * np.round(means, 12), kind="stable")
    low = high = np.full(k, np.nan)
    among = np.zeros(k, dtype=bool)
    among[order[0]] = True
    critical = None
    if estimates.df > 0 and 1 < k <= MOST_CELLS and estimates.comparable:
        wide, d = pair_reach(estimates.covariance, np.sqrt(fit.ms_error), estimates.df, alpha)
        if estimates.unequal is not None:
            wide = np.maximum(wide, estimates.unequal.of_differences(alpha))
        lower, upper = with_the_best(sign * means, wide)
        low, high = (lower, upper) if sign > 0 else (-upper, -lower)
        among, critical = upper > 0, float(d[order[0]])
    reach = margins(fit, estimates, alpha)
    return Ranking(order[:MOST_CELLS].tolist(), reach, low, high, among, critical)


def best(response: FittedResponse, goal: str) -> Best:
    """Rank the configurations, the best first.

    Intervals hold for all configurations at once, so also for the one that comes out best; they
    are back on the response scale, Hsu's bounds on the analysed one.
    """
    fit, alpha, runs = response.fit, response.alpha, response.fit.runs
    estimates = cell_estimates(fit)
    means, k = estimates.means, len(estimates.means)
    order, reach, low, high, among, critical = ranked(fit, estimates, goal, alpha)
    back = response.back if response.data.items else response.uncut
    values, *ends = map(back, (means, means - reach, means + reach))
    geometric = np.full(k, np.nan)
    if leaves_range(fit.y, ends[0], response.transform.name):
        geometric, *ends = geometric_means(fit, alpha)
    columns = (*ends, fit.unit * low, fit.unit * high, geometric)
    ci_low, ci_high, mcb_low, mcb_high, geometrics = map(none_for_nan, columns)
    cells = tuple(
        RankedCell(
            config=runs.config(int(estimates.cells[i])),
            cell=int(estimates.cells[i]),
            levels=runs.cell_levels(int(estimates.cells[i])),
            n=int(estimates.counts[i]),
            mean=float(values[i]),
            ci_low=ci_low[i],
            ci_high=ci_high[i],
            mcb_low=mcb_low[i],
            mcb_high=mcb_high[i],
            among_best=bool(among[i]),
            geometric=geometrics[i],
            point=runs.values(int(estimates.cells[i])) if estimates.cells[i] < 0 else (),
        )
        for i in order
    )
    names = tuple(cell.config for cell in cells if cell.among_best)
    assumed = tuple(fit.model.name(term) for term in estimates.assumed)
    return Best(
        goal=goal,
        cells=cells,
        critical=critical,
        among_best=names,
        assumed=assumed,
        reduced=reduced_model(response, goal),
        sentence=best_sentence(names, cells, critical, estimates, runs),
        conditions=by_condition(response, cells),
        over_conditions=over_conditions(response, cells, goal),
        spread="" if estimates.unequal is None else estimates.unequal.sentence,
    )


def _split(response: FittedResponse) -> tuple[int, int]:
    """Bits of the factors that are chosen, and of those that are met."""
    met = sum(
        1 << i
        for i, f in enumerate(response.runs.factors)
        if f.role == "condition" and not f.random
    )
    return (1 << len(response.runs.factors)) - 1 & ~met, met


def _named(runs: Runs, cell: int, factors: int) -> str:
    """Levels of some factors of a configuration, named: ``A1B0`` or ``lr=0.1,opt=adam``."""
    return config_name(runs.keys, runs.levels_of(cell, factors))


def by_condition(
    response: FittedResponse, cells: Sequence[RankedCell]
) -> tuple[ConditionBest, ...]:
    """Return the best observed choice in each condition; `cells` are sorted, the best first."""
    chosen, met = _split(response)
    if not met or not chosen:
        return ()
    runs = response.fit.runs
    found: dict[str, ConditionBest] = {}
    for cell in (cell for cell in cells if cell.cell >= 0):
        condition = _named(runs, cell.cell, met)
        best = ConditionBest(condition, _named(runs, cell.cell, chosen), cell.mean)
        found.setdefault(condition, best)
    return tuple(found[condition] for condition in sorted(found))


def choice_of(response: FittedResponse, cell: int) -> str:
    """Return the levels of a configuration that are chosen, without those of conditions."""
    return _named(response.fit.runs, cell, _split(response)[0])


def choices_met(
    response: FittedResponse, cells: Sequence[RankedCell]
) -> dict[str, list[RankedCell]]:
    """Return the configurations of each choice that has met all conditions, in their order."""
    chosen, met = _split(response)
    if not met or not chosen:
        return {}
    choices: dict[str, list[RankedCell]] = {}
    conditions = set()
    for cell in (cell for cell in cells if cell.cell >= 0):
        conditions.add(_named(response.fit.runs, cell.cell, met))
        choices.setdefault(choice_of(response, cell.cell), []).append(cell)
    runs = response.fit.runs
    return {
        name: sorted(own, key=lambda cell: _named(runs, cell.cell, met))
        for name, own in choices.items()
        if len(own) == len(conditions)
    }


def over_conditions(
    response: FittedResponse, cells: Sequence[RankedCell], goal: str
) -> tuple[OverConditions, ...]:
    """Return the choice with the best mean over all conditions, and with the best worst condition.

    Nothing where no choice has met them all, as in most fractions.
    """
    whole = choices_met(response, cells)
    if not whole:
        return ()
    worst = min if goal == "max" else max
    mean = {choice: mean_over(own) for choice, own in whole.items()}
    least = {choice: worst(cell.mean for cell in own) for choice, own in whole.items()}
    first = max if goal == "max" else min
    average, safest = (first(whole, key=of.__getitem__) for of in (mean, least))
    return (
        OverConditions("mean", average, mean[average]),
        OverConditions("worst case", safest, least[safest]),
    )


def mean_over(cells: Sequence[RankedCell]) -> float:
    """Return the mean of some configurations; the sum of huge means is no float."""
    return math.fsum(cell.mean / len(cells) for cell in cells)


def leaves_range(y: Floats, low: Floats, scale: str) -> bool:
    """Return whether an interval of a mean of positive values, analysed as they are, reaches below
    0.
    """
    return scale == "none" and bool((y > 0).all() and (low <= 0).any())


def geometric_means(fit: Fit, alpha: float) -> tuple[Floats, Floats, Floats]:
    """Geometric mean of each configuration with its interval, from the same model of ln y.

    The interval of a mean is as wide for small values as for large ones, and reaches where no
    value can be; this one follows the spread of each.
    """
    logs = refitted(fit, np.log(fit.y))
    estimates = cell_estimates(logs)
    means, reach = estimates.means, margins(logs, estimates, alpha)
    ends = (means, means - reach, means + reach)
    middle, low, high = (exponential(logs.shift + logs.unit * u) for u in ends)
    return middle, low, high


def best_sentence(
    among: Sequence[str],
    cells: Sequence[RankedCell],
    critical: float | None,
    estimates: Estimates,
    runs: Runs,
) -> str:
    """Return which configuration has the best observed mean, and how many are tied with it."""
    equal = [config_in_words(runs.keys, c.config) for c in cells if c.mean == cells[0].mean]
    kind = "mean, adjusted for blocks" if estimates.is_adjusted else "observed mean"
    lead = f"{equal[0]} has the best {kind}"
    if len(equal) > 1:
        several = "; ".join([*equal[:4], *["…"] * (len(equal) > 4)])
        lead = f"{several} share the best {kind}"
    names = [term_name(term, runs.keys) for term in estimates.assumed]
    confounded = f"{listed(names, MOST_NAMED)} {are(len(names))} confounded with blocks"
    if any(order(term) == 1 for term in estimates.assumed):
        return f"{lead}; {confounded}, so that no other can be ruled out."
    others, every = len(among) - len(equal), len(cells) - len(equal)
    if critical is None:
        lacking = "an error for every difference" if runs.stratified else "an error estimate"
        sentence = f"{lead}; without {lacking} no other can be ruled out."
    elif len(among) == 1:
        sentence = f"{lead}, significantly better than every other."
    elif others < 1:
        sentence = f"{lead}."
    else:
        whom = "it" if len(equal) == 1 else "them"
        count = f"{others} of {counted(every, 'other')}"
        if others == every:
            count = {1: "the other", 2: "both others"}.get(every, f"all {every} others")
        sentence = f"{lead}; {count} {are(others)} statistically tied with {whom}."
    if not names:
        return sentence
    return f"{sentence} Terms hidden by blocks are taken as zero in comparisons: {confounded}."


# The model's optimum -----------------------------------------------------------------------------


def cell_values(fit: Fit, cells: Sequence[int]) -> Floats:
    """Return what a model says of configurations, blocks averaged, of u; NaN where it says
    nothing.
    """
    model = fit.model
    if model.solved_by_transform:
        coef = np.zeros(1 << len(fit.runs.factors))
        inside = model.source != BLOCK
        coef[[MEAN, *model.terms]] = fit.coef[inside]
        return evaluate(coef)[np.asarray(cells, dtype=np.int64)]
    rows = model.cell_rows(cells)
    return np.where(model.estimable(rows), rows[:, model.fitted] @ fit.coef, np.nan)


@computed_once
def in_range(response: FittedResponse) -> FittedResponse:
    """Return the response on a scale on which the reduced model predicts what can be.

    Positive values some of which it predicts at 0 or below are fitted by the same terms on their
    logarithms: a prediction cut at 0 would win against all others, and be believed of none.
    """
    small, runs = response.reduced, response.fit.runs
    cells = range(runs.every) if runs.every <= MOST_CELLS else np.unique(runs.cells).tolist()
    predicted = small.shift + small.unit * cell_values(small, cells)
    inside = not (predicted <= 0.0).any()
    if response.transform.name != "none" or inside or not (small.y > 0.0).all():
        return response
    logs = Transformation("log", 0.0, "log")
    return replace(response, fit=refitted(response.fit, np.log(response.fit.y)), transform=logs)


def reduced_model(original: FittedResponse, goal: str) -> ReducedModel:
    """Return the reduced model, and what it predicts to be best."""
    response = in_range(original)
    estimates = cell_estimates(response.fit)
    small, every = response.reduced, response.fit.runs.every
    scattered = any(factor.is_curve for factor in response.runs.factors)  # no crossing of levels
    known = every > MOST_PREDICTED or scattered
    cells = estimates.cells.tolist() if known else range(every)
    predicted = cell_values(small, cells)
    sign = 1.0 if goal == "max" else -1.0
    at = int(np.nanargmax(sign * predicted)) if np.isfinite(predicted).any() else 0
    terms = small.model.sorted_terms
    top = prediction(response, estimates, cells[at], float(predicted[at]))
    return ReducedModel(
        terms=tuple(small.model.name(term) for term in terms),
        added=tuple(small.model.name(term) for term in terms if term not in response.active),
        sigma=original.reduced.sigma,
        r2=original.reduced.r_squared()[0],
        best=structs.replace(top, geometric=response is not original),
    )


def fixed_factors(fit: Fit) -> int:
    """Bits of the factors that are in some term of a model."""
    fixed = 0
    for term in fit.model.terms:
        fixed |= term & FACTORS
    return fixed


def prediction(
    response: FittedResponse, estimates: Estimates, cell: int, predicted: float
) -> Prediction:
    """Return what a configuration is predicted to give: its levels of the factors in the model
    alone.

    The mean is that of the reduced model. The interval is for the mean over all configurations
    with runs that share the levels of the factors in that model. It comes from the full model and
    is as wide as Bonferroni asks for the ``Π (levels + 1)`` ways to fix some factors and leave
    others open, so that it holds whatever was selected. Both stay where the response can be.
    """
    fit, runs = response.fit, response.fit.runs
    fixed = fixed_factors(response.reduced)
    levels = runs.cell_levels(cell)
    config = runs.config(cell, fixed)
    mean = None if predicted != predicted else float(response.back(np.array([predicted]))[0])
    own = np.array([i for i in range(len(levels)) if fixed >> i & 1], dtype=np.int64)
    table = _levels_of(runs.sizes, estimates.cells)
    alike = (estimates.cells >= 0) & (table[:, own] == np.array(levels)[own]).all(axis=1)
    if estimates.df == 0 or not alike.any():
        return Prediction(config, levels, mean, None, None)
    weight = alike / alike.sum()
    ways = math.prod(float(size + 1) for size in runs.sizes)
    level = response.alpha / ways
    variance = estimates.variance_of(weight) * fit.ms_error
    reach = t_critical(level, estimates.df) * float(np.sqrt(variance))
    if estimates.unequal is not None:
        reach = max(reach, estimates.unequal.of_sum(weight, level))
    ends = response.back(float(weight @ estimates.means) + reach * np.array([-1.0, 1.0]))
    low, high = none_for_nan(ends)
    return Prediction(config, levels, mean, low, high, outside=leaves_out(low, high, mean))


def leaves_out(low: float | None, high: float | None, *means: float | None) -> bool:
    """Return whether one of the means that are known lies outside an interval."""
    if low is None or high is None:
        return False
    return any(not low <= mean <= high for mean in means if mean is not None)


def _levels_of(sizes: Sequence[int], cells: Ints) -> Ints:
    """Level number of each factor in configurations at levels, cells x factors."""
    columns, rest = [], np.maximum(cells, 0)
    for size in sizes:
        columns.append(rest % size)
        rest = rest // size
    return np.stack(columns, axis=1)


def cell_predictions(original: FittedResponse) -> tuple[Prediction, ...]:
    """Return every combination of levels in standard order, and points between levels last.

    Empty where there are too many combinations to show.
    """
    fit = original.fit
    every = fit.runs.every
    if every > MOST_CELLS:
        return ()
    response, estimates = in_range(original), cell_estimates(fit)
    means = none_for_nan(original.uncut(estimates.means))
    geometric = response is not original
    if geometric:
        estimates = cell_estimates(response.fit)
    alike = dict(
        zip(estimates.cells.tolist(), none_for_nan(response.uncut(estimates.means)), strict=True)
    )
    pairs = zip(means, estimates.counts.tolist(), strict=True)
    observed = dict(zip(estimates.cells.tolist(), pairs, strict=True))
    values = cell_values(response.reduced, range(every)).tolist()
    predictions = []
    for cell in range(every):
        at = prediction(response, estimates, cell, values[cell])
        mean, n = observed.get(cell, (None, 0))
        figures = (at.mean, at.ci_low, at.ci_high, mean, n)
        outside = at.outside or leaves_out(at.ci_low, at.ci_high, alike.get(cell))
        config = fit.runs.config(cell)
        predictions.append(Prediction(config, at.levels, *figures, outside, geometric))
    for cell, (mean, n) in observed.items():
        if cell < 0:
            levels = fit.runs.cell_levels(cell)
            config = fit.runs.config(cell)
            predictions.append(Prediction(config, levels, None, None, None, mean, n))
    return tuple(predictions)


# Comparisons over many means at once -------------------------------------------------------------


def _solve(coverage: Callable[[float], float], alpha: float, bound: float) -> float:
    """Return the value at which `coverage` reaches 1 - α, at least 0 and never beyond
    Bonferroni's.
    """
    if alpha < SMALLEST_ALPHA:
        return bound
    if coverage(0.0) >= 1.0 - alpha:
        return 0.0
    if coverage(bound) <= 1.0 - alpha:
        return bound
    return root(lambda d: coverage(d) - (1.0 - alpha), 0.0, bound, xtol=1e-10)


@lru_cache(maxsize=256)
def critical_value(others: tuple[tuple[float, int], ...], df: int, alpha: float) -> float:
    """Return the one-sided Dunnett quantile d of comparisons with a common control.

    `others` lists (λ², number of means): two comparisons have the correlation λ_i λ_j, with
    ``λ_j² = n_j / (n_j + n_control)`` where means are independent. d solves
    ``∫∫ φ(z) Π_j Φ((λ_j z + d s) / sqrt(1 - λ_j²)) dz dF(s) = 1 - α`` where s² is χ²_ν / ν.
    """
    z, wz, s, ws = spread_nodes(df)

    def coverage(d: float) -> float:
        inside = np.ones((len(z), len(s)))
        for squared, means in others:
            at = (np.sqrt(squared) * z[:, None] + d * s[None, :]) / np.sqrt(1.0 - squared)
            inside *= stats.norm.cdf(at) ** means
        return float(wz @ inside @ ws)

    count = sum(means for _, means in others)
    return _solve(coverage, alpha, float(stats.t.isf(alpha / count, df)))


@lru_cache(maxsize=256)
def maximum_modulus(means: int, df: int, alpha: float) -> float:
    """Return the two-sided quantile of the largest of `means` studentized means.

    Solves ``∫ (2 Φ(m s) - 1)^k dF(s) = 1 - α``; for correlated means it is conservative (Šidák's
    inequality). Intervals of this width hold for all means at once, so also for a selected one.
    """
    _, _, s, ws = spread_nodes(df)

    def coverage(m: float) -> float:
        return float(np.exp(means * np.log1p(-2.0 * stats.norm.sf(m * s))) @ ws)

    with np.errstate(divide="ignore"):  # ln 0 at m = 0, where the coverage is 0
        return _solve(coverage, alpha, float(stats.t.isf(alpha / (2 * means), df)))


def pair_reach(covariance: Floats, sigma: float, df: float, alpha: float) -> tuple[Floats, Floats]:
    """``d_i s_ij`` of every two means, and d with each mean as the control.

    `covariance` is that of the means over σ²: a vector of 1/n where they are independent, else a
    matrix.
    """
    matrix = np.diag(covariance) if covariance.ndim == 1 else covariance
    own = np.diag(matrix)
    variance = own[:, None] + own[None, :] - 2.0 * matrix
    d = _critical_values(matrix, variance, df, alpha)
    return d[:, None] * sigma * np.sqrt(np.maximum(variance, 0.0)), d


def with_the_best(means: Floats, reach: Floats) -> tuple[Floats, Floats]:
    """Simultaneous bounds for each mean minus the best (largest) of the others.

    Edwards and Hsu's form with ``reach_ij = d_i s_ij``:
    ``D+_i = max(0, min_j (m_i - m_j + d_i s_ij))``; with G = {i : D+_i > 0},
    ``D-_i = min(0, min_{j in G} (m_i - m_j - d_j s_ij))``, 0 when G = {i}. A mean with D+ = 0 is
    not the best; the others cannot be told from it.
    """
    gap = means[:, None] - means[None, :]
    self_ = np.eye(len(means), dtype=bool)
    upper = np.where(self_, np.inf, gap + reach).min(axis=1)
    upper = np.maximum(0.0, upper)
    rivals = (upper > 0)[None, :] & ~self_
    lower = np.where(rivals, gap - reach.T, np.inf).min(axis=1)
    return np.where(np.isinf(lower), 0.0, np.minimum(0.0, lower)), upper


def _critical_values(matrix: Floats, variance: Floats, df: float, alpha: float) -> Floats:
    """d with each mean as the control.

    Equal covariances give correlations of the product form. Otherwise the smallest correlation
    stands for all, which is conservative (Slepian 1962), or Bonferroni's bound where they are many.
    """
    k = len(matrix)
    off = matrix[~np.eye(k, dtype=bool)]
    if k > 2 and np.ptp(off) > 1e-9 * matrix.max():
        if k > MOST_CORRELATIONS:
            return np.full(k, stats.t.isf(alpha / (k - 1), df))
        return np.array(
            [
                critical_value(((_smallest_correlation(matrix, variance, i), k - 1),), df, alpha)
                for i in range(k)
            ]
        )
    free = np.round(np.diag(matrix) - off[0], 12)
    sizes, numbers = np.unique(free, return_counts=True)
    d_of = {}
    for own in sizes.tolist():
        pairs = zip(sizes.tolist(), numbers.tolist(), strict=True)
        others = ((own / (own + other), n - (other == own)) for other, n in pairs)
        d_of[own] = critical_value(tuple(o for o in others if o[1] > 0), df, alpha)
    return np.array([d_of[own] for own in free.tolist()])


def _smallest_correlation(matrix: Floats, variance: Floats, i: int) -> float:
    """Return the smallest correlation of differences from mean i, rounded down, at least 0."""
    shared = matrix[i, i] - matrix[i][:, None] - matrix[i][None, :] + matrix
    size = np.sqrt(variance[i])
    size[i] = np.inf
    ratio = shared / (size[:, None] * size[None, :])
    ratio[i], ratio[:, i] = 1.0, 1.0
    return float(np.clip(np.floor(1e4 * ratio.min()) / 1e4, 0.0, 0.9999))
