"""`doe power`: the effect that a design can detect, and the replicates that it takes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from doe.cli.options import (
    FactorsOption,
    FractionOption,
    JsonOption,
    OrderOption,
    StudyOption,
    chosen_study,
    complete_response,
    split_names,
)

if TYPE_CHECKING:
    from doe.design.power import DesignSize
    from doe.results.designs import PlannedDesign
    from doe.store.plan import Plan


def power(
    factors: FactorsOption = None,
    fraction: FractionOption = None,
    study: StudyOption = None,
    response: Annotated[
        str | None,
        typer.Option(
            help="With a study that has run: take sigma from this response.",
            autocompletion=complete_response,
        ),
    ] = None,
    sigma: Annotated[
        float | None, typer.Option(help="Standard deviation between replicates [default: 1].")
    ] = None,
    effect: Annotated[
        float | None, typer.Option(help="Effect to detect: mean at high minus mean at low.")
    ] = None,
    sequential: Annotated[
        bool,
        typer.Option("--sequential", help="Stop when decided, after at most N replicates."),
    ] = False,
    effects: Annotated[
        str | None,
        typer.Option(help="With --sequential: true sizes of the non-zero terms: 3,1.5."),
    ] = None,
    matters: Annotated[
        float | None,
        typer.Option(help="With --sequential: the smallest effect worth knowing."),
    ] = None,
    replicates: Annotated[
        int, typer.Option("--replicates", "-n", min=1, max=1000, help="Show 1 to N replicates.")
    ] = 8,
    blocks: Annotated[
        bool, typer.Option("--blocks/--no-blocks", help="Each replicate is a block.")
    ] = True,
    order: OrderOption = None,
    alpha: Annotated[float, typer.Option(help="Level of the test.")] = 0.05,
    target: Annotated[float, typer.Option("--power", help="Power aimed at.")] = 0.8,
    json: JsonOption = False,
) -> None:
    """Power of a design by the noncentral t distribution."""
    import math

    from doe.design.power import PowerQuestion, power_rows, replicates_needed
    from doe.design.runs import split_words
    from doe.errors import DoeError
    from doe.results.designs import power_of_terms
    from doe.store.plan import load_plan
    from doe.views.plan_tables import detection_table, power_table
    from doe.views.terminal import print_json, print_table

    plan = load_plan(chosen_study(study)) if factors is None else None
    asked = (sigma, effect, alpha, target)
    if plan and not sequential and _by_stratum(plan, response, replicates, asked, json):
        return
    highest = 2 if sequential and order is None else order
    design, pilot = _design(plan, factors, fraction, study, highest, response)
    base = design.size if blocks else design.size._replace(blocks_per_replicate=0)
    sigma = next(value for value in (sigma, pilot, 1.0) if value is not None)
    if sequential:
        if effect is not None:
            raise DoeError("--effect applies to a fixed design; with --sequential give --effects")
        plain = design.regular and not design.generators and design.blocks_each == 1
        parts = 1 << len(split_words(len(design.runs.factors))) if plain else 1
        _sequential(base, effects, matters, sigma, replicates, alpha, json, parts)
        return
    if effects is not None or matters is not None:
        raise DoeError("--effects and --matters need --sequential")
    if effect is not None and not math.isfinite(effect):
        raise DoeError(f"--effect {effect}: expected a finite number")
    question = PowerQuestion(sigma, effect, alpha, target)
    rows = power_rows(base, replicates, question)
    by_term = power_of_terms(design)
    for n, row in enumerate(rows, start=1):
        terms = by_term.at(base._replace(replicates=n), question)
        row["terms"] = [term._asdict() for term in terms]
    needed = needed_holm = None
    if effect is not None:
        needed = replicates_needed(effect, sigma, base, alpha, target)
        needed_holm = replicates_needed(effect, sigma, base, alpha / base.terms, target)
    if json:
        print_json(
            {
                "sigma": sigma,
                "sigma_from": response,
                "effect": effect,
                "alpha": alpha,
                "power": target,
                "replicates_needed": needed,
                "replicates_needed_holm": needed_holm,
                "designs": rows,
            }
        )
        return
    print_table(power_table(base, rows, question, response, (needed, needed_holm)))
    if not design.regular:
        planned = by_term.at(base, question)
        print_table(detection_table(planned, base.replicates, effect, target))


def _by_stratum(
    plan: Plan,
    response: str | None,
    most: int,
    asked: tuple[float | None, float | None, float, float],
    json: bool,
) -> bool:
    """Print the power of each stratum and return True, if the study has several errors."""
    from doe.design.power import PowerQuestion
    from doe.errors import DoeError
    from doe.results.designs import power_by_stratum
    from doe.views.plan_tables import strata_power_table
    from doe.views.terminal import print_json, print_table

    sigma, effect, alpha, target = asked
    question = PowerQuestion(1.0 if sigma is None else sigma, effect, alpha, target)
    if not power_by_stratum(plan, question):
        return False
    if response is not None:
        raise DoeError(
            "--response estimates a single σ, and this study has an error in each stratum; give "
            "--sigma, the standard deviation of runs within a whole plot"
        )
    numbers = [None] if plan.study.streams or plan.study.augment else range(1, most + 1)
    rows = [
        {"replicates": n or plan.study.replicates} | line._asdict()
        for n in numbers
        for line in power_by_stratum(plan, question, n)
    ]
    if json:
        print_json({**question._asdict(), "designs": rows})
    else:
        print_table(strata_power_table(rows, question))
    return True


def _sequential(
    base: DesignSize,
    effects: str | None,
    matters: float | None,
    sigma: float,
    most: int,
    alpha: float,
    json: bool,
    parts: int,
) -> None:
    """Print the expected replicates and runs of a study with a stopping rule."""
    import numpy as np

    from doe.analysis.sequential import expected, with_first_look
    from doe.analysis.spending import Rule
    from doe.errors import DoeError
    from doe.study.checks import MOST_LOOKED_AT
    from doe.study.values import FIRST_LOOK
    from doe.views.plan_tables import sequential_table
    from doe.views.terminal import print_json, print_table

    try:
        sizes = [float(part) for part in split_names(effects)]
    except ValueError:
        raise DoeError(f"--effects {effects}: expected numbers such as 3,1.5") from None
    if not FIRST_LOOK <= most <= MOST_LOOKED_AT:
        raise DoeError(
            f"--replicates {most}: expected {FIRST_LOOK} to {MOST_LOOKED_AT} with --sequential"
        )
    if not matters or matters <= 0:
        raise DoeError(
            "--sequential needs --matters, the smallest effect worth knowing: without it, a term "
            "with no effect is never decided"
        )
    if sigma <= 0 or not 0 < alpha < 1:
        raise DoeError(f"--sigma {sigma} --alpha {alpha}: expected a positive sigma, a level")
    if len(sizes) > base.terms:
        raise DoeError(f"--effects names {len(sizes)} effects of {base.terms} terms")
    truth = np.zeros(base.terms)
    truth[: len(sizes)] = sizes
    size, rule = base.cells // parts, Rule(parts * most, alpha, per_replicate=parts)
    rule = with_first_look(rule, size, base.terms)
    course = expected(truth, sigma, size, base.terms, rule, matters)
    columns = (rule.looks, course.decided, course.stopped_by)
    rows = [
        {"replicates": rule.replicates(n), "runs": n * size, "decided": decided, "stopped": stopped}
        for n, decided, stopped in zip(*columns, strict=True)
    ]
    runs = course.replicates * base.cells
    if json:
        print_json(
            {
                "sigma": sigma,
                "effects": sizes,
                "terms": base.terms,
                "matters": matters,
                "alpha": alpha,
                "expected_replicates": course.replicates,
                "expected_runs": runs,
                "looks": rows,
            }
        )
        return
    print_table(sequential_table(rows, base, course.replicates, sigma, matters, alpha))


def _design(
    plan: Plan | None,
    factors: int | None,
    fraction: str | None,
    study: Path | None,
    order: int | None,
    response: str | None,
) -> tuple[PlannedDesign, float | None]:
    """Return the design, and sigma where a pilot study has run."""
    from doe.cli.power import lettered_fraction
    from doe.errors import DoeError
    from doe.results.designs import lettered_design, pilot_sigma, planned_design
    from doe.study.command import has_copies

    if plan is not None:
        if plan.study.streams:
            raise DoeError(
                "replicates of this study share seeds, and its power depends on the share of each "
                "stream, which is unknown before running; use --factors for independent replicates"
            )
        if has_copies(plan.study):
            raise DoeError(
                "the command of this study does not use {seed}: its replicates are identical "
                "copies, which tell nothing about power; add {seed}, or use --factors"
            )
        pilot = pilot_sigma(plan, response) if response else None
        return planned_design(plan, fraction, order), pilot
    if response is not None:
        raise DoeError("--response estimates sigma from a study; use --study, not --factors")
    number = factors or 0
    return lettered_design(*lettered_fraction(number, fraction, study), order), None


# Aliases ------------------------------------------------------------------------------------------


LETTERS = "ABCDEFGHJKLMNOPQ"
"""Factor letters, without I, which is the mean."""


def alias(
    factors: FactorsOption = None,
    fraction: FractionOption = None,
    study: StudyOption = None,
    order: OrderOption = None,
    json: JsonOption = False,
) -> None:
    """Show which effects a design confounds."""
    from doe.results.designs import lettered_design, planned_design
    from doe.store.plan import load_plan
    from doe.views.plan_tables import design_json, terms_table
    from doe.views.terminal import print_json, print_table

    if factors is None:
        design = planned_design(load_plan(chosen_study(study)), fraction, order)
    else:
        design = lettered_design(*lettered_fraction(factors, fraction, study), order)
    if json:
        named = {"factors": list(design.runs.keys), "fraction": design.fraction}
        print_json(named | design_json(design))
    else:
        print_table(terms_table(design))


def lettered_fraction(
    factors: int, fraction: str | None, study: Path | None
) -> tuple[tuple[str, ...], str]:
    """Return the keys and generators of factors named by letters, without a study."""
    from doe.design.fractions import fraction_generators
    from doe.errors import DoeError

    if study is not None:
        raise DoeError("give either --factors or --study, not both")
    keys = tuple(LETTERS[:factors])
    return keys, fraction_generators(fraction or "", keys)
