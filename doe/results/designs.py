"""What a design can tell before it runs: its report, its size, and what its tests can see."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from doe.analysis.dataset import FactorColumn, Runs
from doe.analysis.design_report import DesignReport, design_report, term_powers
from doe.design.changes import with_overrides
from doe.design.kinds.fraction import two_level_rows
from doe.design.power import (
    DesignSize,
    PowerQuestion,
    detectable_by_term,
    pooled_sigma,
    term_power,
)
from doe.design.runs import make_design
from doe.results.dataset import datasets, planned_runs, study_runs, usual_terms
from doe.store.plan import Plan
from doe.terms import Generator, parse_generators

if TYPE_CHECKING:
    from doe.analysis.design_report import TermPower


class PlannedDesign(NamedTuple):
    """The runs of a design, and what they say of a model."""

    runs: Runs
    facts: DesignReport
    order: int | None
    """Highest interaction of the model; None for all that suit the runs."""
    fraction: str
    generators: tuple[Generator, ...]
    """Of a regular fraction of two levels; none of any other design."""
    first: int
    """Runs of the first replicate."""
    blocks_each: int
    """Blocks of the first replicate."""

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return 1 if self.runs.block is None else int(self.runs.block.max()) + 1

    @property
    def regular(self) -> bool:
        """Whether it is a two-level factorial, or a fraction of one by generators."""
        full = self.facts.of == self.facts.cells
        return self.runs.two_level and not self.runs.off.any() and (full or bool(self.generators))

    @property
    def widest(self) -> FactorColumn:
        """The factor with the most levels."""
        return max(self.runs.factors, key=lambda factor: len(factor.levels))

    @property
    def size(self) -> DesignSize:
        """What power depends on, for the difference of two levels of the factor with the most.

        Where runs are missing or shared unevenly, the variance of its contrasts is that many times
        the one of a balanced design.
        """
        inflation = next((t.variance for t in self.facts.terms if t.term == self.widest.key), None)
        return DesignSize(
            cells=self.first,
            replicates=math.ceil(self.runs.count / self.first),
            blocks_per_replicate=self.blocks_each,
            terms=self.facts.rank - self.blocks,
            levels=len(self.widest.levels),
            inflation=inflation or 1.0,
        )


def planned_design(
    plan: Plan, fraction: str | None = None, order: int | None = None
) -> PlannedDesign:
    """The design of a planned study, or of another fraction of it."""
    study, design = plan.study, plan.design
    if fraction is not None:
        study = with_overrides(study, None, fraction)
        design = make_design(study)
    runs = planned_runs(study, design.runs)
    first = [run for run in design.runs if run.replicate == 1]
    blocks = len({run.block for run in first})
    facts = design_report(runs, order, usual_terms(study) if order is None else None)
    return PlannedDesign(runs, facts, order, study.fraction, study.generators, len(first), blocks)


def lettered_design(keys: Sequence[str], fraction: str, order: int | None = None) -> PlannedDesign:
    """One replicate of a two-level factorial or of a fraction of it, without any study."""
    generators = parse_generators(fraction, keys)
    cells = np.array(two_level_rows(len(keys), generators), np.int64)
    columns = tuple(FactorColumn(key, key, (0, 1), numeric=True) for key in keys)
    runs = Runs(columns, cells[:, None] >> np.arange(len(keys)) & 1)
    facts = design_report(runs, order)
    return PlannedDesign(runs, facts, order, fraction, generators, len(cells), 1)


class TermDetection(NamedTuple):
    """What the F test of a term can see at a number of replicates."""

    term: str
    df: int
    detectable: float | None
    """The smallest effect found with the power aimed at; None without error."""
    power: float | None
    """Of the effect asked about; None where none was."""


class PowerOfTerms(NamedTuple):
    """Terms with the noncentrality of their F tests over the planned runs, and these runs."""

    terms: tuple[TermPower, ...]
    runs: int

    def at(self, size: DesignSize, asked: PowerQuestion) -> list[TermDetection]:
        """What each term's test can see in a design of this size."""
        rows = []
        for term in self.terms:
            noncentrality = term.noncentrality * size.runs / self.runs
            dfs = (term.df, size.df_error)
            detectable = power = None
            if size.df_error >= 1:
                test = (asked.sigma, noncentrality, dfs, asked.alpha)
                detectable = detectable_by_term(*test, asked.target)
                if asked.effect is not None:
                    power = term_power(asked.effect, *test)
            rows.append(TermDetection(term.term, term.df, detectable, power))
        return rows


def power_of_terms(design: PlannedDesign) -> PowerOfTerms:
    """Every term of which the planned runs estimate everything, with what its test can see."""
    return PowerOfTerms(term_powers(design.runs, design.order), design.runs.count)


def pilot_sigma(plan: Plan, response: str) -> float:
    """Standard deviation between replicates of a configuration, from the runs of a study."""
    study, statuses = plan.study, plan.scan()
    (data,) = datasets(study, statuses, study_runs(study, statuses), [response])
    done = [(y, s.run) for y, s in zip(data.y.tolist(), statuses, strict=True) if y == y]
    return pooled_sigma([y for y, _ in done], [r.row for _, r in done], [r.block for _, r in done])
