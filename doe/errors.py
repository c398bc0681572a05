"""Errors that a user can fix: what was wrong, what was expected, what to do."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Sequence

AddProblem = Callable[[str], None]
"""Use one of several mistakes that are reported together."""


class DoeError(Exception):
    """A mistake in the input or the environment; printed as one message, with exit code 1."""


class SpecError(DoeError):
    """Mistakes in a study file, all reported at once."""

    def __init__(self, source: str, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        lines = "\n".join(f"  - {problem}" for problem in self.problems)
        super().__init__(f"{source} is not a valid study:\n{lines}")


def nearest(name: str, known: Iterable[str]) -> str:
    """Return " (did you mean 'x'?)" for the known name closest to `name`, or an empty string."""
    match = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f" (did you mean {match[0]!r}?)" if match else ""


def counted(number: int, noun: str) -> str:
    """Write a count with its noun: 1 run, 2 runs."""
    return f"{number} {noun if number == 1 else plural(noun)}"


def plural(noun: str) -> str:
    """Return the plural of a noun, or of a product: runs, combinations of D × A."""
    return f"combinations of {noun}" if " × " in noun else f"{noun}s"


def listed(names: Sequence[str], most: int) -> str:
    """Join the first names, and count the rest: "a, b and 3 more"."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def are(number: int) -> str:
    """Return the verb for a count: 1 term is, 2 terms are."""
    return "is" if number == 1 else "are"


def were(number: int) -> str:
    """Return the verb for a count: 1 run was, 2 runs were."""
    return "was" if number == 1 else "were"


def short(value: object) -> str:
    """Format a value for an error message."""
    try:
        text = repr(value) if not isinstance(value, bool) else str(value).lower()
    except (ValueError, RecursionError):  # an integer of thousands of digits, or deep nesting
        return "a value too large to print"
    return text if len(text) <= 60 else text[:57] + "..."


_COLOURS = re.compile(r"\x1b\[[0-9;:]*m")
_CONTROLS = {
    **{code: 0x2400 + code for code in range(0x20) if chr(code) not in "\t\n\r"},
    0x7F: 0x2421,
    **dict.fromkeys((*range(0x80, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A)), 0xFFFD),
}
_RETURN = re.compile(r"\r(?!\n)")


def visible(text: str, returns: bool = False) -> str:
    """Make a text safe for a terminal: drop colours, show other control characters as signs.

    `returns` keeps carriage returns, by which a bar is drawn again.
    """
    shown = _COLOURS.sub("", text).translate(_CONTROLS)
    return shown if returns else _RETURN.sub("\u240d", shown)
