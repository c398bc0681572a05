"""The study on disk: its names and its atomic writes. No other module knows a path."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path
from typing import NamedTuple

from doe.errors import DoeError


class StudyDir(NamedTuple):
    """Every name below one study's directory."""

    root: Path

    @property
    def study(self) -> Path:
        """The frozen study file."""
        return self.root / "study.toml"

    @property
    def design(self) -> Path:
        """The planned runs."""
        return self.root / "design.csv"


def write_atomic(path: Path, text: str) -> None:
    """Put a text in place whole or not at all, durably.

    Raises
    ------
    DoeError
        If the directory cannot be written; the old content stays.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.replace(name, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise
        _sync_directory(path.parent)
    except OSError as error:
        raise DoeError(f"cannot write {path}: {error.strerror}; nothing was changed") from error


def _sync_directory(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
