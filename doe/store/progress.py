"""Progress and log that a run writes while it executes."""

from __future__ import annotations

import contextlib
import io
import math
import os
import sys
import time
from collections.abc import Iterable, Sequence
from typing import BinaryIO, NamedTuple

import msgspec

from doe.store.files import MOST_BYTES, RunDir, append, encodable, open_to_append, read_end
from doe.store.timing import REPORT_SECONDS

TAIL_BYTES = 16384


class ProgressLine(msgspec.Struct, frozen=True):
    """One line of a run's progress file."""

    step: int
    total: int
    metrics: dict[str, float | None] = {}


class Progress(NamedTuple):
    """Reports of a running run."""

    step: int
    total: int
    metric: str
    """The metric shown: the first that was reported."""
    values: tuple[float, ...]
    """Its latest values, one per step."""


_LINES = msgspec.json.Decoder(ProgressLine)


def read_progress(run: RunDir) -> Progress | None:
    """Read the end of a run's progress file; None if nothing was reported."""
    reports = _reports(run, TAIL_BYTES)
    if not reports:
        return None
    last = reports[-1]
    metric = next(iter(last.metrics), "")
    steps = [report for report in _by_step(reports) if report.step <= last.step]
    values = [value for r in steps if (value := r.metrics.get(metric)) is not None]
    return Progress(last.step, last.total, metric, tuple(values))


def read_steps(run: RunDir) -> list[ProgressLine]:
    """Read all steps that a run has reported, in order."""
    return _by_step(_reports(run, MOST_BYTES))


def _by_step(reports: Iterable[ProgressLine]) -> list[ProgressLine]:
    """Sort reports by step; of a repeated step, keep the last."""
    return [report for _, report in sorted({report.step: report for report in reports}.items())]


def _reports(run: RunDir, most: int) -> list[ProgressLine]:
    """Return the reports among the last bytes of a run's progress file."""
    reports = []
    with contextlib.suppress(OSError):
        for line in read_end(run.progress, most).split(b"\n"):
            with contextlib.suppress(msgspec.MsgspecError):  # truncated by the seek or by a kill
                reports.append(_LINES.decode(line))
    return reports


BURST = 100
"""Reports that may arrive at once: the steps of a short run, the new rows of a CSV."""


class Reporter:
    """Append what a backend reports to the run's progress file."""

    def __init__(self, run: RunDir) -> None:
        self._path = run.progress
        self._last = -math.inf
        self._spare = 0.0

    def __call__(self, step: int, total: int, **metrics: float) -> None:
        """Record that `step` of `total` is done, with the metrics known there."""
        now = time.monotonic()
        self._spare = min(self._spare + (now - self._last) / REPORT_SECONDS, BURST)
        self._last = now
        if self._spare < 1 and step < total:
            return
        self._spare = max(self._spare - 1, 0.0)
        # A training must not fail because its progress could not be written.
        with contextlib.suppress(OSError, TypeError, ValueError, OverflowError):
            values: dict[str, float | None] = {encodable(n): float(v) for n, v in metrics.items()}
            line = ProgressLine(int(step), int(total), values)
            append(self._path, msgspec.json.encode(line) + b"\n")


# The log ------------------------------------------------------------------------------------------


LOG_LINES = 40
"""Lines of the log in the report of a failure."""
LINE_LENGTH = 160
"""Characters of the last of them in the message of a failed command."""
BLOCK_BYTES = 65536
LINE_BYTES = 2000
"""Average length of a line; of longer ones, such as a redrawn progress bar, only the end is
kept."""
ATTEMPT = "== attempt "
"""Start of the line in the log that separates attempts."""


def open_log(run: RunDir, attempt: int) -> None:
    """Send standard output and error of this process and its children to the run's log.

    A log that cannot be written, as of another user, is set aside; where that cannot be done, or
    something else is there instead, they are discarded: no run fails for want of a log.
    """
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # whatever is there instead of a stream
            stream.flush()
    handle = _log_handle(run, attempt)
    os.dup2(handle, 1)
    os.dup2(handle, 2)
    if handle > 2:
        os.close(handle)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and not stream.closed:
            stream.reconfigure(line_buffering=True)  # a crash must not lose the last lines
    if attempt > 1:
        with contextlib.suppress(OSError):  # no room for it
            os.write(1, f"\n{ATTEMPT}{attempt} ==\n".encode())


def _log_handle(run: RunDir, attempt: int) -> int:
    with contextlib.suppress(OSError):
        try:
            return open_to_append(run.log)
        except PermissionError:
            os.rename(run.log, run.path / f"log-{attempt - 1}.txt")
            return open_to_append(run.log)
    return os.open(os.devnull, os.O_WRONLY)


def write_log(run: RunDir, text: str) -> None:
    """Append a text to the log by name: descriptors may be anything by now."""
    with contextlib.suppress(OSError):
        append(run.log, text.encode(errors="replace"))


def log_tail(run: RunDir) -> tuple[str, ...]:
    """Return the last lines of the latest attempt."""
    try:
        text = read_end(run.log, BLOCK_BYTES).decode(errors="replace")
    except OSError:
        return ()
    if f"\n{ATTEMPT}" in text:
        text = text.rpartition(f"\n{ATTEMPT}")[2].partition("\n")[2]
    return tuple(portable(text, run).splitlines()[-LOG_LINES:])


def without_log(message: str, log: Iterable[str]) -> str:
    """Return a message without the line of the log that it quotes."""
    for line in filter(None, map(_cut, log)):
        message = message.replace(f": {line}", "", 1)
    return message


def _cut(line: str) -> str:
    line = line.strip()
    return line if len(line) <= LINE_LENGTH else f"{line[: LINE_LENGTH - 1]}…"


def last_line(log: Sequence[str]) -> str:
    """Return the last line of a log that is not blank, cut to `LINE_LENGTH` characters."""
    return next((line for line in map(_cut, reversed(log)) if line), "")


def last_lines(file: BinaryIO, lines: int) -> int:
    """Return where the last lines of a file begin, or where the end of very long ones begins."""
    position = file.seek(0, os.SEEK_END)
    first = max(0, position - max(lines * LINE_BYTES, BLOCK_BYTES))
    wanted = lines + 1  # the newline before the first of them
    while position > first:
        size = min(BLOCK_BYTES, position - first)
        position -= size
        file.seek(position)
        block = file.read(size)
        if position + size == file.seek(0, os.SEEK_END) and not block.endswith(b"\n"):
            wanted -= 1  # a last line without newline
        number = block.count(b"\n")
        if number < wanted:
            wanted -= number
            continue
        end = len(block)
        for _ in range(wanted):
            end = block.rindex(b"\n", 0, end)
        return position + end + 1
    return first


def portable(text: str, run: RunDir) -> str:
    """Write paths below the study relative to it, so that a result can be moved."""
    return text.replace(f"{run.path.resolve().parent}{os.sep}", "")
