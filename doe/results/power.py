"""Request and answer of `doe power` and `doe.power`, as plain values."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from doe.design.fractions import fraction_generators
from doe.design.power import DesignSize, PowerQuestion, power_rows, replicates_needed
from doe.design.runs import split_words
from doe.errors import DoeError
from doe.results.designs import (
    PlannedDesign,
    lettered_design,
    pilot_sigma,
    planned_design,
    power_by_stratum,
    power_of_terms,
)
from doe.store.plan import Plan, find_study, load_plan
from doe.study.checks import MOST_LOOKED_AT
from doe.study.command import has_copies
from doe.study.values import FIRST_LOOK

LETTERS = "ABCDEFGHJKLMNOPQ"
"""Factor letters, without I, which is the mean."""


class PowerRequest(msgspec.Struct, frozen=True):
    """The question about a planned study, or about so many two-level factors."""

    study: Path | None = None
    factors: int | None = None
    fraction: str | None = None
    response: str | None = None  # whose runs give sigma
    sigma: float | None = None
    effect: float | None = None
    sequential: bool = False
    effects: tuple[float, ...] = ()  # true sizes, for a sequential study
    matters: float | None = None
    replicates: int = 8  # 1 to so many
    blocks: bool = True
    order: int | None = None
    alpha: float = 0.05
    power: float = 0.8

    @property
    def question(self) -> PowerQuestion:
        """The question to designs of a fixed size."""
        sigma = 1.0 if self.sigma is None else self.sigma
        return PowerQuestion(sigma, self.effect, self.alpha, self.power)

    def __post_init__(self) -> None:
        if self.factors is not None and not 1 <= self.factors <= len(LETTERS):
            raise DoeError(f"factors {self.factors}: expected 1 to {len(LETTERS)}")
        if self.replicates < 1:
            raise DoeError(f"replicates {self.replicates}: expected at least 1")
        if self.sequential and self.effect is not None:
            raise DoeError("effect applies to a fixed design; with sequential give effects")
        if not self.sequential and (self.effects or self.matters is not None):
            raise DoeError("effects and matters need sequential")
        if self.effect is not None and not math.isfinite(self.effect):
            raise DoeError(f"effect {self.effect}: expected a finite number")
        if self.factors is not None and self.response is not None:
            raise DoeError("response estimates sigma from a study; use study, not factors")


class PowerAnswer(NamedTuple):
    """The power of a design."""

    document: dict[str, Any]
    """What other programs read; `designs` has a row for each number of replicates."""
    question: PowerQuestion
    size: DesignSize | None
    """None where runs have several errors."""
    regular: bool = True
    """Whether every term has the power of every other."""


def power_of(request: PowerRequest) -> PowerAnswer:
    """Answer a question about power.

    Raises
    ------
    DoeError
        If the runs of the study have no independent error, or the question cannot be answered.
    """
    plan = None
    if request.factors is None:
        plan = load_plan(find_study(request.study))
        strata = None if request.sequential else _strata_power(plan, request)
        if strata is not None:
            return strata
        _check_independent(plan)
    design = requested_design(request, plan)
    if request.sigma is None and plan is not None and request.response is not None:
        request = msgspec.structs.replace(request, sigma=pilot_sigma(plan, request.response))
    size = design.size if request.blocks else design.size._replace(blocks_per_replicate=0)
    if request.sequential:
        return _sequential_power(request, design, size)
    return _fixed_power(request, design, size)


def requested_design(request: PowerRequest, plan: Plan | None) -> PlannedDesign:
    """Return the design of a planned study, or that of factors named by letters."""
    order = 2 if request.sequential and request.order is None else request.order
    if plan is not None:
        return planned_design(plan, request.fraction, order)
    if request.study is not None:
        raise DoeError("give either factors or study, not both")
    keys = tuple(LETTERS[: request.factors])
    return lettered_design(keys, fraction_generators(request.fraction or "", keys), order)


def _check_independent(plan: Plan) -> None:
    if plan.study.streams:
        raise DoeError(
            "replicates of this study share seeds, and its power depends on the share of each "
            "stream, which is unknown before running; use factors for independent replicates"
        )
    if has_copies(plan.study):
        raise DoeError(
            "the command of this study does not use {seed}: its replicates are identical "
            "copies, which say nothing about power; add {seed}, or use factors"
        )


def _fixed_power(request: PowerRequest, design: PlannedDesign, size: DesignSize) -> PowerAnswer:
    """Return the power of every number of replicates."""
    question, by_term = request.question, power_of_terms(design)
    rows = power_rows(size, request.replicates, question)
    for n, row in enumerate(rows, start=1):
        terms = by_term.at(size._replace(replicates=n), question)
        row["terms"] = [term._asdict() for term in terms]
    needed = [
        None
        if question.effect is None
        else replicates_needed(question.effect, question.sigma, size, level, question.target)
        for level in (question.alpha, question.alpha / size.terms)
    ]
    document = {
        "sigma": question.sigma,
        "sigma_from": request.response,
        "effect": question.effect,
        "alpha": question.alpha,
        "power": question.target,
        "replicates_needed": needed[0],
        "replicates_needed_holm": needed[1],
        "planned": [term._asdict() for term in by_term.at(size, question)],
        "designs": rows,
    }
    return PowerAnswer(document, question, size, design.regular)


def _strata_power(plan: Plan, request: PowerRequest) -> PowerAnswer | None:
    """Return the power against each error of a study with several; None of any other."""
    if not power_by_stratum(plan, request.question):
        return None
    if request.response is not None:
        raise DoeError(
            "response estimates a single σ, and this study has an error in each stratum; give "
            "sigma, the standard deviation of runs within a whole plot"
        )
    fixed = plan.study.streams or plan.study.augment
    rows = [
        {"replicates": n or plan.study.replicates} | line._asdict()
        for n in ([None] if fixed else range(1, request.replicates + 1))
        for line in power_by_stratum(plan, request.question, n)
    ]
    return PowerAnswer({**request.question._asdict(), "designs": rows}, request.question, None)


def _sequential_power(
    request: PowerRequest, design: PlannedDesign, size: DesignSize
) -> PowerAnswer:
    """Return the expected replicates and runs of a study with a stopping rule."""
    import numpy as np

    from doe.analysis.sequential import expected, with_first_look
    from doe.analysis.spending import Rule

    sigma, alpha, most = request.question.sigma, request.alpha, request.replicates
    if not FIRST_LOOK <= most <= MOST_LOOKED_AT:
        raise DoeError(
            f"replicates {most}: expected {FIRST_LOOK} to {MOST_LOOKED_AT} with sequential"
        )
    if not request.matters or request.matters <= 0:
        raise DoeError(
            "sequential needs matters, the smallest effect worth knowing: without it, a term "
            "with no effect is never decided"
        )
    if sigma <= 0 or not 0 < alpha < 1:
        raise DoeError(f"sigma {sigma}, alpha {alpha}: expected a positive sigma, a level")
    if len(request.effects) > size.terms:
        raise DoeError(f"effects names {len(request.effects)} effects of {size.terms} terms")
    truth = np.zeros(size.terms)
    truth[: len(request.effects)] = request.effects
    whole = design.regular and not design.generators and design.blocks_each == 1
    parts = 1 << len(split_words(len(design.runs.factors))) if whole else 1
    runs, rule = size.cells // parts, Rule(parts * most, alpha, per_replicate=parts)
    rule = with_first_look(rule, runs, size.terms)
    course = expected(truth, sigma, runs, size.terms, rule, request.matters)
    columns = (rule.looks, course.decided, course.stopped_by)
    document = {
        "sigma": sigma,
        "effects": list(request.effects),
        "terms": size.terms,
        "matters": request.matters,
        "alpha": alpha,
        "expected_replicates": course.replicates,
        "expected_runs": course.replicates * size.cells,
        "looks": [
            {"replicates": rule.replicates(n), "runs": n * runs, "decided": done, "stopped": ended}
            for n, done, ended in zip(*columns, strict=True)
        ],
    }
    return PowerAnswer(document, request.question, size)
