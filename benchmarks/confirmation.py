"""How often the mean of fresh runs of the chosen configuration lies where it was predicted.

Half of a study's variance is between its blocks; A has an effect of three standard errors, all else
is inert, so that the best of up to 64 configurations owes most to luck. The table goes to
docs/statistics.md.
"""

from __future__ import annotations

import argparse

import numpy as np

from benchmarks import write_table
from benchmarks.looks import ERRORS
from doe.analysis.analyze import analyze, predicting
from doe.analysis.confirm import prediction_interval, ranked
from doe.analysis.contrasts import estimable
from doe.analysis.data import FactorLevels, Observations, Runs
from doe.analysis.fit import fit

PLANS = ((3, 4), (4, 3), (6, 3))
"""Factors and replicates."""
SEEDS = 3


def study(y: np.ndarray, factors: int) -> Observations:
    """Observations of a study (replicates, cells) with replicates as blocks."""
    replicates, cells = y.shape
    row = np.tile(np.arange(cells), replicates)
    n = y.size
    runs = Runs(
        factors=tuple(FactorLevels(key, "0", "1") for key in "ABCDEF"[:factors]),
        coded=np.array([[2 * (r >> i & 1) - 1 for i in range(factors)] for r in row], np.int8),
        block=np.repeat(np.arange(replicates), cells),
        block_name="replicate",
        run_ids=tuple(f"r{i}" for i in range(n)),
        run_order=None,
        slot=None,
        host=None,
        states=("",) * n,
    )
    flat = y.ravel()
    return Observations(runs, "y", flat, flat, flat, "", "max")


def covered(
    factors: int, replicates: int, draw: str, count: int, seed: int = 0
) -> tuple[float, float]:
    """Share of intervals that hold the fresh mean, and share of studies that show one."""
    rng = np.random.default_rng([seed, factors, list(ERRORS).index(draw)])
    cells = 1 << factors
    spread = float(ERRORS[draw](np.random.default_rng(0), (20_000 // cells, 1, cells)).std())
    inside = shown = 0
    for _ in range(count):
        errors = ERRORS[draw](rng, (1, replicates + SEEDS, cells))[0] / spread
        blocks = rng.standard_normal((replicates + SEEDS, 1))
        effect = 3.0 * 2.0 / np.sqrt(cells * replicates)
        y = effect * (np.arange(cells) & 1) + blocks + errors
        observed = study(y[:replicates], factors)
        analysis = analyze(observed)
        assert analysis.best is not None
        chosen = ranked(analysis.best, observed.runs.keys)[0]
        cell = next(r for r in range(cells) if observed.runs.config(r) == chosen)
        runs = observed.runs
        model = estimable(runs.cells, factors, factors, runs.block)
        fitted = fit(observed.y, runs.cells, factors, runs.block, model)
        trusted = predicting(fitted, analysis.transform, analysis.diagnostics)
        low, high = prediction_interval(analysis.best.reduced.best, SEEDS, trusted, 0.05)
        if low is not None and high is not None:
            shown += 1
            inside += low <= y[replicates:, cell].mean() <= high
    return inside / max(shown, 1), shown / count


def rate_text(inside: float, shown: float) -> str:
    """A rate with the share of studies that it is of."""
    return f"{inside:.3f} ({shown:.0%} shown)" if shown > 0.01 else "not shown"


def main() -> None:
    """Measure and write the table into the document."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="studies per cell of the table")
    given = parser.parse_args()
    lines = [f"| of {given.count} studies | {' | '.join(ERRORS)} |"]
    lines += ["| --- |" + " --- |" * len(ERRORS)]
    for factors, replicates in PLANS:
        rates = [rate_text(*covered(factors, replicates, draw, given.count)) for draw in ERRORS]
        lines.append(f"| 2^{factors} × {replicates} | {' | '.join(rates)} |")
        print(lines[-1], flush=True)
    write_table("confirmation", "\n".join(lines))


if __name__ == "__main__":
    main()
