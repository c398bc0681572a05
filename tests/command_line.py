"""The `doe` command inside this process, which has its imports already.

It sees what it would see of a process of its own (words, directory, standard output and error that
are no terminal, 80 columns), and so do the processes that it starts. Processes of their own are for
tests of processes: signals, kills, what is imported.
"""

import contextlib
import gc
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple

import pytest

from doe.cli import main

COLOURS = ("FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE")


class Said(NamedTuple):
    """What a command printed."""

    stdout: str
    stderr: str


def doe(*words: object, cwd: Path | str = ".", code: int = 0) -> Said:
    """Run a command to its end; it must end with this exit code."""
    threshold = gc.get_threshold()
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8") as out,
        tempfile.TemporaryFile("w+", encoding="utf-8") as err,
        contextlib.chdir(cwd),
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(sys, "argv", ["doe", *map(str, words)])
        patch.setenv("COLUMNS", "80")
        for name in COLOURS:
            patch.delenv(name, raising=False)
        with _instead(out, "stdout", 1), _instead(err, "stderr", 2):
            ended = _main()
        gc.set_threshold(*threshold)
        said = Said(*(file.seek(0) or file.read() for file in (out, err)))
    assert ended == code, said.stdout + said.stderr
    return said


def _main() -> int:
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


@contextlib.contextmanager
def _instead(file: IO[str], name: str, handle: int) -> Iterator[None]:
    """Let a file stand in the place of a stream, for child processes as well."""
    former, stream = os.dup(handle), getattr(sys, name)
    stream.flush()
    setattr(sys, name, file)
    os.dup2(file.fileno(), handle)
    try:
        yield
    finally:
        file.flush()
        setattr(sys, name, stream)
        os.dup2(former, handle)
        os.close(former)
