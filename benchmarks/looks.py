"""Error rates of studies that are looked at after each replicate: ``make calibrate``.

The looks of thousands of studies are taken at once; a test compares them with those of
`doe.analysis.sequential`. The table goes to docs/statistics.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from math import sqrt
from typing import NamedTuple

import numpy as np
from scipy import special

from benchmarks import write_table
from doe.analysis.contrasts import fwht
from doe.analysis.sequential import SHAPES, Rule
from doe.terms import terms_up_to

ALPHA = 0.05
FACTORS = (3, 4, 6)
LOOKS = (3, 8, 19)
"""Looks at most, after the second and each further replicate."""


def _high(size: int, factor: int) -> np.ndarray:
    return np.arange(size) >> factor & 1


ERRORS: dict[str, Callable[[np.random.Generator, tuple[int, int, int]], np.ndarray]] = {
    "normal": lambda rng, shape: rng.standard_normal(shape),
    "log-normal": lambda rng, shape: np.exp(rng.standard_normal(shape)) - np.exp(0.5),
    "A triples σ": lambda rng, shape: rng.standard_normal(shape) * 3.0 ** _high(shape[2], 0),
    "A and B double σ": lambda rng, shape: (
        rng.standard_normal(shape) * 2.0 ** (_high(shape[2], 0) + _high(shape[2], 1))
    ),
}
"""Errors of (studies, replicates, cells); the log-normal ones have a skewness of 6."""


class Rates(NamedTuple):
    """How often intervals fail over all looks of a study, and how many studies were simulated."""

    familywise: float
    """Some interval of the family excludes its true effect at some look."""
    single: float
    """The interval of one term on its own does, mean over the terms."""
    studies: int


class Looks(NamedTuple):
    """One look at many studies."""

    effect: np.ndarray  # studies x terms
    se: np.ndarray
    df: np.ndarray
    p: np.ndarray  # nominal


def batch_looks(y: np.ndarray, masks: list[int], rule: Rule) -> Iterator[Looks]:
    """Looks at many studies (studies, replicates, cells)."""
    cells = y.shape[2]
    for n in rule.looks:
        taken = y[:, :n]
        means = taken.mean(axis=1)
        residual = taken - means[:, None] - taken.mean(axis=2, keepdims=True)
        residual += taken.mean(axis=(1, 2))[:, None, None]
        squares = (residual**2).sum(axis=1)
        free = (cells - 1) * (n - 1)
        se = 2.0 * np.sqrt(squares.sum(axis=1) / free / (n * cells))[:, None]
        effect = 2.0 * fwht(means)[:, masks] / cells
        df = squares.sum(axis=1) ** 2 / (squares**2).sum(axis=1) * (free / cells)
        p = 2.0 * special.stdtr(df[:, None], -np.abs(effect / se))
        yield Looks(effect, se, df, p)


def measured(factors: int, draw: str, looks: int, count: int, seed: int = 0) -> dict[str, Rates]:
    """Rates of one design and one kind of error, by shape of the spending function."""
    cells, masks = 1 << factors, terms_up_to(factors, 2)
    rng = np.random.default_rng([seed, factors, list(ERRORS).index(draw), looks])
    rules = {shape: Rule(looks + 1, ALPHA, shape) for shape in SHAPES}
    levels = {s: (rule.levels(len(masks)), rule.levels()) for s, rule in rules.items()}
    batch = max(100, min(count, 2_000_000 // (cells * (looks + 1))))
    wrong = {shape: [0, 0.0] for shape in SHAPES}
    studies = 0
    while studies < count:
        y = ERRORS[draw](rng, (batch, looks + 1, cells))
        outside = {s: np.zeros((2, batch, len(masks)), dtype=bool) for s in SHAPES}
        for i, look in enumerate(batch_looks(y, masks, rules["pocock"])):
            for shape in SHAPES:
                for k in (0, 1):
                    outside[shape][k] |= look.p <= levels[shape][k][i]
        for shape in SHAPES:
            wrong[shape][0] += int(outside[shape][0].any(axis=1).sum())
            wrong[shape][1] += float(outside[shape][1].mean(axis=1).sum())
        studies += batch
    return {
        s: Rates(family / studies, one / studies, studies) for s, (family, one) in wrong.items()
    }


def too_high(rate: float, studies: int) -> bool:
    """Whether an error rate is above 5 % by more than two standard errors."""
    return rate > ALPHA + 2.0 * sqrt(ALPHA * (1.0 - ALPHA) / studies)


def _job(arguments: tuple[int, str, int, int]) -> dict[str, Rates]:
    return measured(*arguments)


def main() -> None:
    """Measure all rates and write the table into the document."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=20_000, help="studies per line")
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    plans = [(f, draw, looks) for f in FACTORS for looks in LOOKS for draw in ERRORS]
    head = " | ".join(f"{shape}: family | one" for shape in SHAPES)
    lines = [f"| design | looks | errors | {head} |", "| --- | --- | --- |" + " --- |" * 4]
    with ProcessPoolExecutor(given.jobs) as pool:
        results = pool.map(_job, [(*plan, given.count) for plan in plans])
        for (factors, draw, looks), rates in zip(plans, results, strict=True):
            cells = []
            for name, r in rates.items():
                for rate in (r.familywise, r.single):
                    if too_high(rate, r.studies):
                        print(f"too high: {factors} factors, {draw}, {looks} looks, {name}: {rate}")
                    cells.append(f"{100 * rate:.1f} %")
            lines.append(f"| 2^{factors} | {looks} | {draw} | {' | '.join(cells)} |")
    new = "\n".join(lines)
    write_table("looks", new)
    print(new)


if __name__ == "__main__":
    main()
