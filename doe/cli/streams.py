"""Standard streams that accept any text: contents of a study or a log do not control the
terminal."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from doe.errors import visible


class Guarded(io.TextIOWrapper):
    """A terminal that prints escape sequences instead of obeying them."""

    plain: io.TextIOWrapper
    """The stream itself, for output with its own escape sequences."""

    def write(self, text: str) -> int:
        """Print a text, its control characters visible."""
        super().write(visible(text))
        return len(text)


@contextmanager
def any_text() -> Iterator[None]:
    """Make the standard streams accept any text: unavailable characters become `?`.

    Streams that were closed take what is written and lose it.
    """
    _fill_closed()
    former = {name: getattr(sys, name) for name in ("stdout", "stderr")}
    for name, stream in former.items():
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
            if stream.isatty():
                setattr(sys, name, _guarded(stream))
    try:
        yield
    finally:
        for name, stream in former.items():
            if isinstance(guarded := getattr(sys, name), Guarded):
                guarded.flush()
                guarded.detach()
            setattr(sys, name, stream)


def _guarded(stream: io.TextIOWrapper) -> Guarded:
    stream.flush()
    guarded = Guarded(
        stream.buffer, encoding=stream.encoding, errors="replace", line_buffering=True
    )
    guarded.plain = stream
    return guarded


def _fill_closed() -> None:
    """Open /dev/null in place of closed descriptors, or the next file would take their number."""
    for handle in (0, 1, 2):
        try:
            os.fstat(handle)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
