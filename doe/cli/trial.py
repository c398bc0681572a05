"""`doe try`: one run of a study, now, to see whether its backend works."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from doe.cli.options import FileArgument, PresetOption

if TYPE_CHECKING:
    from doe.running.trial import Trial
    from doe.study.values import Study


def trial(
    file: FileArgument = None,
    preset: PresetOption = None,
    only: Annotated[
        str | None, typer.Option(help="This configuration [default: the first to run].")
    ] = None,
    gpu: Annotated[int | None, typer.Option(min=0, help="On this GPU [default: CPU].")] = None,
) -> None:
    """Run one configuration now, show its output, metrics and time; record nothing."""
    from doe.design.runs import make_design, runs_of
    from doe.running.trial import try_run
    from doe.study.presets import asked_study
    from doe.terms import level_text
    from doe.views.terminal import console

    study = asked_study(file, preset)
    design = make_design(study)
    run = design.runs[0] if only is None else runs_of(design.runs, only)[0]
    screen = console()
    levels = ", ".join(f"{key} = {level_text(level)}" for key, level in run.levels.items())
    screen.print(f"Trying {levels}, {run.seed_text}.", markup=False, highlight=False)
    try:
        outcome = try_run(study, run, gpu)
    except KeyboardInterrupt:
        screen.print("Stopped; nothing was recorded.")
        raise typer.Exit(130) from None
    for line in outcome_lines(study, outcome, len(design.runs), gpu):
        screen.print(line, markup=False, highlight=False)
    if outcome.problem:
        raise typer.Exit(3)


def outcome_lines(study: Study, outcome: Trial, runs: int, gpu: int | None) -> list[str]:
    """What a trial says: metrics, doubts, how long the whole study will take."""
    from doe.numbers import cell_text

    if outcome.problem:
        return ["", f"Failed: {outcome.problem}."]
    width = max((len(name) for name in outcome.metrics), default=0)
    lines = ["", "Metrics found:"]
    for name, value in outcome.metrics.items():
        lines.append(
            f"  {name:<{width}}  {'not finite' if value is None else cell_text(value, 'short')}"
        )
    absent = [name for name in study.responses.further if name not in outcome.metrics]
    if absent:
        lines.append(f"Not returned, and need not be: {', '.join(absent)}.")
    if outcome.diverged:
        lines.append(f"Diverged: {outcome.diverged}. That is a result and would be kept as one.")
    if unread := [f.key for f in study.factors if f.key in outcome.unread and not f.sets]:
        names = ", ".join(unread)
        lines.append(f"Warning: the backend never read {names}; it would measure nothing.")
    if (study.progress.pattern or study.progress.file) and not outcome.reports:
        source = "line of the output" if study.progress.pattern else f"row of {study.progress.file}"
        lines.append(f"Warning: no {source} was read as progress; see [progress].")
    return [*lines, *_time_lines(outcome.seconds, runs, gpu, study.threads)]


def _time_lines(seconds: float, runs: int, gpu: int | None, threads: int) -> list[str]:
    from doe.errors import counted
    from doe.numbers import cell_text, duration_text
    from doe.running.engines.local import cpu_slots

    slots = 1 if gpu is not None else len(cpu_slots(threads))
    total = f"{counted(runs, 'run')} like this: {duration_text(runs * seconds)} one after the other"
    if slots > 1:
        total += f", about {duration_text(runs * seconds / slots)} with --cpu {slots}"
    took = f"It took {cell_text(seconds, 'fixed1')} s. {total}."
    return [took, "Nothing was recorded; next: doe plan, doe run."]
