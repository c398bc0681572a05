"""`doe logs`: the output of a run."""

from __future__ import annotations

import codecs
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from doe.cli.options import StudyOption, chosen_study, complete_run

if TYPE_CHECKING:
    from doe.design.runs import Run
    from doe.store.files import RunDir

FOLLOW_SECONDS = 0.2


def logs(
    run: Annotated[
        str, typer.Argument(help="Run id, such as 055-r2.", autocompletion=complete_run)
    ],
    study: StudyOption = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Follow until the run has its verdict.")
    ] = False,
    lines: Annotated[
        int, typer.Option("--lines", "-n", min=0, help="Number of last lines; 0 for all.")
    ] = 2000,
) -> None:
    """Print a run's log, and why it failed if it did."""
    import sys
    import time

    from doe.store.files import StudyDir
    from doe.store.verdicts import read_verdict

    directory = chosen_study(study)
    planned = _planned(directory, run)
    run_dir = StudyDir(directory).run(run)
    reader = _Log(run_dir, lines)
    if not follow and not os.path.lexists(run_dir.log):
        _explain_missing_log(directory, planned)
    try:
        while True:
            verdict = read_verdict(run_dir)  # before the log, so that no last line is missed
            reader.print_news()
            if not follow or verdict is not None:
                break
            time.sleep(FOLLOW_SECONDS)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    if verdict and verdict.result and verdict.result.error:
        print(f"{run} {verdict.result.state}: {verdict.result.error.reason}", file=sys.stderr)


class _Log:
    """A log, possibly long and still growing, printed in blocks."""

    def __init__(self, run_dir: RunDir, lines: int) -> None:
        self._run_dir, self._lines = run_dir, lines
        self._read: int | None = None
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def print_news(self) -> None:
        """Print what was added since the last call; at first, the last lines."""
        import sys

        from doe.cli.streams import Guarded
        from doe.errors import DoeError, visible
        from doe.numbers import cell_text
        from doe.store.files import open_regular
        from doe.store.progress import BLOCK_BYTES, last_lines

        try:
            file = open_regular(self._run_dir.log)
        except FileNotFoundError:
            return
        except OSError as error:
            name = f"{self._run_dir.path.name}/{self._run_dir.log.name}"
            raise DoeError(f"cannot read {name}: {error.strerror}") from error
        with file:
            if self._read is None:
                self._read = last_lines(file, self._lines) if self._lines else 0
                if self._read:
                    before = cell_text(self._read / 1e6, "fixed1")
                    file.seek(self._read - 1)
                    whole = file.read(1) == b"\n"
                    print(
                        f"(the last {self._lines} lines" if whole else "(the end of long lines",
                        f"{before} MB before them; --lines 0 prints all)",
                        sep="; ",
                        file=sys.stderr,
                    )
            file.seek(self._read)
            while block := file.read(BLOCK_BYTES):
                self._read += len(block)
                text, screen = self._decoder.decode(block), sys.stdout
                if isinstance(screen, Guarded):
                    text, screen = visible(text, returns=True), screen.plain
                screen.write(text)
                screen.flush()


def _planned(directory: Path, run_id: str) -> Run:
    from doe.errors import DoeError, nearest
    from doe.store.plan import load_plan

    runs = {run.run_id: run for run in load_plan(directory).everything}
    if run_id not in runs:
        raise DoeError(
            f"no run {run_id!r} is planned in {directory}{nearest(run_id, runs)}; "
            f"run ids look like {next(reversed(runs))}"
        )
    return runs[run_id]


def _explain_missing_log(directory: Path, run: Run) -> NoReturn:
    """Explain why a run has no log: its job ended before writing one, or still waits."""
    from doe.errors import DoeError
    from doe.running.engines import waiting_reasons
    from doe.store.files import StudyDir
    from doe.store.leases import Watch
    from doe.store.scan import read_status, retried_reason

    files = StudyDir(directory)
    status = read_status(files, run, Watch())
    if status.problem:
        raise DoeError(f"{run.run_id} is unreadable: {status.problem}")
    reason = waiting_reasons(directory, [run.run_id]).get(run.run_id)
    reason = reason or retried_reason(files, status) or "it has no log yet"
    raise DoeError(f"{run.run_id} has not begun; {reason}")
