"""A table of results from a file: its encoding, separator and decimal sign, and who exported it."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from doe.errors import DoeError
from doe.results.foreign_tables import recognised

if TYPE_CHECKING:
    import pandas as pd

Say = Callable[[str], None]
"""Told what was recognised, a sentence at a time."""

MOST_CHARACTERS = csv.field_size_limit()
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
WITH_COMMA = re.compile(r"[<>≤≥]?\s*[-+]?(\d*,\d+)([eE][-+]?\d+)?")
WITH_POINT = re.compile(r"[<>≤≥]?\s*[-+]?(\d*\.\d+)([eE][-+]?\d+)?")
THOUSANDS = re.compile(r"[<>≤≥]?\s*[-+]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?")
WHOLE = re.compile(r"[<>≤≥]?\s*[-+]?\d+([eE][-+]?\d+)?")


def read_table(path: Path, say: Say, decimal: str | None = None) -> pd.DataFrame:
    """Read a CSV file as text: what a cell means is decided later, not by a parser's guess.

    Separators other than commas, decimal commas, Latin-1 and UTF-16 are recognised, and so are the
    exports of W&B, MLflow and Optuna, whose columns get the plain names of their parameters and
    metrics. `decimal` says what a comma in a number is: "," decimal, "." between thousands.

    Raises
    ------
    DoeError
        If the file cannot be read, is not a table, has two columns of one name, or numbers such as
        1,200 that may be either.
    """
    import pandas as pd

    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise DoeError(f"there is no table {path}") from None
    except OSError as error:
        raise DoeError(f"{path} cannot be read: {error.strerror or error}") from None
    text, encoding = decoded(raw)
    separator = separator_of(text)
    names, rows = _cells(path, text, separator)
    if decimal not in (None, ",", "."):
        raise DoeError(f"decimal {decimal!r}: expected , or .")
    commas = [] if decimal == "." else _decimal_points(names, rows, path, decimal == ",")
    thousands = _without_thousands(names, rows) if decimal == "." else []
    unusual = [encoding] if encoding != "UTF-8" else []
    unusual += [f"separated by {SEPARATORS[separator]}"] if separator != "," else []
    unusual += [f"decimal commas in {', '.join(commas)}"] if commas else []
    unusual += [f"commas between thousands in {', '.join(thousands)}"] if thousands else []
    if unusual:
        say(f"{path.name} was read as: {', '.join(unusual)}")
    frame = pd.DataFrame(rows, columns=pd.Index(names), dtype=str)
    return recognised(frame, path, say)


def decoded(raw: bytes) -> tuple[str, str]:
    """Return the text of a file, and its encoding by name."""
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        return raw.decode("utf-16", errors="replace"), "UTF-16"
    start = raw[:4096]
    if start.count(0) > len(start) // 4:  # Latin letters in UTF-16 have a zero each
        low_first = start[1::2].count(0) >= start[::2].count(0)
        return raw.decode("utf-16-le" if low_first else "utf-16-be", errors="replace"), "UTF-16"
    try:
        return raw.decode("utf-8-sig"), "UTF-8"
    except UnicodeDecodeError:
        return raw.decode("cp1252", errors="replace"), "Latin-1"


def separator_of(text: str) -> str:
    """Return what separates the cells of the header: the sign that gives the most of them."""
    header = re.split("[\r\n]", text.lstrip("\r\n"), maxsplit=1)[0][:MOST_CHARACTERS]

    def cells(separator: str) -> int:
        return len(next(csv.reader([header], delimiter=separator), []))

    return max(SEPARATORS, key=cells)  # the first of equals, so a single column has commas


def _cells(path: Path, text: str, separator: str) -> tuple[list[str], list[list[str]]]:
    reader = csv.reader(
        io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True, strict=True
    )
    rows: list[list[str]] = []
    try:
        for row in reader:
            if rows and row and len(row) != len(rows[0]):
                raise DoeError(
                    f"{path} is not a CSV table: line {reader.line_num} has {len(row)} cells and "
                    f"its header {len(rows[0])}; put a cell that holds a separator into quotes"
                )
            rows += [[cell.strip() for cell in row]] if row else []
    except csv.Error as error:
        raise DoeError(f"{path} is not a CSV table: {error} in line {reader.line_num}") from None
    if not rows or not any(rows[0]):
        raise DoeError(f"{path} is not a CSV table: it is empty")
    names = rows.pop(0)
    if names.count("") > 1:
        names = [name or f"column {i}" for i, name in enumerate(names, start=1)]
    if twice := [name for name in names if name and names.count(name) > 1]:
        raise DoeError(
            f"{path} has {names.count(twice[0])} columns named {twice[0]!r}; rename all but one"
        )
    if not rows:
        raise DoeError(f"{path} has no rows below its header")
    return names, rows


def _decimal_points(
    names: Sequence[str], rows: list[list[str]], path: Path, certain: bool
) -> list[str]:
    """Write decimal commas as points; return the columns that had them.

    A column has them where all its cells are numbers and some have a comma. Where each of those
    cells may as well be thousands, and no other column of the table tells, it is refused.
    """
    columns = {}
    for i, name in enumerate(names):
        cells = [row[i] for row in rows if row[i]]
        commas = [cell for cell in cells if WITH_COMMA.fullmatch(cell)]
        points = [cell for cell in cells if WITH_POINT.fullmatch(cell)]
        if not commas or len(commas) + len(points) + _count(WHOLE, cells) < len(cells):
            continue
        if points:
            raise DoeError(
                f"{path}: column {name!r} holds both {commas[0]} and {points[0]}; write all "
                "numbers with the same decimal sign, or, where commas separate thousands, set "
                "decimal to ."
            )
        columns[i] = commas
    certain |= any(_count(THOUSANDS, commas) < len(commas) for commas in columns.values())
    for i, commas in columns.items():
        if not certain:
            number = commas[0]
            raise DoeError(
                f"{path}: {number} in column {names[i]!r} may be {number.replace(',', '.')} or "
                f"{number.replace(',', '')}; set decimal to , or, where commas separate "
                "thousands, to ."
            )
        for row in rows:
            row[i] = row[i].replace(",", ".")
    return [names[i] for i in columns]


def _without_thousands(names: Sequence[str], rows: list[list[str]]) -> list[str]:
    """Take commas between thousands out of numbers; return the columns that had them."""
    columns = []
    for i, name in enumerate(names):
        if any(THOUSANDS.fullmatch(row[i]) for row in rows):
            columns.append(name)
            for row in rows:
                row[i] = row[i].replace(",", "") if THOUSANDS.fullmatch(row[i]) else row[i]
    return columns


def _count(pattern: re.Pattern[str], cells: Iterable[str]) -> int:
    return sum(pattern.fullmatch(cell) is not None for cell in cells)
