"""The warm parent of one slot: import the backend once, fork the processes of each run.

It reads one JSON line for its setting-up and one per run on standard input, and answers with lines
on the descriptor that its argument names. It stays free of CUDA and never computes, so what it
forks is as good as new: a library's threads begin in the child. Where that cannot be had (the
import began threads or opened CUDA), each run gets a process of its own from the start.

The next keeper and its training are forked ahead and stand by. A keeper tells when its training is
gone, so that the next run begins while it commits.

When the scheduler dies, a run under way goes on; its parent waits for it, leaves, and takes along
what the import has begun.
"""

from __future__ import annotations

import contextlib
import gc
import os
import select
import signal
import subprocess
import sys
import traceback
from pathlib import Path
from typing import NamedTuple

import msgspec

from doe.errors import DoeError
from doe.running.backend import resolve
from doe.running.processes import (
    ProcessLimitError,
    adopt_orphans,
    descendants,
    end_descendants,
    end_process,
    end_with_parent,
    forkable,
    patiently,
    signal_all,
)
from doe.running.provenance import Gpu, static_facts
from doe.running.training import ForkedTraining
from doe.running.worker import (
    ORDERLY,
    ExitCode,
    Prepared,
    WorkerOptions,
    rehearse,
    work,
    worker_words,
)
from doe.store.files import RunDir
from doe.store.timing import IDLE_SECONDS

START = os.getcwd()
"""Where the study was started, before the backend was imported."""


class Setup(msgspec.Struct, frozen=True):
    """Configuration of a slot."""

    backend: str
    command: tuple[str, ...]
    scheduler: int
    """Process number of the reader of the answers."""
    gpu: Gpu | None = None


class Task(msgspec.Struct, frozen=True):
    """One run to execute."""

    name: bytes
    """The run's directory in the system's encoding, which may not be text."""
    options: WorkerOptions
    cold: bool = False
    """Whether the imported backend does not apply, and the run starts in a new process."""

    @property
    def run_dir(self) -> Path:
        """The run's directory."""
        return Path(os.fsdecode(self.name))


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """Message of the slot: ready or not; a job that has begun, left or ended."""

    ready: bool = False
    error: str = ""
    job: str = ""
    pid: int = 0
    left: bool = False
    """Its training has ended; its keeper commits."""
    status: int | None = None
    """Exit code, or minus the signal's number."""


class Standby(NamedTuple):
    """A keeper that waits for its run."""

    pid: int
    tell: int


class SlotProcess:
    """The parent process: its input and its requests."""

    def __init__(self) -> None:
        self._replies = int(sys.argv.pop())
        os.set_inheritable(self._replies, False)
        self._tasks = os.dup(0)
        empty = os.open(os.devnull, os.O_RDONLY)
        os.dup2(empty, 0)
        self._buffer = b""
        self._keepers: dict[int, str] = {}
        """Process number -> its job; not waited for, so the number cannot be reused."""
        self._standby: Standby | None = None
        self._open = True
        """Whether the scheduler may have more runs."""
        signal.signal(signal.SIGTERM, self._stop)

    def _stop(self, _number: int, _frame: object) -> None:
        """End the running runs, start no other, and exit."""
        self._open = False
        if not self._keepers:
            end_descendants()
            os._exit(0)
        signal_all(self._keepers, signal.SIGTERM)

    def say(self, answer: Answer) -> None:
        """Send a message to the scheduler, unless it is gone."""
        with contextlib.suppress(OSError):
            os.write(self._replies, msgspec.json.encode(answer) + b"\n")

    def _first_line(self) -> bytes:
        while b"\n" not in self._buffer and (data := os.read(self._tasks, 65536)):
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def serve(self) -> None:
        """Import the backend, then execute runs until the scheduler has no more."""
        setup = msgspec.json.decode(self._first_line(), type=Setup)
        end_with_parent()  # an import that hangs ends with the scheduler
        if os.getppid() != setup.scheduler:  # killed before the kernel was told
            return
        adopt_orphans()
        # Resolve paths here, wherever the import changes to.
        facts = static_facts(setup.backend, setup.gpu, setup.command)
        try:
            backend = resolve(setup.backend, setup.command)
        except BaseException as error:
            reason = str(error) if isinstance(error, DoeError) else traceback.format_exc()
            self.say(Answer(error=reason))
            return
        signal.signal(signal.SIGTERM, self._stop)
        # An import that lets the kernel or itself wait for children would take ours.
        prepared = Prepared(backend, facts, signal.signal(signal.SIGCHLD, signal.SIG_DFL))
        end_with_parent(0)
        warm = forkable()
        rehearse()
        gc.collect()
        gc.freeze()  # a collection in a child would copy every page that it touches
        imported = descendants()
        self.say(Answer(ready=True))
        while self._keepers or self._open:
            if warm and self._open and self._standby is None:
                with contextlib.suppress(OSError):  # no room to fork one in advance
                    self._standby = self._fork(prepared)
            self._wait()
            for line in self._lines():
                self._begin(line, prepared if warm else None)
            codes = [self._reap(pid) for pid in self._ended()]
            if any(code not in ORDERLY for code in codes):
                ahead = {self._standby.pid} if self._standby else set()
                # A keeper could not end its processes.
                end_descendants(keep={*imported, *self._keepers, *ahead})

    def _wait(self) -> None:
        """Wait until the scheduler sends something or a keeper has ended."""
        if b"\n" in self._buffer:
            return
        handles = []
        try:
            if hasattr(os, "pidfd_open"):
                handles = [os.pidfd_open(pid) for pid in self._keepers]
            seconds = 0.02 if len(handles) < len(self._keepers) else None
            select.select([self._tasks, *handles] if self._open else handles, [], [], seconds)
        finally:
            for handle in handles:
                os.close(handle)

    def _lines(self) -> list[bytes]:
        """Return the lines that the scheduler has sent."""
        if self._open and select.select([self._tasks], [], [], 0.0)[0]:
            data = os.read(self._tasks, 65536)
            self._open &= bool(data)
            self._buffer += data
        *lines, self._buffer = self._buffer.split(b"\n")
        return lines if self._open else []

    def _ended(self) -> list[int]:
        """Return keepers that have ended and were not waited for."""
        how = os.WEXITED | os.WNOWAIT | os.WNOHANG
        return [pid for pid in self._keepers if os.waitid(os.P_PID, pid, how)]

    def _reap(self, pid: int) -> int:
        job = self._keepers.pop(pid)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        self.say(Answer(job=job, status=code))
        return code

    def _begin(self, line: bytes, prepared: Prepared | None) -> None:
        task = msgspec.json.decode(line, type=Task)
        job = task.options.job
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        try:
            warm = prepared if not task.cold else None
            keeper = self._hand_over(line, warm) if warm else patiently(lambda: _spawn(task))
            self._keepers[keeper] = job
            self.say(Answer(job=job, pid=keeper))
        except ProcessLimitError:
            self.say(Answer(job=job, status=ExitCode.SCARCE))
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})

    def _hand_over(self, line: bytes, prepared: Prepared) -> int:
        """Pass the run to the standby keeper, or to one forked now."""
        while True:
            ahead = self._standby or patiently(lambda: self._fork(prepared))
            self._standby = None
            with os.fdopen(ahead.tell, "wb", buffering=0) as told:
                try:
                    told.write(line)
                    return ahead.pid
                except BrokenPipeError:  # it was killed meanwhile
                    os.waitpid(ahead.pid, 0)

    def _fork(self, prepared: Prepared) -> Standby:
        told, tell = os.pipe()
        try:
            pid = os.fork()
        except OSError:
            os.close(told)
            os.close(tell)
            raise
        if pid == 0:
            os.close(tell)
            os.close(self._tasks)
            os.setsid()
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
            end_process(lambda: self._keep(told, prepared))
        os.close(told)
        return Standby(pid, tell)

    def _keep(self, told: int, prepared: Prepared) -> int:
        """Stand by, then keep a run."""
        training = None
        with contextlib.suppress(ProcessLimitError):
            training = ForkedTraining(prepared.backend, prepared.on_child, self._replies)
        if not select.select([told], [], [], IDLE_SECONDS)[0]:
            rehearse()  # here as well: the pages that it writes to are copied now
        with os.fdopen(told, "rb") as pipe:
            line = pipe.read()
        if not line:  # the slot is gone
            return 0
        task = msgspec.json.decode(line, type=Task)
        left = Answer(job=task.options.job, left=True)
        given = prepared._replace(training=training, leave=lambda: self.say(left))
        return work(RunDir(task.run_dir), task.options, given)


def _spawn(task: Task) -> int:
    words = worker_words(task.run_dir, task.options)
    return subprocess.Popen(words, start_new_session=True, cwd=START, preexec_fn=_unblock).pid


def _unblock() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})


if __name__ == "__main__":
    try:
        SlotProcess().serve()
    except KeyboardInterrupt:
        pass
    finally:
        end_descendants()
        os._exit(0)
