"""Tables as CSV: the raw values, unrounded, one line per row."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence

from doe.numbers import Spread, Value, cell_text
from doe.views.table import Column, Table

SPREADS = ("spread1", "spread2", "capped")
"""Formats of a mean with its spread."""


def render(table: Table) -> str:
    """Write a table as CSV with the column keys as header.

    A missing value is empty, a mean with its spread takes two columns, `key` and `key_std`, and a
    section heading becomes the first column of the rows below it. Bars repeat a number of the same
    row and are left out.
    """
    header, rows = _lines(table)
    return _written([header, *rows])


def render_all(tables: Sequence[Table]) -> str:
    """Write several tables as one CSV: all columns of all tables, and which table a row is of.

    A single table is written as `render` does, behind the column `table`.
    """
    parts = [(table.name, *_lines(table)) for table in tables]
    keys = list(dict.fromkeys(key for _, header, _ in parts for key in header))
    lines = [["table", *keys]]
    for name, header, rows in parts:
        for row in rows:
            cells = dict(zip(header, row, strict=True))
            lines.append([name, *(cells.get(key, "") for key in keys)])
    return _written(lines)


def _lines(table: Table) -> tuple[list[str], list[list[str]]]:
    """Return the header of a table and its rows as cells of a file."""
    sections = any(row.style == "section" for row in table.rows)
    header = [key for column in table.columns for key in _keys(column)]
    rows, section = [], ""
    for row in table.rows:
        if row.style == "section":
            section = str(row.values[0])
            continue
        cells = [
            cell
            for column, value in zip(table.columns, row.values, strict=True)
            for cell in _cells(column, value)
        ]
        rows.append([section, *cells] if sections else cells)
    return (["section", *header] if sections else header), rows


def _written(lines: Iterable[Sequence[str]]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(lines)
    return out.getvalue()


def _keys(column: Column) -> tuple[str, ...]:
    if column.format == "bar":
        return ()
    if column.format in SPREADS:
        return (column.key, f"{column.key}_std")
    return (column.key,)


def _cells(column: Column, value: Value) -> tuple[str, ...]:
    if column.format in SPREADS:
        mean, std = value if isinstance(value, Spread) else (None, None)
        return (_raw(mean), _raw(std))
    assert not isinstance(value, Spread)
    if column.format == "bar":
        return ()
    if column.format == "stars":
        return (cell_text(value, "stars") if isinstance(value, float) else "",)
    return (_raw(value),)


def _raw(value: str | int | float | bool | None) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, float) else str(value)
