"""`doe try`: one run of a study, now, to see whether its backend works."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from doe.cli.options import FileArgument, PresetOption

if TYPE_CHECKING:
    from collections.abc import Sequence

    from doe.design.runs import Run
    from doe.running.trial import Trial
    from doe.study.values import Study

SECOND_RUN_SECONDS = 60.0
"""If the first run took no longer than this, run its opposite too, which may be slower or fail."""


def trial(
    file: FileArgument = None,
    preset: PresetOption = None,
    only: Annotated[
        str | None,
        typer.Option(help="This configuration [default: the first to run, then its opposite]."),
    ] = None,
    gpu: Annotated[int | None, typer.Option(min=0, help="GPU to use [default: CPU].")] = None,
) -> None:
    """Run a configuration now and show its output, metrics and time; record nothing."""
    from collections import Counter

    from doe.design.runs import make_design, runs_of, stage_executions
    from doe.running.trial import try_run
    from doe.study.command import command_doubts
    from doe.study.presets import study_or_preset
    from doe.terms import level_text
    from doe.views.terminal import console

    study = study_or_preset(file, preset)
    design = make_design(study)
    run = design.runs[0] if only is None else runs_of(design.runs, only)[0]
    screen = console()

    def say(line: str) -> None:
        screen.print(line, markup=False, highlight=False)

    seconds: list[float] = []
    runs = [run, *([] if only else [opposite(study, run, design.runs)])]
    for chosen in runs:
        if seconds and (seconds[0] > SECOND_RUN_SECONDS or chosen.levels == run.levels):
            break  # one is enough for a long training
        levels = ", ".join(f"{key} = {level_text(level)}" for key, level in chosen.levels.items())
        say(f"{'And the opposite' if seconds else 'Trying'}: {levels}, {chosen.seed_text}.")
        try:
            outcome = try_run(study, chosen, gpu)
        except KeyboardInterrupt:
            say("Stopped; nothing was recorded.")
            raise typer.Exit(130) from None
        for line in (*outcome_lines(study, outcome), *finding_lines(study, outcome)):
            say(line)
        if outcome.problem:
            raise typer.Exit(3)
        seconds.append(outcome.seconds)
    for doubt in command_doubts(study):
        say(f"Warning: {doubt}.")
    executions = Counter(unit.stage for unit in stage_executions(study, design.runs))
    for stage, took in outcome.stages.items():
        say(stage_line(stage, took, executions[stage], len(design.runs)))
    for line in time_lines(seconds, len(design.runs), gpu, study.threads):
        say(line)


def opposite(study: Study, run: Run, runs: Sequence[Run]) -> Run:
    """Return the run whose levels are farthest from those of another."""

    def distance(other: Run) -> int:
        numbers = (
            (factor.levels.index(one), factor.levels.index(two))
            for factor in study.factors
            if (one := run.levels[factor.key]) in factor.levels
            and (two := other.levels[factor.key]) in factor.levels
        )
        return sum(abs(first - second) for first, second in numbers)

    return max(runs, key=distance)


def outcome_lines(study: Study, outcome: Trial) -> list[str]:
    """Describe the result of a trial: metrics and warnings."""
    from doe.study.stages import read_by_runs
    from doe.terms import level_text

    if outcome.problem:
        return ["", f"Failed: {outcome.problem}."]
    width = max((len(name) for name in outcome.metrics), default=0)
    lines = ["", "Metrics found:"]
    for name, value in outcome.metrics.items():
        lines.append(f"  {name:<{width}}  {'not finite' if value is None else level_text(value)}")
    absent = [name for name in study.responses.further if name not in outcome.metrics]
    if absent:
        lines.append(f"Not returned, but optional: {', '.join(absent)}.")
    if outcome.diverged:
        lines.append(f"Diverged: {outcome.diverged}. `doe run` would keep this as a result.")
    if unread := [name for name in read_by_runs(study) if name in outcome.unread]:
        names = ", ".join(unread)
        lines.append(
            f"Warning: the backend never read {names}, so changing it would have no effect."
        )
    if (study.progress.pattern or study.progress.file) and not outcome.reports:
        source = "line of the output" if study.progress.pattern else f"row of {study.progress.file}"
        lines.append(f"Warning: no {source} was read as progress; see [progress].")
    return lines


def finding_lines(study: Study, outcome: Trial) -> list[str]:
    """Describe the numbers a command wrote, the keys of its metrics, and files outside its
    directory."""
    from doe.errors import listed
    from doe.running.trial import finding_text, proposal, proposal_text

    lines = []
    if outcome.outside:
        lines.append(
            f"Warning: it wrote outside {{run_dir}}, in the working directory shared by all runs: "
            f"{listed(outcome.outside, 6)}."
        )
    if not outcome.found:
        return lines
    lines += ["", "Numbers found in its output:", *(f"  {finding_text(f)}" for f in outcome.found)]
    place = proposal(outcome.found, study.responses.metrics)
    if outcome.problem and place is not None:
        lines += ["", "In the study file, replace [metrics] with:", *proposal_text(place)]
    for finding in outcome.found:
        keys = study.metrics.keys
        several = [
            f"{name} (of {count} values)"
            for name in study.responses.metrics
            if (count := finding.counts.get(keys.get(name, name), 1)) > 1
            and name not in (study.metrics.reduce or {})
        ]
        if several and not outcome.problem:
            names = ", ".join(several)
            lines.append(
                f"The last value of {names} is used; set `reduce` in [metrics] to change "
                'that, e.g. "mean 20".'
            )
            break
    return lines


def stage_line(stage: str, seconds: float, executions: int, runs: int) -> str:
    """Describe the time of a stage in total, with and without sharing."""
    from doe.errors import counted
    from doe.numbers import cell_text, duration_text

    shared, alone = duration_text(executions * seconds), duration_text(runs * seconds)
    return (
        f"Stage {stage} took {cell_text(seconds, 'fixed1')} s: {shared} for "
        f"{counted(executions, 'execution')}, {alone} without sharing."
    )


def time_lines(seconds: Sequence[float], runs: int, gpu: int | None, threads: int) -> list[str]:
    """Estimate the time of the whole study from the fastest and the slowest run tried."""
    from doe.errors import counted
    from doe.numbers import cell_text, duration_text
    from doe.running.engines.local import cpu_slots

    def span(slots: int) -> str:
        ends = [duration_text(runs * end / slots) for end in (min(seconds), max(seconds))]
        return " to ".join(dict.fromkeys(ends))

    slots = 1 if gpu is not None else len(cpu_slots(threads))
    total = f"{counted(runs, 'run')} like {'this' if len(seconds) == 1 else 'these'}: {span(1)} "
    total += "one after the other"
    if slots > 1:
        total += f", {span(slots)} with --cpu {slots}"
    if len(seconds) == 1:
        total += "; other configurations may be slower"
    took = " and ".join(cell_text(value, "fixed1") for value in seconds)
    return [f"It took {took} s. {total}.", "Nothing was recorded; next: doe plan, doe run."]
