"""A command as a backend: its arguments, start, progress and metrics."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from doe.errors import DoeError
from doe.running.metrics import Output, as_number, files_now, read_metrics
from doe.running.processes import end_by_signal
from doe.running.program import Call, Listener, Program, run
from doe.running.sources import STEP_COLUMNS, Stamps, matching, read_rows, stamp
from doe.store.files import RunDir
from doe.store.progress import last_line, log_tail
from doe.store.requests import RunRequest
from doe.study.command import STDOUT, STEP, TOTAL, Piece, pieces, printed_number
from doe.study.stages import STAGE_DIR
from doe.study.values import OWN, Level, MetricsSection, ProgressSection
from doe.terms import level_text

ReportStep = Callable[..., None]
"""``report(step, total, **metrics)``"""
MISSING_FILE = re.compile(r"(?i)no such file|not found|cannot open|can't open|no module named")
"""What programs print when a file is not where they look for it."""


def run_program(
    command: Iterable[str],
    values: Mapping[str, Level],
    request: RunRequest,
    run_dir: Path,
    report: ReportStep,
    should_stop: Callable[[], bool] = bool,
    program: Program | None = None,
    leave: Callable[[], None] = lambda: None,
) -> dict[str, float]:
    """Run a command, forward its progress, and read its metrics.

    Parameters
    ----------
    command
        Words with placeholders; they are handed to the program as they are, never to a shell.
    values
        What placeholders stand for, besides `run_dir`.
    should_stop
        Whether the run is asked to end early. SIGTERM is passed on to the program; what it leaves
        then is a checkpoint, not a result.
    program
        A process that stands by to become the program.
    leave
        Called when the program has ended well and only its metrics are to be read.
    """
    should_stop()  # from here on, its end is waited for
    files = RunDir(run_dir)
    if request.cwd:
        run_dir = files.out
        run_dir.mkdir(exist_ok=True)
    plan = preparation(command, values, request, run_dir, report)
    code = run(plan.call, program, plan.listeners, plan.progress.poll, should_stop)
    if should_stop():
        raise DoeError("the command was stopped before it had finished")
    if code < 0:
        end_by_signal(-code)  # as the command did: a crash is not a clean failure
    if code > 0:
        raise DoeError(_failure(code, log_tail(files), request.cwd))
    leave()
    if request.stage:
        return {}  # its output is its reply
    return read_metrics(
        plan.source, request.metrics, request.further, run_dir, plan.old, plan.output
    )


class Preparation(NamedTuple):
    """Everything determined about a command before it starts."""

    call: Call
    source: MetricsSection
    old: Stamps
    """Files of metrics left by an earlier attempt."""
    output: Output
    progress: ProgressReader
    listeners: list[Listener]


def preparation(
    command: Iterable[str],
    values: Mapping[str, Level],
    request: RunRequest,
    run_dir: Path,
    report: ReportStep,
) -> Preparation:
    """Substitute values, and look for existing files."""
    source = request.source or MetricsSection()
    section = request.progress or ProgressSection()
    values = {**values, "run_dir": str(run_dir), STAGE_DIR: str(run_dir)}
    call = _placed(substitute(command, values), request.cwd, run_dir)
    own = {name: filled(level_text(value), values) for name, value in request.env.items()}
    call = call._replace(environment={**call.environment, **own})
    old = files_now(run_dir, source)
    output = Output(source, (*request.metrics, *request.further))
    progress = ProgressReader(section, values, run_dir, report)
    listeners: list[Listener] = [output.add_line] if source.file == STDOUT else []
    if section.pattern:
        listeners.append(progress.on_line)
    return Preparation(call, source, old, output, progress, listeners)


def substitute(command: Iterable[str], values: Mapping[str, Level]) -> list[str]:
    """Substitute values for placeholders; a switch that is off may leave no word."""
    words: list[str] = []
    for word in command:
        parts = pieces(word)
        alone = len(parts) == 1 and parts[0].text and not parts[0].literal
        words += shlex.split(filled(word, values)) if alone else [filled(word, values)]
    return words


def filled(word: str, values: Mapping[str, Level]) -> str:
    """Return a word with its placeholders replaced."""

    def text(piece: Piece) -> str:
        if piece.name is None:
            return piece.literal
        value = values[piece.name]
        if piece.text:
            return piece.literal + (piece.text if value else "")
        return piece.literal + level_text(value)

    return "".join(map(text, pieces(word)))


# Where it runs ----------------------------------------------------------------------------------


def _placed(words: list[str], cwd: str, run_dir: Path) -> Call:
    """Return the working directory given by the study's `cwd`."""
    start = Path.cwd()
    if cwd == OWN:
        return Call(resolved(words, start), run_dir, _module_path(words, start))
    if not (start / cwd).is_dir():
        raise DoeError(f"cwd = {cwd!r} of the study file: there is no such directory in {start}")
    return Call(words, start / cwd)


def resolved(words: Iterable[str], start: Path) -> list[str]:
    """Resolve words for another working directory: make paths below `start` absolute.

    That is an existing file, or a directory that is written with a slash, as a word or after the
    first `=` of one. A bare name of a directory may be a word like any other (`train`), and that of
    a program is looked up on the PATH.
    """
    program, *rest = words
    first = _absolute(program, start) if os.sep in program else program
    return [first, *(_resolved(word, start) for word in rest)]


def _resolved(word: str, start: Path) -> str:
    head, equals, tail = word.partition("=")
    if equals and re.fullmatch(r"[\w.+-]+", head):
        return f"{head}={_absolute(tail, start)}"
    return _absolute(word, start)


def _absolute(word: str, start: Path) -> str:
    path = os.path.join(start, word)
    slashed = os.sep in word or word in (".", "..")
    there = os.path.isfile(path) or (slashed and os.path.isdir(path))
    return path if there else word


def _module_path(words: Iterable[str], start: Path) -> dict[str, str]:
    """Let `python -m` and `python -c` find modules of `start`, as when started there."""
    if not {"-m", "-c"} & set(words):
        return {}
    paths = (str(start), os.environ.get("PYTHONPATH", ""))
    return {"PYTHONPATH": os.pathsep.join(filter(None, paths))}


def _failure(code: int, log: Sequence[str], cwd: str) -> str:
    """Return the last line of a failed command's log, and where it ran if a file is missing."""
    said = last_line(log)
    message = f"the command ended with exit code {code}{f': {said}' if said else ''}"
    if cwd == OWN and any(MISSING_FILE.search(line) for line in log):
        message += (
            '; it ran in its own directory; `cwd = "."` in the study file runs it where doe is'
        )
    return message


# Progress ---------------------------------------------------------------------------------------


class ProgressReader:
    """Turn what a command prints or writes into reports; ignore what cannot be read."""

    def __init__(
        self,
        section: ProgressSection,
        values: Mapping[str, Level],
        run_dir: Path,
        report: ReportStep,
    ) -> None:
        total = section.total
        self._total = as_number(values[total] if isinstance(total, str) else total)
        self._section = section
        self._pattern = re.compile(section.pattern)
        self._run_dir = run_dir
        self._report = report
        self._stamp = (0, 0)
        self._last: tuple[float, Mapping[str, object]] = (-1.0, {})

    def on_line(self, line: str) -> None:
        """Report the step named in a printed line."""
        if match := self._pattern.search(line):
            self._report_row(
                {name: printed_number(text or "") for name, text in match.groupdict().items()}
            )

    def poll(self) -> None:
        """Report the steps added to the command's CSV."""
        if not self._section.file:
            return
        try:
            paths = matching(self._run_dir, self._section.file)
            now = stamp(paths[-1]) if paths else self._stamp
            if now == self._stamp:
                return
            self._stamp = now
            rows = read_rows(paths[-1])
        except (OSError, ValueError, DoeError):  # a partial line, or moved away: retry later
            return
        for step, row in _by_step(rows, self._section.step).items():
            if step > self._last[0] or (step == self._last[0] and row != self._last[1]):
                self._last = (step, row)
                self._report_row({**row, STEP: step})

    def _report_row(self, row: Mapping[str, object]) -> None:
        step = as_number(row.get(STEP))
        total = as_number(row.get(TOTAL)) or self._total
        if step is None or step < 0 or total is None:
            return
        numbers = {name: as_number(value) for name, value in row.items()}
        metrics = {n: v for n, v in numbers.items() if v is not None and n not in (STEP, TOTAL)}
        self._report(int(step), int(max(total, step)), **metrics)


def _by_step(rows: Iterable[Mapping[str, object]], column: str) -> dict[float, dict[str, object]]:
    """Map each step to all its rows combined: training and validation often write a row each."""
    steps: dict[float, dict[str, object]] = {}
    for row in rows:
        name = column or next((c for c in STEP_COLUMNS if c in row), "")
        if (step := as_number(row.get(name))) is not None:
            cells = {k: v for k, v in row.items() if k != name and as_number(v) is not None}
            steps.setdefault(step, {}).update(cells)
    return steps
