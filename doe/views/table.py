"""The one table model, which terminal, LaTeX, CSV and HTML render: columns, raw values, notes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, NamedTuple

from doe.errors import counted
from doe.numbers import Format, Value

Mark = Literal["best", "good", "bad", "strong"]
RowStyle = Literal["plain", "baseline", "section", "total"]


class Column(NamedTuple):
    """A column: how its raw values are written, and what gives way on a narrow screen."""

    key: str
    title: str
    format: Format = "text"
    keep: bool = True
    """Stays at every width; one that is False is left out where the table does not fit."""

    @property
    def numeric(self) -> bool:
        """Whether cells align right."""
        return self.format not in ("text", "stars", "bar")


class Row(NamedTuple):
    """Raw values, one per column; a section row has its heading alone."""

    values: tuple[Value, ...]
    style: RowStyle = "plain"
    marks: Mapping[str, Mark] = {}
    """Column key -> what to say about that cell: best of its column, helps, harms."""


class Table(NamedTuple):
    """A table of results, free of any rendering."""

    name: str
    """Short name, used for files and labels."""
    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    essence: bool = False
    """Whether rows whose first cell is marked are all that one would print."""

    @property
    def data_rows(self) -> tuple[Row, ...]:
        """Rows that are not section headings."""
        return tuple(row for row in self.rows if row.style != "section")

    def first(self, most: int, file: str) -> Table:
        """Return its first rows, with a note that says which file holds the others."""
        if len(self.rows) <= most:
            return self
        note = f"{most} of {len(self.rows)} rows; all of them are in {file}."
        return self._replace(rows=self.rows[:most], notes=(*self.notes, note))


def rows_of(
    columns: tuple[Column, ...],
    items: Iterable[Any],
    marks: Callable[[Any], Mapping[str, Mark]] | None = None,
    **cells: Callable[[Any], Value],
) -> tuple[Row, ...]:
    """Return a row per item: what `cells` compute for a column's key, else its attribute of that
    name.

    A column of stars shows the p value of the item.
    """
    known = {"stars": lambda item: starred(item.p), **cells}

    def row(item: Any) -> Row:
        keys = (column.key for column in columns)
        values = (known[key](item) if key in known else getattr(item, key) for key in keys)
        return Row(tuple(values), marks={} if marks is None else marks(item))

    return tuple(map(row, items))


def starred(p: float | None) -> float | str:
    """Return a p value in a column of stars, which stays empty where there is none."""
    return "" if p is None else p


def slug(name: str) -> str:
    """Return a name for files and labels: lower-case letters, digits and hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "table"


def significant_rows(table: Table, alpha: float) -> Table:
    """Return the rows of terms that are significant after Holm's adjustment, and all that are not
    terms.

    Of a table whose marks are its essence the marked rows; one without either stays whole.
    """
    keys = [column.key for column in table.columns]
    at = keys.index("p_holm") if "p_holm" in keys else None
    if at is None and not table.essence:
        return table

    def stays(row: Row) -> bool:
        if at is None:
            return keys[0] in row.marks
        p = None if row.style == "section" else row.values[at]
        return not isinstance(p, float) or p <= alpha

    kept = tuple(row for row in table.rows if stays(row))
    left_out = len(table.rows) - len(kept)
    what = "row" if at is None else "term"
    verb = "is" if left_out == 1 else "are"
    why = "marked" if at is None else "significant after Holm's adjustment"
    note = f"Left out: {counted(left_out, what)} that {verb} not {why}."
    return table._replace(rows=kept, notes=(*table.notes, note)) if left_out and kept else table
