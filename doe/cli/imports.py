"""`doe import`: past runs into a study, so that only the missing ones are run."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from doe.cli.complete import complete_study
from doe.cli.options import DecimalOption, chosen_study, pairs, say

if TYPE_CHECKING:
    from doe.store.plan import Plan


def import_table(
    table: Annotated[
        Path, typer.Argument(help="CSV table, or an export of W&B, MLflow or Optuna.")
    ],
    study: Annotated[
        Path | None,
        typer.Option(
            "--study",
            help="Study file, planned if need be, or directory [default: the last planned].",
            autocompletion=complete_study,
        ),
    ] = None,
    named: Annotated[
        str | None,
        typer.Option("--map", help="Columns with other names: lr=learning_rate,acc=val/acc."),
    ] = None,
    decimal: DecimalOption = None,
    matching: Annotated[
        bool, typer.Option("--matching", help="Leave out rows that the plan does not have.")
    ] = False,
) -> None:
    """Take past runs over as results, matched by levels and seed; `doe run` does the others."""
    from doe.results.table_file import read_table
    from doe.store.imports import import_runs

    plan = _plan(study)
    frame = read_table(table, say, decimal)
    rows = [dict(zip(frame.columns, row, strict=True)) for row in frame.to_numpy().tolist()]
    columns = pairs(named, "--map", "NAME=COLUMN, as in lr=learning_rate")
    done = import_runs(plan, rows, table.name, columns, matching)
    parts = [f"{len(done.new)} of {len(plan.design.runs)} runs were imported"]
    parts += [f"{len(done.known)} were there already"] if done.known else []
    parts += [f"{done.unfinished} rows have no result"] if done.unfinished else []
    parts += [f"{done.outside} rows are not planned"] if done.outside else []
    typer.echo(f"{'; '.join(parts)}.")
    typer.echo(f"next: doe run --study {shlex.quote(str(plan.directory))}")


def _plan(path: Path | None) -> Plan:
    """The planned study; a study file that is not the frozen one is planned first."""
    from doe.store.files import StudyDir
    from doe.store.plan import RUNS, load_plan, write_plan
    from doe.study.file import load_study

    if path is not None and path.is_file() and not StudyDir(path.parent).design.exists():
        study = load_study(path)
        plan, outcome = write_plan(study, RUNS / study.name)
        if outcome != "unchanged":
            typer.echo(f"Planned {plan.directory}", err=True)
        return plan
    return load_plan(chosen_study(path))
