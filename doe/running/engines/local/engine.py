"""The engine as the scheduler sees it: a warm parent for each slot, and what it answers."""

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
from doe.running.engines.base import Ended, Job, Slot
from doe.running.engines.local.slot import Answer, Setup, Task
from doe.running.processes import (
    ending,
    module_words,
    shadowing,
    thread_environment,
)
from doe.running.provenance import ask_gpus
from doe.running.worker import STOPPED
from doe.store.leases import process_alive, process_name
from doe.store.timing import IMPORT_EXIT_SECONDS, KILL_SECONDS, LATE_SECONDS, SWEEP_SECONDS
from doe.study.values import Study


class _Parent:
    """A slot's warm parent as the engine sees it."""

    def __init__(self, slot: Slot, setup: Setup, threads: int) -> None:
        environment = os.environ | thread_environment(threads)
        environment["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"  # asking for GPUs opens no context
        environment["CUDA_VISIBLE_DEVICES"] = slot.group.removeprefix("gpu")
        self.errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        # Answers have a pipe of their own: anything may be printed while Python starts.
        self.output, replies = os.pipe()
        self.process = subprocess.Popen(
            [*module_words("doe.running.engines.local.slot"), str(replies)],
            stdin=subprocess.PIPE,
            stdout=self.errors,
            stderr=self.errors,
            env=environment,
            pass_fds=(replies,),
            start_new_session=True,
        )
        os.close(replies)
        self.slot = slot
        self.job: Job | None = None
        self.child = ""
        """Name of the run's process, once it has begun."""
        self.began = 0.0
        self.alive = True
        self.ready = False
        self.buffer = b""
        self.write(setup)

    @property
    def living(self) -> bool:
        """Whether it or its run is still there."""
        return self.process.poll() is None or bool(self.child and process_alive(self.child))

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to it; where it is gone, to the keeper of its run."""
        if self.process.poll() is None and number != signal.SIGKILL:
            self.process.send_signal(number)
        elif self.child and process_alive(self.child):
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(self.child.partition(":")[0]), number)

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
        """The end of what it printed, and what may be the cause."""
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
    """Runs on this machine; see `doe.running.engines.base.Engine`."""

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
        """Nothing: leases tell of runs that an earlier scheduler has left."""
        return ()

    def start(self, jobs: Sequence[Job]) -> None:
        """Hand each run to the warm parent of its slot."""
        for job in jobs:
            parent = self._parents.get(job.slot.name) or self._open(job.slot)
            parent.job, parent.child, parent.began = job, "", time.monotonic()
            parent.write(Task(os.fsencode(job.run_dir.resolve()), job.options))

    def wait(self, seconds: float) -> Sequence[Ended]:
        """Return what has ended, as soon as something has."""
        deadline = time.monotonic() + seconds
        while True:
            ended = self._listen(min(0.1, max(0.0, deadline - time.monotonic())))
            ended += self._check()
            if ended or time.monotonic() >= deadline:
                return ended

    def withdraw(self) -> None:
        """Nothing: a run that is handed to a free slot begins at once."""

    def stop(self, grace: float) -> None:
        """Ask the parents to end their runs and to leave; no process is left.

        Once asked, they do so even if this scheduler dies meanwhile.
        """
        parents = list(self._parents.values())
        for parent in parents:
            parent.signal(signal.SIGTERM)
        busy = any(parent.child for parent in parents)
        deadline = time.monotonic() + (grace + KILL_SECONDS if busy else IMPORT_EXIT_SECONDS)
        while any(parent.living for parent in parents) and time.monotonic() < deadline:
            time.sleep(0.02)
        stubborn = [parent for parent in parents if parent.living and parent.child]
        for parent in stubborn:
            parent.signal(signal.SIGKILL)
        deadline = time.monotonic() + SWEEP_SECONDS
        while any(parent.living for parent in stubborn) and time.monotonic() < deadline:
            time.sleep(0.02)
        for parent in parents:
            parent.process.kill()
            parent.process.wait()
            parent.job = None

    def close(self) -> None:
        """Close the pipes: an idle parent leaves at once, a busy one after its run."""
        for parent in self._parents.values():
            parent.close()
            if not parent.ready:  # an import that hangs would outlive us
                parent.process.terminate()
            if parent.job is None:
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

    def _listen(self, seconds: float) -> list[Ended]:
        """Read what the parents say within some time."""
        if not self._selector.get_map():
            time.sleep(seconds)
            return []
        ended = []
        for key, _ in self._selector.select(seconds):
            parent: _Parent = key.data
            for answer in parent.read():
                if answer.error:
                    cause = "\n".join(filter(None, (answer.error, shadowing(os.getcwd()))))
                    raise DoeError(f"the backend {self._study.backend!r} failed:\n{cause}")
                parent.ready |= answer.ready
                if answer.pid:
                    parent.child = process_name(answer.pid)
                    parent.began = time.monotonic()
                if answer.status is not None:
                    ended.append(self._end(parent, answer.status))
            if not parent.alive:
                self._selector.unregister(parent.output)
        return ended

    def _check(self) -> list[Ended]:
        """See to runs past their time, and to parents that died."""
        ended = []
        for parent in list(self._parents.values()):
            job = parent.job
            if job and self._late(parent):  # its keeper does not keep the time itself
                parent.signal(signal.SIGKILL)
            if not parent.alive and not (parent.child and process_alive(parent.child)):
                del self._parents[parent.slot.name]
                code = parent.process.wait()
                self._unready += not parent.ready
                if not parent.ready and (code != -signal.SIGKILL or self._unready > 3):
                    raise DoeError(
                        f"the backend {self._study.backend!r} ended the process that imported it "
                        f"({ending(code)}):\n{parent.complaint()}"
                    )
                parent.close()
                if job:
                    # Nobody saw how the run's process ended, so it is not held against the run.
                    unseen = bool(parent.child) or not parent.ready
                    message = f"the parent process of its slot was gone ({ending(code)})"
                    ended.append(
                        Ended(job.run_id, job.options.job, None, message, False, unseen, unseen)
                    )
        return ended

    def _late(self, parent: _Parent) -> bool:
        limit = parent.job.options.timeout if parent.job else 0.0
        return limit > 0 and time.monotonic() - parent.began > limit + 3 * LATE_SECONDS

    def _end(self, parent: _Parent, code: int) -> Ended:
        """A run's keeper has ended."""
        job, late = parent.job, self._late(parent)
        assert job is not None
        parent.job, parent.child = None, ""
        message, timeout = ending(code), late and code < 0
        return Ended(job.run_id, job.options.job, code, message, timeout, code in STOPPED)
