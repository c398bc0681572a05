"""The `doe` command inside this process, which has its imports already.

It sees what it would see in a process of its own (words, directory, standard output and error that
are no terminal), and so do the processes that it starts. Processes of their own are for tests of
processes: signals, kills, what is imported.
"""

import contextlib
import gc
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, TextIO

import pytest

from doe.cli import main


class Ended(NamedTuple):
    """How a command ended, and what it printed."""

    code: int
    stdout: str
    stderr: str


def doe(*words: object, cwd: Path | str = ".", code: int = 0) -> Ended:
    """Run a command to its end; it must end with this exit code."""
    ended = called(*words, cwd=cwd)
    assert ended.code == code, ended.stdout + ended.stderr
    return ended


def called(*words: object, cwd: Path | str = ".") -> Ended:
    """Run a command to its end, whatever that is."""
    threshold = gc.get_threshold()
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8") as out,
        tempfile.TemporaryFile("w+", encoding="utf-8") as err,
        contextlib.chdir(cwd),
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(sys, "argv", ["doe", *map(str, words)])
        try:
            with _instead(out, "stdout", 1), _instead(err, "stderr", 2):
                code = _main()
        finally:
            gc.set_threshold(*threshold)
        return Ended(code, _text(out), _text(err))


def _main() -> int:
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def _text(file: TextIO) -> str:
    file.seek(0)
    return file.buffer.read().decode(errors="replace")


@contextlib.contextmanager
def _instead(file: TextIO, name: str, handle: int) -> Iterator[None]:
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
