"""`doe import`: past runs into a study, so that only the missing ones are run."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from doe.cli.options import DecimalOption, chosen_study, complete_study, pairs, say


def import_table(
    table: Annotated[
        Path, typer.Argument(help="CSV table, or an export of W&B, MLflow or Optuna.")
    ],
    study: Annotated[
        Path | None,
        typer.Option(
            "--study",
            help="Study file, planned if necessary, or directory [default: the last planned].",
            autocompletion=complete_study,
        ),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option("--map", help="Columns with other names: lr=learning_rate,acc=val/acc."),
    ] = None,
    decimal: DecimalOption = None,
    matching: Annotated[
        bool, typer.Option("--matching", help="Skip rows that are not in the plan.")
    ] = False,
) -> None:
    """Import past runs as results, matched by levels and seed; `doe run` does the others."""
    from doe.results.planning import import_table as take_over
    from doe.results.planning import planned_or_new

    is_file = study is not None and study.is_file()
    plan, outcome = planned_or_new(study if is_file else chosen_study(study))
    if outcome != "unchanged":
        typer.echo(f"Planned {plan.directory}", err=True)
    renamed = pairs(columns, "--map", "NAME=COLUMN, as in lr=learning_rate")
    done = take_over(plan, table, renamed, matching, say, decimal)
    parts = [f"{len(done.new)} of {len(plan.design.runs)} runs were imported"]
    parts += [f"{len(done.known)} had been imported before"] if done.known else []
    parts += [f"{done.unfinished} rows have no result"] if done.unfinished else []
    parts += [f"{done.outside} rows are not planned"] if done.outside else []
    typer.echo(f"{'; '.join(parts)}.")
    typer.echo(f"next: doe run --study {shlex.quote(str(plan.directory))}")
