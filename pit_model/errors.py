"""The one error that a user of the tracker can cause."""

from collections.abc import Iterable
from difflib import get_close_matches


class PitError(Exception):
    """A mistake in the input: says what was got, what is expected and how to mend it."""


def nearest(name: str, known: Iterable[str]) -> str:
    """Return ``" (did you mean 'x'?)"`` for the known name closest to `name`, or an empty text."""
    close = get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f" (did you mean {close[0]!r}?)" if close else ""
