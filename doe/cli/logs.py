"""`doe logs`: what a run has written."""

from __future__ import annotations

from typing import Annotated

import typer

from doe.cli.complete import complete_run
from doe.cli.options import StudyOption, chosen_study

FOLLOW_SECONDS = 0.2


def logs(
    run: Annotated[
        str, typer.Argument(help="Run id, such as 055-r2.", autocompletion=complete_run)
    ],
    study: StudyOption = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on until the run has its verdict.")
    ] = False,
) -> None:
    """Print a run's log, and why it failed if it did."""
    import sys
    import time

    from doe.errors import DoeError, nearest
    from doe.store.files import StudyDir
    from doe.store.plan import load_plan
    from doe.store.verdicts import read_verdict

    directory = chosen_study(study)
    design = load_plan(directory).design
    known = [one.run_id for one in design.runs]
    if run not in known:
        raise DoeError(
            f"no run {run!r} is planned in {directory}{nearest(run, known)}; "
            f"run ids look like {known[0]}"
        )
    place = StudyDir(directory).run(run)
    if not follow and not place.log.exists():
        raise DoeError(f"{run} has not begun; it has no log yet")
    read = 0
    try:
        while True:
            verdict = read_verdict(place)  # before the log, so that nothing is missed at its end
            if place.log.exists():
                with open(place.log, "rb") as file:
                    file.seek(read)
                    text = file.read()
                read += len(text)
                sys.stdout.write(text.decode(errors="replace"))
                sys.stdout.flush()
            if not follow or verdict is not None:
                break
            time.sleep(FOLLOW_SECONDS)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    if verdict and verdict.result and verdict.result.error:
        print(f"{run} {verdict.result.state}: {verdict.result.error.reason}", file=sys.stderr)
