"""`doe run`: execute what a study has planned."""

from __future__ import annotations

from itertools import zip_longest
from typing import Annotated

import typer

from doe.cli.complete import complete_config, complete_engine
from doe.cli.options import StudyOption, chosen_study


def run(
    study: StudyOption = None,
    gpus: Annotated[str | None, typer.Option(help="GPUs to use, as in 0,1; a slot each.")] = None,
    per_gpu: Annotated[int, typer.Option(min=1, help="Runs at once on each GPU.")] = 1,
    cpu: Annotated[
        int | None, typer.Option(min=0, help="Slots on the CPU; 0 for one per core [default].")
    ] = None,
    engine: Annotated[
        str,
        typer.Option(
            help="Where runs are executed: local, slurm or ray.", autocompletion=complete_engine
        ),
    ] = "local",
    detach: Annotated[
        bool, typer.Option("--detach", help="Submit to Slurm and return; the study goes on.")
    ] = False,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Cluster: most runs (Slurm: jobs) at once.")
    ] = None,
    cpus: Annotated[int | None, typer.Option(min=1, help="Cluster: cores of each run.")] = None,
    partition: Annotated[str | None, typer.Option(help="Slurm: partition.")] = None,
    account: Annotated[str | None, typer.Option(help="Slurm: account.")] = None,
    time: Annotated[
        str | None, typer.Option(help="Slurm: time limit of a job, as in 90 or 1:30:00.")
    ] = None,
    gres: Annotated[
        str | None, typer.Option(help="Slurm: GPU of each job, as in gpu:1 or shard:1.")
    ] = None,
    mem: Annotated[str | None, typer.Option(help="Slurm: memory of each job, as in 16G.")] = None,
    runs_per_job: Annotated[
        int | None, typer.Option(min=1, help="Slurm: runs that a job executes in turn.")
    ] = None,
    ray_address: Annotated[
        str | None, typer.Option(help="Ray: a running cluster, as in auto or HOST:PORT.")
    ] = None,
    gpus_per_run: Annotated[
        float | None, typer.Option(min=0, help="Ray: GPUs of each run; 0.5 puts two on one.")
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            help="Only this configuration; may be repeated.", autocompletion=complete_config
        ),
    ] = None,
    replicate: Annotated[int, typer.Option(min=0, help="Only this replicate; 0 for all.")] = 0,
    limit: Annotated[int, typer.Option(min=0, help="Start at most N runs; 0 for all.")] = 0,
    retries: Annotated[int, typer.Option(min=0, help="Further attempts after a crash.")] = 2,
    retry_errors: Annotated[
        bool, typer.Option("--retry-errors", help="Try again after exceptions as well.")
    ] = False,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Run again what has failed for good.")
    ] = False,
    timeout: Annotated[
        float, typer.Option(min=0, help="Seconds a run may take; 0 for no limit.")
    ] = 0.0,
    grace: Annotated[
        float, typer.Option(min=0, help="Seconds between asking a run to end and killing it.")
    ] = 10.0,
) -> None:
    """Run every planned run exactly once; go on where an earlier `doe run` ended.

    Ctrl-C lets running runs finish and starts no more; a second Ctrl-C ends them.
    """
    from doe.running.engines import Resources
    from doe.running.execute import execute
    from doe.running.scheduler import Options
    from doe.store.plan import load_plan
    from doe.store.verdicts import Policy
    from doe.views.live import open_display
    from doe.views.terminal import console

    options = Options(
        policy=Policy(retries, retry_errors),
        timeout=timeout,
        only=tuple(only or ()),
        replicate=replicate,
        limit=limit,
        retry_failed=retry_failed,
        grace=grace,
        detach=detach,
    )
    plan = load_plan(chosen_study(study))
    screen = console()
    resources = Resources(
        gpus=gpus or "",
        per_gpu=per_gpu,
        cpu=cpu,
        cpus=cpus,
        jobs=jobs,
        partition=partition,
        account=account,
        time=time,
        gres=gres,
        mem=mem,
        runs_per_job=runs_per_job,
        ray_address=ray_address,
        gpus_per_run=gpus_per_run,
    )
    with open_display(screen) as display:
        number, finished = execute(plan, options, engine, resources, display)
    screen.print(", ".join(f"{count} {state}" for state, count in number.items() if count))
    if detach:
        screen.print("`doe status` shows how far it is; `doe run --engine slurm` picks it up.")
        return
    if not finished:
        screen.print("Stopped; `doe run` goes on with the rest.")
        raise typer.Exit(130)
    if number["failed"]:
        screen.print("`doe status` shows why runs failed; --retry-failed runs them again.")
        raise typer.Exit(3)


def bare_cpu(arguments: list[str]) -> list[str]:
    """Let `--cpu` stand alone: it then chooses the number of slots itself."""
    given: list[str] = []
    own = arguments[: arguments.index("--")] if "--" in arguments else arguments
    for word, after in zip_longest(own, own[1:], fillvalue=""):
        given += [word, "0"] if word == "--cpu" and not after.isdecimal() else [word]
    return given + arguments[len(own) :]
