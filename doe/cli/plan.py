"""`doe plan`: from a study file to a planned study on disk."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from doe.cli.options import FileArgument, FractionOption, JsonOption, PresetOption, chosen_study

if TYPE_CHECKING:
    from doe.design.efficiency import Efficiency
    from doe.results.designs import PlannedDesign
    from doe.store.plan import Outcome, Plan
    from doe.study.values import Study

FIRST_RUNS = 8
OUTCOMES = {
    "created": "Planned",
    "unchanged": "Already planned, nothing changed:",
    "completed": "Already planned; completed the design of",
    "replanned": "Replaced the former plan, of which no run had begun:",
    "amended": "Changed only what no run depends on:",
    "augmented": "Added runs to",
}


def plan(
    file: FileArgument = None,
    preset: PresetOption = None,
    replicates: Annotated[
        int | None, typer.Option("--replicates", "-n", min=1, help="Number of replicates.")
    ] = None,
    fraction: FractionOption = None,
    out: Annotated[
        Path | None, typer.Option(help="Directory of the plan [default: runs/NAME of the study].")
    ] = None,
    augment: Annotated[
        str | None,
        typer.Option(
            help="Add N replicates, the foldover, axial points, an optimal design, or the ascent."
        ),
    ] = None,
    runs: Annotated[
        int | None,
        typer.Option(min=1, help="With --augment optimal or ascent: number of runs to add."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(help="With --augment optimal: linear, interactions or quadratic."),
    ] = None,
    confirm: Annotated[
        int | None,
        typer.Option(help="Add N new runs each of the best, the runner-up and the baseline."),
    ] = None,
    response: Annotated[
        str | None,
        typer.Option(
            help="With --confirm or ascent: response to optimize [default: the first average or "
            "metric]."
        ),
    ] = None,
    plot: Annotated[
        bool, typer.Option("--plot", help="Also draw the prediction variance over the region.")
    ] = False,
    budget: Annotated[
        str | None,
        typer.Option(help="Show designs that fit a time (40h) or a number of runs (200 runs)."),
    ] = None,
    run_time: Annotated[
        str | None, typer.Option(help="With --budget: time of a run, 90s [from finished runs].")
    ] = None,
    sigma: Annotated[
        float | None,
        typer.Option(help="With --budget: standard deviation of single runs [from finished runs]."),
    ] = None,
    slots: Annotated[
        int | None, typer.Option(min=1, help="With --budget: number of runs at once [1].")
    ] = None,
    choose: Annotated[
        int | None, typer.Option(min=1, help="With --budget: plan this line of the table.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Write the design of a study and show what it can detect."""
    from doe.results.planning import PlanRequest, designs_within, make_plan
    from doe.views.plan_tables import budget_json, budget_tables
    from doe.views.terminal import print_json, print_table

    if augment is not None or confirm is not None:
        out = chosen_study(out)
    request = PlanRequest(
        *(file, preset, replicates, fraction, out, augment, confirm, response, runs, model),
        *(budget, run_time, sigma, slots, choose),
    )
    if budget is not None and choose is None:
        found, known = designs_within(request)
        if json:
            print_json(budget_json(found, known))
        else:
            for table in budget_tables(found, known):
                print_table(table)
        return
    planned, outcome = make_plan(request)
    if json:
        print_json(plan_json(planned, outcome))
    else:
        _print(planned, outcome, plot)


def _print(planned: Plan, outcome: Outcome, plot: bool) -> None:
    from rich.text import Text

    from doe.design.efficiency import design_efficiency
    from doe.results.designs import planned_design
    from doe.views.plan_tables import clear, factors_table, order_table, terms_table
    from doe.views.plot import variance_plot
    from doe.views.terminal import console, print_table

    screen = console()
    design = planned_design(planned)
    screen.print(Text(f"{OUTCOMES[outcome]} {planned.directory}", style="bold"))
    for line in plan_lines(planned, design):
        screen.print(Text(line))
    told = design_efficiency(planned.study, planned.design)
    screen.print(Text(efficiency_line(told)))
    for line in seed_lines(planned):
        screen.print(Text(line))
    for note in plan_notes(planned):
        screen.print(Text(f"warning: {note}", style="yellow"))
    screen.print()
    meanings = {factor.key: factor.description for factor in planned.study.factors}
    print_table(factors_table(design.runs.factors, meanings), screen)
    if not (design.regular and clear(design.facts)):
        print_table(terms_table(design, detectable_effects(planned, design)), screen)
    print_table(order_table(planned.design, FIRST_RUNS), screen)
    if plot and told.profile:
        screen.print(variance_plot(told.profile, screen.width))
    elif plot:
        screen.print(
            Text("No prediction variance: the model of this kind is chosen after the runs.")
        )


def plan_notes(planned: Plan) -> list[str]:
    """List possible problems of a plan: its command, and its file system."""
    from doe.store.files import file_system_notes
    from doe.study.command import command_doubts
    from doe.study.stages import stage_doubts

    study = planned.study
    notes = [*command_doubts(study), *stage_doubts(study)]
    return [*notes, *file_system_notes(planned.directory)]


def promises_power(study: Study) -> bool:
    """Return whether the error of a study is that of as many independent replicates."""
    from doe.study.command import has_copies

    one_error = not study.whole_plot_factors and not any(f.random for f in study.factors)
    return one_error and not study.augment and not study.streams and not has_copies(study)


def plan_lines(planned: Plan, design: PlannedDesign) -> list[str]:
    """Describe the plan in sentences: size, blocks, omissions, aliases, detectable effects."""
    from doe.design.configurations import CENTRE
    from doe.design.fractions import confounded_terms
    from doe.errors import counted
    from doe.results.status import plan_line, stage_states
    from doe.study.values import FACTORIAL
    from doe.terms import term_name

    study, facts = planned.study, design.facts
    cells = f"{facts.cells} of {facts.of} combinations"
    if design.regular:
        cells = counted(facts.cells, "configuration")
    shape = f"{_shape(study)} design"
    if study.kind != FACTORIAL:
        shape = f"Design of {counted(len(study.factors), 'factor')}"
        cells = counted(len({run.row for run in planned.design.runs}), "configuration")
    lines = [
        f"{shape}, {cells}, {counted(study.replicates, 'replicate')}: "
        f"{counted(design.runs.count, 'run')} in {counted(design.blocks, 'block')}, random order "
        "within each block.",
        *_kind_lines(study),
    ]
    if centre := sum(run.name == CENTRE for run in planned.design.runs):
        lines.append(f"{counted(centre, 'centre run')} with every factor at its middle.")
    lines += [plan_line(stage) for stage in stage_states(planned)]
    if study.streams:
        lines.append(streams_line(study))
    if confounded := confounded_terms(study):
        names = ", ".join(term_name(mask, study.keys) for mask in sorted(confounded))
        lines.append(f"Confounded with blocks: {names}.")
    if not design.regular:
        lines += facts.sentences
    return [*lines, *strata_lines(planned), *_power_lines(study, design)]


def strata_lines(planned: Plan) -> list[str]:
    """Say against which error each term is tested, which have none, and how many replicates would
    do."""
    from doe.analysis.strata import RUN
    from doe.design.power import PowerQuestion
    from doe.errors import counted, listed
    from doe.numbers import about
    from doe.results.designs import power_by_stratum, what_gives_an_error

    lines = []
    for line in power_by_stratum(planned, PowerQuestion()):
        terms, groups = listed(line.terms, 6), counted(line.groups, line.stratum)
        if line.df_error is None:
            wrong = "the error between runs does not apply"
            if line.stratum == RUN:
                wrong = "Lenth's method tests them, or choose fewer terms in the analysis"
            lines.append(
                f"No error for {terms}: {groups} leave no degrees of freedom for "
                f"{'it' if len(line.terms) == 1 else 'them'}, and {wrong}. "
                f"{what_gives_an_error(planned, line.stratum)}."
            )
            continue
        degrees = f"{about(line.df_error)} degree{'' if line.df_error == 1 else 's'} of freedom"
        seen = "" if line.detectable is None else f", detects {about(line.detectable)} σ"
        lines.append(f"{terms}: tested against {groups} on {degrees}{seen}.")
    if any("detects" in line for line in lines):
        lines.append(
            "With 80 % power at α = 0.05, in σ of runs, where whole plots and other groups vary as "
            "much as runs."
        )
    return lines


def _shape(study: Study) -> str:
    """Return the design by its levels: 2^(6−2), 3^4 or 3 × 2 × 2."""
    sizes, generated = study.sizes, len(study.generators)
    if len(set(sizes)) > 1:
        return " × ".join(map(str, sizes))
    return f"{sizes[0]}^" + (f"({len(sizes)}−{generated})" if generated else str(len(sizes)))


def _kind_lines(study: Study) -> list[str]:
    """Describe how the runs were chosen from all combinations."""
    from doe.design.kinds import chosen_kind
    from doe.study.values import FACTORIAL

    lines = [] if study.augment and study.kind == FACTORIAL else [chosen_kind(study).describe()]
    if study.augment:
        lines.append("Augmented; every added part is a separate block.")
    if study.exclude:
        lines.append(f"Excluded: {'; '.join(study.exclude)}.")
    return lines


def _power_lines(study: Study, design: PlannedDesign) -> list[str]:
    """Describe the effect that the design can detect."""
    from doe.design.power import detectable_effect
    from doe.errors import counted
    from doe.numbers import about

    size = design.size
    if size.df_error < 1 and promises_power(study):
        return [
            "No degrees of freedom are left for error: Lenth's method tests the effects, or "
            "choose fewer terms in the analysis."
        ]
    if not promises_power(study):
        return []
    effect = f"{about(detectable_effect(1.0, size))} σ"
    what = f"an effect of {effect}"
    if size.levels > 2:
        what = f"a difference of {effect} between two levels of {design.widest.key}"
    error = f"{counted(size.df_error, 'degree')} of freedom for error"
    return [f"Detectable with 80 % power at α = 0.05: {what} ({error})."]


def efficiency_line(efficiency: Efficiency) -> str:
    """Describe the D-efficiency of the design and its model."""
    from doe.numbers import about, cell_text

    line = (
        f"D-efficiency {cell_text(efficiency.percent, 'fixed1')} % for {efficiency.words} "
        f"({efficiency.coefficients} coefficients with the mean and blocks)."
    )
    if efficiency.mean_variance is None:
        return line
    mean = about(efficiency.mean_variance)
    largest = about(efficiency.largest_variance)
    return f"{line} Variance of a predicted mean: {mean} σ² on average, at most {largest} σ²."


def seed_lines(planned: Plan) -> list[str]:
    """Describe what common seeds save, once two replicates show it."""
    from doe.numbers import share_text
    from doe.results.designs import common_seed_savings

    shares = common_seed_savings(planned)
    told = ", ".join(f"{share_text(share)} for {name}" for name, share in shares.items())
    return (
        [f"Common seeds within replicates save about this share of the runs: {told}."]
        if told
        else []
    )


def streams_line(study: Study) -> str:
    """Describe which streams of seeds the replicates vary, and how often each changes."""
    from doe.errors import counted

    parts = [
        f"{name} ({counted(len(set(seeds)), 'seed')})" for name, seeds in study.streams.items()
    ]
    return f"Streams of seeds: {', '.join(parts)}; the analysis gives the share of each."


def detectable_effects(planned: Plan, design: PlannedDesign) -> dict[str, float | None]:
    """Term -> effect in σ that its F test finds with 80 % power at α = 0.05."""
    from doe.design.power import PowerQuestion
    from doe.results.designs import power_of_terms

    if not promises_power(planned.study):
        return {}
    terms = power_of_terms(design).at(design.size, PowerQuestion())
    return {term.term: term.detectable for term in terms if term.detectable is not None}


def plan_json(planned: Plan, outcome: Outcome) -> dict[str, Any]:
    """Return the plan as one JSON object."""
    import msgspec

    from doe.design.efficiency import design_efficiency
    from doe.design.power import detectable_effect
    from doe.results.designs import common_seed_savings, planned_design
    from doe.results.status import stage_json, stage_states
    from doe.views.plan_tables import design_json

    study, design = planned.study, planned_design(planned)
    size = design.size
    tested = size.df_error >= 1 and promises_power(study)
    factors = [
        {"key": f.key, "low": f.low, "high": f.high, **msgspec.structs.asdict(f)}
        for f in study.factors
    ]
    facts = design_json(design)
    structure = ("resolution", "defining_relation", "word_length_pattern", "aliases")
    return {
        "study": study.name,
        "directory": str(planned.directory),
        "outcome": outcome,
        "runs": design.runs.count,
        "blocks": design.blocks,
        "replicates": study.replicates,
        **({"seeds": study.streams} if study.streams else {}),
        "factors": factors,
        "fraction": study.fraction,
        **{name: facts.pop(name) for name in structure},
        "detectable_effect_per_sigma": detectable_effect(1.0, size) if tested else None,
        "terms": facts,
        "detectable_by_term": detectable_effects(planned, design),
        "d_efficiency": design_efficiency(study, planned.design)._asdict(),
        **({"stages": [*map(stage_json, stage_states(planned))]} if study.stages else {}),
        "common_seeds_save": common_seed_savings(planned),
        "order": [run.run_id for run in planned.design.runs],
        "warnings": plan_notes(planned),
    }
