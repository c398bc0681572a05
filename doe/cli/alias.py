"""`doe alias`: what a fraction can and cannot tell apart."""

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
    """Show which effects a fraction cannot tell apart."""
    from doe.design.fractions import alias_chains, word_length_pattern
    from doe.terms import parse_generators
    from doe.views.plan_tables import alias_json, alias_table, telling_order
    from doe.views.terminal import print_json, print_table

    if factors is None:
        from doe.design.changes import with_overrides
        from doe.design.runs import make_design
        from doe.results.designs import design_facts, told_by_levels
        from doe.store.plan import load_plan
        from doe.views.plan_tables import facts_json, terms_table

        study = chosen_study(study)
        planned = load_plan(study)
        asked = with_overrides(planned.study, None, fraction)
        if told_by_levels(asked):
            design = planned.design if fraction is None else make_design(asked)
            facts = design_facts(asked, design, order)
            if json:
                print_json(
                    {"factors": list(asked.keys), "fraction": asked.fraction} | facts_json(facts)
                )
            else:
                print_table(terms_table(facts))
            return
    keys, text = fraction_asked(factors, fraction, study)
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


def fraction_asked(
    factors: int | None, fraction: str | None, study: Path | None
) -> tuple[tuple[str, ...], str]:
    """Factor keys and generators: from the numbers given, else from a planned study."""
    from doe.design.fractions import fraction_generators
    from doe.errors import DoeError
    from doe.store.plan import load_plan

    if factors is not None:
        if study is not None:
            raise DoeError("give either --factors or --study, not both")
        keys = tuple(LETTERS[:factors])
        return keys, fraction_generators(fraction or "", keys)
    planned = load_plan(chosen_study(study)).study
    text = planned.fraction if fraction is None else fraction_generators(fraction, planned.keys)
    return planned.keys, text
