"""Compact plots in characters, for the terminal: half-normal, and prediction variance."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from doe.analysis.analyze import Analysis
from doe.analysis.lenth import Lenth
from doe.errors import plural
from doe.numbers import cell_text
from doe.views.words import effect_on

HEIGHT = 14
LEFT = 6
"""Columns for the numbers of the y axis."""
WIDEST = 92
INERT, ACTIVE = "·", "●"


def half_normal(analysis: Analysis, width: int) -> RenderableType | None:
    """|effect| on x and half-normal quantile on y, with the margins and names of what stands out.

    One for each stratum. None where there are too few effects for Lenth's method.
    """
    plots = [
        _plot(analysis, part.lenth, width, part.stratum)
        for part in analysis.half_normal.strata
        if part.lenth is not None
    ]
    return Group(*plots) if plots else None


def _plot(analysis: Analysis, lenth: Lenth, width: int, stratum: str) -> RenderableType:
    columns = min(width, WIDEST) - LEFT - 1
    right = 1.04 * max(lenth.points[-1].magnitude, lenth.sme)
    top = 1.02 * lenth.points[-1].quantile
    canvas = [[" "] * columns for _ in range(HEIGHT)]
    _draw_margins(canvas, lenth, right)
    _draw_points(canvas, lenth, right, top)
    lines = [
        Text(f"{_tick(i, top):>{LEFT - 1}} │{''.join(row).rstrip()}")
        for i, row in enumerate(canvas)
    ]
    axis = Text(" " * LEFT + "└" + "─" * (columns - 1))
    end = cell_text(right, "num")
    numbers = Text(" " * LEFT + "0" + f"{end:>{columns - 1}}")
    between = f" between {plural(stratum)}" if stratum else ""
    title = f"Half-normal plot of |effect| on {effect_on(analysis)}{between}"
    note = (
        f"{ACTIVE} beyond ME = {cell_text(lenth.me, 'num')} (┊), "
        f"SME = {cell_text(lenth.sme, 'num')} (┆); y: half-normal quantile"
    )
    body = Group(Text(title, style="bold"), *lines, axis, numbers, Text(note, style="dim"))
    return Padding(body, (0, 0, 1, 0), expand=False)


def variance_plot(profile: Sequence[float], width: int) -> RenderableType:
    """Draw the prediction variance per variance of a run over the shares of the region below it."""
    columns = min(width, WIDEST) - LEFT - 1
    top = 1.02 * profile[-1]
    canvas = [[" "] * columns for _ in range(HEIGHT)]
    for x in range(columns):
        value = profile[round(x / (columns - 1) * (len(profile) - 1))]
        canvas[HEIGHT - 1 - _position(value / top, HEIGHT)][x] = ACTIVE
    lines = [
        Text(f"{_level(i, top):>{LEFT - 1}} │{''.join(row).rstrip()}")
        for i, row in enumerate(canvas)
    ]
    axis = Text(" " * LEFT + "└" + "─" * (columns - 1))
    numbers = Text(" " * LEFT + "0" + f"{'100 % of what may run':>{columns - 1}}")
    title = Text("Prediction variance per variance of a run", style="bold")
    return Padding(Group(title, *lines, axis, numbers), (0, 0, 1, 0), expand=False)


def _level(line: int, top: float) -> str:
    """Return the value at a line, on every fourth one."""
    return cell_text(top * (HEIGHT - 1 - line) / (HEIGHT - 1), "fixed2") if line % 4 == 1 else ""


def _tick(line: int, top: float) -> str:
    """Return the quantile at a line, on every fourth one."""
    return cell_text(top * (HEIGHT - 1 - line) / (HEIGHT - 1), "fixed1") if line % 4 == 1 else ""


def _draw_margins(canvas: list[list[str]], lenth: Lenth, right: float) -> None:
    for margin, mark in ((lenth.sme, "┆"), (lenth.me, "┊")):
        x = _position(margin / right, len(canvas[0]))
        for row in canvas:
            row[x] = mark


def _draw_points(canvas: list[list[str]], lenth: Lenth, right: float, top: float) -> None:
    """Draw points first, then the names of the active ones, the largest first, where there is
    room.
    """
    active_points = []
    for point in lenth.points:
        x = _position(point.magnitude / right, len(canvas[0]))
        y = HEIGHT - 1 - _position(point.quantile / top, HEIGHT)
        active = point.magnitude > lenth.me
        canvas[y][x] = ACTIVE if active else canvas[y][x] if canvas[y][x] == ACTIVE else INERT
        if active:
            active_points.append((x, y, point.term))
    for x, y, term in reversed(active_points):
        for start in (x + 2, x - 1 - len(term)):
            cells = range(start - 1, start + len(term) + 1)
            if start >= 0 and start + len(term) <= len(canvas[0]) and _free(canvas[y], cells, x):
                canvas[y][start : start + len(term)] = term
                break


def _free(row: list[str], cells: range, point: int) -> bool:
    """Return whether a name fits: nothing stands there but margins and its own point."""
    return all(i == point or not 0 <= i < len(row) or row[i] in " ┊┆" for i in cells)


def _position(share: float, size: int) -> int:
    """Return a share of an axis as one of `size` places."""
    return min(max(round(share * (size - 1)), 0), size - 1)
