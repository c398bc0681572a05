"""Errors that a user of the tracker can fix."""

from collections.abc import Iterable
from difflib import get_close_matches


class PitError(Exception):
    """A mistake in the input: what was wrong, what was expected, what to do."""


def nearest(name: str, known: Iterable[str]) -> str:
    """Return ``" (did you mean 'x'?)"`` for the known name closest to `name`, or an empty text."""
    close = get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f" (did you mean {close[0]!r}?)" if close else ""
