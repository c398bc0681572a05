"""Tables on the terminal, drawn with rich; nothing here rounds or computes statistics."""

from __future__ import annotations

import json
import math
import os
import re
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table as RichTable
from rich.text import Text

from doe.errors import counted, visible
from doe.numbers import Value, cell_text
from doe.views.table import Column, Row, Table

if TYPE_CHECKING:
    from doe.analysis.analyze import Analysis

BAR_WIDTH = 12
BETTER, WORSE = "#2F7FC1", "#E0752A"
"""The page's pair of colours, in tones that stand out from a light and from a dark ground."""
MARK_STYLES = {"best": "bold underline", "good": BETTER, "bad": WORSE, "strong": "bold"}
ROW_STYLES = {"plain": "", "baseline": "italic", "total": "dim", "section": "bold"}


def _visible_segment(segment: Segment) -> Segment:
    """Return a segment whose control characters, unless the console made them, are signs."""
    return segment if segment.control is not None else segment._replace(text=visible(segment.text))


class _Screen(Console):
    """Standard output."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Draw; control characters in what is drawn are shown on a terminal and not obeyed."""
        segments = super().render(renderable, options)
        return map(_visible_segment, segments) if self.is_terminal else segments

    def on_broken_pipe(self) -> None:
        """Discard the rest once the reader has left, as `head` does; no run ends for that."""
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def console() -> Console:
    """Return a console on standard output; plain when piped or where NO_COLOR is set."""
    return _Screen(highlight=False, file=getattr(sys.stdout, "plain", None))


def print_table(table: Table, screen: Console | None = None) -> None:
    """Print a table within the console's width."""
    screen = console() if screen is None else screen
    screen.print(render_table(table, screen.width))


def print_sentences(analysis: Analysis, screen: Console, command: str = "doe analyze") -> None:
    """Print what a response says: effects, the best configuration, caveats, what to try."""
    from doe.views.headlines import headlines  # statistics, which other commands do without
    from doe.views.words import quantity

    lines = headlines(analysis, " --table " not in command)
    sections = [
        ("", lines.effects),
        ("Best configuration", (lines.best,)),
        ("Next", (lines.next,) if lines.next else ()),
        ("Caveats", lines.fragile),
        ("Try", tuple(f"{command} --response {analysis.response} {o}" for o in lines.options)),
    ]
    goal = f", goal {analysis.goal}" if analysis.goal else ""
    title = f"{quantity(analysis)}: {counted(analysis.n, 'run')}{goal}"
    screen.print(Text(title, style="bold"))
    for heading, sentences in sections:
        print_list(heading, sentences, screen)
    screen.print()


def print_list(heading: str, sentences: Sequence[str], screen: Console) -> None:
    """Print sentences as a list below their heading."""
    if heading and sentences:
        screen.print(Text(heading, style="bold"))
    for sentence in sentences:
        line = RichTable.grid(padding=(0, 1, 0, 0))
        line.add_row(Text("•"), Text(sentence))
        screen.print(line)


def print_json(value: Any) -> None:
    """Print a machine-readable answer: one JSON document and nothing else."""
    print(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))


def render_table(table: Table, width: int) -> RenderableType:
    """Draw a table; columns marked as giving way are left out, and named, where it is narrow."""
    columns, hidden = _fitting(table, width)
    drawn = RichTable(
        title=Text(table.title, style="bold"),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
        header_style="bold",
    )
    for column in columns:
        drawn.add_column(
            column.title,
            justify="right" if column.numeric else "left",
            no_wrap=column.format != "text",
            min_width=_column_width(table, column) if column.numeric else None,
            overflow="fold",
        )
    scales = {column.key: _scale(table, column) for column in columns}
    room = width - _width(table, columns) + max(_column_width(table, c) for c in columns)
    for row in table.rows:
        if row.style == "section":
            drawn.add_row(*_section(columns, str(row.values[0])))
            continue
        values = dict(zip((c.key for c in table.columns), row.values, strict=True))
        cells = [_cell(values[c.key], c, row, scales[c.key], room) for c in columns]
        drawn.add_row(*cells, style=ROW_STYLES[row.style])
    notes = list(table.notes)
    if titles := [column.title for column in hidden if column.title]:
        notes.append(f"Wider than this screen: {', '.join(titles)} not shown.")
    lines = [Text(note, style="dim") for note in notes]
    return Padding(Group(drawn, *lines), (0, 0, 1, 0), expand=False)


def _section(columns: Sequence[Column], heading: str) -> list[Text]:
    """Return a heading in the first column of text, which is wide enough for it."""
    text_column = next((i for i, column in enumerate(columns) if not column.numeric), 0)
    return [Text("")] * text_column + [Text(heading, style=ROW_STYLES["section"])]


def _cell(value: Value, column: Column, row: Row, scale: tuple[float, bool], room: int) -> Text:
    style = MARK_STYLES.get(row.marks.get(column.key, ""), "")
    if column.format == "bar" and isinstance(value, (int, float)):
        return Text(bar(float(value), *scale), style=style)
    text = cell_text(value, column.format)
    return Text(_broken(text, room) if column.format == "text" else text, style=style)


def _broken(text: str, room: int) -> str:
    """Return a term or configuration on several lines, whole factors on each: never cut, so that no
    two look alike.
    """
    lines = [""]
    for item in re.split(r"(?<=, )", text):
        parts = [item] if len(item) <= room else re.split(r"(?<=[,:])(?=\S)|(?<= · )", item)
        for part in parts:
            if lines[-1] and len(lines[-1] + part.rstrip()) > room:
                lines.append("")
            lines[-1] += part
    return "\n".join(line.rstrip() for line in lines)


def bar(value: float, largest: float, both: bool = False) -> str:
    """Return a horizontal bar, its length |value| relative to `largest`; to both sides of zero if
    asked.

    One to the right is drawn in eighths of a character, one to the left in halves.
    """
    width = BAR_WIDTH // 2 if both else BAR_WIDTH
    part = min(abs(value) / largest, 1.0) if 0 < largest < math.inf else 0.0
    full, rest = divmod(round(8 * width * part), 8)
    right = "█" * full + ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")[rest]
    if not both:
        return right
    left = ("▐" if 2 < rest < 7 else "") + "█" * (full + (rest > 6))
    return f"{left:>{width}}│" if value < 0 else f"{'':{width}}│{right}"


def _scale(table: Table, column: Column) -> tuple[float, bool]:
    """Return the largest size of a column's numbers, and whether one of them is below zero."""
    i = table.columns.index(column)
    values = [float(v) for row in table.data_rows if isinstance(v := row.values[i], (int, float))]
    return max(map(abs, values), default=0.0), min(values, default=0.0) < 0


def _fitting(table: Table, width: int) -> tuple[Sequence[Column], Sequence[Column]]:
    """Columns that fit, and those left out: the last ones that may give way go first."""
    columns, hidden = list(table.columns), list[Column]()
    while _width(table, columns) > width and (loose := [c for c in columns if not c.keep]):
        columns.remove(loose[-1])
        hidden.insert(0, loose[-1])
    return columns, hidden


def _width(table: Table, columns: Sequence[Column]) -> int:
    return sum(_column_width(table, c) + 3 for c in columns) - 3


def _column_width(table: Table, column: Column) -> int:
    if column.format == "bar":
        return max(BAR_WIDTH, len(column.title))
    i = table.columns.index(column)
    cells = (len(cell_text(row.values[i], column.format)) for row in table.data_rows)
    return max(len(column.title), *cells, 0)
