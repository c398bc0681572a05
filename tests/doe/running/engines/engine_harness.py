"""Running studies on an engine, here or in another process, and looking at what became of them."""

import contextlib
import io
import os
import signal
import subprocess
import sys
import time
from typing import NamedTuple

import psutil
from rich.console import Console

from doe.running.execute import EngineChoice, execute
from doe.running.scheduler import RunOptions
from doe.store.files import StudyDir
from doe.store.verdicts import read_verdict
from doe.views.live import PlainDisplay


class Bench(NamedTuple):
    """An engine and how it is asked for two places on cores, whole GPUs, or shares of GPUs."""

    engine: str
    cores: dict
    gpus: dict
    shares: dict

    def words(self, asked):
        """The same on the command line."""
        options = [(f"--{key.replace('_', '-')}", str(value)) for key, value in asked.items()]
        return ["--engine", self.engine, *(word for option in options for word in option)]


def run(plan, bench, asked=None, **options):
    """Run a study in this process; return the counts that are not zero and what was shown."""
    out = io.StringIO()
    engine = EngineChoice(bench.engine, bench.cores if asked is None else asked)
    display = PlainDisplay(Console(file=out, width=200))
    number = execute(plan, RunOptions(**options), engine, display).counts
    return {state: count for state, count in number.items() if count}, out.getvalue()


class Scheduler:
    """`doe run` in a process of its own."""

    def __init__(self, plan, bench, *words, asked=None):
        call = [sys.executable, "-c", "from doe.cli import main; main()", "run"]
        call += ["--study", str(plan.directory), *words]
        call += bench.words(bench.cores if asked is None else asked)
        self._output = plan.directory.parent / f"out-{time.monotonic_ns()}.txt"
        with open(self._output, "w") as output:
            self.process = subprocess.Popen(
                call, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
            )

    def said(self):
        return self._output.read_text()

    def wait(self, seconds=240):
        """Its exit code."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise AssertionError(f"doe run did not end:\n{self.said()}") from None

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)

    def kill(self):
        self.process.kill()
        self.process.wait()


def until(condition, seconds=180.0, what=""):
    """Wait for something to become true."""
    deadline = time.monotonic() + seconds
    while not (answer := condition()):
        assert time.monotonic() < deadline, f"it never happened: {what}"
        time.sleep(0.05)
    return answer


def queued(state="all"):
    """Ids of our Slurm jobs in a state."""
    words = ["squeue", "--noheader", "--array", f"--states={state}", "--format=%i %j"]
    answer = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    return [line.split()[0] for line in answer.splitlines() if "doe-tiny" in line]


def places(plan):
    """The directories of all runs, in the planned order."""
    return [StudyDir(plan.directory).run(run.run_id) for run in plan.design.runs]


def open_gate(plan):
    """Let runs go on that wait for it."""
    (plan.directory / "gate").touch()


def calls(plan):
    """Process numbers of all executions, by run."""
    found = {}
    for place in places(plan):
        path = place.path / "calls.txt"
        found[place.path.name] = path.read_text().split() if path.exists() else []
    return found


def executions(plan, stage):
    """How often one execution of a stage was begun."""
    path = plan.directory / stage.run_id / "calls.txt"
    return len(path.read_text().split()) if path.exists() else 0


def verdicts(plan):
    """Verdicts by run."""
    found = {place.path.name: read_verdict(place) for place in places(plan)}
    return {name: verdict.result for name, verdict in found.items() if verdict}


def workers(plan):
    """Living processes that execute runs of a study."""
    numbers = {int(pid) for pids in calls(plan).values() for pid in pids}
    return [pid for pid in numbers if _alive(pid)]


def _alive(pid):
    try:
        process = psutil.Process(pid)
        return process.status() != psutil.STATUS_ZOMBIE and "doe" in " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        return False


def kill(pids):
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
