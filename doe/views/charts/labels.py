"""Where the labels of points go, so that none covers another or a point."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

CHARACTER, CAPITAL, LINE = 7.2, 8.8, 14.0
"""Widths of characters and height of a line of 12 px text, in pixels, rather too large."""
POINT = 4.0


def text_width(text: str) -> float:
    """Pixels that a label takes."""
    return sum(CAPITAL if character.isupper() else CHARACTER for character in text)


class Box(NamedTuple):
    """A rectangle in pixels."""

    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other: Box) -> bool:
        """Whether two rectangles share some area."""
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
        half = text_width(texts[i]) / 2 + 1
        for dx, dy, led in _offsets(half):
            x, y = points[i][0] + dx, points[i][1] + dy
            box = Box(x - half, y - LINE / 2, x + half, y + LINE / 2)
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
    """Whether a line runs through a rectangle (Liang and Barsky)."""
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


def _offsets(half: float) -> Iterator[tuple[float, float, bool]]:
    beside = half + POINT + 1
    above = LINE / 2 + POINT + 1
    yield from ((-beside, 0.0, False), (beside, 0.0, False))
    yield from ((0.0, -above, False), (0.0, above, False))
    for far in (12.0, 22.0, 34.0, 46.0, 60.0, 76.0, 94.0):
        yield from ((-beside - far, 0.0, True), (beside + far, 0.0, True))
        yield from ((-beside - far, -far, True), (beside + far, far, True))
        yield from ((beside + far, -far, True), (-beside - far, far, True))
