"""Error rates of studies that may stop early, by simulation: ``make calibrate``.

Thousands of studies are run at once, run by run, and looked at as `doe.analysis.sequential` does; a
test compares the two. The table goes to docs/stopping.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from functools import cache, cached_property
from math import sqrt
from typing import NamedTuple

import numpy as np
from scipy import special

from benchmarks import STOPPING, write_table
from doe.analysis.sequential import LEAST_DF, with_first_look
from doe.analysis.spending import Rule
from doe.design.runs import split_words
from doe.terms import terms_up_to

ALPHA, MATTERS = 0.05, 1.0
FACTORS = (3, 4, 6)
MOST = (4, 8)
"""Replicates at most."""
BATCH = 500
"""Studies that lose the same runs."""
OLD = {"spending": "obrien-fleming", "two_sided": True}
"""The rule of looks after whole replicates, from the second on."""


class Plan(NamedTuple):
    """A full factorial of two levels in portions, in the order in which they are run."""

    factors: int
    rule: Rule

    @property
    def size(self) -> int:
        """Runs of a portion."""
        return (1 << self.factors) // self.rule.per_replicate

    @property
    def masks(self) -> list[int]:
        """Main effects and two-factor interactions."""
        return terms_up_to(self.factors, 2)

    @property
    def runs(self) -> tuple[np.ndarray, np.ndarray]:
        """Cell and portion, from 1, of each run."""
        cells = np.arange(1 << self.factors)
        words = split_words(self.factors) if self.rule.per_replicate > 1 else ()
        part = sum(((np.bitwise_count(cells & w) & 1) << i for i, w in enumerate(words)), 0 * cells)
        order = np.argsort(part, kind="stable")
        copies = -(-self.rule.portions // self.rule.per_replicate)
        cell = np.tile(cells[order], copies)[: self.size * self.rule.portions]
        return cell, np.repeat(np.arange(1, self.rule.portions + 1), self.size)

    @property
    def columns(self) -> np.ndarray:
        """Runs x terms, ±1."""
        signs = 1 - 2 * (self.runs[0][:, None] >> np.arange(self.factors) & 1)
        inside = [[i for i in range(self.factors) if mask >> i & 1] for mask in self.masks]
        return -np.stack([np.prod(-signs[:, own], axis=1) * -1 for own in inside], axis=1)


def in_parts(factors: int, most: int, spending: str = "quadratic") -> Plan:
    """Looks after each part of a replicate, from the first that leaves four degrees of freedom."""
    parts = 1 << len(split_words(factors))
    rule = Rule(parts * most, ALPHA, spending, per_replicate=parts)
    size, terms = (1 << factors) // parts, len(terms_up_to(factors, 2))
    return Plan(factors, with_first_look(rule, size, terms))


def wholes(factors: int, most: int, **rule: object) -> Plan:
    """Looks after each replicate from the second on."""
    return Plan(factors, Rule(most, ALPHA, **{**OLD, **rule}))  # type: ignore[arg-type]


class Looks(NamedTuple):
    """One look at many studies."""

    effect: np.ndarray  # terms x studies
    se: np.ndarray
    df: np.ndarray | float
    n: int
    """Portions."""


class Solved:
    """The least squares of one look for some runs with a value."""

    def __init__(self, plan: Plan, n: int, lost: np.ndarray) -> None:
        cell, portion = plan.runs
        self.rows = np.flatnonzero((portion <= n) & ~lost)
        blocks = (portion[self.rows, None] == np.arange(1, n + 1)).astype(float)
        X = np.column_stack([blocks, plan.columns[self.rows]])
        self.early, self.n = plan.rule.is_early(n), n
        self.possible = len(X) - X.shape[1] >= LEAST_DF and np.linalg.matrix_rank(X) == X.shape[1]
        if not self.possible:
            return
        self.Q, R = np.linalg.qr(X)
        self.maps = np.linalg.solve(R, self.Q.T)[n:]
        self.scale = np.sqrt((self.maps**2).sum(axis=1))[:, None]
        self.cell = cell[self.rows]
        self.blocks = blocks

    @cached_property
    def pure(self) -> tuple[np.ndarray, np.ndarray]:
        """Basis of cells and blocks, and which run is of which cell."""
        member = (self.cell == np.unique(self.cell)[:, None]).astype(float)
        U, s, _ = np.linalg.svd(np.column_stack([member.T, self.blocks]), full_matrices=False)
        return U[:, s > 1e-9 * s[0]], member

    def look(self, y: np.ndarray) -> Looks:
        """Effects of studies (runs x studies)."""
        y = y[self.rows]
        basis = self.Q if self.early else self.pure[0]
        squares = (y - basis @ (basis.T @ y)) ** 2
        free = len(y) - basis.shape[1]
        ms = squares.sum(axis=0) / free
        df: np.ndarray | float = float(free)
        if not self.early:
            member = self.pure[1]
            own = member.sum(axis=1) - 1.0
            by_cell = (member @ squares)[own > 0]
            own = own[own > 0, None]
            df = by_cell.sum(axis=0) ** 2 / (by_cell**2 / own).sum(axis=0) * free / own.sum()
        return Looks(2.0 * self.maps @ y, 2.0 * self.scale * np.sqrt(ms), df, self.n)


def batch_looks(plan: Plan, y: np.ndarray, lost: np.ndarray | None = None) -> Iterator[Looks]:
    """Looks at many studies (runs x studies) that lost the same runs."""
    lost = np.zeros(len(y), bool) if lost is None else lost
    for n in plan.rule.looks:
        solved = Solved(plan, n, lost)
        if solved.possible:
            yield solved.look(y)


class Verdicts(NamedTuple):
    """Portion at which each term (terms x studies) was called an effect, or negligible; 0: not."""

    effect: np.ndarray
    negligible: np.ndarray


def judged(plan: Plan, looks: Iterator[Looks], family: int, shape: tuple[int, int]) -> Verdicts:
    """What the looks decide of terms x studies."""
    rule, effect = plan.rule, np.zeros(shape, int)
    negligible = effect.copy()
    levels = rule.levels(family), rule.negligible_levels(family)
    for look in looks:
        wide, narrow = (
            -special.stdtrit(look.df, p / 2.0) * look.se if p > 0 else np.full(shape, np.inf)
            for p in (level[rule.looks.index(look.n)] for level in levels)
        )
        size, open_ = np.abs(look.effect), (effect + negligible) == 0
        called = open_ & (size > wide)
        effect[called] = look.n
        negligible[open_ & ~called & (size + narrow < MATTERS)] = look.n
    return Verdicts(effect, negligible)


# What is simulated --------------------------------------------------------------------------------


def _high(cell: np.ndarray, factor: int) -> np.ndarray:
    return (cell >> factor & 1)[:, None]


Draw = Callable[[np.random.Generator, np.ndarray, int], np.ndarray]
ERRORS: dict[str, Draw] = {
    "normal": lambda rng, cell, n: rng.standard_normal((len(cell), n)),
    "log-normal": lambda rng, cell, n: np.exp(rng.standard_normal((len(cell), n))) - np.exp(0.5),
    "t, 3 df": lambda rng, cell, n: rng.standard_t(3, (len(cell), n)),
    "A triples σ": lambda rng, cell, n: rng.standard_normal((len(cell), n)) * 3.0 ** _high(cell, 0),
    "A and B double σ": lambda rng, cell, n: (
        rng.standard_normal((len(cell), n)) * 2.0 ** (_high(cell, 0) + _high(cell, 1))
    ),
}
"""Errors of (runs, studies); the log-normal ones have a skewness of 6."""
SCALES = {"normal": 1.0, "log-normal": 2.161, "t, 3 df": sqrt(3), "A triples σ": sqrt(5)}
SCALES["A and B double σ"] = 2.5
"""Their root mean squares."""
CASES = (*ERRORS, "a fifth lost", "two responses, ρ = 0.9")


@cache
def spread(draw: str, cells: int) -> float:
    """Root mean square of an error over all configurations."""
    errors = ERRORS[draw](np.random.default_rng(0), np.arange(cells), 200_000 // cells)
    return float(np.sqrt((errors**2).mean()))


def unit_errors(rng: np.random.Generator, draw: str, replicates: int, cells: int) -> np.ndarray:
    """Errors of unit variance, replicates x configurations."""
    errors = ERRORS[draw](rng, np.tile(np.arange(cells), replicates), 1)
    return errors.reshape(replicates, cells) / spread(draw, cells)


def effects(rng: np.random.Generator, kind: str, shape: tuple[int, int]) -> np.ndarray:
    """True effects (terms x studies) over what matters.

    null: none; at: all just matter; mixed: a quarter each none, between, just what matters, 1 to 4
    times that; bench: half none, half 1 to 4 times; between: the same with 0 to 1 for none.
    """
    sign = rng.choice([-1.0, 1.0], shape)
    large, small, part = rng.uniform(1.0, 4.0, shape), rng.random(shape), rng.random(shape)
    if kind in ("null", "at"):
        return sign * (kind == "at")
    if kind == "mixed":
        return sign * np.select([part < 0.25, part < 0.5, part < 0.75], [0.0, small, 1.0], large)
    return sign * np.where(part < 0.5, small if kind == "between" else 0.0, large)


class Rates(NamedTuple):
    """Errors over all looks of a study, in shares of the studies, and how these end."""

    effect: float
    """Some term without effect was called one."""
    negligible: float
    """Some term that matters was called negligible."""
    decided: float
    """Every term was decided."""
    runs: float
    """Mean runs."""
    studies: int


def measured(
    plan: Plan, case: str, kind: str, sigma: float, count: int, seed: int = 0, named: int = 0
) -> Rates:
    """Simulate one design under one rule; `named` terms are to be decided, 0 for all."""
    rng = np.random.default_rng([seed, plan.factors, CASES.index(case)])
    cell, _ = plan.runs
    terms, responses = named or len(plan.masks), 1 + case.startswith("two")
    draw = case if case in ERRORS else "normal"
    totals = np.zeros(4)
    studies = 0
    while studies < count:
        lost = np.zeros(len(cell), bool)
        if case == "a fifth lost":
            lost = rng.random(len(cell)) < 0.2
        common = rng.standard_normal((len(cell), BATCH))
        wrong = np.zeros((2, BATCH), bool)
        end = np.zeros(BATCH)
        for _ in range(responses):
            truth = effects(rng, kind, (len(plan.masks), BATCH))
            noise = ERRORS[draw](rng, cell, BATCH) / SCALES[draw]
            if responses > 1:
                noise = sqrt(0.1) * noise + sqrt(0.9) * common
            y = plan.columns @ truth / 2.0 + sigma * noise
            verdicts = judged(plan, batch_looks(plan, y, lost), terms * responses, truth.shape)
            called, small, truth = (array[:terms] for array in (*verdicts, truth))
            wrong[0] |= ((called > 0) & (truth == 0.0)).any(axis=0)
            wrong[1] |= ((small > 0) & (np.abs(truth) >= MATTERS)).any(axis=0)
            at = called + small
            end = np.maximum(end, np.where((at > 0).all(axis=0), at.max(axis=0), np.inf))
        runs = np.minimum(end, plan.rule.portions) * plan.size
        totals += *wrong.sum(axis=1), np.isfinite(end).sum(), runs.sum()
        studies += BATCH
    return Rates(*(totals / studies).tolist(), studies)


def too_high(rate: float, studies: int) -> bool:
    """Whether an error rate is above 5 % by more than two standard errors."""
    return rate > ALPHA + 2.0 * sqrt(ALPHA * (1.0 - ALPHA) / studies)


SIGMAS = {3: 0.7, 4: 0.9, 6: 1.3}
"""σ over what matters at which many studies decide late."""


def _line(factors: int, most: int, case: str, count: int) -> str:
    """A line of the table: rates with no effects, effects that just matter, and all sizes."""
    cells = []
    for kind in ("null", "at", "mixed"):
        rates = measured(in_parts(factors, most), case, kind, SIGMAS[factors], count)
        wrong = {"null": rates[:1], "at": rates[1:2], "mixed": rates[:2]}[kind]
        for rate in wrong:
            if too_high(rate, rates.studies):
                print(f"too high: {factors} factors, {case}, at most {most}, {kind}: {rate}")
        cells.append(", ".join(f"{rate:.1%}" for rate in wrong))
    return f"| 2^{factors} | {most} | {case} | {' | '.join(cells)} |"


def main() -> None:
    """Measure all rates and write the table into the document."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=4000, help="studies per figure")
    given = parser.parse_args()
    lines = [
        "| design | replicates at most | errors | no effects | all just matter | all sizes |",
        "| --- | --- | --- | --- | --- | --- |",
        *(_line(f, n, case, given.count) for f in FACTORS for n in MOST for case in CASES),
    ]
    write_table("looks", "\n".join(lines), STOPPING)
    print("\n".join(lines))


if __name__ == "__main__":
    main()
