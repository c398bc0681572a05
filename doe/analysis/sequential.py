"""Looking at a study after each complete replicate without fooling oneself.

At every look each term has a repeated confidence interval (Jennison and Turnbull, 1989): all of
them, over all looks and over the whole family of terms and responses, hold together with
probability 1 - alpha. So a term may be decided at any look, and the study may stop, or go on, for
any reason.

A share ``f(t; alpha)`` of the error may be spent until the share t of the largest sample is seen
(Lan and DeMets, 1983). The nominal level of each look follows by recursive integration for normal
statistics (Armitage, McPherson and Rowe, 1969); used at the quantiles of t and F these are Jennison
and Turnbull's (2000) significance-level approach.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np
from msgspec import Struct
from scipy import special

from doe.analysis import distributions as stats
from doe.analysis.coding import level_patterns
from doe.analysis.contrasts import Floats, Ints
from doe.analysis.dataset import Runs
from doe.analysis.fit import Fit, fit, satterthwaite
from doe.analysis.model import default_terms, make_model
from doe.analysis.pvalues import t_critical
from doe.terms import factors_in

FIRST_LOOK = 2
"""Replicates that give an error to test against."""
RESERVE = 0.95
"""Share of alpha that is spent; the rest covers what the significance-level approach, exact for
normal statistics alone, may lose on t with cells of unequal variance (see the simulation)."""
DRAWS, SEED = 2000, 42
"""Simulated futures of a study, and their seed."""

MOST_PATTERNS = 5000
"""Pairs of levels of a term up to which each is looked at; of more the test alone is."""
NODES = 128
"""Gauss-Legendre nodes of the density between the boundaries."""
FARTHEST = 12.0
"""Standard deviations beyond which nothing is spent that a float could tell."""
GRID = 10.0 ** np.arange(-12.0, 0.0, 0.5)
"""Levels between which sequential p values are interpolated; below, the line goes on."""

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


class TermLook(NamedTuple):
    """What one look says of a term: what it does between each two levels of its factors.

    Of a term with one degree of freedom that is its effect.
    """

    df: int
    effect: Floats
    se: Floats
    f: float
    patterns: tuple[str, ...] = ("",)

    def reach(self, level: float, df_error: float) -> Floats:
        """Half the widths of intervals that hold for all patterns at once (Scheffé 1953)."""
        return critical(level, df_error, self.df) * self.se

    def p(self, df_error: float) -> float:
        """P of the term as if this look were the only one."""
        return float(stats.f.sf(self.f, self.df, df_error))


class Look(NamedTuple):
    """Effects after some complete replicates."""

    replicates: int
    terms: Mapping[int, TermLook]
    df: float
    """Of the error, as if the cells' variances differed (Satterthwaite)."""
    sigma: float
    """Standard deviation of single runs."""


def critical(level: float, df_error: float, df: int = 1) -> float:
    """Quantile of t with level / 2 beyond it, or Scheffé's ``sqrt(df F)`` of more patterns;
    infinite where nothing may be spent.
    """
    if level <= 0.0:
        return math.inf
    if df == 1:
        return t_critical(level, df_error)
    return math.sqrt(df * float(stats.f.isf(level, df, df_error)))


def looks_at(
    y: Floats,
    runs: Runs,
    replicate: Ints,
    rule: Rule,
    terms: Sequence[int] | None = None,
) -> list[Look]:
    """What each look saw: the runs with a value among the first 2, 3, … replicates.

    The model has the given terms, or those that suit the runs. A look whose runs leave no error
    to test against is left out, as if nobody had looked.
    """
    looks = []
    for n in rule.looks:
        if n > int(replicate.max()):
            break
        observed = np.flatnonzero((replicate <= n) & ~np.isnan(y))
        if len(observed) < 2 or float(np.ptp(y[observed])) == 0.0:
            continue
        inside = runs.only(observed)
        model = make_model(inside, default_terms(inside) if terms is None else terms)
        full = fit(y[observed], model)
        if full.df_error > 0 and full.from_pure:
            seen = {term: term_look(full, term) for term in model.terms}
            looks.append(Look(n, seen, satterthwaite(full), full.sigma or 0.0))
    return looks


def term_look(full: Fit, term: int) -> TermLook:
    """Estimate all patterns of a term that the runs determine."""
    model = full.model
    columns = np.flatnonzero(model.source == term)
    df = model.df(term)
    f = full.wald(term) / df / full.ms_error
    if len(columns) == 1:
        coef, scale = full.coef_of((term,))
        size = 2.0 * full.unit
        return TermLook(1, size * coef, size * np.sqrt(scale * full.ms_error), f)
    sizes = (len(model.runs.factors[i].levels) for i in factors_in(term))
    if math.prod(size * (size - 1) // 2 for size in sizes) > MOST_PATTERNS:
        return TermLook(df, np.empty(0), np.empty(0), f, ())
    patterns, labels = level_patterns(model.runs.factors, term)
    rows = np.zeros((len(patterns), len(model.source)))
    rows[:, columns] = patterns
    known = model.estimable(rows)
    value = rows[known][:, model.kept] @ full.coef
    se = np.sqrt(full.variance(rows[known]) * full.ms_error)
    names = tuple(label for label, is_known in zip(labels, known, strict=True) if is_known)
    return TermLook(df, full.unit * value, full.unit * se, f, names)


class TermDecision(Struct, frozen=True):
    """What is known of one term: its interval holds with all the others, over all looks so far."""

    term: int
    effect: float | None  # None where no look could estimate it
    se: float | None
    low: float | None  # the part that the intervals of all looks share
    high: float | None
    p: float | None  # over all looks and the whole family
    verdict: TermVerdict
    decided_at: int | None  # replicates
    pattern: str = ""  # of more degrees of freedom the levels that differ most; F gives the verdict
    df: int = 1


class _Seen(NamedTuple):
    """What the looks so far say of a term."""

    last: TermLook
    low: dict[str, float]  # largest lower end of each pattern
    high: dict[str, float]
    verdict: TermVerdict
    decided_at: int | None


def decide(
    looks: Sequence[Look], masks: Sequence[int], family: int, rule: Rule, matters: float
) -> tuple[TermDecision, ...]:
    """Judge the terms of one response.

    A term is decided by the first look that rejects it (`effect`: its interval excludes zero), or
    at which all its patterns lie within ± `matters` (`negligible`). It stays decided: the intervals
    of all looks hold together, so that their intersection does.
    """
    levels = rule.levels(family)
    seen: dict[int, _Seen] = {}
    nominal = np.ones((len(rule.looks), len(masks)))
    for look in looks:
        at = rule.looks.index(look.replicates)
        for column, mask in enumerate(masks):
            if mask in look.terms:
                nominal[at, column] = look.terms[mask].p(look.df)
                seen[mask] = _after(seen.get(mask), look, mask, levels[at], matters)
    p = rule.p(nominal, family).tolist()
    return tuple(
        _decision(mask, seen[mask], p[column])
        if mask in seen
        else TermDecision(mask, *(None,) * 5, "open", None)
        for column, mask in enumerate(masks)
    )


def _after(before: _Seen | None, look: Look, mask: int, level: float, matters: float) -> _Seen:
    """What is known of a term after one more look."""
    term = look.terms[mask]
    reach = term.reach(level, look.df)
    before = before or _Seen(term, {}, {}, "open", None)
    low, high, verdict, decided_at = dict(before.low), dict(before.high), *before[3:]
    ends = ((term.effect - reach).tolist(), (term.effect + reach).tolist())
    for pattern, least, most in zip(term.patterns, *ends, strict=True):
        low[pattern] = max(least, low.get(pattern, -math.inf))
        high[pattern] = min(most, high.get(pattern, math.inf))
    if verdict == "open" and term.f > critical(level, look.df, term.df) ** 2 / term.df:
        verdict, decided_at = "effect", look.replicates
    elif verdict == "open" and (np.abs(term.effect) + reach < matters).all() and len(reach):
        verdict, decided_at = "negligible", look.replicates
    return _Seen(term, low, high, verdict, decided_at)


def _decision(mask: int, seen: _Seen, p: float) -> TermDecision:
    """The pattern of a term that is largest at the last look, by the intervals of all looks."""
    term = seen.last
    if not len(term.effect):
        verdict = (seen.verdict, seen.decided_at)
        return TermDecision(mask, *(None,) * 4, p, *verdict, df=term.df)
    widest = int(np.argmax(np.abs(term.effect)))
    pattern = term.patterns[widest]
    ends = sorted((seen.low[pattern], seen.high[pattern]))  # looks that contradict leave a gap
    return TermDecision(
        term=mask,
        effect=float(term.effect[widest]),
        se=float(term.se[widest]),
        low=ends[0],
        high=ends[1],
        p=p,
        verdict=seen.verdict,
        decided_at=seen.decided_at,
        pattern=pattern,
        df=term.df,
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
    df: Ints | None = None
    """Degrees of freedom of each term; None where all have one."""
    spread: Floats | None = None
    """Variance of each effect in one replicate over σ² / cells; None where it is that of two
    levels, 4."""


def futures(start: Start, cells: int, family: int, rule: Rule, matters: float) -> Floats:
    """Which terms are decided at each further look, in simulated futures of the study.

    The true effects are those given at 0 replicates, else drawn from around the estimates with
    their standard error; errors are normal with one variance. A term of more degrees of freedom is
    followed by its largest pattern.

    Returns
    -------
    (draws, looks to come, terms) array of bool
    """
    rng = np.random.default_rng(SEED)
    n, terms = start.replicates, start.effect.shape[-1]
    spread = np.full(terms, 4.0) if start.spread is None else start.spread
    each = np.ones(terms, np.int64) if start.df is None else start.df
    unit = np.sqrt(spread / cells) * start.sigma  # standard deviation of effects in one replicate
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
        level = levels[rule.looks.index(look)]
        wide = np.array([critical(level, df, int(own)) for own in each])
        reach = wide * np.sqrt(spread * variance[:, None] / (n * cells))
        size = np.abs(estimate)
        decided |= (size > reach) | (size + reach < matters)
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


# Error spending --------------------------------------------------------------------------------


def obrien_fleming(share: float, alpha: float) -> float:
    """``4 - 4 Phi(z_{alpha/4} / sqrt(t))``: little at the first looks, nearly all at the last."""
    return float(4.0 * special.ndtr(special.ndtri(alpha / 4.0) / math.sqrt(share)))


def pocock(share: float, alpha: float) -> float:
    """``alpha log(1 + (e - 1) t)``: about as much at each look."""
    return alpha * math.log1p((math.e - 1.0) * share)


SHAPES: dict[str, Callable[[float, float], float]] = {
    "obrien-fleming": obrien_fleming,
    "pocock": pocock,
}
"""Ways to spend alpha, by name."""


@lru_cache(maxsize=512)
def nominal_levels(shares: tuple[float, ...], alpha: float, shape: str) -> tuple[float, ...]:
    """Two-sided level of each look; `shares` of the largest sample are increasing, up to 1.

    The statistics are ``Z_j = S_j / sqrt(t_j)`` with independent increments of S. With the density
    g of S between the boundaries of all former looks, the boundary b solves
    ``int g(u) P(|S_j| >= b | u) du = f(t_j) - f(t_{j-1})``.
    """
    points, weights = _quadrature()
    spend = SHAPES[shape]
    levels: list[float] = []
    nodes, density = np.zeros(1), np.ones(1)  # S_0 = 0 with certainty
    before = spent = 0.0
    for share in shares:
        step = math.sqrt(share - before)
        due = spend(share, alpha) - spent
        edge = _boundary(nodes, density, step, math.sqrt(share), due)
        levels.append(float(2.0 * special.ndtr(-edge / math.sqrt(share))))
        inner = edge * points
        kernel = np.exp(-0.5 * ((inner[:, None] - nodes) / step) ** 2)
        density = edge * weights * (kernel @ density) / (step * math.sqrt(2.0 * math.pi))
        nodes, before, spent = inner, share, spent + due
    return tuple(levels)


@lru_cache(maxsize=1)
def _quadrature() -> tuple[Floats, Floats]:
    points, weights = np.polynomial.legendre.leggauss(NODES)
    return points, weights


def _boundary(nodes: Floats, density: Floats, step: float, scale: float, due: float) -> float:
    """The b with probability `due` beyond ±b; by bisection, for it falls with b."""
    low, high = 0.0, FARTHEST * scale
    for _ in range(60):
        middle = 0.5 * (low + high)
        beyond = special.ndtr((nodes - middle) / step) + special.ndtr((-middle - nodes) / step)
        low, high = (middle, high) if float(density @ beyond) > due else (low, middle)
    return 0.5 * (low + high)


def sequential_p(nominal: Floats, shares: Sequence[float], alpha: float, shape: str) -> Floats:
    """The smallest level at which some look so far would have rejected (Liu and Anderson, 2008).

    Parameters
    ----------
    nominal : (looks so far, terms)
        Two-sided p of each look as if it were the only one.
    alpha : float
        Where the answer is exact: ``p <= alpha`` just when a look is beyond its boundary.
    """
    levels = np.unique([*GRID, alpha, 1.0 - 1e-9])
    table = np.array([nominal_levels(tuple(shares), float(a), shape) for a in levels])
    scale = special.ndtri(levels / 2.0)  # on the scale of z both are nearly linear
    p = np.ones(nominal.shape[1])
    for look, row in enumerate(nominal):
        known = table[:, look] > 2.0 * special.ndtr(0.01 - FARTHEST)
        at = special.ndtri(np.maximum(row, 1e-300) / 2.0)
        bounds, answers = special.ndtri(table[known, look] / 2.0), scale[known]
        z = np.interp(at, bounds, answers)
        slope = (answers[1] - answers[0]) / (bounds[1] - bounds[0])
        z = np.where(at < bounds[0], answers[0] + slope * (at - bounds[0]), z)
        p = np.minimum(p, 2.0 * special.ndtr(z))
    return np.asarray(np.minimum(p, 1.0))
