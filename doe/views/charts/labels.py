"""Where the labels of points go, so that none covers another or a point."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

CHARACTER, CAPITAL, LINE = 6.2, 7.3, 12.0
"""Widths of characters and height of a line of 10 px text, in pixels, rather too large."""
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

    A label is tried beside its point, then farther away with a line to it; one that finds no room
    is left out, since the chart shows it when pointed at. `occupied` holds other text.
    """
    dots = [Box(x - POINT, y - POINT, x + POINT, y + POINT) for x, y in points]
    taken = [*occupied, *dots]
    placed = []
    for i in wanted:
        half = text_width(texts[i]) / 2 + 1
        for dx, dy, led in _offsets(half):
            x, y = points[i][0] + dx, points[i][1] + dy
            box = Box(x - half, y - LINE / 2, x + half, y + LINE / 2)
            inside = box.left >= 0 and box.right <= width and box.top >= 0 and box.bottom <= height
            if inside and not any(box.overlaps(other) for other in taken):
                taken.append(box)
                placed.append(Placed(i, x, y, led))
                break
    return placed


def _offsets(half: float) -> Iterator[tuple[float, float, bool]]:
    beside = half + POINT + 1
    above = LINE / 2 + POINT + 1
    yield from ((-beside, 0.0, False), (beside, 0.0, False))
    yield from ((0.0, -above, False), (0.0, above, False))
    for far in (12.0, 22.0, 34.0, 46.0, 60.0):
        yield from ((-beside - far, 0.0, True), (beside + far, 0.0, True))
        yield from ((-beside - far, -far, True), (beside + far, far, True))
        yield from ((beside + far, -far, True), (-beside - far, far, True))
