"""The log of a run: where its output goes and how its last lines are told."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from typing import BinaryIO

from doe.store.files import RunDir, append, open_to_append, read_end

LOG_LINES = 40
"""Lines of the log that a failure tells."""
BLOCK_BYTES = 65536
LINE_BYTES = 2000
"""What lines may have on average; of longer ones, as of a bar that is drawn again, the end."""
ATTEMPT = "== attempt "
"""Begins the line in the log that separates attempts."""


def open_log(run: RunDir, attempt: int) -> None:
    """Send standard output and error of this process and its children to the run's log.

    A log that cannot be written, as of another user, is set aside; where that cannot be done, or
    something else stands in its place, they go nowhere: no run fails for want of a log.
    """
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # whatever stands there instead of a stream
            stream.flush()
    handle = _log_handle(run, attempt)
    os.dup2(handle, 1)
    os.dup2(handle, 2)
    if handle > 2:
        os.close(handle)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and not stream.closed:
            stream.reconfigure(line_buffering=True)  # a crash must not take the last lines along
    if attempt > 1:
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
    """Add a text to the log by its name: descriptors may be anything by now."""
    with contextlib.suppress(OSError):
        append(run.log, text.encode(errors="replace"))


def log_tail(run: RunDir) -> tuple[str, ...]:
    """The last lines that the latest attempt wrote."""
    try:
        text = read_end(run.log, BLOCK_BYTES).decode(errors="replace")
    except OSError:
        return ()
    latest = text.rpartition(f"\n{ATTEMPT}")[2] if f"\n{ATTEMPT}" in text else text
    return tuple(portable(latest, run).splitlines()[-LOG_LINES:])


def last_lines(file: BinaryIO, lines: int) -> int:
    """Where the last lines of a file begin, found from its end, or where very long ones end."""
    position = file.seek(0, os.SEEK_END)
    first = max(0, position - max(lines * LINE_BYTES, BLOCK_BYTES))
    wanted = lines + 1  # the newline before the first of them
    while position > first:
        size = min(BLOCK_BYTES, position - first)
        position -= size
        file.seek(position)
        block = file.read(size)
        if position + size == file.seek(0, os.SEEK_END) and not block.endswith(b"\n"):
            wanted -= 1  # a last line without its newline
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
