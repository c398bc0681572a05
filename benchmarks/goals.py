"""Error rates of the Pareto front and coverage of the desirability, simulated.

``python -m benchmarks.goals`` writes the table of docs/calibration.md.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import NamedTuple

import numpy as np

from benchmarks import Section, write_table
from doe.analysis.analyze import fit_response
from doe.analysis.dataset import Dataset, FactorColumn, Runs, runs_at
from doe.analysis.desirability import desirability_of, overall
from doe.analysis.options import AnalysisOptions
from doe.analysis.trade_off import trade_off
from doe.goals import Desire
from doe.terms import parse_term

STUDIES = 200
KEYS = ("lr", "wd", "width")
DESIRES = {"loss": Desire(0.0, high=6.0), "time": Desire(0.0, high=6.0)}


class Case(NamedTuple):
    """A design, and how its errors are distributed."""

    name: str
    surface: bool
    errors: str
    slope: tuple[float, float] = (1.0, 1.0)
    """By how much loss falls and time grows along the front."""
    worse: float = 0.0
    """By how much half of the configurations are worse in both."""
    replicates: int = 3


NOISES = ("normal", "exponential", "σ × 4 at one level")
CASES = (
    *(Case("2³, 3 replicates, all on the front", False, noise) for noise in NOISES),
    *(
        Case("2³, 3 replicates, all but equal in time", False, noise, (6.0, 1e-3))
        for noise in NOISES
    ),
    Case("2³, 3 replicates, half dominated", False, "normal", worse=1.5),
    *(
        Case("2³, 3 replicates, half dominated by next to nothing", False, noise, (6.0, 6.0), 1e-3)
        for noise in NOISES
    ),
    Case("2³, 12 replicates, half dominated", False, "normal", worse=1.5, replicates=12),
    Case("central composite, 3 ranges, 18 runs", True, "normal"),
    Case("central composite, 3 ranges, 18 runs", True, "exponential"),
)


def layout(case: Case) -> tuple[Runs, np.ndarray, tuple[int, ...] | None]:
    """Return the runs, their positions, and the terms of the model."""
    corners = np.array(list(product((-1.0, 1.0), repeat=3)))
    if not case.surface:
        position, terms = np.concatenate([corners] * case.replicates), None
    else:
        axial = np.concatenate([np.eye(3), -np.eye(3)])
        position = np.concatenate([corners, axial, np.zeros((4, 3))])
        names = [*KEYS, *(f"{key}^2" for key in KEYS), "lr:wd", "lr:width", "wd:width"]
        terms = tuple(parse_term(name, KEYS) for name in names)
    factors = tuple(FactorColumn(key, key, (-1.0, 1.0), numeric=True) for key in KEYS)
    values = {key: position[:, i].tolist() for i, key in enumerate(KEYS)}
    return Runs(factors, *runs_at(values, factors)), position, terms


def truth(case: Case, position: np.ndarray) -> np.ndarray:
    """Return the true means of loss and time."""
    x, y, z = position.T
    if case.surface:
        return np.stack([2 + (x - 0.3) ** 2 + (y + 0.2) ** 2 + 0.5 * z, 3 + x - z])
    traded = x + 0.5 * y + (0.0 if 0.0 < case.worse < 1.0 else 0.25) * z
    worse = (1 + z) / 2 * case.worse
    return np.stack([3 - case.slope[0] * traded + worse, 3 + case.slope[1] * traded + worse])


def drawn(case: Case, rng: np.random.Generator, position: np.ndarray) -> np.ndarray:
    """Draw errors of both responses, which are correlated."""
    shape = (2, len(position))
    if case.errors == "exponential":
        noise = rng.exponential(size=shape) - 1.0
    else:
        noise = rng.normal(size=shape)
    if case.errors.startswith("σ"):
        noise = noise * np.where(position[:, 0] > 0, 4.0, 1.0)
    return 0.5 * np.stack([noise[0], 0.6 * noise[0] + 0.8 * noise[1]])


def simulated(case: Case, alpha: float = 0.05) -> tuple[str, ...]:
    """Return rates of wrong statements, the share of configurations told, and coverage of D."""
    runs, position, terms = layout(case)
    means = truth(case, position)
    cells, first = np.unique(runs.cells, return_index=True)
    own = means[:, first]
    not_worse = (own[:, :, None] <= own[:, None, :] + 1e-9).all(axis=0)
    better = (own[:, :, None] < own[:, None, :] - 1e-9).any(axis=0)
    dominated = (not_worse & better).any(axis=0)
    single = [
        desirability_of(row, desire) for row, desire in zip(own, DESIRES.values(), strict=True)
    ]
    true_overall = overall(np.stack(single), np.ones(2))
    base = Dataset(runs, "loss", means[0], goal="min", terms=terms)
    rng = np.random.default_rng(7)
    below = above = told = covered = counted = 0
    for _ in range(STUDIES):
        y = means + drawn(case, rng, position)
        fits = [
            fit_response(replace(base, response=name, y=y[i]), AnalysisOptions(alpha=alpha))
            for i, name in enumerate(DESIRES)
        ]
        weighed = trade_off(fits, desires=DESIRES, everywhere=False)
        places = [point.place for point in weighed.pareto]
        pairs = list(zip(places, dominated.tolist(), strict=True))
        below += ("dominated", False) in pairs
        above += ("front", True) in pairs
        told += sum(place != "undecided" for place in places)
        config = runs.config(int(cells[0]))
        assert weighed.desirability is not None
        at = next(d for d in weighed.desirability.configs if d.config == config)
        if at.ci_low is not None and at.ci_high is not None:
            counted += 1
            covered += at.ci_low <= true_overall[0] <= at.ci_high
    return (
        case.name,
        case.errors,
        f"{below / STUDIES:.3f}",
        f"{above / STUDIES:.3f}",
        f"{told / STUDIES / len(cells):.2f}",
        f"{covered / max(counted, 1):.3f}",
    )


def run() -> list[Section]:
    """Simulate every case."""
    headers = (
        *("design", "errors", "front called dominated", "dominated called front"),
        *("share told", "D covered"),
    )
    note = (
        f"{STUDIES} studies each, two correlated responses, α = 0.05: how often any configuration "
        "of the true front is called dominated, or a dominated one is put on the front; share of "
        "configurations with a verdict; coverage of the 95 % bootstrap interval of D of one "
        "configuration."
    )
    return [Section("Pareto front", headers, tuple(map(simulated, CASES)), note)]


if __name__ == "__main__":
    section = run()[0]
    write_table("goals", section.markdown().partition("\n\n")[2].rstrip())
