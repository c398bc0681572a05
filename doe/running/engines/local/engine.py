"""The local engine for the scheduler: a warm parent for each slot, and its events."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from typing import IO

import msgspec

from doe.errors import DoeError
from doe.running.engines import Ended, Job, Left, Slot
from doe.running.engines.local.slot import Answer, Setup, Task
from doe.running.processes import (
    ProcessLimitError,
    ending,
    module_words,
    patiently,
    shadowing,
    thread_environment,
)
from doe.running.provenance import ask_gpus
from doe.running.worker import STOPPED
from doe.store.leases import process_alive, process_name
from doe.store.timing import IMPORT_EXIT_SECONDS, KILL_SECONDS, LATE_SECONDS, SWEEP_SECONDS
from doe.study.values import Study


class _Start:
    """A job given to a warm parent."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.keeper = ""
        """Name of its process, once begun."""
        self.began = time.monotonic()

    @property
    def living(self) -> bool:
        """Return whether its keeper is alive."""
        return bool(self.keeper) and process_alive(self.keeper)

    @property
    def late(self) -> bool:
        """Return whether its keeper missed the time limit."""
        limit = self.job.options.timeout
        return limit > 0 and time.monotonic() - self.began > limit + 3 * LATE_SECONDS

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to its keeper."""
        if self.living:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(self.keeper.partition(":")[0]), number)


class _Parent:
    """A slot's warm parent, seen from the engine."""

    def __init__(self, slot: Slot, setup: Setup, threads: int) -> None:
        environment = os.environ | thread_environment(threads)
        environment["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"  # asking for GPUs opens no context
        environment["CUDA_VISIBLE_DEVICES"] = slot.group.removeprefix("gpu")
        self.errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        # Answers have their own pipe: anything may be printed while Python starts.
        self.output, replies = os.pipe()
        try:
            self.process = patiently(
                lambda: subprocess.Popen(
                    [*module_words("doe.running.engines.local.slot"), str(replies)],
                    stdin=subprocess.PIPE,
                    stdout=self.errors,
                    stderr=self.errors,
                    env=environment,
                    pass_fds=(replies,),
                    start_new_session=True,
                )
            )
        except ProcessLimitError as error:
            raise DoeError(f"{error}; raise it, or use fewer slots") from error
        os.close(replies)
        self.slot = slot
        self.starts: dict[str, _Start] = {}
        """Job -> unfinished start: a run, and a previous one that is being committed."""
        self.alive = True
        self.ready = False
        self.buffer = b""
        self.write(setup)

    @property
    def living(self) -> bool:
        """Return whether it or one of its runs is still alive."""
        return self.process.poll() is None or any(s.living for s in self.starts.values())

    @property
    def busy(self) -> bool:
        """Return whether one of its runs has begun."""
        return any(start.keeper for start in self.starts.values())

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal, or the keepers of its runs if it is gone."""
        if self.process.poll() is None and number != signal.SIGKILL:
            self.process.send_signal(number)
        else:
            for start in self.starts.values():
                start.signal(number)

    def write(self, message: msgspec.Struct) -> None:
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # its end is seen on the other pipe
            self.process.stdin.write(msgspec.json.encode(message) + b"\n")
            self.process.stdin.flush()

    def read(self) -> list[Answer]:
        data = os.read(self.output, 65536)
        self.alive = bool(data)
        *lines, self.buffer = (self.buffer + data).split(b"\n")
        return [msgspec.json.decode(line, type=Answer) for line in lines]

    def complaint(self) -> str:
        """Return the end of its output, and a possible cause."""
        self.errors.seek(0)
        text = self.errors.read()[-4000:].decode(errors="replace").strip()
        return "\n".join(filter(None, (text, shadowing(os.getcwd()))))

    def close(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self.output)
        for pipe in (self.process.stdin, self.errors):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


class LocalEngine:
    """Runs on this machine; see `doe.running.engines.Engine`."""

    def __init__(self, study: Study, slots: Sequence[Slot]) -> None:
        self.slots = tuple(slots)
        self._study = study
        gpus = ask_gpus() if any(slot.group for slot in slots) else ()
        self._gpus = {f"gpu{gpu.number}": gpu for gpu in gpus}
        self._parents: dict[str, _Parent] = {}
        self._selector = selectors.DefaultSelector()
        self._unready = 0
        """Parents that were killed before they had imported the backend."""

    def adopt(self) -> Sequence[tuple[str, str, str]]:
        """Return nothing: leases show the runs of an earlier scheduler."""
        return ()

    def start(self, jobs: Sequence[Job]) -> None:
        """Pass each run to the warm parent of its slot."""
        for job in jobs:
            parent = self._parents.get(job.slot.name) or self._open(job.slot)
            parent.starts[job.options.job] = _Start(job)
            cold = bool(job.stage)  # it has another backend
            parent.write(Task(os.fsencode(job.run_dir.resolve()), job.options, cold))

    def wait(self, seconds: float) -> Sequence[Ended | Left]:
        """Return events as soon as a run has ended or left its slot."""
        deadline = time.monotonic() + seconds
        while True:
            news = self._listen(min(0.1, max(0.0, deadline - time.monotonic())))
            news += self._check()
            if news or time.monotonic() >= deadline:
                return news

    def withdraw(self) -> None:
        """Do nothing: a run given to a free slot begins at once."""

    def stop(self, grace: float) -> None:
        """Tell the parents to end their runs and exit; no process is left.

        Once asked, they do so even if this scheduler dies meanwhile.
        """
        parents = list(self._parents.values())
        for parent in parents:
            parent.signal(signal.SIGTERM)
        busy = any(parent.busy for parent in parents)
        deadline = time.monotonic() + (grace + KILL_SECONDS if busy else IMPORT_EXIT_SECONDS)
        while any(parent.living for parent in parents) and time.monotonic() < deadline:
            time.sleep(0.02)
        stubborn = [parent for parent in parents if parent.living and parent.busy]
        for parent in stubborn:
            parent.signal(signal.SIGKILL)
        deadline = time.monotonic() + SWEEP_SECONDS
        while any(parent.living for parent in stubborn) and time.monotonic() < deadline:
            time.sleep(0.02)
        for parent in parents:
            parent.process.kill()
            parent.process.wait()
            parent.starts.clear()

    def close(self) -> None:
        """Close the pipes: an idle parent exits at once, a busy one after its run."""
        for parent in self._parents.values():
            parent.close()
            if not parent.ready:  # an import that hangs would outlive us
                parent.process.terminate()
            if not parent.starts:
                parent.process.wait()
        self._parents.clear()
        self._selector.close()

    def _open(self, slot: Slot) -> _Parent:
        setup = Setup(
            self._study.backend, self._study.words, os.getpid(), self._gpus.get(slot.group)
        )
        parent = self._parents[slot.name] = _Parent(slot, setup, self._study.threads)
        self._selector.register(parent.output, selectors.EVENT_READ, parent)
        return parent

    def _listen(self, seconds: float) -> list[Ended | Left]:
        """Read the parents' messages for some time."""
        if not self._selector.get_map():
            time.sleep(seconds)
            return []
        news: list[Ended | Left] = []
        for key, _ in self._selector.select(seconds):
            parent: _Parent = key.data
            for answer in parent.read():
                if answer.error:
                    cause = "\n".join(filter(None, (answer.error, shadowing(os.getcwd()))))
                    raise DoeError(f"the backend {self._study.backend!r} failed:\n{cause}")
                parent.ready |= answer.ready
                start = parent.starts.get(answer.job)
                if start and answer.pid:
                    start.keeper = process_name(answer.pid)
                    start.began = time.monotonic()
                if start and answer.left:
                    news.append(Left(answer.job))
                if start and answer.status is not None:
                    del parent.starts[answer.job]
                    news.append(_end(start, answer.status))
            if not parent.alive:
                self._selector.unregister(parent.output)
        return news

    def _check(self) -> list[Ended]:
        """Handle runs past their time limit, and dead parents."""
        ended = []
        for parent in list(self._parents.values()):
            for start in parent.starts.values():
                if start.late:
                    start.signal(signal.SIGKILL)
            if not parent.alive and not any(start.living for start in parent.starts.values()):
                ended += self._bury(parent)
        return ended

    def _bury(self, parent: _Parent) -> list[Ended]:
        """Forget a dead parent; nobody saw how its runs ended, so they are not blamed."""
        del self._parents[parent.slot.name]
        code = parent.process.wait()
        self._unready += not parent.ready
        if not parent.ready and (code != -signal.SIGKILL or self._unready > 3):
            raise DoeError(
                f"the backend {self._study.backend!r} ended the process that imported it "
                f"({ending(code)}):\n{parent.complaint()}"
            )
        parent.close()
        message = f"the parent process of its slot was gone ({ending(code)})"
        return [
            Ended(start.job.run_id, job, None, message, interrupted=True, unseen=True)
            for job, start in parent.starts.items()
        ]


def _end(start: _Start, code: int) -> Ended:
    """Handle the end of a run's keeper."""
    job, timeout = start.job, start.late and code < 0
    return Ended(job.run_id, job.options.job, code, ending(code), timeout, code in STOPPED)
