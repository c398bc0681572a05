"""Error rates of tests with an error for each stratum: ``make calibrate``.

A is hard to change and has two levels, B and C change in every run, and nothing has an effect.
Whole plots vary as much as runs. The table goes to docs/calibration.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from math import sqrt

import numpy as np

from benchmarks import write_table
from doe.analysis.analyze import fit_response
from doe.analysis.dataset import Dataset, FactorColumn, RandomGroup, Runs
from doe.analysis.options import AnalysisOptions

PLOTS = (3, 4, 6, 8, 12)
RUNS = 4
"""Runs of a whole plot."""
LOST = 0.1
"""Share of runs without a value."""
DRAWS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "normal": lambda rng, n: rng.normal(size=n),
    "skewed": lambda rng, n: rng.exponential(size=n) - 1.0,
}


def split_plot(rng: np.random.Generator, plots: int, draw: str, lost: float) -> Dataset:
    """Runs of whole plots without any effect; whole plots and runs have unit variance."""
    plot = np.repeat(np.arange(plots), RUNS)
    run = np.tile(np.arange(RUNS), plots)
    index = np.stack([plot % 2, run % 2, run // 2], axis=1)
    factors = tuple(FactorColumn(key, key, ("low", "high")) for key in "ABC")
    y = DRAWS[draw](rng, plots)[plot] + DRAWS[draw](rng, len(plot))
    y[rng.permutation(len(y))[: round(lost * len(y))]] = np.nan
    return Dataset(Runs(factors, index, groups=(RandomGroup("whole plot", plot),)), "y", y)


def sizes(plots: int, draw: str, lost: float, count: int) -> tuple[float, float, float]:
    """How often A and B have p < 0.05, and A against the error of runs."""
    rng = np.random.default_rng([plots, list(DRAWS).index(draw), round(100 * lost)])
    options = AnalysisOptions(terms=("A", "B", "C"))
    called = np.zeros(3)
    for _ in range(count):
        data = split_plot(rng, plots, draw, lost)
        p = {test.term: test.p for test in fit_response(data, options).tests}
        ignored = Dataset(Runs(data.runs.factors, data.runs.index), "y", data.y)
        naive = fit_response(ignored, AnalysisOptions(terms=("A", "B", "C"), error="residual"))
        values = (p["A"], p["B"], naive.tests[0].p)
        called += [value is not None and value < 0.05 for value in values]
    whole, sub, wrong = (called / count).tolist()
    return whole, sub, wrong


def main() -> None:
    """Measure all rates and write their table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=2000)
    count = parser.parse_args().count
    lines = [
        "| whole plots | errors | runs lost | A, between whole plots | B, within | A by runs |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for plots in PLOTS:
        for draw in DRAWS:
            for lost in (0.0, LOST):
                cells = " | ".join(f"{rate:.3f}" for rate in sizes(plots, draw, lost, count))
                lines.append(f"| {plots} | {draw} | {lost:.0%} | {cells} |")
    error = sqrt(0.05 * 0.95 / count)
    lines.append(f"\n{count} studies each; the standard error of a rate of 0.05 is {error:.3f}.")
    write_table("strata", "\n".join(lines))


if __name__ == "__main__":
    main()
