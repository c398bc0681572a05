"""Numbers in the files that programs write: JSON, rows of a CSV, TensorBoard, W&B, MLflow."""

from __future__ import annotations

import csv
import json
import os
import sqlite3
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from doe.errors import DoeError

STEP_COLUMNS = ("step", "global_step", "_step", "iteration", "iter", "epoch", "Step", "Epoch")
ROWS = (".csv", ".tsv", ".jsonl")
MLRUNS = "mlruns"
"""MLflow's file store, a directory; its other store is an SQLite database."""

Stamps = dict[Path, tuple[int, int]]
"""Time and size of files."""
Series = list[tuple[float, Any]]
"""Values with their steps."""


class NumberSource(NamedTuple):
    """A source of named numbers."""

    file: str
    names: tuple[str, ...]
    series: Callable[[str], Series]
    """Returns the values of a name, or raises KeyError."""
    extra: Mapping[str, Any] = {}
    """Numbers that are included without being requested."""


def stamp(path: Path) -> tuple[int, int]:
    """Return time and size of a file, or of all in a directory, to detect changes."""
    if path.is_dir():
        stamps = [stamp(inner) for inner in path.rglob("*") if inner.is_file()]
        return max((time for time, _ in stamps), default=0), sum(size for _, size in stamps)
    stat = path.stat()
    return stat.st_mtime_ns, stat.st_size


def matching(root: Path, pattern: str) -> list[Path]:
    """Return the files that match a pattern, the latest at the end."""
    paths = [path for path in root.glob(pattern) if path.is_file() or path.name == MLRUNS]
    return sorted(paths, key=os.path.getmtime)


def read_source(paths: Sequence[Path], root: Path) -> NumberSource:
    """Read the latest file; of TensorBoard, all of them."""
    path = paths[-1]
    file = str(path.relative_to(root))
    try:
        if "tfevents" in path.name:
            return _curves(tensorboard_curves(paths), file)
        if path.suffix == ".wandb":
            return _curves(wandb_curves(path), file)
        if path.name == MLRUNS:
            return _curves(_mlflow_files(path), file)
        if path.suffix == ".db":
            return _curves(_mlflow_database(path), file)
        if path.suffix.lower() in ROWS:
            return _curves(row_curves(read_rows(path)), file)
        return _document(path, file)
    except UnicodeDecodeError as error:
        raise DoeError(f"{file} is not UTF-8 text: byte {error.start}") from None
    except OSError as error:
        raise DoeError(f"cannot read {file}: {error.strerror}") from error
    except sqlite3.Error as error:
        raise DoeError(f"{file} is not a database of MLflow: {error}") from None


def _curves(curves: Curves, file: str) -> NumberSource:
    return NumberSource(file, tuple(curves), curves.__getitem__)


# Documents --------------------------------------------------------------------------------------


def _document(path: Path, file: str) -> NumberSource:
    try:
        tree = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, RecursionError) as error:
        raise DoeError(f"{file} is not JSON: {error}") from None
    if isinstance(tree, list) and tree and all(isinstance(row, dict) for row in tree):
        return _curves(row_curves(tree), file)
    if not isinstance(tree, dict):
        raise DoeError(f"{file} is not a JSON object but {brief(tree)}")
    plain = {
        key: value
        for key, value in tree.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool)
    }
    return NumberSource(file, tuple(_leaves(tree)), lambda key: _values(tree, key), plain)


def _values(tree: object, key: str) -> Series:
    """Return the values of a document under a key: one value, or a list such as a history."""
    value = _lookup(tree, key)
    values = value if isinstance(value, list) and value else [value]
    return list(enumerate(values))


def _lookup(tree: object, key: str) -> object:
    """Return the value under a key; a dot may be part of a key or lead into a nested object."""
    if isinstance(tree, list):
        rows = [row for row in tree if isinstance(row, dict)]
        if held := [row[key] for row in rows if key in row]:
            return held
        tree = {str(i): item for i, item in enumerate(tree)} | ({"-1": tree[-1]} if tree else {})
    if not isinstance(tree, dict):
        raise KeyError(key)
    if key in tree:
        return tree[key]
    for i, letter in enumerate(key):
        if letter == "." and key[:i] in tree:
            try:
                return _lookup(tree[key[:i]], key[i + 1 :])
            except KeyError:
                continue
    raise KeyError(key)


def _leaves(tree: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for key, value in tree.items():
        rows = [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []
        if isinstance(value, dict):
            yield from _leaves(value, f"{prefix}{key}.")
        elif rows:
            yield from dict.fromkeys(f"{prefix}{key}.{name}" for row in rows for name in row)
        else:
            yield f"{prefix}{key}"


def brief(value: object) -> str:
    """Format a value as JSON, truncated if long."""
    text = json.dumps(value, default=str)
    return text if len(text) <= 40 else text[:37] + "..."


# Rows -------------------------------------------------------------------------------------------


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Return rows of a CSV (comma, semicolon or tab) or of JSON lines, as mappings."""
    text = path.read_text(encoding="utf-8-sig")
    if path.suffix.lower() == ".jsonl":
        try:
            rows = [json.loads(line) for line in text.splitlines() if line.strip()]
        except json.JSONDecodeError as error:
            raise DoeError(f"{path.name} contains a line that is not JSON: {error}") from None
        return [row for row in rows if isinstance(row, dict)]
    header = text.partition("\n")[0]
    separator = max(",;\t", key=header.count)
    lines = csv.reader(text.splitlines(), delimiter=separator)
    names = [name.strip() for name in next(lines, [])]
    return [dict(zip(names, line, strict=True)) for line in lines if len(line) == len(names)]


def row_curves(rows: Iterable[Mapping[str, Any]]) -> Curves:
    """Return columns with their steps; loggers leave unchanged cells empty."""
    curves: Curves = {}
    for number, row in enumerate(rows):
        try:
            step = float(
                next(row[name] for name in STEP_COLUMNS if row.get(name) not in (None, ""))
            )
        except (StopIteration, ValueError, TypeError):
            step = number
        for name, value in row.items():
            if value != "":
                curves.setdefault(name, []).append((step, value))
    return curves


# MLflow -----------------------------------------------------------------------------------------


def _mlflow_files(store: Path) -> Curves:
    """Read MLflow's files, `EXPERIMENT/RUN/metrics/NAME`: time, value, step in each line."""
    curves: Curves = {}
    for path in sorted(store.glob("*/*/metrics/**/*"), key=os.path.getmtime):
        if path.is_file():
            rows = [line.split() for line in path.read_text().splitlines() if line.strip()]
            name = "/".join(path.relative_to(store).parts[3:])
            curves[name] = [(float((*row, "0")[2]), row[1]) for row in rows if len(row) > 1]
    return curves


def _mlflow_database(path: Path) -> Curves:
    """Read the metrics of the latest run in MLflow's database."""
    query = """SELECT key, step, value, is_nan FROM metrics WHERE run_uuid =
        (SELECT run_uuid FROM runs ORDER BY start_time DESC LIMIT 1) ORDER BY timestamp, step"""
    curves: Curves = {}
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        for name, step, value, is_nan in connection.execute(query):
            curves.setdefault(name, []).append((step, float("nan") if is_nan else value))
    finally:
        connection.close()
    return curves


# Binary files of TensorBoard and W&B --------------------------------------------------------------


BLOCK_BYTES, HEADER_BYTES = 32768, 7
"""W&B writes the log format of LevelDB: blocks of records with a header each."""
FULL, FIRST, LAST = 1, 2, 4
FLOATS = {1: "f", 2: "d", 3: "i", 9: "q", 19: "e"}
"""Type of a TensorFlow tensor -> that of its bytes."""

Curves = dict[str, list[tuple[float, Any]]]
"""Name -> its values, each with its step."""


def tensorboard_curves(paths: Sequence[Path]) -> Curves:
    """Return the scalars of event files, by tag."""
    curves: Curves = {}
    for path in paths:
        for event in _tensorflow_records(path.read_bytes()):
            parts = dict(_fields(event))
            for _, value in _fields(parts.get(5, b"")):
                entry = dict(_fields(value))
                number = _scalar(entry)
                if number is not None and 1 in entry:
                    step = _signed(parts.get(2, 0))
                    curves.setdefault(entry[1].decode(errors="replace"), []).append((step, number))
    return curves


def wandb_curves(path: Path) -> Curves:
    """Return what a run of W&B logged, and its summary for names that were not logged."""
    curves: Curves = {}
    summary: Curves = {}
    for record in _leveldb_records(path.read_bytes()):
        for kind, body in _fields(record):
            if kind not in (2, 3):  # history, summary
                continue
            items = dict(_items(body))
            step = float(items.get("_step", len(curves)))
            for name, value in items.items():
                if not name.startswith("_") and isinstance(value, (int, float, str)):
                    (curves if kind == 2 else summary).setdefault(name, []).append((step, value))
    return summary | curves


def _items(body: bytes) -> Iterator[tuple[str, Any]]:
    """Yield names and values of a record of history or of a summary."""
    for number, item in _fields(body):
        parts = list(_fields(item)) if number == 1 and isinstance(item, bytes) else []
        names = [value.decode() for key, value in parts if key in (1, 2)]
        for key, value in parts:
            if key == 16 and names:
                yield "/".join(filter(None, names)), json.loads(value)


def _scalar(entry: dict[int, Any]) -> float | None:
    """Return the number of a summary: plain, or a tensor of one element."""
    if 2 in entry:
        return float(struct.unpack("<f", entry[2])[0])
    tensor = dict(_fields(entry.get(8, b"")))
    kind = FLOATS.get(tensor.get(1, 0))
    if kind is None:
        return None
    for field, form in ((4, kind), (5, "f"), (6, "d")):
        raw = tensor.get(field, b"")
        if len(raw) == struct.calcsize(form):
            return float(struct.unpack(f"<{form}", raw)[0])
    return None


# Records ----------------------------------------------------------------------------------------


def _tensorflow_records(data: bytes) -> Iterator[bytes]:
    """Yield length-prefixed records; skip one that is being written."""
    at = 0
    while at + 12 <= len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        if at + 16 + length > len(data):
            return
        yield data[at + 12 : at + 12 + length]
        at += 16 + length


def _leveldb_records(data: bytes) -> Iterator[bytes]:
    at, record = HEADER_BYTES, b""  # the file's own header has the same length
    while at + HEADER_BYTES <= len(data):
        left = BLOCK_BYTES - at % BLOCK_BYTES
        if left < HEADER_BYTES:
            at += left
            continue
        _, length, kind = struct.unpack_from("<IHB", data, at)
        part = data[at + HEADER_BYTES : at + HEADER_BYTES + length]
        at += HEADER_BYTES + length
        record = part if kind in (FULL, FIRST) else record + part
        if kind in (FULL, LAST):
            yield record


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Yield numbers and values of the fields of a message: integers, or bytes."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, at = _varint(data, at)
            yield number, value
            continue
        length = {1: 8, 5: 4}.get(wire)
        if length is None:
            if wire != 2:
                return  # not a message
            length, at = _varint(data, at)
        yield number, data[at : at + length]
        at += length


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data):
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
    return value, at


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value
