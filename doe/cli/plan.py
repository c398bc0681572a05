"""`doe plan`: from a study file to a planned study on disk."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from doe.cli.options import FileArgument, FractionOption, JsonOption, PresetOption, chosen_study

if TYPE_CHECKING:
    from doe.analysis.levels.plan import DesignReport
    from doe.design.efficiency import Efficiency
    from doe.store.plan import Outcome, Plan
    from doe.study.values import Study

FIRST_RUNS = 8
OUTCOMES = {
    "created": "Planned",
    "unchanged": "Already planned, nothing changed:",
    "completed": "Already planned; completed the design of",
    "replanned": "Planned again, for no run had begun:",
    "amended": "Changed nothing that a run depends on:",
    "augmented": "Added runs to",
}


def plan(
    file: FileArgument = None,
    preset: PresetOption = None,
    replicates: Annotated[
        int | None, typer.Option("--replicates", "-n", min=1, help="Replicates of each run.")
    ] = None,
    fraction: FractionOption = None,
    out: Annotated[
        Path | None, typer.Option(help="Where to plan [default: runs/NAME of the study].")
    ] = None,
    augment: Annotated[
        str | None,
        typer.Option(
            help="Add N replicates, the foldover of a fraction, axial points, or an optimal design."
        ),
    ] = None,
    runs: Annotated[
        int | None, typer.Option(min=1, help="With --augment optimal: how many runs to add.")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(help="With --augment optimal: linear, interactions or quadratic."),
    ] = None,
    confirm: Annotated[
        int | None,
        typer.Option(help="Add N fresh runs of the best, the runner-up and the baseline."),
    ] = None,
    response: Annotated[
        str | None,
        typer.Option(help="With --confirm: whose best [default: the first average or metric]."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Write the design of a study and say what it can tell."""
    from doe.design.changes import with_overrides
    from doe.store.plan import RUNS, augment_plan, write_plan
    from doe.study.command import check_program
    from doe.study.presets import asked_study

    if confirm is None and response is not None:
        from doe.errors import DoeError

        raise DoeError("--response belongs to --confirm N; give it too")
    if augment != "optimal" and (runs is not None or model is not None):
        from doe.errors import DoeError

        raise DoeError("--runs and --model belong to --augment optimal; give it too")
    if confirm is not None:
        from doe.results.confirm import confirm_plan

        _refuse_to_change(file, preset, replicates, fraction, augment)
        planned = confirm_plan(chosen_study(out), confirm, response)
        outcome: Outcome = "augmented"
    elif augment is not None:
        _refuse_to_change(file, preset, replicates, fraction)
        planned = augment_plan(chosen_study(out), augment, runs or 0, model or "")
        outcome = "augmented"
    else:
        study = with_overrides(asked_study(file, preset), replicates, fraction)
        check_program(study, Path.cwd())
        planned, outcome = write_plan(study, out or RUNS / study.name)
    if json:
        from doe.views.terminal import print_json

        print_json(plan_json(planned, outcome))
    else:
        _print(planned, outcome)


def _refuse_to_change(*study_options: object) -> None:
    from doe.errors import DoeError

    if any(option is not None for option in study_options):
        raise DoeError(
            "--augment and --confirm add to a planned study and take only --out with its "
            "directory; leave out the study file, --preset, --replicates and --fraction"
        )


def _print(planned: Plan, outcome: Outcome) -> None:
    from rich.text import Text

    from doe.design.efficiency import design_efficiency
    from doe.results.designs import design_facts, told_by_levels
    from doe.views.plan_tables import (
        alias_table,
        factors_table,
        order_table,
        telling_order,
        terms_table,
    )
    from doe.views.terminal import console, print_table

    screen = console()
    study, design = planned.study, planned.design
    facts = design_facts(study, design) if told_by_levels(study) else None
    screen.print(Text(f"{OUTCOMES[outcome]} {planned.directory}", style="bold"))
    for line in two_level_lines(planned) if facts is None else level_lines(planned, facts):
        screen.print(Text(line))
    screen.print(Text(efficiency_line(design_efficiency(study, design))))
    for note in plan_notes(planned):
        screen.print(Text(f"warning: {note}", style="yellow"))
    screen.print()
    print_table(factors_table(study), screen)
    generators = study.generators
    if facts is not None:
        print_table(terms_table(facts, detectable_effects(planned, facts)), screen)
    elif generators and not study.augment:
        print_table(alias_table(generators, study.keys, telling_order(generators)), screen)
    print_table(order_table(design, FIRST_RUNS), screen)


def plan_notes(planned: Plan) -> list[str]:
    """What may go wrong with a plan: its command, and where it lies."""
    from doe.store.file_system import file_system_notes
    from doe.study.command import command_doubts

    return [*command_doubts(planned.study), *file_system_notes(planned.directory)]


def promises_power(study: Study) -> bool:
    """Whether the error of a study is known to be that of as many independent replicates."""
    from doe.study.command import has_copies

    return not study.augment and not study.streams and not has_copies(study)


def two_level_lines(planned: Plan) -> list[str]:
    """The plan in sentences: size, blocks, aliases, what effect can be seen."""
    from doe.design.fractions import confounded_terms
    from doe.design.kinds import chosen_kind
    from doe.design.power import design_size, detectable_effect
    from doe.errors import counted
    from doe.numbers import cell_text
    from doe.terms import term_name

    study, design = planned.study, planned.design
    generators = study.generators
    k, p = len(study.factors), len(generators)
    exponent = f"({k}−{p})" if p else str(k)
    lines = [
        f"2^{exponent} design, {counted(1 << (k - p), 'configuration')}, "
        f"{counted(study.replicates, 'replicate')}: {counted(len(design.runs), 'run')} in "
        f"{counted(design.blocks, 'block')}, random order within each block."
    ]
    if study.augment:
        lines.append("Augmented; every added part is a block of its own.")
    else:
        lines.append(chosen_kind(study).describe())
    if study.streams:
        lines.append(streams_line(study))
    if confounded := confounded_terms(study):
        names = ", ".join(term_name(mask, study.keys) for mask in sorted(confounded))
        lines.append(f"Confounded with blocks: {names}.")
    size = design_size(study)
    if size.df_error < 1:
        lines.append(
            "Without replicates there is no error to test against: Lenth's method judges the "
            "effects, or leave out high orders at the analysis."
        )
    elif promises_power(study):
        effect = detectable_effect(1.0, size)
        lines.append(
            f"Detectable with 80 % power at α = 0.05: an effect of {cell_text(effect, 'num')} σ "
            f"({counted(size.df_error, 'degree')} of freedom for error)."
        )
    return lines


def efficiency_line(efficiency: Efficiency) -> str:
    """D-efficiency and what it is of."""
    from doe.numbers import cell_text

    line = (
        f"D-efficiency {cell_text(efficiency.percent, 'fixed1')} % for {efficiency.words} "
        f"({efficiency.coefficients} coefficients with the mean and blocks)."
    )
    if efficiency.mean_variance is None:
        return line
    mean = cell_text(efficiency.mean_variance, "num")
    largest = cell_text(efficiency.largest_variance, "num")
    return f"{line} Variance of a predicted mean: {mean} σ² on average, at most {largest} σ²."


def streams_line(study: Study) -> str:
    """Which streams of seeds the replicates vary, and how often each changes."""
    from doe.errors import counted

    parts = [
        f"{name} ({counted(len(set(seeds)), 'seed')})" for name, seeds in study.streams.items()
    ]
    return f"Streams of seeds: {', '.join(parts)}; the analysis gives the share of each."


def level_lines(planned: Plan, facts: DesignReport) -> list[str]:
    """The plan of factors with levels in sentences: size, what is left out, what can be seen."""
    from doe.design.kinds import chosen_kind
    from doe.design.power import detectable_effect
    from doe.errors import counted
    from doe.numbers import cell_text
    from doe.results.designs import level_design_size
    from doe.study.values import FACTORIAL

    study, design = planned.study, planned.design
    centre = study.centre * study.replicates
    lines = [
        f"{' × '.join(map(str, study.sizes))} design, {facts.cells} of {facts.of} combinations, "
        f"{counted(study.replicates, 'replicate')}: {len(design.runs)} runs in "
        f"{counted(design.blocks, 'block')}, random order within each block."
    ]
    if study.parts or study.kind != FACTORIAL:
        lines.append(chosen_kind(study).describe())
    if study.exclude:
        lines.append(f"Excluded: {'; '.join(study.exclude)}.")
    if centre:
        lines.append(f"{counted(centre, 'centre run')} with every factor at its middle.")
    if study.streams:
        lines.append(streams_line(study))
    lines += facts.sentences
    size = level_design_size(study, design, facts)
    if size.df_error < 1:
        lines.append(
            "Nothing is left to estimate the error from: Lenth's method judges the contrasts, or "
            "choose fewer terms at the analysis."
        )
    elif promises_power(study):
        widest = max(study.factors, key=lambda factor: len(factor.levels))
        effect = detectable_effect(1.0, size)
        lines.append(
            f"Detectable with 80 % power at α = 0.05: a difference of {cell_text(effect, 'num')} "
            f"σ between two levels of {widest.key} ({counted(size.df_error, 'degree')} of freedom "
            "for error)."
        )
    return lines


def detectable_effects(planned: Plan, facts: DesignReport) -> dict[str, float | None]:
    """Term -> effect in σ that its F test finds with 80 % power at α = 0.05."""
    from doe.design.power import PowerQuestion
    from doe.results.designs import level_design_size, power_of_terms

    study, design = planned.study, planned.design
    if not promises_power(study):
        return {}
    size = level_design_size(study, design, facts)
    terms = power_of_terms(study, design).at(size, PowerQuestion())
    return {term.term: term.detectable for term in terms if term.detectable is not None}


def plan_json(planned: Plan, outcome: Outcome) -> dict[str, Any]:
    """The plan as one JSON object."""
    import msgspec

    from doe.design.efficiency import design_efficiency
    from doe.design.fractions import alias_chains
    from doe.design.power import design_size, detectable_effect
    from doe.results.designs import design_facts, level_design_size, told_by_levels
    from doe.views.plan_tables import alias_json, telling_order

    study = planned.study
    generators = study.generators
    facts = design_facts(study, planned.design) if told_by_levels(study) else None
    chains = alias_chains(generators, len(study.keys), telling_order(generators))
    size = design_size(study) if facts is None else level_design_size(study, planned.design, facts)
    of_levels: dict[str, Any] = {}
    if facts is not None:
        of_levels["terms"] = msgspec.to_builtins(facts)
        of_levels["detectable_by_term"] = detectable_effects(planned, facts)
    tested = size.df_error >= 1 and promises_power(study)
    factors = [
        {"key": f.key, "low": f.low, "high": f.high, **msgspec.structs.asdict(f)}
        for f in study.factors
    ]
    return {
        "study": study.name,
        "directory": str(planned.directory),
        "outcome": outcome,
        "runs": len(planned.design.runs),
        "blocks": planned.design.blocks,
        "replicates": study.replicates,
        **({"seeds": study.streams} if study.streams else {}),
        "factors": factors,
        "fraction": study.fraction,
        **alias_json(generators, study.keys, [chain for chain in chains if len(chain) > 1]),
        "detectable_effect_per_sigma": detectable_effect(1.0, size) if tested else None,
        "d_efficiency": design_efficiency(study, planned.design)._asdict(),
        **of_levels,
        "order": [run.run_id for run in planned.design.runs],
        "warnings": plan_notes(planned),
    }
