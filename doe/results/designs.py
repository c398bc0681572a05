"""Facts about a design before it runs: its report, its size, and what its tests detect."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np

from doe.analysis.dataset import FactorColumn, Runs
from doe.analysis.design_report import DesignReport, design_report, term_powers
from doe.analysis.model import chosen_terms, make_model
from doe.analysis.strata import PlannedError, planned_errors
from doe.design.changes import confirming, with_overrides
from doe.design.kinds.fraction import two_level_rows
from doe.design.power import (
    DesignSize,
    PowerQuestion,
    detectable_by_term,
    pooled_sigma,
    term_power,
)
from doe.design.runs import make_design
from doe.errors import DoeError
from doe.numbers import about
from doe.results.dataset import datasets, planned_runs, study_runs, usual_terms
from doe.store.plan import Plan
from doe.store.scan import complete_replicates
from doe.study.values import FIRST_LOOK, NO_SEED, REPLICATE
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
    """Return the design of a planned study, or of another fraction of it."""
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
    """Return one replicate of a two-level factorial or of a fraction of it, without any study."""
    generators = parse_generators(fraction, keys)
    cells = np.array(two_level_rows(len(keys), generators), np.int64)
    columns = tuple(FactorColumn(key, key, (0, 1), numeric=True) for key in keys)
    runs = Runs(columns, cells[:, None] >> np.arange(len(keys)) & 1)
    facts = design_report(runs, order)
    return PlannedDesign(runs, facts, order, fraction, generators, len(cells), 1)


class StratumPower(NamedTuple):
    """Power of the tests against one error."""

    stratum: str
    groups: int
    terms: tuple[str, ...]
    df_error: float | None
    """None where there is no error; the smallest of the terms."""
    detectable: float | None
    """The smallest effect that each of its terms finds with the power aimed at."""
    power: float | None
    """Of the effect asked about; None where none was."""


def power_by_stratum(
    plan: Plan, asked: PowerQuestion, replicates: int | None = None
) -> list[StratumPower]:
    """Return what tests can see where runs have several errors, each group varying as much as runs.

    Of the study as it is planned, or with another number of replicates. Empty where there is one
    error for all.
    """
    study = plan.study
    fresh = confirming(study)  # these choose nothing and test nothing
    planned = tuple(run for run in plan.design.runs if run.replicate not in fresh)
    if replicates is not None:
        study = msgspec.structs.replace(with_overrides(study, replicates, None), augment=())
        planned = make_design(study).runs
    runs = planned_runs(study, planned)
    if not runs.stratified:
        return []
    usual = usual_terms(study)
    terms = chosen_terms(runs, None, None) if usual is None else usual
    per_effect = {term.term: term for term in term_powers(runs)}
    lines: dict[tuple[str, int], list[PlannedError]] = {}
    for error in planned_errors(make_model(runs, terms)):
        lines.setdefault((error.stratum, error.groups), []).append(error)
    found = []
    for (name, groups), errors in lines.items():
        known = [e.df_error for e in errors if e.df_error is not None]
        df = min(known) if len(known) == len(errors) else None
        detectable = power = None
        tests = [
            (asked.sigma, t.noncentrality / e.inflation, (t.df, e.df_error or 0.0), asked.alpha)
            for e in errors
            if (t := per_effect.get(e.term)) is not None
        ]
        if df is not None and tests:
            detectable = max(detectable_by_term(*test, asked.target) for test in tests)
            if asked.effect is not None:
                power = min(term_power(asked.effect, *test) for test in tests)
        names = tuple(error.term for error in errors)
        found.append(StratumPower(name, groups, names, df, detectable, power))
    return found


MOST_TRIED = 6
"""Replicates up to which a plan looks for an error of a term that has none."""


def what_gives_an_error(plan: Plan, stratum: str) -> str:
    """Return what would give the terms of a stratum an error: replicates, or executions of their
    stage.
    """
    stage = plan.study.stages.get(stratum.removesuffix(" execution"))
    if stage is not None and stage.seed == NO_SEED:
        return f'All replicates use the same executions; seed = "{REPLICATE}" would add some'
    if stage is not None and stage.seed != REPLICATE:
        return f"More seeds of {stage.seed} would suffice"
    fixed = plan.study.streams or plan.study.augment
    for replicates in () if fixed else range(plan.study.replicates + 1, MOST_TRIED + 1):
        lines = power_by_stratum(plan, PowerQuestion(), replicates)
        degrees = next((line.df_error for line in lines if line.stratum == stratum), None)
        if degrees:
            return f"{replicates} replicates would leave {about(degrees)}"
    return "More replicates would suffice"


class TermDetection(NamedTuple):
    """Power of the F test of a term at a number of replicates."""

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
        """Return what each term's test can see in a design of this size."""
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
    """Return every term of which the planned runs estimate everything, with what its test can
    see.
    """
    return PowerOfTerms(term_powers(design.runs, design.order), design.runs.count)


def pilot_sigma(plan: Plan, response: str, *, logarithm: bool = False) -> float:
    """Standard deviation between replicates of a configuration, from the runs of a study."""
    study, statuses = plan.study, plan.scan()
    (data,) = datasets(study, statuses, study_runs(study, statuses), [response])
    done = [(y, s.run) for y, s in zip(data.y.tolist(), statuses, strict=True) if y == y]
    if logarithm:
        if any(y <= 0.0 for y, _ in done):
            raise DoeError(f"{response} has values at 0 or below, which have no logarithm")
        done = [(math.log(y), run) for y, run in done]
    return pooled_sigma([y for y, _ in done], [r.row for _, r in done], [r.block for _, r in done])


def common_seed_savings(plan: Plan) -> dict[str, float]:
    """Response -> share of runs that common seeds save, once two replicates are complete.

    A run with a seed of its own would have the variance ``σ_b² + σ²`` of replicates and error
    together; with common seeds comparisons have σ² alone, so the share is ``σ_b² / (σ_b² + σ²)``
    with ``σ_b² = (MS_blocks - MS_error) / configurations``.
    """
    study = plan.study
    statuses = [s for s in plan.scan() if s.run.replicate not in confirming(study)]
    if complete_replicates(statuses) < FIRST_LOOK or study.streams:
        return {}
    shares = {}
    for data in datasets(study, statuses, study_runs(study, statuses), study.responses.principal):
        by_run = {(s.run.replicate, s.run.row): y for s, y in zip(statuses, data.y, strict=True)}
        replicates = range(1, complete_replicates(statuses) + 1)
        rows = sorted({row for _, row in by_run})
        table = np.array([[by_run.get((n, row), np.nan) for row in rows] for n in replicates])
        table = table[:, ~np.isnan(table).any(axis=0)]
        blocks, cells = table.shape
        if cells < FIRST_LOOK or not np.ptp(table):
            continue
        means = table.mean(axis=1)
        rest = table - table.mean(axis=0) - means[:, None] + table.mean()
        error = float((rest**2).sum()) / ((blocks - 1) * (cells - 1))
        between = max(float(means.var(ddof=1)) - error / cells, 0.0)
        if error > 0:
            shares[data.response] = between / (between + error)
    return shares
