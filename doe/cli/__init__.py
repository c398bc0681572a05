"""The `doe` command: parse, call, print. Heavy imports stay inside the commands."""

from __future__ import annotations

import functools
import gc
import os
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer

from doe.cli.analyze import analyze
from doe.cli.export import export
from doe.cli.imports import import_table
from doe.cli.init import init, schema
from doe.cli.logs import logs
from doe.cli.plan import plan
from doe.cli.power import alias, power
from doe.cli.report import report
from doe.cli.run import EngineCommand, bare_cpu, run
from doe.cli.status import status
from doe.cli.streams import any_text
from doe.cli.suggest import suggest
from doe.cli.trial import trial
from doe.errors import DoeError

BUDGET_UNITS = ("runs", "h", "hours", "min", "minutes", "d", "days")
"""What may follow the number of a budget as a word of its own."""

app = typer.Typer(
    name="doe",
    help="Designed experiments over training runs: plan, run, analyse, report.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: rich's loads a Markdown parser and takes twice the time
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        import doe

        typer.echo(f"doe {doe.__version__} (pit-doe)")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Designed experiments over training runs: plan, run, analyse, report."""


app.command(short_help="Propose a study file.")(init)
app.command()(plan)
app.command()(suggest)
app.command()(alias)
app.command()(power)
app.command("try", short_help="Run one configuration now and show its metrics and time.")(trial)
app.command(cls=EngineCommand, short_help="Run every planned run exactly once.")(run)
app.command(short_help="Show counts, failures, running runs and the time left.")(status)
app.command()(logs)
app.command()(analyze)
app.command(short_help="Write the page, the tables of a paper and the charts.")(report)
app.command("import", short_help="Import past runs as results.")(import_table)
app.command()(export)
app.command()(schema)


@functools.cache
def _command() -> Callable[..., Any]:
    """Return all commands with their options, read from their signatures once."""
    return typer.main.get_command(app)


def main() -> None:
    """Run the command line; a DoeError is one message on standard error and exit code 1."""
    gc.set_threshold(1_000_000)  # a study of 65,536 runs has many values and few cycles
    with any_text():
        _main()


def _main() -> None:
    try:
        try:
            _command()(one_budget(bare_cpu(sys.argv[1:])), prog_name="doe")
        finally:
            sys.stdout.flush()
    except DoeError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the rest cannot be written either
        print(f"error: {error.strerror}: {error.filename or _unnamed()}", file=sys.stderr)
        sys.exit(1)


def one_budget(arguments: list[str]) -> list[str]:
    """Let a budget be two words, as in `--budget 200 runs`."""
    words = list(arguments)
    at = words.index("--budget") + 1 if "--budget" in words else len(words)
    if words[at + 1 : at + 2] and words[at + 1] in BUDGET_UNITS and words[at].isdecimal():
        words[at : at + 2] = [words[at] + words[at + 1]]
    return words


def _unnamed() -> str:
    """Describe the subject of a system error that names no file."""
    try:
        os.getcwd()
    except OSError:
        return "the current directory, which was deleted; change to another"
    return "standard output"
