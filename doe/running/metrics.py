"""The metrics that a command leaves: in JSON, in the rows of a CSV, in events, in its output."""

from __future__ import annotations

import csv
import json
import math
import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from doe.errors import DoeError, listed, nearest
from doe.store.files import RunDir
from doe.study.command import STDOUT, printed_name, printed_number, printed_pattern
from doe.study.values import MetricsSection

LISTED = 20
"""Names that a message lists at most."""
LAST_LINES = 3
COLOURS = re.compile(r"\x1b\[[\d;]*[A-Za-z]")
"""Codes by which a program colours its output."""

Stamps = dict[Path, tuple[int, int]]
"""Time and size of files."""


class NumberSource(NamedTuple):
    """Something that holds numbers by name."""

    file: str
    names: tuple[str, ...]
    value: Callable[[str], Any]
    """The value of a name; a KeyError where there is none."""
    extra: Mapping[str, Any] = {}
    """Numbers that are taken along without being asked for."""


class Output:
    """Listens to what a command prints for the metrics that are asked of it."""

    def __init__(self, section: MetricsSection, metrics: Iterable[str]) -> None:
        listens = section.file == STDOUT
        names = metrics if listens else ()
        keys = {name: section.keys.get(name, printed_name(name)) for name in names}
        self._patterns = {name: printed_pattern(key) for name, key in keys.items()}
        self.matches: dict[str, str] = {}
        """Metric -> the number as it stood in its last match."""
        self.last: deque[str] = deque(maxlen=LAST_LINES)

    def hear(self, line: str) -> None:
        """Look at one line."""
        plain = COLOURS.sub("", line)
        if plain.strip():
            self.last.append(plain.strip())
        for name, compiled in self._patterns.items():
            for match in compiled.finditer(plain):
                self.matches[name] = match[1]


def files_now(run_dir: Path, section: MetricsSection) -> Stamps:
    """The files of metrics that stand there already, from an earlier attempt."""
    return {path: stamp(path) for path in _left(run_dir, section)}


def read_metrics(
    section: MetricsSection,
    metrics: Iterable[str],
    further: Iterable[str],
    run_dir: Path,
    old: Stamps,
    output: Output,
) -> dict[str, float]:
    """Read what a command left; a number that is absent, NaN or null there is NaN here.

    Raises
    ------
    DoeError
        If a file, key or match is missing; says what was looked for and what was there.
    """
    if section.file == STDOUT:
        return _collect(_printed(output), MetricsSection(), metrics, further)
    paths = [path for path in _left(run_dir, section) if stamp(path) != old.get(path)]
    if not paths:
        raise DoeError(_absent(section.file, run_dir, bool(old)))
    return _collect(_read(paths, run_dir), section, metrics, further)


def as_number(value: object) -> float | None:
    """A number, or text that is one, as a float; None for anything else."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, (int, float, str)):
        try:
            return float(value)
        except (ValueError, OverflowError):
            return None
    return None


def _collect(
    source: NumberSource, section: MetricsSection, metrics: Iterable[str], further: Iterable[str]
) -> dict[str, float]:
    values: dict[str, float] = {}
    absent: list[str] = []
    if not section.keys:
        values |= {name: float(value) for name, value in source.extra.items()}
    required = tuple(metrics)
    for name in (*required, *further):
        key = section.keys.get(name, name)
        try:
            value = source.value(key)
        except KeyError:
            if name in required:
                absent.append(key)
            continue
        number = math.nan if value is None else as_number(value)
        if number is None:
            raise DoeError(f"{source.file}: {key!r} is {_brief(value)}; expected a number")
        values[name] = number
    if absent:
        names = listed(source.names, LISTED) or "nothing"
        near = nearest(absent[0], source.names) if len(absent) == 1 else ""
        raise DoeError(
            f"{source.file} has no {', '.join(map(repr, absent))}{near}; it has {names}"
            f"{': name it in keys of [metrics]' if source.names else ''}"
        )
    return values


def _brief(value: object) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 40 else text[:37] + "..."


# What is there ----------------------------------------------------------------------------------


def stamp(path: Path) -> tuple[int, int]:
    """Time and size of a file, which change when it is written to."""
    stat = path.stat()
    return stat.st_mtime_ns, stat.st_size


def matching(run_dir: Path, pattern: str) -> list[Path]:
    """Files of a run that a pattern names, the one written last at the end."""
    return sorted(filter(Path.is_file, run_dir.glob(pattern)), key=os.path.getmtime)


def _left(run_dir: Path, section: MetricsSection) -> list[Path]:
    return [] if section.file == STDOUT else matching(run_dir, section.file)


def _absent(file: str, run_dir: Path, stale: bool) -> str:
    if stale:
        return f"the command left no new {file}: the one that is there is of an earlier attempt"
    names = sorted(str(path.relative_to(run_dir)) for path in run_dir.rglob("*") if path.is_file())
    run = RunDir(run_dir)  # of an earlier version, where a command shares it with us
    others = [name for name in names if not (run.request.exists() and run.is_own(name))]
    looked = f"the command left no {file} in its run directory, which holds "
    if not others:
        return f"{looked}no file of the command; does it know {{run_dir}}?"
    return f"{looked}{', '.join(others[:LISTED])}; say which is meant by file in [metrics]"


def _read(paths: Sequence[Path], run_dir: Path) -> NumberSource:
    path = paths[-1]
    file = str(path.relative_to(run_dir))
    try:
        if "tfevents" in path.name:
            return _events(paths, file)
        if path.suffix.lower() in (".csv", ".tsv", ".jsonl"):
            return _rows(read_rows(path), file)
        return _document(path, file)
    except UnicodeDecodeError as error:
        raise DoeError(f"{file} is no UTF-8 text: byte {error.start}") from None
    except OSError as error:
        raise DoeError(f"cannot read {file}: {error.strerror}") from error


# Documents --------------------------------------------------------------------------------------


def _document(path: Path, file: str) -> NumberSource:
    try:
        tree = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, RecursionError) as error:
        raise DoeError(f"{file} is no JSON: {error}") from None
    if not isinstance(tree, dict):
        raise DoeError(f"{file} is no JSON object but {_brief(tree)}")
    plain = {
        key: value
        for key, value in tree.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool)
    }
    return NumberSource(file, tuple(_leaves(tree)), lambda key: _lookup(tree, key), plain)


def _lookup(tree: object, key: str) -> object:
    """The value under a key; a dot may be part of a key or lead into a nested object."""
    if isinstance(tree, list):
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


def _leaves(tree: Mapping[str, Any], prefix: str = "") -> Iterable[str]:
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}"


# Rows -------------------------------------------------------------------------------------------


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Rows of a CSV (comma, semicolon or tab) or of JSON lines, as mappings."""
    text = path.read_text(encoding="utf-8-sig")
    if path.suffix.lower() == ".jsonl":
        try:
            rows = [json.loads(line) for line in text.splitlines() if line.strip()]
        except json.JSONDecodeError as error:
            raise DoeError(f"{path.name} holds a line that is no JSON: {error}") from None
        return [row for row in rows if isinstance(row, dict)]
    header = text.partition("\n")[0]
    separator = max(",;\t", key=header.count)
    lines = csv.reader(text.splitlines(), delimiter=separator)
    names = [name.strip() for name in next(lines, [])]
    return [dict(zip(names, line, strict=True)) for line in lines if len(line) == len(names)]


def _rows(rows: Sequence[Mapping[str, Any]], file: str) -> NumberSource:
    """The last row that has a value counts: loggers leave cells empty that have not changed."""
    last: dict[str, Any] = {}
    names: dict[str, None] = {}
    for row in rows:
        names |= dict.fromkeys(row)
        last |= {name: value for name, value in row.items() if value != ""}
    return NumberSource(file, tuple(names), last.__getitem__)


def _events(paths: Sequence[Path], file: str) -> NumberSource:
    try:
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
        from tensorboard.util.tensor_util import make_ndarray
    except ModuleNotFoundError:
        raise DoeError(
            f"{file} is a file of TensorBoard; reading it needs pip install 'pit-doe[tensorboard]'"
        ) from None
    last: dict[str, Any] = {}
    for path in paths:
        events = EventAccumulator(str(path), size_guidance={"scalars": 0, "tensors": 0})
        events.Reload()
        tags = events.Tags()
        last |= {tag: events.Scalars(tag)[-1].value for tag in tags["scalars"]}
        for tag in tags["tensors"]:
            array = make_ndarray(events.Tensors(tag)[-1].tensor_proto)
            if array.size == 1 and array.dtype.kind in "fiu":
                last[tag] = float(array.reshape(()))
    return NumberSource(file, tuple(last), last.__getitem__)


def _printed(output: Output) -> NumberSource:
    last = " | ".join(output.last) or "nothing"

    def value(name: str) -> float | str:
        text = output.matches[name]
        number = printed_number(text)
        return text if number is None else number

    return NumberSource("the output", (f"as its last lines: {last}",), value)
