"""How likely one configuration beats another with a fresh seed.

Both run with the same fresh seeds, as in a replicate. With normal errors their difference is
``N(δ, 2 θ)`` with the variance θ of one run among those of its replicate, and X beats Y with
probability ``Φ(δ / √(2 θ))``. The difference of means over its standard error is noncentral t, and
the interval of its noncentrality gives that of the probability (Reiser and Guttman 1986).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from msgspec import Struct
from scipy import special

from doe.analysis.best import Best, cell_estimates
from doe.analysis.case import Case
from doe.analysis.confirm import ranked
from doe.analysis.contrasts import Floats, Ints
from doe.analysis.data import Fresh
from doe.analysis.fit import Fit
from doe.analysis.streams import combined, layers
from doe.errors import DoeError, nearest
from doe.terms import config_name

BEST, RUNNER_UP, BASELINE = "best", "runner-up", "baseline"
CHOSEN_PAIRS = ((BEST, RUNNER_UP), (BEST, BASELINE))
"""Pairs that are compared where nobody names others."""


class Beats(Struct, frozen=True):
    """How likely a configuration beats another, both with the same fresh seed."""

    config: str
    against: str
    asked: str  # "best against runner-up", or nothing where configurations were named
    seeds: int  # replicates that both have
    fresh: bool  # whether these had no part in the choice of the configurations
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
    z = np.linspace(-9.0, 9.0, 721)
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
        for _ in range(80):
            middle = (low + high) / 2.0
            beyond = float(weight @ special.ndtr(sign * (middle - point)))
            if (beyond > alpha / 2.0) == (sign > 0):
                high = middle
            else:
                low = middle
        ends.append(middle)
    return np.array(ends)


def beats(
    case: Case, best: Best | None, baseline: str, fresh: Fresh | None, even: bool
) -> tuple[Beats, ...]:
    """Every pair that was asked for; the usual ones where seeds have streams.

    Parameters
    ----------
    even
        Whether one variance is that of all configurations; else a pair's own differences tell it.
    """
    if best is None and case.options.beats:
        raise DoeError("nobody says which way is better, so nothing beats another; give a goal")
    pairs = case.options.beats or (CHOSEN_PAIRS if case.fit.seeding is not None else ())
    if best is None or not pairs:
        return ()
    roles = _roles(case, best, baseline, fresh)
    answers = []
    for asked in pairs:
        x, y = (roles.get(name, name) for name in asked)
        named = f"{asked[0]} against {asked[1]}" if set(asked) & roles.keys() else ""
        if x != y or not named:  # the best may be the baseline itself
            answers.append(_pair(case, best, (x, y), named, fresh, even))
    return tuple(answers)


def _roles(case: Case, best: Best, baseline: str, fresh: Fresh | None) -> dict[str, str]:
    """The configurations that words stand for: those that were confirmed, if some were."""
    order = list(fresh.configs) if fresh is not None else ranked(best, case.keys)
    return {BEST: order[0], RUNNER_UP: order[1], BASELINE: baseline or case.runs.config(0)}


def _pair(
    case: Case, best: Best, pair: tuple[str, str], named: str, fresh: Fresh | None, even: bool
) -> Beats:
    cells = np.unique(case.fit.cells)
    numbers = _numbers(case, cells)
    for config in pair:
        if config not in numbers:
            raise DoeError(
                f"{config!r} is no configuration with runs{nearest(config, numbers)}; expected one "
                f"such as {next(iter(numbers))!r}, or {BEST}, {RUNNER_UP}, {BASELINE}"
            )
    first, second = (numbers[config] for config in pair)
    pair = (case.runs.config(first), case.runs.config(second))
    if first == second:
        raise DoeError(f"{pair[0]} is compared with itself; expected two configurations")
    sign = 1.0 if best.goal == "max" else -1.0
    if fresh is not None and fresh.complete and set(pair) <= set(fresh.configs):
        forward = case.transform.scale.forward
        x, y = (forward(fresh.y[fresh.configs.index(config)]) for config in pair)
        both = sign * (x - y)[~np.isnan(x - y)]
        return _answer(pair, named, len(both), True, _of_series(both, None), case.alpha)
    both, runs = _paired(case.fit, first, second)
    seeding = case.fit.seeding
    difference = (
        _pooled(case.fit, first, second, sign)
        if even
        else _of_series(sign * both, None if seeding is None else seeding.seeds[:, runs])
    )
    choices = _choices(len(cells), named)
    return _answer(pair, named, len(both), False, difference, case.alpha / choices)


def _numbers(case: Case, cells: Ints) -> dict[str, int]:
    """Number of every configuration by its name in files, and as it is shown."""
    factors = case.runs.factors
    names = {}
    for cell in cells.tolist():
        levels = [
            (1, factor.high) if cell >> i & 1 else (0, factor.low)
            for i, factor in enumerate(factors)
        ]
        names[config_name(case.keys, levels)] = cell
    return names | {case.runs.config(cell): cell for cell in cells.tolist()}


def _choices(cells: int, named: str) -> int:
    """Pairs that the data chose from; by Bonferroni the interval holds whichever they chose."""
    if not named:
        return 1
    return cells * (cells - 1) // 2 if RUNNER_UP in named else cells - 1


def _answer(
    pair: tuple[str, str],
    named: str,
    seeds: int,
    fresh: bool,
    difference: _Difference | None,
    alpha: float,
) -> Beats:
    numbers = (None, None, None) if difference is None else difference.probability(alpha)
    return Beats(*pair, named, seeds, fresh, *numbers)


def _pooled(fit: Fit, x: int, y: int, sign: float) -> _Difference | None:
    """The difference of two cells against the error of all."""
    if fit.df_error < 1 or not fit.ms_error > 0.0:
        return None
    estimates = cell_estimates(fit)
    i, j = np.searchsorted(estimates.cells, [x, y])
    covariance = estimates.covariance
    if covariance.ndim == 1:
        scale = float(covariance[i] + covariance[j])
    else:
        scale = float(covariance[i, i] + covariance[j, j] - 2.0 * covariance[i, j])
    delta = sign * float(estimates.means[i] - estimates.means[j])
    over = fit.over_seeds
    df, single = (float(fit.df_error), fit.ms_error) if over is None else (over.df, over.single)
    return _Difference(delta, scale, fit.ms_error, df, single)


def _paired(fit: Fit, x: int, y: int) -> tuple[Floats, Ints]:
    """Differences of two cells over the blocks that have both, and runs of these blocks."""
    if fit.block is None:
        return np.empty(0), np.empty(0, dtype=np.int64)
    first = {int(fit.block[r]): r for r in np.flatnonzero(fit.cells == x).tolist()}
    second = {int(fit.block[r]): r for r in np.flatnonzero(fit.cells == y).tolist()}
    both = sorted(first.keys() & second.keys())
    runs = np.array([first[block] for block in both], dtype=np.int64)
    return np.array([fit.y[first[block]] - fit.y[second[block]] for block in both]), runs


def _of_series(differences: Floats, labels: Ints | None) -> _Difference | None:
    """The difference of two configurations against its own spread over replicates."""
    n = len(differences)
    if n < 2 or float(np.ptp(differences)) == 0.0:
        return None
    rows = np.empty((0, n), dtype=np.int64) if labels is None else labels
    split = layers(tuple(map(str, range(len(rows)))), rows)
    if split.df.min() < 1:
        return None
    ms, df, single = combined(split, split.squares(differences[None]) / 2.0, 1)
    return _Difference(float(differences.mean()), 2.0 / n, ms, df, single)
