"""One run, now and in the foreground, in a directory that is gone afterwards.

``python -m doe.running.trial RUN_DIR`` is the process that executes it: as a worker would, with
neither lease nor log nor verdict.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import tempfile
import time
import traceback
from pathlib import Path

import msgspec

from doe.design.runs import Run
from doe.design.stages import stage_executions
from doe.errors import DoeError
from doe.numbers import cell_text
from doe.running.backend import call, resolve
from doe.running.discovery import Finding, Labels, changed, findings, stamps
from doe.running.processes import module_words, signal_name, thread_environment
from doe.store.files import RunDir
from doe.store.requests import prepare, read_request
from doe.store.stages import is_present
from doe.store.timing import TRIAL_REPORT_SECONDS
from doe.study.command import STDOUT
from doe.study.values import Study

OUTCOME = "outcome.json"
CHUNK_BYTES = 65536


class Trial(msgspec.Struct, frozen=True):
    """What one run came to."""

    metrics: dict[str, float | None] = {}
    problem: str = ""
    """Why it failed; empty if it did not."""
    diverged: str = ""
    """Which metrics are not finite."""
    unread: tuple[str, ...] = ()
    """Factors and stages that a function did not look at."""
    stages: dict[str, float] = {}
    """Stage -> seconds that its execution took, before the run."""
    reports: int = 0
    """How often it told its progress."""
    seconds: float = 0.0
    found: tuple[Finding, ...] = ()
    """Where a command left numbers."""
    outside: tuple[str, ...] = ()
    """Files that changed where the command was started, outside the run's directory."""


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
            code = _shown(words, surroundings, labels)
            seconds = time.monotonic() - began
            try:
                trial = msgspec.json.decode((run_dir.path / OUTCOME).read_bytes(), type=Trial)
            except FileNotFoundError:
                how = signal_name(-code) if code < 0 else f"exit code {code}"
                trial = Trial(problem=f"the process of {unit.stage or 'the run'} ended with {how}")
            if trial.problem:
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


def _shown(words: list[str], surroundings: dict[str, str], labels: Labels) -> int:
    """Run a process, pass its output on as it comes, and look at its lines; its exit code."""
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


# The process ------------------------------------------------------------------------------------


class _Showing:
    """Counts what is reported, and shows it where the backend prints nothing itself."""

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
    """Call the backend as a worker does and say what came of it."""
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
        return Trial(problem=f"the stage {request.stage} left nothing")
    names = (*request.metrics, *request.further)
    return Trial(
        metrics={name: reply.metrics[name] for name in names if name in reply.metrics},
        diverged=reply.not_finite,
        unread=reply.unread,
        reports=report.reports,
    )


def main() -> None:
    """The command line of the process."""
    parser = argparse.ArgumentParser(prog="python -m doe.running.trial")
    parser.add_argument("run_dir", type=Path)
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()
    trial = call_backend(RunDir(arguments.run_dir), arguments.device)
    (arguments.run_dir / OUTCOME).write_bytes(msgspec.json.encode(trial))


if __name__ == "__main__":
    main()
