"""Looking at a study after each portion of its runs without fooling oneself.

At every look each term has a repeated confidence interval (Jennison and Turnbull, 1989), and two
one-sided tests of whether it is negligible. All that is said of a term, over all looks and over the
whole family of terms and responses, holds together with probability 1 - alpha. So a term may be
decided at any look, and the study may stop, or go on, for any reason.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from doe.analysis import distributions as stats
from doe.analysis.coding import level_patterns
from doe.analysis.contrasts import Floats, Ints
from doe.analysis.dataset import Runs
from doe.analysis.estimators.covariates import refusal
from doe.analysis.fit import Fit, fit, satterthwaite
from doe.analysis.model import default_terms, make_model
from doe.analysis.pvalues import t_critical
from doe.analysis.spending import SWITCH, Rule
from doe.terms import factors_in, order

DRAWS, SEED = 2000, 42
"""Simulated futures of a study, and their seed."""
MOST_CORRELATED = 64
"""Degrees of freedom up to which the variances of several responses vary together."""

EARLY_ORDER, LEAST_DF = 2, 4
"""Highest terms, and least degrees of freedom that they leave for the error, of a look before there
are two replicates."""
MOST_PATTERNS = 5000
"""Pairs of levels of a term up to which each is looked at; of more the test alone is."""

TermVerdict = Literal["effect", "negligible", "open"]


class TermLook(NamedTuple):
    """Estimates of a term at one look, between each two levels of its factors.

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
    """Effects after some complete portions."""

    portions: int
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
    portion: Ints,
    rule: Rule,
    terms: Sequence[int] | None = None,
) -> list[Look]:
    """Return what each look saw: the runs with a value among the first portions.

    The model has the given terms, or those that suit the runs; before there are two replicates its
    main effects and two-factor interactions, and the error is what these leave. A look whose runs
    leave no error to test against, or whose factors change a covariate, is left out, as if nobody
    had looked.
    """
    looks = []
    for n in rule.looks:
        if n > int(portion.max()):
            break
        observed = np.flatnonzero((portion <= n) & ~np.isnan(y))
        if len(observed) < 2 or float(np.ptp(y[observed])) == 0.0:
            continue
        inside, early = runs.only(observed), rule.is_early(n)
        chosen = default_terms(inside) if terms is None else terms
        if early:
            chosen = [term for term in chosen if order(term) <= EARLY_ORDER]
        if refusal(inside, chosen):
            continue
        full = fit(y[observed], make_model(inside, chosen), pooled=early)
        if full.df_error >= (LEAST_DF if early else 1) and (early or full.from_pure):
            seen = {term: term_look(full, term) for term in full.model.terms}
            df = float(full.df_error) if early else satterthwaite(full)
            looks.append(Look(n, seen, df, full.sigma or 0.0))
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
    value = rows[known][:, model.fitted] @ full.coef
    se = np.sqrt(full.variance(rows[known]) * full.ms_error)
    names = tuple(label for label, is_known in zip(labels, known, strict=True) if is_known)
    return TermLook(df, full.unit * value, full.unit * se, f, names)


class TermDecision(Struct, frozen=True):
    """State of one term over all looks so far.

    Of a negligible term the interval is that of the two one-sided tests, which includes zero (Hsu,
    Hwang, Liu and Ruberg, 1994).
    """

    term: int
    effect: float | None  # None where no look could estimate it
    se: float | None
    low: float | None  # the part that the intervals of all looks share
    high: float | None
    p: float | None  # over all looks and the whole family
    verdict: TermVerdict
    decided_at: float | None  # replicates
    pattern: str = ""  # of more degrees of freedom the levels that differ most; F gives the verdict
    df: int = 1


class _Seen(NamedTuple):
    """Intervals of a term over the looks so far."""

    last: TermLook
    ends: dict[str, tuple[float, float]]  # of each pattern, what the intervals of all looks share
    within: dict[str, tuple[float, float]]  # of the one-sided tests
    verdict: TermVerdict
    decided_at: float | None


def decide(
    looks: Sequence[Look], masks: Sequence[int], family: int, rule: Rule, matters: float
) -> tuple[TermDecision, ...]:
    """Judge the terms of one response.

    A term is decided by the first look that rejects it (`effect`: its interval excludes zero), or
    at which two one-sided tests show all its patterns within ± `matters` (`negligible`). It stays
    decided: what all looks say holds together, so that the intersection of intervals does.
    """
    levels = list(zip(rule.levels(family), rule.negligible_levels(family), strict=True))
    seen: dict[int, _Seen] = {}
    nominal = np.ones((len(rule.looks), len(masks)))
    for look in looks:
        at = rule.looks.index(look.portions)
        when = rule.replicates(look.portions)
        for column, mask in enumerate(masks):
            if mask in look.terms:
                nominal[at, column] = look.terms[mask].p(look.df)
                seen[mask] = _after(seen.get(mask), look, mask, levels[at], matters, when)
    p = rule.p(nominal, family).tolist()
    return tuple(
        _decision(mask, seen[mask], p[column])
        if mask in seen
        else TermDecision(mask, *(None,) * 5, "open", None)
        for column, mask in enumerate(masks)
    )


def _after(
    before: _Seen | None,
    look: Look,
    mask: int,
    levels: tuple[float, float],
    matters: float,
    when: float,
) -> _Seen:
    """Return what is known of a term after one more look."""
    term = look.terms[mask]
    before = before or _Seen(term, {}, {}, "open", None)
    reach, narrow = (term.reach(level, look.df) for level in levels)
    verdict, decided_at = before.verdict, before.decided_at
    if verdict == "open" and term.f > critical(levels[0], look.df, term.df) ** 2 / term.df:
        verdict, decided_at = "effect", when
    elif verdict == "open" and (np.abs(term.effect) + narrow < matters).all() and len(narrow):
        verdict, decided_at = "negligible", when
    return _Seen(
        term,
        _shared(before.ends, term, reach),
        _shared(before.within, term, narrow),
        verdict,
        decided_at,
    )


def _shared(
    before: Mapping[str, tuple[float, float]], term: TermLook, reach: Floats
) -> dict[str, tuple[float, float]]:
    """Return what the intervals of this look share with those before, pattern by pattern."""
    ends = dict(before)
    pairs = zip((term.effect - reach).tolist(), (term.effect + reach).tolist(), strict=True)
    for pattern, (least, most) in zip(term.patterns, pairs, strict=True):
        low, high = ends.get(pattern, (-math.inf, math.inf))
        ends[pattern] = max(least, low), min(most, high)
    return ends


def _decision(mask: int, seen: _Seen, p: float) -> TermDecision:
    """Return the pattern of a term that is largest at the last look, by the intervals of all
    looks.
    """
    term = seen.last
    if not len(term.effect):
        verdict = (seen.verdict, seen.decided_at)
        return TermDecision(mask, *(None,) * 4, p, *verdict, df=term.df)
    widest = int(np.argmax(np.abs(term.effect)))
    pattern = term.patterns[widest]
    if seen.verdict == "negligible":
        low, high = seen.within[pattern]
        ends = [min(low, 0.0), max(high, 0.0)]
    else:
        ends = sorted(seen.ends[pattern])  # looks that contradict leave a gap
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
    """State of a study; after 0 portions the effects are the true ones."""

    portions: int
    effect: Floats
    """Responses x terms."""
    sigma: Floats
    """Standard deviation of single runs, of each response."""
    matters: Floats
    """What is worth knowing, of each response."""
    decided: NDArray[np.bool_]
    """Responses x terms that are decided already."""
    columns: int
    """Degrees of freedom that the model of a look before the second replicate takes."""
    df: Ints | None = None
    """Degrees of freedom of each term of each response; None where all have one."""
    spread: Floats | None = None
    """Variance of each effect in one portion over σ² / runs; None where it is that of two levels,
    4."""
    correlation: Floats | None = None
    """Of the errors of two responses in one run; None where there is but one."""


def error_df(rule: Rule, portions: int, size: int, columns: int) -> int:
    """Degrees of freedom of the error after some portions of `size` runs each."""
    if rule.is_early(portions):
        return portions * size - columns - portions
    cells = rule.per_replicate * size
    return portions * size - cells - portions + rule.per_replicate


def with_first_look(rule: Rule, size: int, columns: int) -> Rule:
    """Return the rule with its first look: when runs of a second replicate leave enough for the
    error.

    A single replicate has a single seed, and says nothing of how effects vary over seeds.
    """
    tried = range(rule.per_replicate + 1, SWITCH * rule.per_replicate)
    first = next((n for n in tried if error_df(rule, n, size, columns) >= LEAST_DF), None)
    return replace(rule, first=first or SWITCH * rule.per_replicate)


def futures(start: Start, size: int, family: int, rule: Rule) -> NDArray[np.bool_]:
    """Return which terms are decided at each further look, in simulated futures of the study.

    The true effects are those given after 0 portions, else drawn from around the estimates with
    their standard error; errors are normal with one variance, and correlated over the responses. A
    term of more degrees of freedom is followed by its largest pattern.

    Parameters
    ----------
    size : int
        Runs of a portion.

    Returns
    -------
    (draws, looks to come, responses, terms) array of bool
    """
    rng = np.random.default_rng(SEED)
    shape = (DRAWS, *start.effect.shape[-2:])
    n, sigma = start.portions, start.sigma[:, None]
    spread = np.full(shape[1:], 4.0) if start.spread is None else start.spread
    each = np.ones(shape[1:], np.int64) if start.df is None else start.df
    unit = np.sqrt(spread / size) * sigma  # standard deviation of effects in one portion
    root = np.eye(shape[1]) if start.correlation is None else _root(start.correlation)
    to_come = [look for look in rule.looks if look > n]
    levels = list(zip(rule.looks, rule.levels(family), rule.negligible_levels(family), strict=True))
    estimate = np.broadcast_to(start.effect, shape).copy()
    truth = estimate + (root @ rng.standard_normal(shape) * unit / np.sqrt(n) if n else 0.0)
    known = error_df(rule, n, size, start.columns) if n else 0
    squares = np.broadcast_to(start.sigma**2 * known, shape[:2])
    decided = np.broadcast_to(start.decided, shape).copy()
    history = np.zeros((DRAWS, len(to_come), *shape[1:]), dtype=bool)
    for i, (look, *pair) in enumerate(line for line in levels if line[0] > n):
        new = look - n
        block = truth + unit / np.sqrt(new) * (root @ rng.standard_normal(shape))
        estimate = (n * estimate + new * block) / look
        free = error_df(rule, look, size, start.columns)
        if rule.is_early(n) and not rule.is_early(look):  # repeated runs take the place of the rest
            known, squares = 0, np.zeros(shape[:2])
        squares = squares + start.sigma**2 * _squares(rng, root, free - known)
        n, known = look, free
        df = float(free) if rule.is_early(n) else _satterthwaite(rule, n, size, free)
        se = np.sqrt(spread * (squares / free)[:, :, None] / (n * size))
        reach, narrow = (_wide(level, df, each) * se for level in pair)
        absolute = np.abs(estimate)
        decided |= (absolute > reach) | (absolute + narrow < start.matters[:, None])
        history[:, i] = decided
    return history


def _satterthwaite(rule: Rule, portions: int, size: int, free: int) -> float:
    """Degrees of freedom that Satterthwaite's formula gives cells of equal variance, on average.

    Shares p of n chi-squared variances with ν = 2a degrees of freedom have the mean sum of squares
    ``(a + 1) / (n a + 1)``.
    """
    cells, a = rule.per_replicate * size, 0.5 * (rule.replicates(portions) - 1.0)
    return free * (cells * a + 1.0) / (cells * (a + 1.0))


def _wide(level: float, df: float, each: Ints) -> Floats:
    """Critical values of terms with these degrees of freedom."""
    return np.asarray(np.vectorize(lambda own: critical(level, df, int(own)), [float])(each))


def _root(correlation: Floats) -> Floats:
    """L with ``L L' = correlation``, also of one that is singular."""
    values, vectors = np.linalg.eigh(correlation)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def _squares(rng: np.random.Generator, root: Floats, df: int) -> Floats:
    """Sums of df squares of errors with variance 1, correlated over the responses."""
    if len(root) == 1 or df > MOST_CORRELATED:
        return np.asarray(rng.chisquare(df, (DRAWS, len(root))))
    return np.asarray(((root @ rng.standard_normal((DRAWS, len(root), df))) ** 2).sum(axis=2))


class Expected(Struct, frozen=True):
    """Expected size of a study that stops when it is decided."""

    replicates: float  # mean
    stopped_by: tuple[float, ...]  # chance that all is decided, at each look
    decided: tuple[float, ...]  # mean share of the terms that are, at each look


def expected(
    effects: Floats, sigma: float, size: int, columns: int, rule: Rule, matters: float
) -> Expected:
    """Mean replicates and the course of the decision, where these are the true effects."""
    undecided = np.zeros((1, len(effects)), dtype=bool)
    known = (np.array([sigma]), np.array([matters]))
    start = Start(0, effects[None, :], *known, undecided, columns)
    decided = futures(start, size, len(effects), rule)[:, :, 0]
    over = np.asarray(decided.all(axis=2))
    return Expected(
        replicates=float(rule.first + (~over[:, :-1]).sum(axis=1).mean()) / rule.per_replicate,
        stopped_by=tuple(over.mean(axis=0).tolist()),
        decided=tuple(decided.mean(axis=(0, 2)).tolist()),
    )


def detectable(
    size: int, columns: int, family: int, rule: Rule, power: float, levels: int = 2
) -> float:
    """Return the smallest effect, in σ, that one of `family` terms is called by the last look.

    Of a factor of more levels it is the difference of two.
    """
    low, high = 0.0, 64.0
    width, spread = np.array([[levels - 1]]), np.array([[2.0 * levels]])
    for _ in range(18):
        effect = 0.5 * (low + high)
        known = (np.array([[effect]]), np.ones(1), np.zeros(1), np.zeros((1, 1), dtype=bool))
        start = Start(0, *known, columns, width, spread)
        found = futures(start, size, family, rule)[:, -1].mean() >= power
        low, high = (low, effect) if found else (effect, high)
    return high
