"""Size, coverage and power of what `doe analyze` prints, by simulation: ``make calibrate``.

The data sets are those of `benchmarks.simulated`. Rates over all designs go to docs/calibration.md.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from itertools import chain
from math import inf, sqrt
from pathlib import Path

import numpy as np
from msgspec import structs

from benchmarks import write_table
from benchmarks.simulated import ERRORS, LOGNORMAL, NAMED, PLANS, PLANTED, Plan, Truth, simulated
from doe.analysis.analyze import Analysis, analyze
from doe.analysis.best import Prediction
from doe.analysis.dataset import Dataset
from doe.analysis.effects_by_response import effects_by_response
from doe.analysis.estimators.covariates import Covariates
from doe.analysis.estimators.dispersion import Dispersion
from doe.analysis.estimators.quasi_binomial import QuasiBinomial
from doe.analysis.estimators.robust import Robust
from doe.analysis.lenth import lenth
from doe.analysis.missing import Missing
from doe.analysis.options import AnalysisOptions
from doe.analysis.pvalues import holm
from doe.errors import DoeError

ALPHA = 0.05
SEVERAL = ("2³ × 2", "2³ × 4 in blocks")
"""Designs that are also analysed with --transform auto, and with three responses at once."""
UNEQUAL = ("unequal", "accuracy", "log odds", "counts")
"""What makes the spread differ by configuration."""
PLANTED_IN = dict.fromkeys(PLANTED, ("2³ × 4 in blocks", "2⁴ × 3, 6 missing")) | {
    "interaction": ("2³ × 3, order 1",),
    "mild": SEVERAL,
    "lost": ("2³ × 4 in blocks", "2⁵ × 2 in blocks"),
    "together": ("2³ × 4", "2⁵ × 2 in blocks"),
    "by value": ("2³ × 4",),
    "unequal": ("2³ × 4", "2³ × 4 in blocks", "2³, 2 or 8 runs by A"),
    "accuracy": ("2³ × 4", "2³, 2 or 8 runs by A"),
    "log odds": ("2³ × 4", "2³, 2 or 8 runs by A"),
    "counts": ("2³ × 4", "2³, 2 or 8 runs by A"),
    "covariate": ("2³ × 2", "2³ × 4 in blocks"),
}
SIZE, COVERAGE = ("size", ALPHA), ("coverage", 1.0 - ALPHA)
RATES: dict[str, tuple[str, float]] = {
    "p of an inert term": SIZE,
    "p of an inert term, type II": SIZE,
    "any inert term after Holm": SIZE,
    "any inert term told as a finding": SIZE,
    "share of false ones among terms called after BH": SIZE,
    "interval of an effect": COVERAGE,
    "lack of fit": SIZE,
    "curvature": SIZE,
    "linear or quadratic part": SIZE,
    "share of the blocks": COVERAGE,
    "p of an inert term, blocks as random": SIZE,
    "share of the blocks, as random": COVERAGE,
    "Lenth's p of an inert term": SIZE,
    "inert term beyond Lenth's ME by t": SIZE,
    "any inert term beyond Lenth's SME": SIZE,
    "any inert term beyond Lenth's SME by t": SIZE,
    "permutation p of an inert term": SIZE,
    "any inert term by permutation max-T": SIZE,
    "any inert term by wild bootstrap": SIZE,
    "wild bootstrap interval of an effect": COVERAGE,
    "HC3's p of an inert term": SIZE,
    "any inert term by HC3 with Holm": SIZE,
    "p of an inert term by counted items": SIZE,
    "any inert term by counted items with Holm": SIZE,
    "p of a term of the dispersion": SIZE,
    "any term of the dispersion after Holm": SIZE,
    "mean at a level": COVERAGE,
    "mean at levels of two factors": COVERAGE,
    "p of a pair of levels alone": SIZE,
    "any pair of levels by Tukey": SIZE,
    "Tukey's intervals of a factor, all at once": COVERAGE,
    "effects at levels of another factor, all at once": COVERAGE,
    "interval of the configuration that comes out best": COVERAGE,
    "intervals of all configurations at once": COVERAGE,
    "Hsu's intervals, all at once": COVERAGE,
    "a true best configuration stays among the best": COVERAGE,
    "interval of what the reduced model predicts": COVERAGE,
    "predictions of all configurations at once": COVERAGE,
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
    "Fisher's p that a pair of levels loses runs": SIZE,
    "any pair of levels after Holm loses runs": SIZE,
    "bounds with diverged runs beyond the range": COVERAGE,
    "p of an inert term on ranks, diverged runs last": SIZE,
    "any inert term on ranks after Holm": SIZE,
    "p of a covariate without influence": SIZE,
    "p of an inert term, adjusted for a covariate": SIZE,
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
    "bounds with diverged runs beyond the range": ("by value",),
    "p of an inert term on ranks, diverged runs last": ("by value",),
    "any inert term on ranks after Holm": ("by value",),
    "p of a covariate without influence": ("covariate",),
    "p of an inert term, adjusted for a covariate": ("covariate",),
}
"""Rates of error where y is lognormal too, or where something is planted alone."""
HOLDS_UNEQUAL = (
    "HC3's p of an inert term",
    "any inert term by HC3 with Holm",
    "p of an inert term by counted items",
    "any inert term by counted items with Holm",
    "intervals of all configurations at once",
    "Hsu's intervals, all at once",
    "any inert term told as a finding",
)
"""Rates that keep their level where the spread differs by configuration."""
OF_RAW_MEANS = ("interval of an effect", "mean at a level", "Hsu's intervals, all at once")
"""Rates that compare with means of several shares, which log odds do not estimate."""
SHOWN_UNEQUAL = (
    *HOLDS_UNEQUAL,
    "a true best configuration stays among the best",
    "predictions of all configurations at once",
    "p of an inert term",
    "any inert term after Holm",
    "interval of an effect",
    "mean at a level",
    "any inert term by permutation max-T",
    "any inert term by wild bootstrap",
)
POWERS: dict[str, tuple[str, float]] = {
    "A by its own p": ("", 0.6),
    "A after Holm": ("", 0.15),
    "A told as a finding": ("", 0.15),
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
    "Fisher: A and B together lose runs": ("together", 0.5),
}
"""What is found -> what is planted for it, and the share of data sets in which it is found."""
Tally = Iterator[tuple[str, float]]
"""What one analysis contributes to each rate."""


def tallied(observed: Dataset, found: Analysis, truth: Truth) -> Tally:
    """Everything that the tool prints for one response."""
    yield from _of_terms(found, truth)
    yield from _of_lenth(found)
    yield from _of_robust(found, truth)
    if (counted := found.get(QuasiBinomial)) is not None:
        inert = [row for row in counted.terms if row.term != "A"]
        yield "p of an inert term by counted items", _share(row.p for row in inert)
        called = any(_below(row.p_holm) for row in inert)
        yield "any inert term by counted items with Holm", called
    if (adjusted := found.get(Covariates)) is not None:
        yield "p of a covariate without influence", _share(row.p for row in adjusted.rows)
        inert_p = (test.p for test in found.tests if test.term != "A")
        yield "p of an inert term, adjusted for a covariate", _share(inert_p)
    if (spread := found.get(Dispersion)) is not None and spread.replicates > 1:
        below = {e.term: _below(e.p_holm) for e in spread.effects}
        yield "p of a term of the dispersion", _share(e.p for e in spread.effects)
        yield "any term of the dispersion after Holm", any(below.values())
        yield "dispersion: B after Holm", below.get("B", False)
    if found.df_error > 0:
        yield from _of_means(found, truth)
        yield from _of_predictions(observed, found, truth)
    yield from _of_the_best(found, truth)
    yield from _of_checks(found, truth)
    yield from _of_scales(found, truth)
    if found.missing is not None:
        yield from _of_lost_runs(found.missing, truth)


def _of_terms(found: Analysis, truth: Truth) -> Tally:
    inert = [t for t in found.tests if t.term != "A"]
    a = next(t for t in found.tests if t.term == "A")
    called = [t.term for t in found.tests if _below(t.p_bh)]
    yield "p of an inert term", _share(t.p for t in inert)
    yield "any inert term after Holm", any(_below(t.p_holm) for t in inert)
    yield "any inert term told as a finding", any(t.term != "A" for t in found.findings)
    false = len(called) - ("A" in called)
    yield "share of false ones among terms called after BH", false / max(len(called), 1)
    yield "A by its own p", _below(a.p)
    yield "A after Holm", _below(a.p_holm)
    yield "A told as a finding", any(t.term == "A" for t in found.findings)
    yield "A after BH", _below(a.p_bh)
    for effect in found.effects:
        if effect.term == "A" and effect.ci_low is not None:
            inside = _inside(truth.effect, effect.ci_low, effect.ci_high)
            yield "interval of an effect", inside
    for row in found.anova.rows:
        if row.source == "Lack of fit" and row.p is not None:
            yield "lack of fit", _below(row.p)
    if found.anova.type2 is not None:
        terms = {t.term for t in inert}
        p_two = [row.p for row in found.anova.type2 if row.source in terms]
        yield "p of an inert term, type II", _share(p_two)
    for part in found.parts:
        if part.factor != "A":
            yield "linear or quadratic part", _below(part.p)
    if found.curvature is not None:
        yield "curvature", _below(found.curvature.p)
    yield from _of_blocks(found, truth)


def _of_blocks(found: Analysis, truth: Truth) -> Tally:
    fixed, random = found.anova.blocking, found.random_blocks
    if fixed is not None and fixed.share is not None:
        yield "share of the blocks", _inside(truth.share, fixed.share_low, fixed.share_high)
    if random is not None:
        p = [t.p for t in random.terms if t.term != "A"]
        yield "p of an inert term, blocks as random", _share(p)
        inside = _inside(truth.share, random.share_low, random.share_high)
        yield "share of the blocks, as random", inside


def _of_lenth(found: Analysis) -> Tally:
    contrasts = found.half_normal.contrasts
    names = [c.term for c in contrasts]
    labels = [f"{i} {name}" for i, name in enumerate(names)]
    judged = lenth(np.array([c.value for c in contrasts]), labels, ALPHA)
    if judged is None or judged.m < 7:
        return
    inert = [abs(c.value) for c in contrasts if c.term != "A"]
    pairs = zip(names, judged.p, strict=True)
    yield "Lenth's p of an inert term", _share(p for name, p in pairs if name != "A")
    yield "inert term beyond Lenth's ME by t", float(np.mean(np.array(inert) > judged.me_t))
    yield "any inert term beyond Lenth's SME", max(inert) > judged.sme
    yield "any inert term beyond Lenth's SME by t", max(inert) > judged.sme_t
    yield "A by Lenth", _below(judged.p[names.index("A")])


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
        if a.boot_low is not None:
            inside = _inside(truth.effect, a.boot_low, a.boot_high)
            yield "wild bootstrap interval of an effect", inside
    if p_hc3 := [row.p_hc3 for row in rows if row.p_hc3 is not None]:
        yield "HC3's p of an inert term", _share(p_hc3)
        every = [row.p_hc3 for row in robust.rows if row.p_hc3 is not None]
        adjusted = zip(holm(np.array(every)), every, strict=True)
        called = any(_below(p_holm) for p_holm, p in adjusted if p in p_hc3)
        yield "any inert term by HC3 with Holm", called


def _of_means(found: Analysis, truth: Truth) -> Tally:
    for rate, means in (
        ("mean at a level", found.levels),
        ("mean at levels of two factors", found.combinations),
    ):
        for mean in means:
            held = dict(zip(map(found.keys.index, mean.factor), mean.at, strict=True))
            if mean.cells == mean.of:
                yield rate, _inside(truth.mean(held), mean.ci_low, mean.ci_high)
    for key in found.keys:
        pairs = [d for d in found.differences if d.factor == key and d.difference is not None]
        true = truth.effect if key == "A" else 0.0
        covered = [_inside(true, d.ci_low, d.ci_high) for d in pairs]
        yield "Tukey's intervals of a factor, all at once", all(covered)
        if key != "A" and pairs:
            yield "any pair of levels by Tukey", any(_below(d.p_tukey) for d in pairs)
            yield "p of a pair of levels alone", _share(d.p for d in pairs)
    conditional = [
        _inside(truth.effect if pair.factor == "A" else 0.0, at.ci_low, at.ci_high)
        for pair in found.interactions
        for at in pair.at
        if at.effect is not None
    ]
    if conditional:
        yield "effects at levels of another factor, all at once", all(conditional)


def _of_predictions(observed: Dataset, found: Analysis, truth: Truth) -> Tally:
    """Predictions are of all configurations that share the levels of the model's factors."""
    if found.best is None:
        return
    index = observed.runs.index[observed.observed]
    cells = {tuple(row) for row in index.tolist() if min(row) >= 0}
    terms = found.best.reduced.terms
    fixed = [i for i, key in enumerate(found.keys) if any(key in term for term in terms)]

    def covered(at: Prediction) -> bool:
        alike = [cell for cell in cells if all(cell[i] == at.levels[i] for i in fixed)]
        return _inside(truth.mean_of(alike), at.ci_low, at.ci_high)

    predictions = [p for p in (found.best.reduced.best, *found.predictions) if p.ci_low is not None]
    if predictions:
        yield "interval of what the reduced model predicts", covered(predictions[0])
        yield "predictions of all configurations at once", all(map(covered, predictions))


def _of_the_best(found: Analysis, truth: Truth) -> Tally:
    best = found.best
    if best is None or best.critical is None:
        return
    cells = [cell for cell in best.cells if cell.cell >= 0]
    true = np.array([truth.means[cell.levels] for cell in cells])
    if cells[0].geometric is not None:
        logs = [np.exp(truth.logs[cell.levels]) for cell in cells]
        covered = [_inside(m, c.ci_low, c.ci_high) for m, c in zip(logs, cells, strict=True)]
        yield "geometric means of all configurations at once", all(covered)
        return
    sign = 1.0 if best.goal == "max" else -1.0
    good = [
        cell.among_best for cell, m in zip(cells, sign * true, strict=True) if m == max(sign * true)
    ]
    yield "a true best configuration stays among the best", float(np.mean(good))
    gaps = [m - sign * max(sign * np.delete(true, i)) for i, m in enumerate(true)]
    compared = [_inside(gap, c.mcb_low, c.mcb_high) for gap, c in zip(gaps, cells, strict=True)]
    if len(cells) == len(best.cells):  # centre runs are compared as well, and have a mean of theirs
        yield "Hsu's intervals, all at once", all(compared)
    covered = [_inside(m, c.ci_low, c.ci_high) for m, c in zip(true, cells, strict=True)]
    yield "interval of the configuration that comes out best", covered[0]
    yield "intervals of all configurations at once", all(covered)


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
        inside = _inside(np.exp(truth.log_effect), a.ratio_low, a.ratio_high)
        yield "two scales: interval of a ratio", inside


def _of_lost_runs(missing: Missing, truth: Truth) -> Tally:
    yield "any factor after Holm loses runs", any(_below(row.p_holm) for row in missing.rates)
    for row in missing.rates:
        for name, p in (("Fisher", row.p_exact), ("Firth", row.p_firth)):
            yield f"{name}'s p that a factor loses runs", _below(p)
            if row.factor == "B":
                yield f"{name}: B loses runs", _below(p)
    called = [pair for pair in missing.pairs if _below(pair.p_holm)]
    yield "any pair of levels after Holm loses runs", bool(called)
    for pair in missing.pairs:
        yield "Fisher's p that a pair of levels loses runs", _below(pair.p)
    together = any(pair.factors == ("A", "B") and pair.together for pair in called)
    yield "Fisher: A and B together lose runs", together
    for bound in missing.beyond:
        if bound.term == "A":
            inside = bound.low <= truth.observed <= bound.high
            yield "bounds with diverged runs beyond the range", inside
    if ranked := [row for row in missing.worst_rank if row.term != "A"]:
        yield "p of an inert term on ranks, diverged runs last", _share(row.p for row in ranked)
        called = any(_below(row.p_holm) for row in ranked)
        yield "any inert term on ranks after Holm", called


def _of_chosen_scale(observed: Dataset, truth: Truth, options: AnalysisOptions) -> Tally:
    """What is left of error rates where the same data choose the scale."""
    for asked in ("auto", "boxcox"):
        found = analyze(observed, structs.replace(options, transform=asked, robust=False))
        inert = [t for t in found.tests if t.term != "A"]
        yield f"--transform {asked}: p of an inert term", _share(t.p for t in inert)
        called = any(_below(t.p_holm) for t in inert)
        yield f"--transform {asked}: any inert term after Holm", called
        if asked == "auto":
            a = next(e for e in found.effects if e.term == "A")
            true = truth.log_effect if found.transform.name == "log" else truth.effect
            yield "--transform auto: interval of an effect", _inside(true, a.ci_low, a.ci_high)


def _of_three_responses(observed: Dataset, draw: str, rng: np.random.Generator) -> Tally:
    """Responses that share half of their variance, A active in all of them."""
    errors = ERRORS[draw](rng, 2 * len(observed.y)).reshape(2, -1)
    analyses = [
        analyze(replace(observed, response=f"y{i}", y=observed.y + own))
        for i, own in enumerate((0.0, *errors))
    ]
    rows = effects_by_response(analyses).rows
    called = [row.term for row in rows for p in row.p_bh if _below(p)]
    false = sum(term != "A" for term in called)
    rate = "three responses: share of false ones after BH over all"
    yield rate, false / max(len(called), 1)


def _below(p: float | None) -> bool:
    return p is not None and p < ALPHA


def _share(values: Iterable[float | None]) -> float:
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
        robust = permutations > 0 and planted in ("", *UNEQUAL)
        options = AnalysisOptions(
            order=plan.order,
            robust=robust,
            permutations=permutations or 199,
            random_blocks=plan.random,
            seed=i,
        )
        try:
            rates = [tallied(observed, analyze(observed, options), truth)]
        except DoeError:  # a covariate that seems to depend on a factor is refused
            if planted != "covariate":
                raise
            continue
        if plan.name in SEVERAL and planted in ("", *LOGNORMAL):
            rates.append(_of_chosen_scale(observed, truth, options))
        if plan.name in SEVERAL and robust and not planted:
            rates.append(_of_three_responses(observed, draw, rng))
        for name, value in chain(*rates):
            if planted == "log odds" and name in OF_RAW_MEANS:
                continue
            sums[name].append(float(value))
    return {name: float(np.mean(values)) for name, values in sums.items()}


def outside(name: str, rate: float, count: int) -> bool:
    """Whether a rate is on the wrong side of its nominal value by more than three errors."""
    kind, nominal = RATES[name]
    slack = 3.0 * sqrt(ALPHA * (1.0 - ALPHA) / count)
    return rate > nominal + slack if kind == "size" else rate < nominal - slack


Key = tuple[str, str, str]
Rates = Mapping[Key, dict[str, float]]
"""Rates by design, kind of error, and what was planted."""


def size_table(rates: Rates, count: int) -> str:
    """Smallest and largest rate over the designs, where nothing is planted."""
    head = f"| of {count} data sets per design | nominal | {' | '.join(ERRORS)} |"
    lines = [head, "| --- | --- |" + " --- |" * len(ERRORS)]
    for name, (kind, nominal) in RATES.items():
        cells = []
        for draw in ERRORS:
            chosen = [
                r
                for (_, d, p), r in rates.items()
                if d == draw and p not in UNEQUAL and _is_null(name, p)
            ]
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


def unequal_table(rates: Rates, count: int) -> str:
    """Rates where the spread differs by configuration, a column per design and way."""
    columns = [(plan, planted) for planted in UNEQUAL for plan in PLANTED_IN[planted]]
    heads = " | ".join(f"{planted}: {plan}" for plan, planted in columns)
    lines = [f"| of {count} data sets | nominal | {heads} |"]
    lines.append("| --- |" + " --- |" * (len(columns) + 1))
    for name in SHOWN_UNEQUAL:
        kind, nominal = RATES[name]
        values = [rates[plan, "normal", planted].get(name) for plan, planted in columns]
        texts = ["–" if v is None else f"{v:.2f}{'*' * outside(name, v, count)}" for v in values]
        lines.append(f"| {name} | {kind} {nominal:g} | {' | '.join(texts)} |")
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
            enough = NAMED[plan].replicates > 1 and draw == "normal"
            if wanted == planted and enough and rate < floor:
                lines.append(f"{name}, {plan}, {planted or 'A'}: found in {rate:.3f}")
    return lines


def _is_null(name: str, planted: str) -> bool:
    """Whether a rate is one of error where something is planted."""
    if planted in UNEQUAL:
        return name in HOLDS_UNEQUAL
    return name in RATES and planted in SCALED.get(name, ("",))


def _job(arguments: tuple[str, str, str, int]) -> dict[str, float]:
    name, draw, planted, count = arguments
    return measured(NAMED[name], draw, count, planted)


def measured_in_parts(
    keys: Sequence[Key], count: int, jobs: int, keep: Path | None, minutes: float
) -> dict[Key, dict[str, float]]:
    """Rates of those keys that are kept or can be begun in time; `keep` holds them by count."""
    end = time.monotonic() + 60.0 * minutes
    kept = json.loads(keep.read_text("utf-8")) if keep is not None and keep.exists() else {}
    labels = {key: " | ".join((*key, str(count))) for key in keys}
    left = [key for key in keys if labels[key] not in kept]
    with ProcessPoolExecutor(jobs) as pool:
        for i in range(0, len(left), jobs):
            if time.monotonic() > end:
                break
            batch = left[i : i + jobs]
            for key, by_name in zip(
                batch, pool.map(_job, [(*k, count) for k in batch]), strict=True
            ):
                kept[labels[key]] = by_name
                print(*key, flush=True)
            if keep is not None:
                keep.write_text(json.dumps(kept, ensure_ascii=False, indent=1), "utf-8")
    return {key: kept[labels[key]] for key in keys if labels[key] in kept}


def main() -> None:
    """Measure all rates and write the tables into the document."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100, help="data sets per design and error")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--keep", type=Path, help="file of rates, by which a run can be continued")
    parser.add_argument("--minutes", type=float, default=inf, help="begin nothing after these")
    given = parser.parse_args()
    keys = [(name, draw, "") for name in NAMED for draw in ERRORS]
    keys += [(name, "normal", planted) for planted, names in PLANTED_IN.items() for name in names]
    rates = measured_in_parts(keys, given.count, given.jobs, given.keep, given.minutes)
    if len(rates) < len(keys):
        print(f"{len(rates)} of {len(keys)} are measured; the same command goes on")
        return
    for line in complaints(rates, given.count):
        print(f"outside its band: {line}")
    for mark, table in (
        ("calibration", size_table),
        ("power", power_table),
        ("unequal spread", unequal_table),
    ):
        new = table(rates, given.count)
        write_table(mark, new)
        print(new)


if __name__ == "__main__":
    main()
