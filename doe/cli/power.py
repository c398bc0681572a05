"""`doe power`: the effect that a design can detect, and the replicates that it takes."""

from __future__ import annotations

from typing import Annotated

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
    """Compute the power of a design by the noncentral t distribution."""
    from doe.errors import DoeError
    from doe.results.power import PowerRequest, power_of
    from doe.views.plan_tables import power_tables
    from doe.views.terminal import print_json, print_table

    try:
        sizes = tuple(float(part) for part in split_names(effects))
    except ValueError:
        raise DoeError(f"--effects {effects}: expected numbers such as 3,1.5") from None
    if factors is None:
        study = chosen_study(study)
    told = (sigma, effect, sequential, sizes, matters, replicates, blocks, order, alpha, target)
    answer = power_of(PowerRequest(study, factors, fraction, response, *told))
    if json:
        print_json(answer.document)
    else:
        for table in power_tables(answer):
            print_table(table)


def alias(
    factors: FactorsOption = None,
    fraction: FractionOption = None,
    study: StudyOption = None,
    order: OrderOption = None,
    json: JsonOption = False,
) -> None:
    """Show which effects a design confounds."""
    from doe.results.power import PowerRequest, requested_design
    from doe.store.plan import load_plan
    from doe.views.plan_tables import design_json, terms_table
    from doe.views.terminal import print_json, print_table

    plan = load_plan(chosen_study(study)) if factors is None else None
    design = requested_design(PowerRequest(study, factors, fraction, order=order), plan)
    if json:
        named = {"factors": list(design.runs.keys), "fraction": design.fraction}
        print_json(named | design_json(design))
    else:
        print_table(terms_table(design))
