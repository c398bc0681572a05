"""Size, coverage and power of what `doe analyze` prints, by simulation: ``make calibrate``.

Every data set has one active factor A, whose effect is three of its standard errors, and blocks
that carry half of the variance within a cell. Rates over all designs go to docs/statistics.md.
"""

from __future__ import annotations

import argparse
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from math import sqrt
from pathlib import Path
from typing import NamedTuple

import numpy as np

from doe.analysis.analyze import Analysis, analyze
from doe.analysis.case import AnalysisOptions
from doe.analysis.data import FactorLevels, Observations, Runs
from doe.analysis.estimators.dispersion import Dispersion
from doe.analysis.estimators.robust import Robust
from doe.analysis.lenth import lenth

DOCUMENT = Path(__file__).parents[1] / "docs" / "statistics.md"
ALPHA = 0.05
MEAN = 20.0
ACTIVE = 3.0
"""Effect of A in standard errors."""


class Plan(NamedTuple):
    """A design to simulate."""

    name: str
    factors: int
    replicates: int
    blocks: bool = False
    missing: int = 0
    order: int | None = None


PLANS = (
    Plan("2³ × 2", 3, 2),
    Plan("2³ × 4 in blocks", 3, 4, blocks=True),
    Plan("2⁴ × 1, order 2", 4, 1, order=2),
    Plan("2⁴ × 3", 4, 3),
    Plan("2⁴ × 2 in blocks, 3 missing", 4, 2, blocks=True, missing=3),
    Plan("2⁵ × 2 in blocks", 5, 2, blocks=True),
    Plan("2⁶ × 2 in blocks", 6, 2, blocks=True),
)
ERRORS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "normal": lambda rng, n: rng.normal(size=n),
    "exponential": lambda rng, n: rng.exponential(size=n) - 1.0,
    "t₃": lambda rng, n: rng.standard_t(3, size=n) / sqrt(3.0),
}

RATES: dict[str, tuple[str, float]] = {
    "p of an inert term below 0.05": ("size", 0.05),
    "any inert term after Holm": ("size", 0.05),
    "interval of an effect": ("coverage", 0.95),
    "A after Holm": ("power", 0.0),
    "p of Lenth below 0.05, inert term": ("size", 0.05),
    "any inert term by permutation max-T": ("size", 0.05),
    "any inert term by wild bootstrap": ("size", 0.05),
    "wild bootstrap interval of an effect": ("coverage", 0.95),
    "any term of the dispersion after Holm": ("size", 0.05),
    "a true best configuration stays among the best": ("coverage", 0.95),
    "interval of the configuration that comes out best": ("coverage", 0.95),
    "interval of what the reduced model predicts": ("coverage", 0.95),
    "share of the blocks": ("coverage", 0.95),
    "Box–Cox interval holds 1": ("coverage", 0.95),
    "check: normality": ("size", 0.05),
    "check: equal variance": ("size", 0.05),
    "check: spread by factor": ("size", 0.05),
    "check: drift": ("size", 0.05),
    "check: slot": ("size", 0.05),
    "check: slot confounding": ("size", 0.05),
    "check: outliers": ("size", 0.05),
    "any alarm of the checks": ("size", 0.05),
}
"""What is counted -> what kind of rate it is, and its nominal value."""
TRUTH = {
    "check: normality",
    "check: outliers",
    "any alarm of the checks",
    "Box–Cox interval holds 1",
}
"""Rates that are a size for normal errors only: other errors are what these look for."""


def simulated(plan: Plan, draw: str, rng: np.random.Generator) -> tuple[Observations, float, float]:
    """One data set, with the true effect of A and the true overall mean."""
    size = 1 << plan.factors
    cells = np.tile(np.arange(size), plan.replicates)
    replicate = np.repeat(np.arange(plan.replicates), size)
    n = len(cells)
    effect = ACTIVE * 2.0 / sqrt(n)
    shift = rng.normal(size=plan.replicates) if plan.blocks else np.zeros(plan.replicates)
    y = MEAN + effect / 2 * (2 * (cells & 1) - 1) + shift[replicate] + ERRORS[draw](rng, n)
    y[rng.choice(n, plan.missing, replace=False)] = np.nan
    order = rng.permutation(n)
    runs = Runs(
        factors=tuple(FactorLevels(key, "0", "1") for key in "ABCDEF"[: plan.factors]),
        coded=np.array(
            [[2 * (c >> i & 1) - 1 for i in range(plan.factors)] for c in cells], np.int8
        ),
        block=replicate if plan.blocks else None,
        block_name="replicate" if plan.blocks else None,
        run_ids=tuple(f"r{i}" for i in range(n)),
        run_order=tuple((order + 1).tolist()),
        slot=tuple(f"gpu{i % 4}" for i in order),
        host=None,
        states=("",) * n,
    )
    return Observations(runs, "y", y, y, y, "", "max"), effect, MEAN + float(shift.mean())


def tallied(found: Analysis, effect: float, mean: float) -> Iterator[tuple[str, float]]:
    """What one analysis contributes to each rate."""
    inert = [e for e in found.effects if e.term != "A"]
    a = next(e for e in found.effects if e.term == "A")
    yield "p of an inert term below 0.05", float(np.mean([_below(e.p) for e in inert]))
    yield "any inert term after Holm", any(_below(e.p_holm) for e in inert)
    if a.ci_low is not None and a.ci_high is not None:
        yield "interval of an effect", a.ci_low <= effect <= a.ci_high
        yield "A after Holm", _below(a.p_holm)
    names = [e.term for e in found.effects]
    judged = lenth(np.array([e.effect for e in found.effects]), names, ALPHA)
    if judged is not None and judged.m >= 7:
        shares = [p < ALPHA for name, p in zip(names, judged.p, strict=True) if name != "A"]
        yield "p of Lenth below 0.05, inert term", float(np.mean(shares))
    if (robust := found.get(Robust)) is not None:
        rows = [row for row in robust.rows if row.term != "A"]
        yield "any inert term by permutation max-T", any(_below(row.p_maxt) for row in rows)
        if robust.bootstraps:
            yield "any inert term by wild bootstrap", any(_below(row.p_wild) for row in rows)
            low, high = robust.rows[0].boot_low, robust.rows[0].boot_high
            yield "wild bootstrap interval of an effect", _inside(effect, low, high)
    if (spread := found.get(Dispersion)) is not None and spread.replicates > 1:
        yield "any term of the dispersion after Holm", any(_below(e.p_holm) for e in spread.effects)
    yield from _of_the_best(found, effect, mean)
    blocking = found.anova.blocking
    if blocking is not None and blocking.share is not None:
        yield "share of the blocks", _inside(0.5, blocking.share_low, blocking.share_high)
    if (profile := found.diagnostics.boxcox) is not None:
        yield "Box–Cox interval holds 1", profile.low <= 1.0 <= profile.high
    for finding in found.diagnostics.findings:
        if finding.p is not None and f"check: {finding.check}" in RATES:
            yield f"check: {finding.check}", finding.p < ALPHA
    tested = [f.ok for f in found.diagnostics.findings if f.p is not None]
    yield "any alarm of the checks", not all(tested)


def _of_the_best(found: Analysis, effect: float, mean: float) -> Iterator[tuple[str, float]]:
    best = found.best
    if best.critical is None:
        return
    good = [cell.among_best for cell in best.cells if cell.coded[0] > 0]
    yield "a true best configuration stays among the best", float(np.mean(good))
    top, predicted = best.cells[0], best.reduced.best
    truth = mean + effect / 2 * top.coded[0]
    yield (
        "interval of the configuration that comes out best",
        _inside(truth, top.ci_low, top.ci_high),
    )
    level = {"A1": 1.0, "A0": -1.0}.get(predicted.config[:2], 0.0)
    truth = mean + effect / 2 * level
    yield (
        "interval of what the reduced model predicts",
        _inside(truth, predicted.ci_low, predicted.ci_high),
    )


def _below(p: float | None) -> bool:
    return p is not None and p < ALPHA


def _inside(value: float, low: float | None, high: float | None) -> bool:
    return low is not None and high is not None and low <= value <= high


def measured(plan: Plan, draw: str, count: int, seed: int = 0) -> dict[str, float]:
    """Rates of one design and one kind of error over `count` data sets."""
    rng = np.random.default_rng([seed, PLANS.index(plan), list(ERRORS).index(draw)])
    sums: dict[str, list[float]] = defaultdict(list)
    for i in range(count):
        observed, effect, mean = simulated(plan, draw, rng)
        options = AnalysisOptions(order=plan.order, robust=True, permutations=199, seed=i)
        for name, value in tallied(analyze(observed, options), effect, mean):
            sums[name].append(float(value))
    return {name: float(np.mean(values)) for name, values in sums.items()}


def outside(name: str, rate: float, count: int) -> bool:
    """Whether a rate is on the wrong side of its nominal value by more than three errors."""
    kind, nominal = RATES[name]
    slack = 3.0 * sqrt(ALPHA * (1.0 - ALPHA) / count)
    if kind == "size":
        return rate > nominal + slack
    return kind == "coverage" and rate < nominal - slack


def table(rates: Mapping[tuple[str, str], dict[str, float]], count: int) -> str:
    """The table of docs/statistics.md: smallest and largest rate over the designs."""
    head = f"| of {count} data sets per design | nominal | {' | '.join(ERRORS)} |"
    lines = [head, "| --- | --- |" + " --- |" * len(ERRORS)]
    for name, (kind, nominal) in RATES.items():
        cells = []
        for draw in ERRORS:
            values = [r[name] for (_, d), r in rates.items() if d == draw and name in r]
            judged = draw == "normal" or name not in TRUTH
            star = "*" if judged and any(outside(name, v, count) for v in values) else ""
            span = f"{min(values):.2f} to {max(values):.2f}{star}" if values else "–"
            cells.append(span if judged else f"({span})")
        shown = kind if kind == "power" else f"{kind} {nominal:g}"
        lines.append(f"| {name} | {shown} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _job(arguments: tuple[Plan, str, int]) -> dict[str, float]:
    return measured(*arguments)


def main() -> None:
    """Measure all rates and write the table into the document."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="data sets per design and error")
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    jobs = [(plan, draw, given.count) for plan in PLANS for draw in ERRORS]
    with ProcessPoolExecutor(given.jobs) as pool:
        results = dict(zip([(p.name, d) for p, d, _ in jobs], pool.map(_job, jobs), strict=True))
    for (plan, draw), rates in results.items():
        for name, rate in rates.items():
            if outside(name, rate, given.count) and (draw == "normal" or name not in TRUTH):
                print(f"outside its band: {name}, {plan}, {draw}: {rate:.3f}")
    text = DOCUMENT.read_text(encoding="utf-8")
    marks = r"(<!-- calibration -->\n).*?(\n<!-- end of calibration -->)"
    new = table(results, given.count)
    DOCUMENT.write_text(re.sub(marks, lambda m: m[1] + new + m[2], text, flags=re.S), "utf-8")
    print(new)


if __name__ == "__main__":
    main()
