"""`doe run`: execute the runs of a study."""

from __future__ import annotations

import contextlib
import inspect
import shlex
import time
from itertools import zip_longest
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer
from typer.core import TyperCommand

from doe.cli.options import StudyOption, chosen_study, complete_config, complete_engine, split_names

if TYPE_CHECKING:
    from doe.results.summary import Ending, Summary


class EngineCommand(TyperCommand):
    """A command with the options of every engine in addition to its own."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Add the engines' options, whose modules only `doe run` has to load."""
        *own, help_option = super().get_params(ctx)
        return [*own, *_engine_parameters(), help_option]

    def invoke(self, ctx: Any) -> Any:
        """Collect the engine's options in one value."""
        own = {parameter.name for parameter in self.params}
        further = {name: ctx.params.pop(name) for name in [*ctx.params] if name not in own}
        ctx.obj = {name: value for name, value in further.items() if value is not None}
        return super().invoke(ctx)


def _engine_parameters() -> list[Any]:
    """Return the options of all engines as click parameters."""
    from doe.running.engines import engine_options

    def engine_command() -> None: ...

    kinds = {
        name: Annotated[Optional[option.type], typer.Option(help=option.help)]  # noqa: UP045
        for name, option in engine_options().items()
    }
    engine_command.__annotations__ = kinds
    engine_command.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
            for name, kind in kinds.items()
        ]
    )
    engines = typer.Typer(add_completion=False)
    engines.command()(engine_command)
    return typer.main.get_command(engines).params


def run(
    ctx: typer.Context,
    study: StudyOption = None,
    engine: Annotated[
        str,
        typer.Option(
            help="Where runs are executed; the engines' options are below.",
            autocompletion=complete_engine,
        ),
    ] = "local",
    detach: Annotated[
        bool, typer.Option("--detach", help="Submit to a cluster and return; the study continues.")
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(
            help="Only this configuration; may be repeated.", autocompletion=complete_config
        ),
    ] = None,
    replicate: Annotated[int, typer.Option(min=0, help="Only this replicate; 0 for all.")] = 0,
    until: Annotated[
        str | None,
        typer.Option(help="decided: stop when every term is; interim looks after each replicate."),
    ] = None,
    decide: Annotated[
        str | None,
        typer.Option(help="Terms to decide: A,B,AB [default: up to two factors]."),
    ] = None,
    max_replicates: Annotated[
        int | None,
        typer.Option(
            min=2, help="Maximum number of replicates with --until [default: as planned]."
        ),
    ] = None,
    limit: Annotated[int, typer.Option(min=0, help="Start at most N runs; 0 for all.")] = 0,
    retries: Annotated[int, typer.Option(min=0, help="Retries after a crash.")] = 2,
    retry_errors: Annotated[
        bool, typer.Option("--retry-errors", help="Retry after exceptions as well.")
    ] = False,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Run finally failed runs again.")
    ] = False,
    keep_stages: Annotated[
        bool,
        typer.Option(
            "--keep-stages", help="Keep the output of stages when no run needs it any more."
        ),
    ] = False,
    timeout: Annotated[
        float, typer.Option(min=0, help="Time limit of a run in seconds; 0 for none.")
    ] = 0.0,
    grace: Annotated[
        float, typer.Option(min=0, help="Seconds between asking a run to end and killing it.")
    ] = 10.0,
    notify: Annotated[
        str | None,
        typer.Option(
            help="Shell command to run at the end; the summary is in DOE_SUMMARY and "
            "other variables."
        ),
    ] = None,
) -> None:
    """Run every planned run exactly once; continue where an earlier `doe run` ended.

    Ctrl-C lets running runs finish and starts no more; a second Ctrl-C ends them.
    """
    from rich.text import Text

    from doe.errors import DoeError
    from doe.results.decision import declare_until, requested_portions
    from doe.results.summary import summarise
    from doe.running.execute import EngineChoice, run_study
    from doe.running.scheduler import RunOptions
    from doe.store.plan import load_plan
    from doe.store.verdicts import Policy
    from doe.terms import config_header
    from doe.views.live import open_display
    from doe.views.status_tables import summary_lines
    from doe.views.terminal import console

    if notify is not None and detach:
        raise DoeError("--notify needs a `doe run` that stays until the end; remove --detach")
    options = RunOptions(
        policy=Policy(retries, retry_errors),
        timeout=timeout,
        only=tuple(only or ()),
        replicates=(replicate,) if replicate else (),
        limit=limit,
        retry_failed=retry_failed,
        grace=grace,
        detach=detach,
        keep_stages=keep_stages,
    )
    directory = chosen_study(study)
    declare_until(directory, until, split_names(decide), max_replicates)
    plan = load_plan(directory)
    study_option = "" if study is None else f" --study {shlex.quote(str(study))}"
    began, screen = time.monotonic(), console()
    try:
        with open_display(screen, config_header(plan.study.keys, "")) as display:
            done = run_study(
                plan, options, EngineChoice(engine, ctx.obj), display, requested_portions
            )
    except DoeError:
        with contextlib.suppress(DoeError):  # a deleted study cannot be summarised
            summary = summarise(plan, "broken off", time.monotonic() - began)
            _notify(notify, summary, study_option)
        raise
    if detach:
        screen.out(f"`doe status` shows its progress; `doe run --engine {engine}` resumes it.")
        return
    ending: Ending = "finished" if done.finished else "stopped"
    summary = summarise(done.plan, ending, time.monotonic() - began)
    _notify(notify, summary, study_option)  # even if the terminal is gone
    lines = summary_lines(summary, study_option)
    if summary.decision is not None:
        lines += summary.decision.sentences
    left_out = summary.counts["pending"] and not (only or replicate or limit)
    if done.finished and left_out:
        lines.append("Some runs were skipped; `doe status` says why.")
    for line in lines:  # wrapped between words on a terminal, one line in a log
        if screen.is_terminal:
            screen.print(Text(line))
        else:
            screen.out(line)
    if not done.finished:
        raise typer.Exit(130)
    if left_out or done.counts["failed"]:
        raise typer.Exit(3)


def _notify(command: str | None, summary: Summary, study_option: str) -> None:
    from doe.running.execute import notify
    from doe.views.status_tables import summary_environment

    if command and (problem := notify(command, summary_environment(summary, study_option))):
        typer.echo(f"warning: --notify {problem}", err=True)


def bare_cpu(arguments: list[str]) -> list[str]:
    """Allow `--cpu` without a number: it then chooses the number of slots itself."""
    words: list[str] = []
    own = arguments[: arguments.index("--")] if "--" in arguments else arguments
    for word, after in zip_longest(own, own[1:], fillvalue=""):
        words += [word, "0"] if word == "--cpu" and not after.isdecimal() else [word]
    return words + arguments[len(own) :]
