"""Texts that take long to make and never change, kept in the user's cache."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

from doe.errors import DoeError
from doe.store.files import write_atomic


def kept(name: str, make: Callable[[], str]) -> str:
    """The text of that name from the cache, or made anew; the name says all that it depends on."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    path = Path(home) / "pit-doe" / name
    with contextlib.suppress(OSError, UnicodeDecodeError):
        return path.read_text(encoding="utf-8")
    text = make()
    with contextlib.suppress(DoeError):  # a home that one may not write to
        write_atomic(path, text)
    return text
