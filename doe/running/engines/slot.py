"""The warm parent of one slot: imports the backend once, forks a process per run.

It reads one JSON line for its setting-up and one per run on standard input, and answers with lines
on what was its standard output. It stays free of CUDA and never computes, so what it forks is as
good as new: a library's threads begin in the child. Where that cannot be had (the import began
threads or opened CUDA), each run gets a process of its own from the start.

When the scheduler dies, a run under way goes on; its parent waits for it and leaves.
"""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import traceback
from pathlib import Path
from typing import NoReturn

import msgspec

from doe.errors import DoeError
from doe.running.backend import resolve
from doe.running.processes import end_process, forkable
from doe.running.provenance import Gpu, static_facts
from doe.running.worker import Prepared, WorkOrder, work
from doe.store.files import RunDir


class Setup(msgspec.Struct, frozen=True):
    """What a slot is for."""

    backend: str
    command: tuple[str, ...]
    gpu: Gpu | None = None


class Task(msgspec.Struct, frozen=True):
    """One run to execute."""

    run_dir: str
    order: WorkOrder


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the slot says: ready or not, a process begun, a process ended."""

    ready: bool = False
    error: str = ""
    pid: int = 0
    status: int | None = None
    """Exit code, or minus the signal's number."""


def main() -> None:
    """Serve until standard input ends."""
    replies = os.dup(1)
    os.dup2(2, 1)
    tasks = os.fdopen(os.dup(0), "rb")
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)

    def say(answer: Answer) -> None:
        os.write(replies, msgspec.json.encode(answer) + b"\n")

    setup = msgspec.json.decode(tasks.readline(), type=Setup)
    try:
        prepared = Prepared(
            resolve(setup.backend, setup.command), static_facts(setup.backend, setup.gpu)
        )
    except DoeError as error:
        say(Answer(error=str(error)))
        return
    except BaseException:
        say(Answer(error=traceback.format_exc()))
        return
    warm = forkable()
    gc.collect()
    gc.freeze()  # a collection in a child would copy every page that it touches
    say(Answer(ready=True))
    for line in tasks:
        task = msgspec.json.decode(line, type=Task)
        pid = _fork(task, prepared, (replies, tasks.fileno())) if warm else _spawn(task)
        say(Answer(pid=pid))
        _, status = os.waitpid(pid, 0)
        say(Answer(status=os.waitstatus_to_exitcode(status)))


def _fork(task: Task, prepared: Prepared, close: tuple[int, ...]) -> int:
    pid = os.fork()
    if pid == 0:
        _child(task, prepared, close)
    return pid


def _child(task: Task, prepared: Prepared, close: tuple[int, ...]) -> NoReturn:
    os.setsid()
    for handle in close:
        os.close(handle)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(task.order.threads)
    end_process(lambda: work(RunDir(Path(task.run_dir)), task.order, prepared))


def _spawn(task: Task) -> int:
    order = msgspec.json.encode(task.order).decode()
    words = [sys.executable, "-m", "doe.running.worker", task.run_dir, "--order", order]
    return subprocess.Popen(words, start_new_session=True).pid


if __name__ == "__main__":
    try:
        main()
    except (BrokenPipeError, KeyboardInterrupt):  # the scheduler is gone
        sys.exit(0)
