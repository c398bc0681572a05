"""One run, now and in the foreground, in a directory that is gone afterwards.

``python -m doe.running.trial RUN_DIR`` is the process that executes it: as a worker would, with
neither lease nor log nor verdict.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import tempfile
import time
import traceback
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from doe.design.runs import Run, stage_executions
from doe.errors import DoeError, listed
from doe.numbers import cell_text
from doe.running.backend import call, resolve
from doe.running.metrics import COLOURS, as_number
from doe.running.processes import module_words, signal_name, thread_environment
from doe.running.sources import MLRUNS, ROWS, Stamps, read_source, stamp
from doe.store.files import RunDir
from doe.store.requests import prepare, read_request
from doe.store.stages import is_present
from doe.store.timing import TRIAL_REPORT_SECONDS
from doe.study.command import GAP, NUMBER, STDOUT, WRAPPER
from doe.study.values import Study

MOST_FILES = 20_000
"""Maximum number of files in a working directory to examine; with more, nothing is reported."""
PASSED_OVER = {".git", ".venv", "venv", "node_modules", "__pycache__", "site-packages"}
SHOWN = 6
LABEL = re.compile(rf"([A-Za-z_][\w/ .-]*?){GAP}{WRAPPER}{NUMBER}", re.IGNORECASE)


class Finding(msgspec.Struct, frozen=True):
    """Numbers that a command wrote in one place."""

    file: str
    """The value for `[metrics] file`."""
    counts: dict[str, int]
    """Name -> number of its values."""


def stamps(root: Path) -> Stamps:
    """Return files below a directory, without environments; none if there are too many."""
    found: Stamps = {}
    for path in _files(root):
        found[path] = stamp(path)
        if len(found) > MOST_FILES:
            return {}
    return found


def changed(root: Path, before: Stamps) -> list[str]:
    """Return files below a directory that are new or changed, as relative paths."""
    now = stamps(root) if before else {}
    return [str(path.relative_to(root)) for path in now if now[path] != before.get(path)]


def findings(root: Path) -> list[Finding]:
    """Return files with numbers below a directory, each kind of file once."""
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
    """Collects numbers that follow a name in the output."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}

    def add_line(self, line: str) -> None:
        """Parse one line."""
        for match in LABEL.finditer(COLOURS.sub("", line)):
            name = re.split(r"\s{2,}|\d\s", match[1].strip())[-1].strip(" -.")
            if 1 < len(name) <= 40:
                self.counts[name] = self.counts.get(name, 0) + 1


class Place(NamedTuple):
    """The location of a study's metrics."""

    file: str
    keys: dict[str, str]


def proposal(found: Iterable[Finding], metrics: Iterable[str]) -> Place | None:
    """Return the place with the most metrics by their own or a similar name."""
    wanted = list(metrics)
    places = []
    for finding in found:
        keys = {name: _similar(name, finding.counts) for name in wanted}
        places.append(Place(finding.file, {name: key for name, key in keys.items() if key}))
    best = max(places, key=lambda place: (len(place.keys), place.file != STDOUT), default=None)
    return best if best and best.keys else None


def proposal_text(place: Place) -> list[str]:
    """Return lines of a study file for a place."""
    keys = {name: key for name, key in place.keys.items() if name != key}
    lines = ["[metrics]", f"file = {json.dumps(place.file)}"]
    if keys:
        pairs = ", ".join(f"{name} = {json.dumps(key)}" for name, key in keys.items())
        lines.append(f"keys = {{ {pairs} }}")
    return lines


def finding_text(finding: Finding) -> str:
    """Describe a finding in one line: the place, and the first of its names."""
    return f"{finding.file}: {listed(tuple(finding.counts), SHOWN)}"


def _similar(name: str, names: Mapping[str, int]) -> str:
    """Return the best match for a name: equal, at its end, or with all its words; else empty."""
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
            if not (path / "study.toml").exists() or path == root:  # no planned study
                yield from _files(path)
        elif path.is_file():
            yield path


def _store(path: Path) -> Path:
    """Return MLflow's directory if a file belongs to it, else the file."""
    return next((parent for parent in path.parents if parent.name == MLRUNS), path)


def _pattern(path: Path) -> str:
    """Return a path with stars in place of the numbers that vary between runs."""
    folders = ["*" if re.search(r"\d", part) else part for part in path.parts[:-1]]
    if "tfevents" in path.name:
        name = "events.out.tfevents.*"
    else:
        name = "*.wandb" if path.suffix == ".wandb" else re.sub(r"\d+", "*", path.name)
    return "/".join([*folders, name])


OUTCOME = "outcome.json"
CHUNK_BYTES = 65536


class Trial(msgspec.Struct, frozen=True):
    """Outcome of one trial run."""

    metrics: dict[str, float | None] = {}
    problem: str = ""
    """Why it failed; empty if it did not."""
    diverged: str = ""
    """Which metrics are not finite."""
    unread: tuple[str, ...] = ()
    """Factors and stages that a function did not read."""
    stages: dict[str, float] = {}
    """Stage -> seconds that its execution took, before the run."""
    reports: int = 0
    """Number of progress reports."""
    seconds: float = 0.0
    found: tuple[Finding, ...] = ()
    """Places where a command wrote numbers."""
    outside: tuple[str, ...] = ()
    """Files that changed in the working directory, outside the run's directory."""


def try_run(study: Study, run: Run, gpu: int | None = None) -> Trial:
    """Execute one run of a study with its output on this terminal; nothing is recorded."""
    surroundings = {**os.environ, **thread_environment(study.threads)}
    if gpu is not None:
        surroundings["CUDA_VISIBLE_DEVICES"] = str(gpu)
    device = "cpu" if gpu is None else "cuda:0"
    with tempfile.TemporaryDirectory(prefix="doe-try-") as scratch:
        before = stamps(Path.cwd()) if study.command else {}
        labels = Labels()
        stages: dict[str, float] = {}
        for unit in (*stage_executions(study, [run]), run):
            run_dir = RunDir(Path(scratch) / unit.run_id)
            prepare(run_dir, study, unit)
            words = [*module_words("doe.running.trial"), str(run_dir.path), "--device", device]
            began = time.monotonic()
            code = _stream_output(words, surroundings, labels)
            seconds = time.monotonic() - began
            try:
                trial = msgspec.json.decode((run_dir.path / OUTCOME).read_bytes(), type=Trial)
            except FileNotFoundError:
                how = signal_name(-code) if code < 0 else f"exit code {code}"
                trial = Trial(problem=f"the process ended with {how}")
            if trial.problem:
                if unit.stage:
                    problem = f"stage {unit.stage}: {trial.problem}"
                    trial = msgspec.structs.replace(trial, problem=problem)
                break
            if unit.stage:
                stages[unit.stage] = seconds
        trial = msgspec.structs.replace(trial, stages=stages)
        found: list[Finding] = []
        if study.command:
            found = findings(run_dir.out) if run_dir.out.is_dir() else []
            found += [Finding(STDOUT, labels.counts)] if labels.counts else []
        outside = tuple(changed(Path.cwd(), before))
        return msgspec.structs.replace(trial, seconds=seconds, found=tuple(found), outside=outside)


def _stream_output(words: list[str], surroundings: dict[str, str], labels: Labels) -> int:
    """Run a process, pass its output on as it comes, and parse its lines; return its exit code."""
    env = {**surroundings, "PYTHONUNBUFFERED": "1"}
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with subprocess.Popen(words, env=env, **streams) as process:  # type: ignore[call-overload]
        rest = b""
        while chunk := os.read(process.stdout.fileno(), CHUNK_BYTES):
            os.write(1, chunk)
            *lines, rest = re.split(rb"[\r\n]", rest + chunk)
            for line in lines:
                labels.add_line(line.decode(errors="replace"))
        labels.add_line(rest.decode(errors="replace"))
        return int(process.wait())


# The child process -------------------------------------------------------------------------------


class _Showing:
    """Counts progress reports, and prints them if the backend prints nothing itself."""

    def __init__(self, silent: bool) -> None:
        self.reports = 0
        self._silent = silent
        self._last = 0.0

    def __call__(self, step: int, total: int, **metrics: float) -> None:
        self.reports += 1
        now = time.monotonic()
        if self._silent or (now - self._last < TRIAL_REPORT_SECONDS and step < total):
            return
        self._last = now
        values = "".join(
            f"  {name} {cell_text(float(value), 'short')}" for name, value in metrics.items()
        )
        print(f"{step}/{total}{values}", flush=True)


def call_backend(run_dir: RunDir, device: str) -> Trial:
    """Call the backend as a worker does and send the outcome."""
    request, _ = read_request(run_dir)
    report = _Showing(silent=request.backend == "command")
    try:
        backend = resolve(request.backend, request.command)
        reply = call(backend, request, run_dir.path.resolve(), device, report)
    except DoeError as error:
        return Trial(problem=str(error))
    except Exception as error:
        frames = error.__traceback__.tb_next if error.__traceback__ else None
        traceback.print_exception(type(error), error, frames)
        return Trial(problem=f"{type(error).__name__}: {error}")
    if request.stage and not is_present(run_dir):
        return Trial(problem="it wrote nothing")
    names = (*request.metrics, *request.further)
    return Trial(
        metrics={name: reply.metrics[name] for name in names if name in reply.metrics},
        diverged=reply.not_finite,
        unread=reply.unread,
        reports=report.reports,
    )


def main() -> None:
    """Parse the command line of the process and call the backend."""
    parser = argparse.ArgumentParser(prog="python -m doe.running.trial")
    parser.add_argument("run_dir", type=Path)
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()
    trial = call_backend(RunDir(arguments.run_dir), arguments.device)
    (arguments.run_dir / OUTCOME).write_bytes(msgspec.json.encode(trial))


if __name__ == "__main__":
    main()
