"""The metrics of a command: found in its files or its output, and reduced to one number each."""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from doe.errors import DoeError, listed, nearest
from doe.running.sources import NumberSource, Series, Stamps, brief, matching, read_source, stamp
from doe.store.files import RunDir
from doe.study.command import STDOUT, printed_name, printed_number, printed_pattern, printed_step
from doe.study.values import MetricsSection

LISTED = 20
"""Maximum number of names in a message."""
LAST_LINES = 3
COLOURS = re.compile(r"\x1b\[[\d;]*[A-Za-z]")
"""Escape codes of coloured output."""
PRINTED_STEP = printed_step()


class Output:
    """Collects the requested metrics from what a command prints."""

    def __init__(self, section: MetricsSection, metrics: Iterable[str]) -> None:
        names = metrics if section.file == STDOUT else ()
        keys = {name: section.keys.get(name, printed_name(name)) for name in names}
        self._patterns = {name: printed_pattern(key) for name, key in keys.items()}
        self._step: float | None = None
        self.series: dict[str, Series] = {}
        """Metric -> its numbers as printed, with the last printed step."""
        self.last: deque[str] = deque(maxlen=LAST_LINES)

    def add_line(self, line: str) -> None:
        """Parse one line."""
        plain = COLOURS.sub("", line)
        if plain.strip():
            self.last.append(plain.strip())
        if match := PRINTED_STEP.search(plain):
            self._step = printed_number(match[1])
        for name, pattern in self._patterns.items():
            for match in pattern.finditer(plain):
                values = self.series.setdefault(name, [])
                step = float(len(values)) if self._step is None else self._step
                number = printed_number(match[1])
                values.append((step, match[1] if number is None else number))


def files_now(run_dir: Path, section: MetricsSection) -> Stamps:
    """Return the files of metrics that exist already, from an earlier attempt."""
    return {path: stamp(path) for path in _left(run_dir, section)}


def read_metrics(
    section: MetricsSection,
    metrics: Iterable[str],
    further: Iterable[str],
    run_dir: Path,
    old: Stamps,
    output: Output,
) -> dict[str, float]:
    """Read a command's metrics; a number that is absent, NaN or null is NaN here.

    Raises
    ------
    DoeError
        If a file, key or match is missing; says what was looked for and what was there.
    """
    if section.file == STDOUT:
        last = f"as its last lines: {' | '.join(output.last) or 'nothing'}"
        source = NumberSource("the output", (last,), output.series.__getitem__)
        return _collect(source, dict.fromkeys(output.series), section, metrics, further)
    paths = [path for path in _left(run_dir, section) if stamp(path) != old.get(path)]
    if not paths:
        raise DoeError(_absent(section.file, run_dir, bool(old)))
    return _collect(read_source(paths, run_dir), section.keys, section, metrics, further)


def as_number(value: object) -> float | None:
    """Convert a number, or text that is one, to a float; None for anything else."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, (int, float, str)) and "_" not in str(value):  # Python would read 1_000
        try:
            return float(value)
        except (ValueError, OverflowError):
            return None
    return None


def reduced(series: Series, how: str) -> Any:
    """Reduce many values to one: the last, smallest, largest, the mean of the last K, or at a step.

    A run whose last value is not finite has diverged, however good it was before.

    Raises
    ------
    ValueError
        If a value is not a number, or the step was not reached.
    """
    word, _, argument = how.partition(" ")
    if word == "last":
        return series[-1][1]
    if word == "at":
        return _at(series, float(argument))
    numbers = [math.nan if value is None else as_number(value) for _, value in series]
    wrong = [value for (_, value), number in zip(series, numbers, strict=True) if number is None]
    if wrong:
        raise ValueError(f"is {brief(wrong[0])}; expected a number")
    values = [number for number in numbers if number is not None]
    if not math.isfinite(values[-1]):
        return values[-1]
    if word == "mean":
        chosen = values[-int(argument) :]
        return sum(chosen) / len(chosen)
    return (min if word == "min" else max)(value for value in values if not math.isnan(value))


def _at(series: Series, step: float) -> Any:
    """Return the value at a step: the last one logged up to it."""
    before = [value for at, value in series if at <= step]
    last = max(at for at, _ in series)
    if last < step or not before:
        first = min(at for at, _ in series)
        raise ValueError(f"has no value at step {step:g}, its steps are {first:g} to {last:g}")
    return before[-1]


def _collect(
    source: NumberSource,
    keys: dict[str, Any],
    section: MetricsSection,
    metrics: Iterable[str],
    further: Iterable[str],
) -> dict[str, float]:
    values: dict[str, float] = {}
    absent: list[str] = []
    if not keys:
        values |= {name: float(value) for name, value in source.extra.items()}
    required = tuple(metrics)
    for name in (*required, *further):
        key = keys.get(name) or name
        try:
            value = reduced(source.series(key), (section.reduce or {}).get(name, "last"))
        except KeyError:
            if name in required:
                absent.append(key)
            continue
        except ValueError as error:
            raise DoeError(f"{source.file}: {key!r} {error}") from None
        number = math.nan if value is None else as_number(value)
        if number is None:
            raise DoeError(f"{source.file}: {key!r} is {brief(value)}; expected a number")
        values[name] = number
    if absent:
        names = listed(source.names, LISTED) or "nothing"
        near = nearest(absent[0], source.names) if len(absent) == 1 else ""
        raise DoeError(
            f"{source.file} has no {', '.join(map(repr, absent))}{near}; it has {names}"
            f"{': name it in keys of [metrics]' if source.names else ''}"
        )
    return values


def _left(run_dir: Path, section: MetricsSection) -> list[Path]:
    return [] if section.file == STDOUT else matching(run_dir, section.file)


def _absent(file: str, run_dir: Path, stale: bool) -> str:
    if stale:
        return f"the command wrote no new {file}: the existing one is from an earlier attempt"
    names = sorted(str(path.relative_to(run_dir)) for path in run_dir.rglob("*") if path.is_file())
    run = RunDir(run_dir)  # from an earlier version, where a command shares it with us
    others = [name for name in names if not (run.request.exists() and run.is_reserved(name))]
    looked = f"the command wrote no {file} in its run directory, which contains "
    if not others:
        return f"{looked}no file of the command; does it use {{run_dir}}?"
    return f"{looked}{', '.join(others[:LISTED])}; choose one with file in [metrics]"
