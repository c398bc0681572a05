"""Names where room is scarce: cut so that they fit, and so that no two look alike."""

from __future__ import annotations

from collections.abc import Sequence

from doe.terms import BETWEEN, single_letters

LEAST = 4
"""Letters that a name keeps however little room there is."""
TERM, CONFIG = 28, 40
"""Letters of a term and of a configuration beside a chart."""


def abbreviated(names: Sequence[str], most: int) -> dict[str, str]:
    """Name -> its first letters, more than `most` only where two names would look alike."""
    return {name: _distinct(name, names, most) for name in names}


def _distinct(name: str, names: Sequence[str], most: int) -> str:
    letters = most
    while any(_cut(name, letters) == _cut(other, letters) for other in names if other != name):
        letters += 1
    return _cut(name, letters)


def _cut(name: str, letters: int) -> str:
    return name if len(name) <= letters else f"{name[: letters - 1]}…"


def room_for_each(lengths: Sequence[int], room: int) -> int:
    """Letters that each of some names may have, so that all of them fit: long ones give way."""
    rooms = range(max(lengths, default=LEAST), LEAST, -1)
    return next((m for m in rooms if sum(min(n, m) for n in lengths) <= room), LEAST)


def term_labels(terms: Sequence[str], keys: Sequence[str]) -> dict[str, str]:
    """Term -> its text beside a chart: "learning…:label_smo…"."""
    if single_letters(keys):
        return {term: term for term in terms}
    labels = {}
    for term in terms:
        parts = term.split(":")
        short = abbreviated(keys, room_for_each([*map(len, parts)], TERM - len(parts) + 1))
        labels[term] = ":".join(short.get(part, part) for part in parts)
    return labels


def config_labels(configs: Sequence[str]) -> dict[str, str]:
    """Configuration -> its text beside a chart: "0.01 · randa… · adamw"."""
    rows = [config.split(BETWEEN) for config in configs]
    if len({len(row) for row in rows}) > 1:  # a centre run has no levels
        return {config: config for config in configs}
    levels = [list(dict.fromkeys(column)) for column in zip(*rows, strict=True)]
    longest = [max(map(len, column)) for column in levels]
    most = room_for_each(longest, CONFIG - 3 * (len(levels) - 1))
    short = [abbreviated(column, most) for column in levels]
    return {
        config: BETWEEN.join(names[level] for names, level in zip(short, row, strict=True))
        for config, row in zip(configs, rows, strict=True)
    }
