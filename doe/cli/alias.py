"""`doe alias`: what a fraction can and cannot tell apart."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from doe.cli.options import (
    FactorsOption,
    FractionOption,
    JsonOption,
    OrderOption,
    StudyOption,
    chosen_study,
)

if TYPE_CHECKING:
    from doe.design.runs import Design
    from doe.store.plan import Plan
    from doe.study.values import Study

LETTERS = "ABCDEFGHJKLMNOPQ"
"""Factor letters; I is left out because it names the mean."""


def alias(
    factors: FactorsOption = None,
    fraction: FractionOption = None,
    study: StudyOption = None,
    order: OrderOption = None,
    json: JsonOption = False,
) -> None:
    """Show which effects a fraction cannot tell apart."""
    import msgspec

    from doe.design.fractions import alias_chains, word_length_pattern
    from doe.results.designs import design_facts, told_by_levels
    from doe.store.plan import load_plan
    from doe.terms import parse_generators
    from doe.views.plan_tables import alias_json, alias_table, telling_order, terms_table
    from doe.views.terminal import print_json, print_table

    if factors is None:
        variant, design = with_fraction(load_plan(chosen_study(study)), fraction)
        if told_by_levels(variant):
            facts = design_facts(variant, design, order)
            if json:
                named = {"factors": list(variant.keys), "fraction": variant.fraction}
                print_json(named | msgspec.to_builtins(facts))
            else:
                print_table(terms_table(facts))
            return
        keys, text = variant.keys, variant.fraction
    else:
        keys, text = lettered_fraction(factors, fraction, study)
    generators = parse_generators(text, keys)
    highest = min(order or telling_order(generators), len(keys))
    if not json:
        print_table(alias_table(generators, keys, highest))
        return
    print_json(
        {
            "factors": list(keys),
            "fraction": text,
            "word_length_pattern": list(word_length_pattern(generators, len(keys))),
            **alias_json(generators, keys, alias_chains(generators, len(keys), highest)),
        }
    )


def with_fraction(planned: Plan, fraction: str | None) -> tuple[Study, Design]:
    """A planned study and its design, or those of another fraction of it if one is given."""
    from doe.design.changes import with_overrides
    from doe.design.runs import make_design

    if fraction is None:
        return planned.study, planned.design
    variant = with_overrides(planned.study, None, fraction)
    return variant, make_design(variant)


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
