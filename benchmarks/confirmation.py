"""How often the mean of fresh runs of the chosen configuration lies where it was predicted.

And how often the interval of its gain over the baseline, from these fresh runs, holds the true one.

Half of a study's variance is between its blocks; A has an effect of three standard errors, all else
is inert, so that the best of up to 64 configurations owes most to luck. The table goes to
docs/calibration.md.
"""

from __future__ import annotations

import argparse
from typing import NamedTuple

import numpy as np

from benchmarks import write_table
from benchmarks.looks import ERRORS, unit_errors
from doe.analysis.analyze import fit_response, predicting
from doe.analysis.best import best
from doe.analysis.confirm import by_prediction, paired_gain, predicted_at, prediction_interval
from doe.analysis.dataset import Dataset, FactorColumn, Runs
from doe.analysis.diagnostics import diagnose

PLANS = ((3, 4), (4, 3), (6, 3))
"""Factors and replicates."""
SEEDS = 3


def study(y: np.ndarray, factors: int) -> Dataset:
    """A response of a study (replicates, cells) with replicates as blocks."""
    replicates, cells = y.shape
    row = np.tile(np.arange(cells), replicates)
    runs = Runs(
        factors=tuple(FactorColumn(key, key, (0, 1)) for key in "ABCDEF"[:factors]),
        index=row[:, None] >> np.arange(factors) & 1,
        block=np.repeat(np.arange(replicates), cells),
        block_name="replicate",
    )
    return Dataset(runs, "y", y.ravel(), goal="max")


class Covered(NamedTuple):
    """Shares of studies in which intervals hold what they are of."""

    predicted: float
    """The fresh mean, where an interval is shown."""
    shown: float
    """How often it is."""
    gain: float
    """The true gain over the baseline."""


def covered(factors: int, replicates: int, draw: str, count: int, seed: int = 0) -> Covered:
    """Simulate studies and their confirmation."""
    rng = np.random.default_rng([seed, factors, list(ERRORS).index(draw)])
    cells = 1 << factors
    inside = shown = held = compared = 0
    for _ in range(count):
        errors = unit_errors(rng, draw, replicates + SEEDS, cells)
        blocks = rng.standard_normal((replicates + SEEDS, 1))
        effect = 3.0 * 2.0 / np.sqrt(cells * replicates)
        y = effect * (np.arange(cells) & 1) + blocks + errors
        response = fit_response(study(y[:replicates], factors))
        cell = by_prediction(response, best(response, "max"))[0]
        trusted = predicting(response, diagnose(response))
        low, high = prediction_interval(predicted_at(response, cell), SEEDS, trusted, 0.05)
        if low is not None and high is not None:
            shown += 1
            inside += low <= y[replicates:, cell].mean() <= high
        fresh = y[replicates:]
        gain = paired_gain(fresh[:, cell], fresh[:, 0], "baseline", "max", 0.05)
        if cell and gain is not None:
            compared += 1
            held += gain.low <= effect * (cell & 1) <= gain.high
    return Covered(inside / max(shown, 1), shown / count, held / max(compared, 1))


def rate_text(rates: Covered) -> str:
    """The rate of predictions with the share of studies that it is of."""
    if rates.shown <= 0.01:
        return "not shown"
    return f"{rates.predicted:.3f} ({rates.shown:.0%} shown)"


def main() -> None:
    """Measure and write the table into the document."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="studies per cell of the table")
    given = parser.parse_args()
    lines = [f"| of {given.count} studies | {' | '.join(ERRORS)} |"]
    lines += ["| --- |" + " --- |" * len(ERRORS)]
    for factors, replicates in PLANS:
        rates = [covered(factors, replicates, draw, given.count) for draw in ERRORS]
        design = f"2^{factors} × {replicates}"
        lines.append(f"| {design}, fresh mean | {' | '.join(map(rate_text, rates))} |")
        gains = " | ".join(f"{rate.gain:.3f}" for rate in rates)
        lines.append(f"| {design}, gain over the baseline | {gains} |")
        print(*lines[-2:], sep="\n", flush=True)
    write_table("confirmation", "\n".join(lines))


if __name__ == "__main__":
    main()
