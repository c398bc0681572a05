"""What a planned design can tell, of factors with any number of levels."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from doe.design.power import (
    DesignSize,
    PowerQuestion,
    detectable_by_term,
    pooled_sigma,
    term_power,
)
from doe.design.runs import Design
from doe.results.observations import design_runs, observations, study_runs
from doe.store.plan import Plan
from doe.study.values import FACTORIAL, Study

if TYPE_CHECKING:
    from doe.analysis.levels.plan import DesignReport, TermPower


def told_by_levels(study: Study) -> bool:
    """Whether a design is looked at by its levels, not by the algebra of two-level fractions."""
    plain = study.kind == FACTORIAL and study.two_level
    return not plain or bool(study.centre or study.exclude or study.parts)


def design_facts(study: Study, design: Design, order: int | None = None) -> DesignReport:
    """Rank, confounding and variance inflation of a model on the planned runs."""
    from doe.analysis.levels.plan import design_report

    return design_report(design_runs(study, design.runs), order=order)


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


def power_of_terms(study: Study, design: Design, order: int | None = None) -> PowerOfTerms:
    """Every term of which the planned runs estimate everything, with what its test can see."""
    from doe.analysis.levels.plan import term_powers

    return PowerOfTerms(term_powers(design_runs(study, design.runs), order), len(design.runs))


def level_design_size(study: Study, design: Design, facts: DesignReport) -> DesignSize:
    """What power depends on, for the difference of two levels of the factor with the most.

    Where runs are missing or shared unevenly, the variance of its contrasts is that many times the
    one of a balanced design.
    """
    first = [run for run in design.runs if run.replicate == 1]
    blocks = len({run.block for run in first})
    terms = facts.rank - design.blocks
    widest = max(study.factors, key=lambda factor: len(factor.levels))
    inflation = next((t.variance for t in facts.terms if t.term == widest.key), None)
    return DesignSize(
        cells=len(first),
        replicates=math.ceil(len(design.runs) / len(first)),
        blocks_per_replicate=blocks,
        terms=terms,
        levels=len(widest.levels),
        inflation=inflation or 1.0,
    )


def pilot_sigma(plan: Plan, response: str) -> float:
    """Standard deviation between replicates of a configuration, from the runs of a study."""
    study, statuses = plan.study, plan.scan()
    (observed,) = observations(study, statuses, study_runs(study, statuses), [response])
    done = [(y, s.run) for y, s in zip(observed.y.tolist(), statuses, strict=True) if y == y]
    return pooled_sigma([y for y, _ in done], [r.row for _, r in done], [r.block for _, r in done])
