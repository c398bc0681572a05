"""The warm parent of one slot: imports the backend once, forks a process per run.

It reads one JSON line for its setting-up and one per run on standard input, and answers with lines
on the descriptor that its argument names. It stays free of CUDA and never computes, so what it
forks is as good as new: a library's threads begin in the child. Where that cannot be had (the
import began threads or opened CUDA), each run gets a process of its own from the start.

When the scheduler dies, a run under way goes on; its parent waits for it, leaves, and takes along
what the import has begun.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import subprocess
import sys
import traceback
from pathlib import Path

import msgspec

from doe.errors import DoeError
from doe.running.backend import resolve
from doe.running.processes import (
    adopt_orphans,
    descendants,
    end_descendants,
    end_process,
    end_with_parent,
    forkable,
)
from doe.running.provenance import Gpu, static_facts
from doe.running.worker import ORDERLY, Prepared, WorkerOptions, work, worker_words
from doe.store.files import RunDir

START = os.getcwd()
"""Where the study was started, before the backend was imported."""


class Setup(msgspec.Struct, frozen=True):
    """What a slot is for."""

    backend: str
    command: tuple[str, ...]
    scheduler: int
    """Process number of who reads the answers."""
    gpu: Gpu | None = None


class Task(msgspec.Struct, frozen=True):
    """One run to execute."""

    name: bytes
    """The run's directory as the system writes it, which may be no text."""
    options: WorkerOptions

    @property
    def run_dir(self) -> Path:
        """The run's directory."""
        return Path(os.fsdecode(self.name))


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the slot says: ready or not, a process begun, a process ended."""

    ready: bool = False
    error: str = ""
    pid: int = 0
    status: int | None = None
    """Exit code, or minus the signal's number."""


class SlotProcess:
    """The parent process: what it has read, and what it was asked."""

    def __init__(self) -> None:
        self._replies = int(sys.argv.pop())
        os.set_inheritable(self._replies, False)
        self._tasks = os.dup(0)
        empty = os.open(os.devnull, os.O_RDONLY)
        os.dup2(empty, 0)
        self._buffer = b""
        self._keeper = 0
        self._stopping = False
        self._code = 0
        signal.signal(signal.SIGTERM, self._stop)

    def _stop(self, _number: int, _frame: object) -> None:
        """End the run under way, begin no other, and leave."""
        self._stopping = True
        if not self._keeper:
            end_descendants()
            os._exit(0)
        os.kill(self._keeper, signal.SIGTERM)  # it was not waited for, so the number is its own

    def say(self, answer: Answer) -> None:
        """Tell the scheduler, unless it is gone."""
        with contextlib.suppress(OSError):
            os.write(self._replies, msgspec.json.encode(answer) + b"\n")

    def line(self) -> bytes:
        """The next line that the scheduler writes; empty when it is gone."""
        while b"\n" not in self._buffer:
            data = os.read(self._tasks, 65536)
            if not data:
                return b""
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def serve(self) -> None:
        """Import the backend, then execute runs until the scheduler has no more."""
        setup = msgspec.json.decode(self.line(), type=Setup)
        end_with_parent()  # an import that hangs ends with the scheduler
        if os.getppid() != setup.scheduler:  # which was killed before the kernel knew
            return
        adopt_orphans()
        # From here, wherever the import goes.
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
        gc.collect()
        gc.freeze()  # a collection in a child would copy every page that it touches
        imported = descendants()
        self.say(Answer(ready=True))
        while not self._stopping and (line := self.line()):
            self._execute(msgspec.json.decode(line, type=Task), prepared if warm else None)
            if self._code not in ORDERLY:  # a keeper that could not end what was its own
                end_descendants(keep=imported)

    def _execute(self, task: Task, prepared: Prepared | None) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        self._keeper = self._fork(task, prepared) if prepared else _spawn(task)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        self.say(Answer(pid=self._keeper))
        os.waitid(os.P_PID, self._keeper, os.WEXITED | os.WNOWAIT)
        keeper, self._keeper = self._keeper, 0
        self._code = os.waitstatus_to_exitcode(os.waitpid(keeper, 0)[1])
        self.say(Answer(status=self._code))

    def _fork(self, task: Task, prepared: Prepared) -> int:
        pid = os.fork()
        if pid == 0:
            os.setsid()
            os.close(self._replies)
            os.close(self._tasks)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
            end_process(lambda: work(RunDir(task.run_dir), task.options, prepared))
        return pid


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
