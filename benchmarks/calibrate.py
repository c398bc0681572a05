"""Size, coverage and power of what `doe analyze` prints, by simulation: ``make calibrate``.

Every data set has one active factor A, whose effect is three of its standard errors, and blocks
that carry half of the variance within a cell, or more where they are confounded. Something may be
planted for a check to find. Rates over all designs go to docs/statistics.md.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from itertools import chain
from math import exp, log, sinh, sqrt
from typing import NamedTuple

import numpy as np
from doe.analysis.across import across
from doe.analysis.case import AnalysisOptions
from doe.analysis.data import FactorLevels, Observations, Runs
from doe.analysis.estimators.means import SIGNS, Mean, Means
from doe.analysis.levels.analyze import LevelAnalysis, analyze_levels
from doe.analysis.levels.layout import LevelObservations, layout_of
from msgspec import structs

from benchmarks import write_table
from doe.analysis.analyze import Analysis, analyze
from doe.analysis.estimators.dispersion import Dispersion
from doe.analysis.estimators.robust import Robust
from doe.analysis.lenth import lenth
from doe.analysis.missing import Missing

ALPHA = 0.05
MEAN = 20.0
ACTIVE = 3.0
"""Effect of A in standard errors."""
BLOCKS = (0.0, 1.0, 5.0)
"""Spread of blocks over σ, by their number in a replicate; what confounds must be seen."""
Draw = Callable[[np.random.Generator, int], np.ndarray]


class Plan(NamedTuple):
    """A design to simulate."""

    name: str
    factors: int
    replicates: int
    blocks: int = 0
    """Blocks per replicate; two of them hide the interaction of all factors."""
    missing: int = 0
    order: int | None = None


PLANS = (
    Plan("2³ × 1", 3, 1),
    Plan("2³ × 2", 3, 2),
    Plan("2³ × 3, order 1", 3, 3, order=1),
    Plan("2³ × 4 in blocks", 3, 4, blocks=1),
    Plan("2⁴ × 1, order 2", 4, 1, order=2),
    Plan("2⁴ × 2 in two blocks each", 4, 2, blocks=2),
    Plan("2⁴ × 2 in blocks, 3 missing", 4, 2, blocks=1, missing=3),
    Plan("2⁴ × 3, 6 missing", 4, 3, missing=6),
    Plan("2⁵ × 2 in blocks", 5, 2, blocks=1),
    Plan("2⁶ × 1", 6, 1),
    Plan("2⁶ × 2 in blocks", 6, 2, blocks=1),
)
LEVEL_PLANS = ("3 × 2² × 2 in blocks, 2 missing", "2³ with 4 centre runs")
NAMED = {plan.name: plan for plan in PLANS}
ERRORS: dict[str, Draw] = {
    "normal": lambda rng, n: rng.normal(size=n),
    "exponential": lambda rng, n: rng.exponential(size=n) - 1.0,
    "t₃": lambda rng, n: rng.standard_t(3, size=n) / sqrt(3.0),
}
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
}
SEVERAL = ("2³ × 2", "2³ × 4 in blocks")
"""Designs that are also analysed with --transform auto, and with three responses at once."""
LOGNORMAL = {"skewed": 0.8, "mild": 0.25}
"""Standard deviation of ln y where that is normal."""
PLANTED_IN = dict.fromkeys(PLANTED, ("2³ × 4 in blocks", "2⁴ × 3, 6 missing")) | {
    "interaction": ("2³ × 3, order 1",),
    "mild": SEVERAL,
    "lost": ("2³ × 4 in blocks", "2⁵ × 2 in blocks"),
}
SIZE, COVERAGE = ("size", ALPHA), ("coverage", 1.0 - ALPHA)
RATES: dict[str, tuple[str, float]] = {
    "p of an inert term": SIZE,
    "p of an inert term, type II": SIZE,
    "any inert term after Holm": SIZE,
    "share of false ones among terms called after BH": SIZE,
    "interval of an effect": COVERAGE,
    "lack of fit": SIZE,
    "share of the blocks": COVERAGE,
    "Lenth's p of an inert term": SIZE,
    "inert term beyond Lenth's ME by t": SIZE,
    "any inert term beyond Lenth's SME": SIZE,
    "any inert term beyond Lenth's SME by t": SIZE,
    "permutation p of an inert term": SIZE,
    "any inert term by permutation max-T": SIZE,
    "any inert term by wild bootstrap": SIZE,
    "wild bootstrap interval of an effect": COVERAGE,
    "HC3's p of an inert term": SIZE,
    "p of a term of the dispersion": SIZE,
    "any term of the dispersion after Holm": SIZE,
    "mean at a level": COVERAGE,
    "mean at levels of two factors": COVERAGE,
    "effect at a level of another factor": COVERAGE,
    "interval of the configuration that comes out best": COVERAGE,
    "intervals of all configurations at once": COVERAGE,
    "Hsu's intervals, all at once": COVERAGE,
    "a true best configuration stays among the best": COVERAGE,
    "interval of what the reduced model predicts": COVERAGE,
    "geometric means of all configurations at once": COVERAGE,
    "Box–Cox interval": COVERAGE,
    "two scales: any inert term after Holm, log": SIZE,
    "two scales: interval of a ratio": COVERAGE,
    "--transform auto: p of an inert term": SIZE,
    "--transform auto: any inert term after Holm": SIZE,
    "--transform auto: interval of an effect": COVERAGE,
    "--transform boxcox: p of an inert term": SIZE,
    "--transform boxcox: any inert term after Holm": SIZE,
    "three responses: share of false ones after BH over all": SIZE,
    "Fisher's p that a factor loses runs": SIZE,
    "Firth's p that a factor loses runs": SIZE,
    "any factor after Holm loses runs": SIZE,
    "levels: p of an inert term": SIZE,
    "levels: any inert term after Holm": SIZE,
    "levels: share of false ones among terms called after BH": SIZE,
    "levels: interval of an effect": COVERAGE,
    "levels: share of the blocks, as random": COVERAGE,
    "levels: p of an inert term, blocks as random": SIZE,
    "levels: permutation p of an inert term": SIZE,
    "levels: HC3's p of an inert term": SIZE,
    "levels: any pair of a factor by Tukey": SIZE,
    "levels: p of a pair alone": SIZE,
    "levels: mean of a level": COVERAGE,
    "levels: mean at levels of two factors": COVERAGE,
    "levels: linear or quadratic part": SIZE,
    "levels: curvature": SIZE,
    "levels: lack of fit": SIZE,
    "levels: intervals of all configurations at once": COVERAGE,
    "levels: Hsu's intervals, all at once": COVERAGE,
    "levels: predictions of all configurations at once": COVERAGE,
    "check: normality": SIZE,
    "check: equal variance": SIZE,
    "check: spread by factor": SIZE,
    "check: drift": SIZE,
    "check: slot": SIZE,
    "check: slot confounding": SIZE,
    "check: host": SIZE,
    "check: host confounding": SIZE,
    "check: outliers": SIZE,
    "check: box-cox": SIZE,
    "any alarm of the checks": SIZE,
}
"""What is counted -> what kind of rate it is, and its nominal value."""
AGAINST_NORMAL = {
    "check: normality",
    "check: outliers",
    "check: box-cox",
    "any alarm of the checks",
    "Box–Cox interval",
}
"""Rates that are a size for normal errors only: other errors are what these look for."""
SCALED = {
    "Box–Cox interval": ("", *LOGNORMAL),
    "geometric means of all configurations at once": tuple(LOGNORMAL),
    "two scales: any inert term after Holm, log": ("", *LOGNORMAL),
    "two scales: interval of a ratio": tuple(LOGNORMAL),
    "--transform auto: p of an inert term": ("", *LOGNORMAL),
    "--transform auto: any inert term after Holm": ("", *LOGNORMAL),
    "--transform auto: interval of an effect": ("", *LOGNORMAL),
    "--transform boxcox: p of an inert term": ("", *LOGNORMAL),
    "--transform boxcox: any inert term after Holm": ("", *LOGNORMAL),
}
"""Rates of error where y is lognormal too, or there alone."""
POWERS: dict[str, tuple[str, float]] = {
    "A by its own p": ("", 0.6),
    "A after Holm": ("", 0.15),
    "A after BH": ("", 0.15),
    "A by Lenth": ("", 0.3),
    "A by permutation max-T": ("", 0.15),
    "A by wild bootstrap": ("", 0.1),
    "dispersion: B after Holm": ("spread", 0.5),
    "check: equal variance": ("spread", 0.1),
    "check: spread by factor": ("spread", 0.5),
    "check: drift": ("drift", 0.4),
    "check: slot": ("slot", 0.4),
    "check: host": ("host", 0.4),
    "check: slot confounding": ("tied", 0.9),
    "check: outliers": ("outlier", 0.5),
    "check: normality": ("skewed", 0.2),
    "check: box-cox": ("skewed", 0.2),
    "lack of fit": ("interaction", 0.3),
    "Fisher: B loses runs": ("lost", 0.5),
    "Firth: B loses runs": ("lost", 0.5),
    "levels: B by its F": ("", 0.3),
}
"""What is found -> what is planted for it, and the share of data sets in which it is found."""


class Truth(NamedTuple):
    """What a data set was made from."""

    effect: float  # of A
    mean: float  # over all blocks, of ln y where that is normal
    exponent: float = 1.0  # at which errors are normal
    log_effect: float = 0.0  # of A on ln y


def simulated(
    plan: Plan, draw: str, rng: np.random.Generator, planted: str = ""
) -> tuple[Observations, Truth]:
    """One data set, and what is true of it."""
    size = 1 << plan.factors
    cells = np.tile(np.arange(size), plan.replicates)
    replicate = np.repeat(np.arange(plan.replicates), size)
    n = len(cells)
    order, host = rng.permutation(n), rng.permutation(n) % 2
    block = replicate
    if plan.blocks == 2:
        block = 2 * replicate + (np.bitwise_count(cells) & 1)
    shift = BLOCKS[plan.blocks] * rng.normal(size=block.max() + 1)
    effect, high = ACTIVE * 2.0 / sqrt(n), cells >> 1 & 1
    slot = cells & 1 if planted == "tied" else order % 4
    errors = ERRORS[draw](rng, n) * (5.0 if planted == "spread" else 1.0) ** high
    y = MEAN + effect / 2 * (2 * (cells & 1) - 1) + shift[block] + errors
    y += 3.0 * (planted == "drift") * order / (n - 1)
    y += 2.0 * (planted == "slot") * (slot == 0) + 2.0 * (planted == "host") * host
    y += 6.0 * (planted == "outlier") * (np.arange(n) == rng.integers(n))
    y += effect / 2 * (planted == "interaction") * (2 * (cells & 1) - 1) * (2 * high - 1)
    mean = MEAN + float(shift.mean())
    truth = Truth(effect, mean, 1.0, log((mean + effect / 2) / (mean - effect / 2)))
    if (spread := LOGNORMAL.get(planted)) is not None:
        y = np.exp(3.0 + spread * (y - MEAN))
        level = float(np.exp(3.0 + spread * shift + spread**2 / 2).mean())
        ratio = spread * effect
        mean = 3.0 + spread * float(shift.mean())
        truth = Truth(2.0 * level * sinh(ratio / 2), mean, 0.0, ratio)
    y[rng.choice(n, plan.missing, replace=False)] = np.nan
    y[(planted == "lost") & (high == 1) & (rng.random(n) < 0.5)] = np.nan
    runs = Runs(
        factors=tuple(FactorLevels(key, "0", "1") for key in "ABCDEF"[: plan.factors]),
        coded=(2 * (cells[:, None] >> np.arange(plan.factors) & 1) - 1).astype(np.int8),
        block=block if plan.blocks else None,
        block_name="block" if plan.blocks else None,
        run_ids=tuple(f"r{i}" for i in range(n)),
        run_order=tuple((order + 1).tolist()),
        slot=tuple(f"gpu{i}" for i in slot),
        host=tuple(f"node{i}" for i in host),
        states=("",) * n,
    )
    return Observations(runs, "y", y, y, y, "", "max"), truth


Tally = Iterator[tuple[str, float]]
"""What one analysis contributes to each rate."""


def tallied(found: Analysis, truth: Truth) -> Tally:
    """Everything that the tool prints for one response."""
    yield from _of_effects(found, truth)
    yield from _of_lenth(found)
    yield from _of_robust(found, truth)
    if (spread := found.get(Dispersion)) is not None and spread.replicates > 1:
        below = {e.term: _below(e.p_holm) for e in spread.effects}
        yield "p of a term of the dispersion", _share(e.p for e in spread.effects)
        yield "any term of the dispersion after Holm", any(below.values())
        yield "dispersion: B after Holm", below.get("B", False)
    yield from _of_means(found, truth)
    yield from _of_the_best(found, truth)
    yield from _of_checks(found, truth)
    yield from _of_scales(found, truth)
    if found.missing is not None:
        yield from _of_lost_runs(found.missing)


def _of_lost_runs(missing: Missing) -> Tally:
    yield "any factor after Holm loses runs", any(_below(row.p_holm) for row in missing.rates)
    for row in missing.rates:
        for name, p in (("Fisher", row.p_exact), ("Firth", row.p_firth)):
            yield f"{name}'s p that a factor loses runs", _below(p)
            if row.factor == "B":
                yield f"{name}: B loses runs", _below(p)


def _of_effects(found: Analysis, truth: Truth) -> Tally:
    inert = [e for e in found.effects if e.term != "A"]
    a = next(e for e in found.effects if e.term == "A")
    called = [e.term for e in found.effects if _below(e.p_bh)]
    yield "p of an inert term", _share(e.p for e in inert)
    yield "any inert term after Holm", any(_below(e.p_holm) for e in inert)
    false = len(called) - ("A" in called)
    yield "share of false ones among terms called after BH", false / max(len(called), 1)
    yield "A by its own p", _below(a.p)
    yield "A after Holm", _below(a.p_holm)
    yield "A after BH", _below(a.p_bh)
    if a.ci_low is not None:
        yield "interval of an effect", _inside(truth.effect, a.ci_low, a.ci_high)
    for row in found.anova.rows:
        if row.source == "Lack of fit" and row.p is not None:
            yield "lack of fit", _below(row.p)
    if found.anova.type2 is not None:
        terms = {e.term for e in inert}
        p_two = [row.p for row in found.anova.type2 if row.source in terms]
        yield "p of an inert term, type II", _share(p_two)
    blocking = found.anova.blocking
    if blocking is not None and blocking.share is not None:
        yield "share of the blocks", _inside(0.5, blocking.share_low, blocking.share_high)


def _of_lenth(found: Analysis) -> Tally:
    names = [e.term for e in found.effects]
    judged = lenth(np.array([e.effect for e in found.effects]), names, ALPHA)
    if judged is None or judged.m < 7:
        return
    inert = [point.magnitude for point in judged.points if point.term != "A"]
    yield (
        "Lenth's p of an inert term",
        _share(p for name, p in zip(names, judged.p, strict=True) if name != "A"),
    )
    yield "inert term beyond Lenth's ME by t", float(np.mean(np.array(inert) > judged.me_t))
    yield "any inert term beyond Lenth's SME", max(inert) > judged.sme
    yield "any inert term beyond Lenth's SME by t", max(inert) > judged.sme_t
    yield "A by Lenth", judged.p[names.index("A")] < ALPHA


def _of_robust(found: Analysis, truth: Truth) -> Tally:
    if (robust := found.get(Robust)) is None:
        return
    a = next(row for row in robust.rows if row.term == "A")
    rows = [row for row in robust.rows if row.term != "A"]
    yield "permutation p of an inert term", _share(row.p_permutation for row in rows)
    yield "any inert term by permutation max-T", any(_below(row.p_maxt) for row in rows)
    yield "A by permutation max-T", _below(a.p_maxt)
    if robust.bootstraps:
        yield "any inert term by wild bootstrap", any(_below(row.p_wild) for row in rows)
        yield "A by wild bootstrap", _below(a.p_wild)
        interval = _inside(truth.effect, a.boot_low, a.boot_high)
        yield "wild bootstrap interval of an effect", interval
    if a.p_hc3 is not None:
        yield "HC3's p of an inert term", _share(row.p_hc3 for row in rows)


def _of_means(found: Analysis, truth: Truth) -> Tally:
    means = found.get(Means)
    if means is None or found.df_error == 0:
        return

    def covers(value: float, interval: Mean) -> bool:
        return _inside(value, interval.ci_low, interval.ci_high)

    for factor in means.main:
        half = truth.effect / 2 if factor.factor == "A" else 0.0
        yield "mean at a level", covers(truth.mean - half, factor.low)
        yield "mean at a level", covers(truth.mean + half, factor.high)
    for pair in means.interactions:
        change = truth.effect if pair.factor == "A" else 0.0
        for interval in (pair.at_low, pair.at_high):
            yield "effect at a level of another factor", covers(change, interval)
        for (x, y), interval in zip(SIGNS, pair.means, strict=True):
            sign = {pair.factor: x, pair.other: y}.get("A", 0)
            expected = truth.mean + truth.effect / 2 * sign
            yield "mean at levels of two factors", covers(expected, interval)


def _of_the_best(found: Analysis, truth: Truth) -> Tally:
    best = found.best
    if best is None or best.critical is None:
        return
    if best.cells[0].geometric is not None:
        half = truth.log_effect / 2
        covered = [
            _inside(exp(truth.mean + half * c.coded[0]), c.ci_low, c.ci_high) for c in best.cells
        ]
        yield "geometric means of all configurations at once", all(covered)
        return
    good = [cell.among_best for cell in best.cells if cell.coded[0] > 0]
    yield "a true best configuration stays among the best", float(np.mean(good))
    gap = {1: 0.0, -1: -truth.effect}
    compared = [_inside(gap[c.coded[0]], c.mcb_low, c.mcb_high) for c in best.cells]
    yield "Hsu's intervals, all at once", all(compared)
    half = truth.effect / 2
    covered = [_inside(truth.mean + half * c.coded[0], c.ci_low, c.ci_high) for c in best.cells]
    yield "interval of the configuration that comes out best", covered[0]
    yield "intervals of all configurations at once", all(covered)
    predicted = best.reduced.best
    expected = truth.mean + half * {"A1": 1.0, "A0": -1.0}.get(predicted.config[:2], 0.0)
    inside = _inside(expected, predicted.ci_low, predicted.ci_high)
    yield "interval of what the reduced model predicts", inside


def _of_checks(found: Analysis, truth: Truth) -> Tally:
    if (profile := found.diagnostics.boxcox) is not None:
        yield "Box–Cox interval", profile.low <= truth.exponent <= profile.high
    tested = [finding for finding in found.diagnostics.findings if finding.p is not None]
    for finding in tested:
        yield f"check: {finding.check}", _below(finding.p)
    yield "any alarm of the checks", not all(finding.ok for finding in tested)


def _of_scales(found: Analysis, truth: Truth) -> Tally:
    """The same terms on the log scale, beside those on the raw one."""
    if found.scales is None:
        return
    inert = [row for row in found.scales.terms if row.term != "A"]
    called = any(_below(row.log_p_holm) for row in inert)
    yield "two scales: any inert term after Holm, log", called
    a = next(row for row in found.scales.terms if row.term == "A")
    if a.ratio_low is not None:
        inside = _inside(exp(truth.log_effect), a.ratio_low, a.ratio_high)
        yield "two scales: interval of a ratio", inside


def _of_chosen_scale(observed: Observations, truth: Truth, options: AnalysisOptions) -> Tally:
    """What is left of error rates where the same data choose the scale."""
    for asked in ("auto", "boxcox"):
        found = analyze(observed, structs.replace(options, transform=asked, robust=False))
        inert = [e for e in found.effects if e.term != "A"]
        yield f"--transform {asked}: p of an inert term", _share(e.p for e in inert)
        called = any(_below(e.p_holm) for e in inert)
        yield f"--transform {asked}: any inert term after Holm", called
        if asked == "auto":
            a = next(e for e in found.effects if e.term == "A")
            true = truth.log_effect if found.transform.name == "log" else truth.effect
            yield "--transform auto: interval of an effect", _inside(true, a.ci_low, a.ci_high)


def _of_three_responses(observed: Observations, draw: str, rng: np.random.Generator) -> Tally:
    """Responses that share half of their variance, A active in all of them."""
    errors = ERRORS[draw](rng, 2 * len(observed.y)).reshape(2, -1)
    analyses = [
        analyze(replace(observed, response=f"y{i}", y=observed.y + own))
        for i, own in enumerate((0.0, *errors))
    ]
    rows = across(analyses).rows
    called = [row.term for row in rows for p in row.p_bh if _below(p)]
    false = sum(term != "A" for term in called)
    rate = "three responses: share of false ones after BH over all"
    yield rate, false / max(len(called), 1)


def simulated_levels(
    name: str, draw: str, rng: np.random.Generator
) -> tuple[LevelObservations, Truth]:
    """One data set of factors with levels, in which B is active."""
    if name == LEVEL_PLANS[0]:
        a, b, c, block = np.indices((3, 2, 2, 2)).reshape(4, -1)
        columns = {"A": a + 1, "B": b, "C": c}
    else:
        corners = 2 * np.indices((2, 2, 2)).reshape(3, -1)
        a, b, c = np.hstack([corners, np.ones((3, 4), np.int64)])
        columns, block = {"A": a, "B": b, "C": c}, np.zeros(len(a), np.int64)
    n, middle = len(a), (b.max() + b.min()) / 2
    shift = rng.normal(size=block.max() + 1) * (block.max() > 0)
    effect = ACTIVE * 2.0 / sqrt(n)
    y = MEAN + effect * (b - middle) / np.ptp(b) + shift[block] + ERRORS[draw](rng, n)
    if name == LEVEL_PLANS[0]:
        y[rng.choice(n, 2, replace=False)] = np.nan
    layout = layout_of(
        {key: column.tolist() for key, column in columns.items()}, block=block.tolist()
    )
    return LevelObservations(layout, "y", y, goal="max"), Truth(effect, MEAN + float(shift.mean()))


def of_levels(found: LevelAnalysis, truth: Truth) -> Tally:
    """What an analysis of factors with levels prints."""
    inert = [t for t in found.tests if t.term != "B"]
    yield "levels: p of an inert term", _share(t.p for t in inert)
    yield "levels: any inert term after Holm", any(_below(t.p_holm) for t in inert)
    called = [t.term for t in found.tests if _below(t.p_bh)]
    false = (len(called) - ("B" in called)) / max(len(called), 1)
    yield "levels: share of false ones among terms called after BH", false
    b = next(e for e in found.effects if e.term == "B")
    yield "levels: interval of an effect", _inside(truth.effect, b.ci_low, b.ci_high)
    if any(t.p_hc3 is not None for t in inert):
        yield "levels: HC3's p of an inert term", _share(t.p_hc3 for t in inert)
    if found.permutations is not None:
        p = [t.p for t in found.permutations.tests if t.term != "B"]
        yield "levels: permutation p of an inert term", _share(p)
    if found.random_blocks is not None:
        random = found.random_blocks
        p = [t.p for t in random.terms if t.term != "B"]
        yield "levels: p of an inert term, blocks as random", _share(p)
        inside = _inside(0.5, random.share_low, random.share_high)
        yield "levels: share of the blocks, as random", inside
    for row in found.anova.rows:
        if row.source == "Lack of fit":
            yield "levels: lack of fit", _below(row.p)
    yield "levels: B by its F", _below(next(t.p for t in found.tests if t.term == "B"))
    pairs = [d.p_tukey for d in found.differences if d.factor == "A"]
    yield "levels: any pair of a factor by Tukey", any(_below(p) for p in pairs)
    yield "levels: p of a pair alone", _share(d.p for d in found.differences if d.factor == "A")
    for rate, means in (
        ("levels: mean of a level", found.levels),
        ("levels: mean at levels of two factors", found.combinations),
    ):
        for mean in means:
            at = dict(zip(mean.factor, mean.at, strict=True)).get("B")
            half = 0.0 if at is None else truth.effect / 2 * (2 * at - 1)
            yield rate, _inside(truth.mean + half, mean.ci_low, mean.ci_high)
    for part in found.parts:
        if part.factor == "A":
            yield "levels: linear or quadratic part", _below(part.p)
    if found.curvature is not None:
        yield "levels: curvature", _below(found.curvature.p)
    if found.best is not None and found.best.critical is not None:
        level = {0: -0.5, 1: 0.5, -1: 0.0}
        shifts = [truth.effect * level[cell.levels[1]] for cell in found.best.cells]
        gaps = [own - max(shifts[:i] + shifts[i + 1 :]) for i, own in enumerate(shifts)]
        cells = list(zip(found.best.cells, shifts, gaps, strict=True))
        covered = [_inside(truth.mean + own, c.ci_low, c.ci_high) for c, own, _ in cells]
        yield "levels: intervals of all configurations at once", all(covered)
        compared = [_inside(gap, c.mcb_low, c.mcb_high) for c, _, gap in cells]
        yield "levels: Hsu's intervals, all at once", all(compared)
    change = truth.effect if any("B" in term for term in called) else 0.0  # else B is left open
    predicted = [
        _inside(truth.mean + change * (cell.levels[1] - 0.5), cell.ci_low, cell.ci_high)
        for cell in found.predictions
        if cell.ci_low is not None and min(cell.levels) >= 0
    ]
    yield "levels: predictions of all configurations at once", all(predicted)


def measured_levels(name: str, draw: str, count: int) -> dict[str, float]:
    """Rates of one design of factors with levels."""
    rng = np.random.default_rng([LEVEL_PLANS.index(name), list(ERRORS).index(draw)])
    sums: dict[str, list[float]] = defaultdict(list)
    options = AnalysisOptions(order=2, robust=True, permutations=0)
    if name == LEVEL_PLANS[0]:
        options = structs.replace(options, permutations=99, random_blocks=True)
    for _ in range(count):
        observed, truth = simulated_levels(name, draw, rng)
        for rate, value in of_levels(analyze_levels(observed, options), truth):
            sums[rate].append(float(value))
    return {rate: float(np.mean(values)) for rate, values in sums.items()}


def _below(p: float | None) -> bool:
    return p is not None and p < ALPHA


def _share(values: Iterator[float | None] | list[float | None]) -> float:
    """Share of p values below the level."""
    return float(np.mean([_below(p) for p in values]))


def _inside(value: float, low: float | None, high: float | None) -> bool:
    slack = 1e-9 * max(1.0, abs(value))
    return low is not None and high is not None and low - slack <= value <= high + slack


def measured(
    plan: Plan, draw: str, count: int, planted: str = "", permutations: int = 199
) -> dict[str, float]:
    """Rates of one design and one kind of error over `count` data sets."""
    seed = [PLANS.index(plan), list(ERRORS).index(draw), ["", *PLANTED].index(planted)]
    rng = np.random.default_rng(seed)
    sums: dict[str, list[float]] = defaultdict(list)
    for i in range(count):
        observed, truth = simulated(plan, draw, rng, planted)
        robust = permutations > 0 and not planted
        options = AnalysisOptions(
            order=plan.order, robust=robust, permutations=permutations or 199, seed=i
        )
        rates = [tallied(analyze(observed, options), truth)]
        if plan.name in SEVERAL and planted in ("", *LOGNORMAL):
            rates.append(_of_chosen_scale(observed, truth, options))
        if plan.name in SEVERAL and robust:
            rates.append(_of_three_responses(observed, draw, rng))
        for name, value in chain(*rates):
            sums[name].append(float(value))
    return {name: float(np.mean(values)) for name, values in sums.items()}


def outside(name: str, rate: float, count: int) -> bool:
    """Whether a rate is on the wrong side of its nominal value by more than three errors."""
    kind, nominal = RATES[name]
    slack = 3.0 * sqrt(ALPHA * (1.0 - ALPHA) / count)
    return rate > nominal + slack if kind == "size" else rate < nominal - slack


Rates = Mapping[tuple[str, str, str], dict[str, float]]
"""Rates by design, kind of error, and what was planted."""


def size_table(rates: Rates, count: int) -> str:
    """Smallest and largest rate over the designs, where nothing is planted."""
    head = f"| of {count} data sets per design | nominal | {' | '.join(ERRORS)} |"
    lines = [head, "| --- | --- |" + " --- |" * len(ERRORS)]
    for name, (kind, nominal) in RATES.items():
        cells = []
        for draw in ERRORS:
            chosen = [r for (_, d, p), r in rates.items() if d == draw and _is_null(name, p)]
            values = [by_name[name] for by_name in chosen if name in by_name]
            judged = draw == "normal" or name not in AGAINST_NORMAL
            star = "*" if judged and any(outside(name, v, count) for v in values) else ""
            span = _span(values) + star
            cells.append(span if judged else f"({span})")
        lines.append(f"| {name} | {kind} {nominal:g} | {' | '.join(cells)} |")
    return "\n".join(lines)


def power_table(rates: Rates, count: int) -> str:
    """Smallest and largest share in which something is found that is there, normal errors."""
    lines = [f"| of {count} data sets per design | what is there | found |", "| --- | --- | --- |"]
    for name, (planted, _) in POWERS.items():
        what = PLANTED.get(planted, "an effect of three standard errors")
        chosen = [r for (_, d, p), r in rates.items() if (d, p) == ("normal", planted)]
        lines.append(f"| {name} | {what} | {_span([r[name] for r in chosen if name in r])} |")
    return "\n".join(lines)


def _span(values: list[float]) -> str:
    return f"{min(values):.2f} to {max(values):.2f}" if values else "–"


def complaints(rates: Rates, count: int) -> list[str]:
    """Rates that are out of their band, and things that are found too rarely, by name."""
    lines = []
    for (plan, draw, planted), by_name in rates.items():
        for name, rate in by_name.items():
            judged = draw == "normal" or name not in AGAINST_NORMAL
            if judged and _is_null(name, planted) and outside(name, rate, count):
                lines.append(f"{name}, {plan}, {draw}: {rate:.3f}")
            wanted, floor = POWERS.get(name, ("-", 0.0))
            replicated = plan in LEVEL_PLANS or NAMED[plan].replicates > 1
            if wanted == planted and draw == "normal" and replicated and rate < floor:
                lines.append(f"{name}, {plan}, {planted or 'A'}: found in {rate:.3f}")
    return lines


def _is_null(name: str, planted: str) -> bool:
    """Whether a rate is one of error where something is planted."""
    return name in RATES and planted in SCALED.get(name, ("",))


def _job(arguments: tuple[str, str, str, int]) -> dict[str, float]:
    name, draw, planted, count = arguments
    if name in LEVEL_PLANS:
        return measured_levels(name, draw, count)
    return measured(NAMED[name], draw, count, planted)


def main() -> None:
    """Measure all rates and write the tables into the document."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100, help="data sets per design and error")
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    keys = [(name, draw, "") for name in (*NAMED, *LEVEL_PLANS) for draw in ERRORS]
    keys += [(name, "normal", planted) for planted, names in PLANTED_IN.items() for name in names]
    with ProcessPoolExecutor(given.jobs) as pool:
        rates = {}
        for key, by_name in zip(
            keys, pool.map(_job, [(*k, given.count) for k in keys]), strict=True
        ):
            rates[key] = by_name
            print(*key, flush=True)
    for line in complaints(rates, given.count):
        print(f"outside its band: {line}")
    for mark, table in (("calibration", size_table), ("power", power_table)):
        new = table(rates, given.count)
        write_table(mark, new)
        print(new)


if __name__ == "__main__":
    main()
