"""`doe alias`: what a design can and cannot tell apart."""

from __future__ import annotations

from pathlib import Path

from doe.cli.options import (
    FactorsOption,
    FractionOption,
    JsonOption,
    OrderOption,
    StudyOption,
    chosen_study,
)

LETTERS = "ABCDEFGHJKLMNOPQ"
"""Factor letters; I is left out because it names the mean."""


def alias(
    factors: FactorsOption = None,
    fraction: FractionOption = None,
    study: StudyOption = None,
    order: OrderOption = None,
    json: JsonOption = False,
) -> None:
    """Show which effects a design cannot tell apart."""
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
    """Keys and generators of so many factors called by letters, without any study."""
    from doe.design.fractions import fraction_generators
    from doe.errors import DoeError

    if study is not None:
        raise DoeError("give either --factors or --study, not both")
    keys = tuple(LETTERS[:factors])
    return keys, fraction_generators(fraction or "", keys)
