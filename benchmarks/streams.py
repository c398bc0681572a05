"""Error rates of studies whose replicates share seeds of several streams: ``make calibrate``.

Of the variance within a configuration each stream has one part that moves all configurations alike
and one that does not; A has an effect, all else is inert, so that the best configuration owes most
to luck. The table goes to docs/calibration.md.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from math import sqrt

import numpy as np

from benchmarks import write_table
from benchmarks.confirmation import study
from benchmarks.looks import ERRORS, unit_errors
from doe.analysis.analyze import fit_response
from doe.analysis.best import best
from doe.analysis.confirm import CHOSEN_PAIRS, WinProbability, beats
from doe.analysis.dataset import Dataset
from doe.analysis.diagnostics import diagnose
from doe.analysis.options import AnalysisOptions
from doe.analysis.streams import Component, Seeding, variation

PLANS = {
    "4 seeds": [[0, 1, 2, 3]],
    "2 x 2": [[0, 1, 0, 1], [0, 1, 1, 0]],
    "3 x 3": [[0, 1, 2] * 3, [0, 1, 2, 1, 2, 0, 2, 0, 1]],
    "2 x 2 x 2": [[0, 1] * 4, [0, 1, 0, 1, 1, 0, 1, 0], [0, 1, 1, 0, 0, 1, 1, 0]],
    "2 in each of 3": [[0, 0, 1, 1, 2, 2], [0, 1, 2, 3, 4, 5]],
}
"""Seeds of each stream in the replicates; the last one is nested."""
FACTORS = (3, 4)
COMMON, OWN = 0.25, 0.25
"""Variances of each stream: common to all configurations, and not."""
REST = 0.5
EFFECT = 1.5
"""Of A, in standard deviations of a run among those of its replicate."""


def alone(labels: list[list[int]]) -> bool:
    """Whether the last stream has a seed of its own in every replicate, and so is the rest."""
    return len(set(labels[-1])) == len(labels[-1])


def simulated(rng: np.random.Generator, labels: list[list[int]], draw: str, cells: int):
    """The runs of a study, replicates x cells, without effects."""
    replicates = len(labels[0])
    shared = labels[:-1] if alone(labels) else labels
    y = np.sqrt(REST) * unit_errors(rng, draw, replicates, cells)
    for seeds in shared:
        number = max(seeds) + 1
        common = np.sqrt(COMMON) * unit_errors(rng, draw, number, 1)
        y += (common + np.sqrt(OWN) * unit_errors(rng, draw, number, cells))[seeds]
    return y


def observed_study(y: np.ndarray, factors: int, labels: list[list[int]]) -> Dataset:
    """A response with the seeds of its runs."""
    observed = study(y, factors)
    replicate = np.repeat(np.arange(len(y)), y.shape[1])
    names = tuple("abc"[: len(labels)])
    seeding = Seeding(names, replicate, np.array(labels)[:, replicate])
    return replace(observed, runs=replace(observed.runs, seeding=seeding))


def size(plan: str, factors: int, draw: str, count: int, pure: bool = False) -> float:
    """How often an inert effect has p < 0.05, against the variation over seeds or pure error."""
    rng = np.random.default_rng([1, factors, list(PLANS).index(plan), list(ERRORS).index(draw)])
    labels, cells = PLANS[plan], 1 << factors
    called = []
    for _ in range(count):
        y = simulated(rng, labels, draw, cells)
        data = study(y, factors) if pure else observed_study(y, factors, labels)
        called.append([(effect.p or 0.0) < 0.05 for effect in fit_response(data).effects])
    return float(np.mean(called))


def told(plan: str, factors: int, draw: str, count: int) -> tuple[float, float]:
    """How often intervals of streams hold the share, and the variance: that of the least often."""
    rng = np.random.default_rng([2, factors, list(PLANS).index(plan), list(ERRORS).index(draw)])
    labels, cells = PLANS[plan], 1 << factors
    names = list("abc"[: len(labels)])
    last = names.pop() if alone(labels) else "rest"
    total = REST + len(names) * (COMMON + OWN)
    truth = {**dict.fromkeys(names, COMMON + OWN), last: REST}
    inside = np.zeros((2, len(truth)))

    def holds(c: Component) -> tuple[bool, bool]:
        variance = truth[c.stream]
        return (
            c.share_low <= variance / total <= c.share_high,
            c.variance_low <= variance <= c.variance_high,
        )

    for i in range(count):
        observed = observed_study(simulated(rng, labels, draw, cells), factors, labels)
        seeding = observed.runs.seeding
        assert seeding is not None
        answer = variation(observed.y, observed.runs.cells, seeding, 0.05, i)
        assert answer is not None
        inside += np.array([holds(c) for c in answer.components]).T
    share, variance = (inside / count).min(axis=1).tolist()
    return share, variance


def compared(observed: Dataset, named: tuple[str, str]) -> tuple[WinProbability, ...]:
    """The chosen pairs and a named one, as `analyze` compares them."""
    response = fit_response(observed, AnalysisOptions(beats=(*CHOSEN_PAIRS, named)))
    return beats(response, best(response, "max"), diagnose(response))


def beaten(plan: str, factors: int, draw: str, count: int) -> list[float]:
    """How often the interval of winning with a fresh seed holds the chance of it.

    Of the best against the runner-up, of the best against the baseline, of two named beforehand.
    """
    rng = np.random.default_rng([3, factors, list(PLANS).index(plan), list(ERRORS).index(draw)])
    labels, cells = PLANS[plan], 1 << factors
    shared = len(labels) - alone(labels)
    fresh = np.sqrt(REST) * unit_errors(rng, draw, 20_000, cells)
    for _ in range(shared):
        fresh += np.sqrt(OWN) * unit_errors(rng, draw, 20_000, cells)
    means = EFFECT * np.sqrt(REST + shared * OWN) * (np.arange(cells) & 1)
    hits: dict[str, list[bool]] = {" against ".join(pair): [] for pair in CHOSEN_PAIRS} | {"": []}
    for _ in range(count):
        y = simulated(rng, labels, draw, cells) + means
        observed = observed_study(y, factors, labels)
        numbers = {observed.runs.config(c): c for c in range(cells)}
        named = (observed.runs.config(1), observed.runs.config(0))
        for b in compared(observed, named):
            one, other = numbers[b.config], numbers[b.against]
            chance = (means[one] + fresh[:, one] > means[other] + fresh[:, other]).mean()
            hits[b.asked].append(
                b.low is not None and b.high is not None and b.low <= chance <= b.high
            )
    return [float(np.mean(inside)) for inside in hits.values()]


def line(job: tuple[str, int, str, int]) -> str:
    """One line of the table."""
    plan, factors, draw, count = job
    sizes = [size(*job[:3], 2 * count, pure) for pure in (False, True)]
    shares = ("", "") if plan == "4 seeds" else told(*job)
    covers = [
        rate if isinstance(rate, str) else f"{rate:.3f}{'*' * too_low(rate, count)}"
        for rate in (*shares, *beaten(*job))
    ]
    cells = [f"{100 * rate:.1f} %" for rate in sizes] + covers
    return f"| {plan} | 2^{factors} | {draw} | {' | '.join(cells)} |"


def too_low(rate: float, count: int) -> bool:
    """Whether a coverage is below 95 % by more than three standard errors."""
    return rate < 0.95 - 3.0 * sqrt(0.95 * 0.05 / count)


def main() -> None:
    """Measure all rates and write the table into the document."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="studies per line")
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    jobs = [(p, f, draw, given.count) for p in PLANS for f in FACTORS for draw in ERRORS]
    kinds = "p of an effect | against pure error | shares | variances"
    head = f"{kinds} | runner-up | baseline | two named"
    lines = [f"| seeds | design | errors | {head} |", "| --- | --- | --- |" + " --- |" * 7]
    with ProcessPoolExecutor(given.jobs) as pool:
        for made in pool.map(line, jobs):
            lines.append(made)
            print(made, flush=True)
    write_table("streams", "\n".join(lines))


if __name__ == "__main__":
    main()
