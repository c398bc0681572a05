"""Labels: short enough to fit, no two alike, and none over another or over a point."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from doe.terms import BETWEEN, single_letters

CHARACTER, CAPITAL, LINE = 7.2, 8.8, 14.0
"""Widths of characters and height of a line of 12 px text, in pixels, rather too large."""
POINT = 4.0


def text_width(text: str) -> float:
    """Pixels that a label takes, of several lines the longest."""
    lines = text.split("\n")
    return max(sum(CAPITAL if c.isupper() else CHARACTER for c in line) for line in lines)


def wrapped(text: str, room: float) -> str:
    """Return a text in lines that have so many pixels, or one word each."""
    lines = [""]
    for part in text.split(" "):
        longer = f"{lines[-1]} {part}".strip()
        if lines[-1] and text_width(longer) > room:
            lines.append(part)
        else:
            lines[-1] = longer
    return "\n".join(lines)


class Box(NamedTuple):
    """A rectangle in pixels."""

    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other: Box) -> bool:
        """Return whether two rectangles share some area."""
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )


Leader = tuple[tuple[float, float], tuple[float, float]]
"""A line from a point to its label."""


class Placed(NamedTuple):
    """The middle of a label in pixels, and whether it needs a line to its point."""

    point: int
    x: float
    y: float
    led: bool


def place_labels(
    points: Sequence[tuple[float, float]],
    texts: Sequence[str],
    wanted: Sequence[int],
    width: float,
    height: float,
    occupied: Sequence[Box] = (),
) -> list[Placed]:
    """Place the labels of the `wanted` points, the first ones first, one after another.

    A label is tried beside its point, then farther away with a line to it, which crosses no other
    label. The first that finds no room ends the names, so that none is named before a larger one;
    the chart shows the others when pointed at. `occupied` holds other text.
    """
    dots = [Box(x - POINT, y - POINT, x + POINT, y + POINT) for x, y in points]
    taken, names = [*occupied, *dots], list(occupied)
    placed: list[Placed] = []
    leaders: list[Leader] = []
    for i in wanted:
        half, tall = text_width(texts[i]) / 2 + 1, (texts[i].count("\n") + 1) * LINE / 2
        for dx, dy, led in _offsets(half, tall):
            x, y = points[i][0] + dx, points[i][1] + dy
            box = Box(x - half, y - tall, x + half, y + tall)
            inside = box.left >= 0 and box.right <= width and box.top >= 0 and box.bottom <= height
            leader = (points[i], (x - math.copysign(half, dx), y)) if led else None
            if (
                inside
                and not any(box.overlaps(other) for other in taken)
                and not any(_crosses(line, box) for line in leaders)
                and not (leader and any(_crosses(leader, name) for name in names))
            ):
                taken.append(box)
                names.append(box)
                leaders += [leader] if leader else []
                placed.append(Placed(i, x, y, led))
                break
        else:
            break
    return placed


def _crosses(line: Leader, box: Box) -> bool:
    """Return whether a line runs through a rectangle (Liang and Barsky)."""
    (x, y), (to_x, to_y) = line
    enter, leave = 0.0, 1.0
    for start, step, low, high in (
        (x, to_x - x, box.left, box.right),
        (y, to_y - y, box.top, box.bottom),
    ):
        if step == 0:
            if not low < start < high:
                return False
            continue
        ends = sorted(((low - start) / step, (high - start) / step))
        enter, leave = max(enter, ends[0]), min(leave, ends[1])
    return enter < leave


def _offsets(half: float, tall: float) -> Iterator[tuple[float, float, bool]]:
    beside = half + POINT + 1
    above = tall + POINT + 1
    yield from ((-beside, 0.0, False), (beside, 0.0, False))
    yield from ((0.0, -above, False), (0.0, above, False))
    for far in (12.0, 22.0, 34.0, 46.0, 60.0, 76.0, 94.0):
        yield from ((-beside - far, 0.0, True), (beside + far, 0.0, True))
        yield from ((-beside - far, -far, True), (beside + far, far, True))
        yield from ((beside + far, -far, True), (-beside - far, far, True))


# Short names --------------------------------------------------------------------------------------


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


def row_labels(terms: Sequence[str], keys: Sequence[str]) -> dict[str, str]:
    """Term -> its text beside a row, in lines; only terms of three factors and more are cut."""
    short = term_labels(terms, keys)
    whole = {term: term if term.count(":") < 2 else short[term] for term in terms}
    return {term: in_lines(text, TERM, ":") for term, text in whole.items()}


def in_lines(text: str, most: int, after: str) -> str:
    """Return a text in as many lines of so many letters as it needs, broken after a mark alone."""
    lines = [""]
    for part in re.split(f"(?<={re.escape(after)})", text):
        if lines[-1] and len(lines[-1] + part.rstrip()) > most:
            lines.append("")
        lines[-1] += part
    return "\n".join(line.strip() for line in lines)


def lines_height(labels: Iterable[str]) -> float:
    """Pixels by which a row is taller whose label has several lines."""
    return LINE * max((label.count("\n") for label in labels), default=0)


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
