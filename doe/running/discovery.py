"""What a command left: files with numbers, numbers on its output, files outside its directory."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from doe.errors import DoeError, listed
from doe.running.metrics import COLOURS, as_number
from doe.running.sources import MLRUNS, ROWS, Stamps, read_source, stamp
from doe.study.command import GAP, NUMBER, STDOUT, WRAPPER

MOST_FILES = 20_000
"""Files of a working directory that are looked at: of more, nothing is told."""
PASSED_OVER = {".git", ".venv", "venv", "node_modules", "__pycache__", "site-packages"}
SHOWN = 6
LABEL = re.compile(rf"([A-Za-z_][\w/ .-]*?){GAP}{WRAPPER}{NUMBER}", re.IGNORECASE)


class Finding(msgspec.Struct, frozen=True):
    """Numbers that a command left in one place."""

    file: str
    """As `[metrics] file` would name it."""
    counts: dict[str, int]
    """Name -> how many values it has."""


def stamps(root: Path) -> Stamps:
    """Files below a directory, without those of environments; none where they are too many."""
    found: Stamps = {}
    for path in _files(root):
        found[path] = stamp(path)
        if len(found) > MOST_FILES:
            return {}
    return found


def changed(root: Path, before: Stamps) -> list[str]:
    """Files below a directory that are new or were written to, as paths from it."""
    now = stamps(root) if before else {}
    return [str(path.relative_to(root)) for path in now if now[path] != before.get(path)]


def findings(root: Path) -> list[Finding]:
    """Files with numbers below a directory, each kind of file once."""
    found: dict[str, Finding] = {}
    paths = sorted({_store(path) for path in _files(root)}, key=lambda path: stamp(path)[0])
    for path in paths:
        readable = "tfevents" in path.name or path.name == MLRUNS
        if not readable and path.suffix.lower() not in (*ROWS, ".json", ".wandb", ".db"):
            continue
        try:
            source = read_source([path], root)
            series = {name: source.series(name) for name in source.names}
        except (DoeError, KeyError, ValueError):
            continue
        numbers = {n: len(s) for n, s in series.items() if as_number(s[-1][1]) is not None}
        file = _pattern(path.relative_to(root))
        if numbers:
            known = found[file].counts if file in found else {}
            found[file] = Finding(file, known | numbers)
    return list(found.values())


class Labels:
    """Listens for numbers on an output that stand behind a name."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}

    def add_line(self, line: str) -> None:
        """Look at one line."""
        for match in LABEL.finditer(COLOURS.sub("", line)):
            name = re.split(r"\s{2,}|\d\s", match[1].strip())[-1].strip(" -.")
            if 1 < len(name) <= 40:
                self.counts[name] = self.counts.get(name, 0) + 1


class Place(NamedTuple):
    """Where the metrics of a study are."""

    file: str
    keys: dict[str, str]


def proposal(found: Iterable[Finding], metrics: Iterable[str]) -> Place | None:
    """The place that holds the most of the metrics by their own or a similar name."""
    wanted = list(metrics)
    places = []
    for finding in found:
        keys = {name: _similar(name, finding.counts) for name in wanted}
        places.append(Place(finding.file, {name: key for name, key in keys.items() if key}))
    best = max(places, key=lambda place: (len(place.keys), place.file != STDOUT), default=None)
    return best if best and best.keys else None


def proposal_text(place: Place) -> list[str]:
    """Lines of a study file that name a place."""
    keys = {name: key for name, key in place.keys.items() if name != key}
    lines = ["[metrics]", f"file = {json.dumps(place.file)}"]
    if keys:
        pairs = ", ".join(f"{name} = {json.dumps(key)}" for name, key in keys.items())
        lines.append(f"keys = {{ {pairs} }}")
    return lines


def finding_text(finding: Finding) -> str:
    """A finding in one line: where, and the first of its names."""
    return f"{finding.file}: {listed(tuple(finding.counts), SHOWN)}"


def _similar(name: str, names: Mapping[str, int]) -> str:
    """The name of the same words: exactly, at its end, or at least with all of them; else empty."""
    words = _words(name)
    for fits in (
        lambda other: other == words,
        lambda other: other[-len(words) :] == words,
        lambda other: set(words) <= set(other),
    ):
        matches = [candidate for candidate in names if fits(_words(candidate))]
        if matches:
            return max(matches, key=lambda candidate: (names[candidate], -len(candidate)))
    return ""


def _words(name: str) -> list[str]:
    return [word for word in re.split(r"[\W_]+", name.lower()) if word]


def _files(root: Path) -> Iterator[Path]:
    for path in sorted(root.iterdir()):
        if path.is_symlink() or path.name in PASSED_OVER:
            continue
        if path.is_dir():
            if not (path / "study.toml").exists() or path == root:  # a planned study is not its own
                yield from _files(path)
        elif path.is_file():
            yield path


def _store(path: Path) -> Path:
    """MLflow's directory, where a file belongs to it, else the file."""
    return next((parent for parent in path.parents if parent.name == MLRUNS), path)


def _pattern(path: Path) -> str:
    """A path with stars where another run would have other numbers."""
    folders = ["*" if re.search(r"\d", part) else part for part in path.parts[:-1]]
    if "tfevents" in path.name:
        name = "events.out.tfevents.*"
    else:
        name = "*.wandb" if path.suffix == ".wandb" else re.sub(r"\d+", "*", path.name)
    return "/".join([*folders, name])
