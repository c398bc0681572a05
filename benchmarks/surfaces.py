"""How often the confidence region of an optimum holds the true one, and the interval its mean.

Central composite designs of a surface that falls off from its best point, which lies among the runs
or beyond them, so that an end of a range is best. The table goes to docs/calibration.md.
"""

from __future__ import annotations

import argparse
from itertools import product
from typing import NamedTuple

import numpy as np
import scipy

from benchmarks import write_table
from doe.analysis.analyze import fit_response
from doe.analysis.dataset import Dataset, FactorColumn, Runs, runs_at
from doe.analysis.optimum import Search
from doe.analysis.options import AnalysisOptions
from doe.analysis.polynomial import Points, Region

ERRORS = ("normal", "exponential")


class Plan(NamedTuple):
    """A central composite design, and where the surface is highest."""

    name: str
    axial: float
    centre: int
    peak: tuple[float, ...]
    noise: float
    error: str


PLANS = (
    Plan("face-centred, k = 2", 1.0, 4, (0.2, -0.1), 0.3, "pure"),
    Plan("face-centred, k = 2, best at an end", 1.0, 4, (1.5, -0.1), 0.3, "pure"),
    Plan("rotatable, k = 2", 2**0.5, 5, (0.3, 0.3), 0.6, "pure"),
    Plan("rotatable, k = 2, against the residual", 2**0.5, 5, (0.3, 0.3), 0.6, "residual"),
    Plan("face-centred, k = 3", 1.0, 4, (0.2, -0.1, 0.4), 0.5, "pure"),
    Plan("face-centred, k = 3, best at an end", 1.0, 6, (0.2, -1.3, 0.4), 0.5, "residual"),
)


class Covered(NamedTuple):
    """Shares of data sets in which the region and the interval hold what they are of."""

    region: float
    interval: float


def points_of(plan: Plan) -> np.ndarray:
    """The runs, factorial points at ±1."""
    k = len(plan.peak)
    axial = [sign * plan.axial * row for row in np.eye(k) for sign in (-1.0, 1.0)]
    return np.array([*product((-1.0, 1.0), repeat=k), *axial, *np.zeros((plan.centre, k))])


def height(x: np.ndarray, plan: Plan) -> np.ndarray:
    """The true surface."""
    k = len(plan.peak)
    away = x - np.array(plan.peak)
    return -np.einsum("ni,ij,nj->n", away, 0.7 * np.eye(k) + 0.3, away)


def true_best(x: np.ndarray, plan: Plan) -> np.ndarray:
    """The best point of the region, found without what is tested."""
    end, radius = plan.axial, float(np.sqrt((x**2).sum(axis=1)).max())
    solved = scipy.optimize.minimize(
        lambda z: -float(height(z[None, :], plan)[0]),
        0.9 * np.clip(plan.peak, -end, end),
        bounds=[(-end, end)] * len(plan.peak),
        constraints=[{"type": "ineq", "fun": lambda z: radius**2 - float(z @ z)}],
        method="SLSQP",
    )
    return np.clip(solved.x, -end, end)


def covered(plan: Plan, draw: str, count: int, seed: int = 0) -> Covered:
    """Simulate data sets of a plan."""
    rng = np.random.default_rng([seed, PLANS.index(plan), ERRORS.index(draw)])
    x, end = points_of(plan), plan.axial
    keys = [f"x{i}" for i in range(len(plan.peak))]
    factors = tuple(FactorColumn(key, key, (-end, end), numeric=True) for key in keys)
    index, position = runs_at({key: x[:, i].tolist() for i, key in enumerate(keys)}, factors)
    runs = Runs(factors, index, position)
    truth = true_best(x, plan)[None, :] / end
    at = Points(np.full(truth.shape, -1), truth)
    inside = held = 0
    for _ in range(count):
        noise = rng.standard_normal(len(x))
        if draw == "exponential":
            noise = rng.exponential(size=len(x)) - 1.0
        data = Dataset(runs, "y", height(x, plan) + plan.noise * noise, goal="max")
        fit = fit_response(data, AnalysisOptions(error=plan.error)).fit
        search = Search(fit, Region(fit.runs, fit.model.terms, None), 0.05, 42)
        best = search.best(1.0)
        inside += bool(search.may_be_best(at, best, 1.0)[0])
        mean = fit.shift + fit.unit * float(search.values(best)[0])
        se = fit.unit * float(np.sqrt(fit.ms_error) * np.linalg.norm(search.white(best)))
        held += abs(mean - float(height(best.position * end, plan)[0])) <= search.critical * se
    return Covered(inside / count, held / count)


def main() -> None:
    """Measure and write the table into the document."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="data sets per cell of the table")
    given = parser.parse_args()
    lines = [f"| of {given.count} data sets, region and interval | {' | '.join(ERRORS)} |"]
    lines += ["| --- |" + " --- |" * len(ERRORS)]
    for plan in PLANS:
        rates = [covered(plan, draw, given.count) for draw in ERRORS]
        cells = " | ".join(f"{rate.region:.3f}, {rate.interval:.3f}" for rate in rates)
        lines.append(f"| {plan.name} | {cells} |")
        print(lines[-1], flush=True)
    write_table("surfaces", "\n".join(lines))


if __name__ == "__main__":
    main()
