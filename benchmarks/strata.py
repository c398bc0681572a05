"""Error rates of tests with an error for each stratum: ``make calibrate``.

A is hard to change and has two levels, B and C change in every run, and nothing has an effect.
Whole plots vary as much as runs, or not at all beyond them. The table goes to docs/calibration.md;
``--plots 3,4`` measures some of its lines again and leaves the others.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from itertools import product
from math import sqrt

import numpy as np

from benchmarks import read_table, write_table
from doe.analysis.analyze import fit_response
from doe.analysis.dataset import Dataset, FactorColumn, RandomGroup, Runs
from doe.analysis.options import AnalysisOptions

PLOTS = (3, 4, 6, 8, 12)
RUNS = 4
"""Runs of a whole plot."""
LOST = 0.1
"""Share of runs without a value."""
NOMINAL = 0.05
DRAWS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "normal": lambda rng, n: rng.normal(size=n),
    "skewed": lambda rng, n: rng.exponential(size=n) - 1.0,
}
VARIANCES = (1.0, 0.0)
"""Of whole plots, in units of that of runs."""
HEAD = """\
| whole plots | errors | variance of whole plots | runs lost | A, between whole plots | B, within \
| AB, within | interval of A | A by runs |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |"""


def split_plot(
    rng: np.random.Generator, plots: int, draw: str, lost: float, variance: float = 1.0
) -> Dataset:
    """Runs of whole plots without any effect; runs have unit variance."""
    plot = np.repeat(np.arange(plots), RUNS)
    run = np.tile(np.arange(RUNS), plots)
    index = np.stack([plot % 2, run % 2, run // 2], axis=1)
    factors = tuple(FactorColumn(key, key, ("low", "high")) for key in "ABC")
    y = sqrt(variance) * DRAWS[draw](rng, plots)[plot] + DRAWS[draw](rng, len(plot))
    y[rng.permutation(len(y))[: round(lost * len(y))]] = np.nan
    return Dataset(Runs(factors, index, groups=(RandomGroup("whole plot", plot),)), "y", y)


def sizes(
    plots: int, draw: str, lost: float, count: int, variance: float = 1.0
) -> tuple[float, float, float, float, float]:
    """How often A, B and AB have p < 0.05, A's interval covers 0, and A by runs has p < 0.05."""
    rng = np.random.default_rng(
        [plots, list(DRAWS).index(draw), round(100 * lost), round(100 * variance)]
    )
    options = AnalysisOptions(terms=("A", "B", "C", "AB"))
    alone = AnalysisOptions(terms=options.terms, error="residual")
    called, covered = np.zeros(4), 0
    for _ in range(count):
        data = split_plot(rng, plots, draw, lost, variance)
        found = fit_response(data, options)
        p = {test.term: test.p for test in found.tests}
        ignored = Dataset(Runs(data.runs.factors, data.runs.index), "y", data.y)
        naive = fit_response(ignored, alone).tests[0].p
        called += [x is not None and x < NOMINAL for x in (p["A"], p["B"], p["AB"], naive)]
        low, high = found.effects[0].ci_low, found.effects[0].ci_high
        covered += low is not None and high is not None and low <= 0.0 <= high
    whole, sub, both, wrong = (called / count).tolist()
    return whole, sub, both, covered / count, wrong


def line(plots: int, draw: str, variance: float, lost: float, count: int) -> str:
    """One line of the table; a star is a rate worse than nominal by three standard errors."""
    *tests, interval, wrong = sizes(plots, draw, lost, count, variance)
    far = NOMINAL + 3.0 * sqrt(NOMINAL * (1.0 - NOMINAL) / count)
    cells = [f"{rate:.3f}" + "*" * (rate > far) for rate in tests]
    cells += [f"{interval:.3f}" + "*" * (1.0 - interval > far), f"({wrong:.3f})"]
    return " | ".join([f"| {plots} | {draw} | {variance:g} | {lost:.0%}", *cells]) + " |"


def main() -> None:
    """Measure the rates and write their table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--plots", default=",".join(map(str, PLOTS)))
    asked = parser.parse_args()
    measured = [int(plots) for plots in asked.plots.split(",")]
    lines = [
        line(plots, draw, variance, lost, asked.count)
        for plots, draw, variance, lost in product(measured, DRAWS, VARIANCES, (0.0, LOST))
    ]
    for old in read_table("strata").splitlines():
        first = old.strip("| ").partition(" ")[0]
        if first.isdigit() and int(first) not in measured:
            lines.append(old)
    lines.sort(key=lambda text: int(text.strip("| ").partition(" ")[0]))
    write_table("strata", "\n".join([HEAD, *lines]))


if __name__ == "__main__":
    main()
