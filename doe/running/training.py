"""The process that runs a backend, separate from the keeper that commits its outcome.

It gets nothing of the keeper but a piece of shared memory for its answer, which no `os.close`,
`os.chdir` or full disk can take away. It ends with its keeper.
"""

from __future__ import annotations

import contextlib
import faulthandler
import io
import mmap
import os
import pickle
import select
import signal
import socket
import sys
import traceback
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import msgspec

from doe.errors import DoeError
from doe.numbers import cell_text
from doe.running.backend import Backend, CommandBackend, call, resolve
from doe.running.processes import (
    ProcessLimitError,
    adopt_orphans,
    end_with_parent,
    has_children,
    has_ended,
    mark_process,
    patiently,
    thread_environment,
)
from doe.running.provenance import backend_files
from doe.store.files import RunDir, encodable
from doe.store.progress import Reporter, open_log, write_log
from doe.store.requests import RunRequest
from doe.store.stages import DIGEST, RECIPE, content_digest, is_present, recipe, take_over
from doe.store.timing import IDLE_SECONDS
from doe.store.verdicts import FILES, UNREAD, Failure, FailureKind, Result
from doe.study.values import OWN, MetricsSection

REPLY_BYTES = 1 << 24
"""Room for a reply; memory that is never written costs nothing."""
MESSAGE_CHARACTERS = 10_000
TRACEBACK_CHARACTERS = 100_000


class SharedReply:
    """A result passed from a training to its keeper through shared memory."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, REPLY_BYTES)

    def write(self, result: Result) -> None:
        """Write the result; its length comes last, so that a partial one does not count."""
        raw = msgspec.json.encode(result)
        if len(raw) > REPLY_BYTES - 8:
            size = cell_text(len(raw) / 1e6, "int")
            text = f"the backend returned {size} MB of metrics; expected less than 16"
            raw = msgspec.json.encode(Result("failed", error=Failure("exception", text)))
        self._memory[8 : 8 + len(raw)] = raw
        self._memory[:8] = len(raw).to_bytes(8, "little")

    @property
    def written(self) -> bool:
        """Return whether a result was written."""
        return any(self._memory[:8])

    def read(self) -> Result | None:
        """Return the result, if there is one."""
        length = int.from_bytes(self._memory[:8], "little")
        if not length:
            return None
        try:
            return msgspec.json.decode(self._memory[8 : 8 + length], type=Result)
        except msgspec.MsgspecError:
            return None


class Training(NamedTuple):
    """Everything a training needs to know."""

    run: RunDir
    """Its directory, by the descriptor that its keeper holds."""
    run_dir: Path
    """The directory as the backend sees it."""
    request: RunRequest
    attempt: int
    device: str
    timeout: float
    alone: bool
    mark: str
    stages: dict[str, dict[str, str]]
    """Stages that it uses: the execution of each, and the digest of its output."""


class ForkedTraining:
    """A training process on standby until it receives its run.

    It is forked before the run is known where that saves time (`doe.running.engines.local`).
    """

    def __init__(self, backend: Backend | None, on_child: Any = None, private: int = -1) -> None:
        """Fork it; `private` is a descriptor that it does not inherit."""
        self.reply = SharedReply()
        self._channel, theirs = socket.socketpair()
        try:
            self.pid = patiently(os.fork)
        except BaseException:
            self._channel.close()
            theirs.close()
            raise
        if self.pid == 0:
            self._channel.close()
            if private >= 0:
                os.close(private)
            if on_child is not None:
                signal.signal(signal.SIGCHLD, on_child)
            train(theirs, backend, self.reply)
        theirs.close()
        self._listening = isinstance(backend, CommandBackend)
        """Whether it may report that it has left its slot."""

    def begin(self, training: Training) -> None:
        """Start it."""
        with contextlib.suppress(OSError):  # if it is gone, its end shows
            self._channel.sendall(pickle.dumps(training))
            self._channel.shutdown(socket.SHUT_WR)

    def wait(self, seconds: float) -> bool:
        """Wait until it has ended or left its slot, or a timeout; return whether it ended."""
        return has_ended(self.pid, seconds, self._channel.fileno() if self._listening else None)

    def has_left(self) -> bool:
        """Return whether it has left its slot since the last call: its program has ended well."""
        if not self._listening:
            return False
        try:
            said = self._channel.recv(1, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        self._listening = False
        return bool(said)


def _leave(channel: socket.socket) -> None:
    """Tell the keeper that this slot is free, unless the program has left processes behind."""
    if not has_children():
        with contextlib.suppress(OSError):
            channel.send(b"1")


class Interrupted(SystemExit):
    """SIGTERM arrived."""


class ShouldStop:
    """`request.should_stop` of a backend: whether to save a checkpoint and return.

    SIGTERM ends a backend that never asks at once, by an exception.
    """

    def __init__(self) -> None:
        self.requested = self.asks = False

    def __call__(self) -> bool:
        self.asks = True
        return self.requested

    def note(self, _number: int, _frame: object) -> None:
        """Record that SIGTERM arrived."""
        self.requested = True
        if not self.asks:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            raise Interrupted(1)


def train(channel: socket.socket, backend: Backend | None, reply: SharedReply) -> NoReturn:
    """Run the backend in this process, which was forked for it, and end it."""
    own, training = os.getpid(), None
    try:
        end_with_parent()
        os.setsid()
        if isinstance(backend, CommandBackend):
            backend.leave = lambda: _leave(channel)
            adopt_orphans()
            with contextlib.suppress(OSError):  # no room to fork one in advance
                backend.stand_by()
        if not select.select([channel], [], [], IDLE_SECONDS)[0]:
            _rehearse(backend)
        raw = b""
        while chunk := channel.recv(1 << 16):
            raw += chunk
        if not isinstance(backend, CommandBackend):
            channel.close()
        if not raw:  # its keeper has no run for it
            os._exit(0)
        training = pickle.loads(raw)
        assert isinstance(training, Training)
        os.environ.update(thread_environment(training.request.threads))
        mark_process(training.mark)
        open_log(training.run, training.attempt)
        should_stop = ShouldStop()
        _arm(training.timeout, should_stop)
        result = _outcome(training, backend, own, should_stop)
        if os.getpid() == own:  # and not a child that the backend forked and that returned too
            with contextlib.suppress(Exception):
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
            faulthandler.cancel_dump_traceback_later()
            reply.write(result)
            _flush()
            os._exit(0)
    except Interrupted:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)
    except BaseException as error:  # ours, not the backend's
        if training is not None:
            write_log(training.run, traceback.format_exc())
        reason = f"the run's process could not start: {type(error).__name__}: {error}"
        reply.write(Result("failed", error=Failure("crash", encodable(reason))))
    finally:
        os._exit(1)


EXAMPLE = RunRequest(
    "", "run", "", 0, 1, 0, "command", ("true",), {}, {}, ("y",), (), MetricsSection(), cwd=OWN
)


def _rehearse(backend: Backend | None) -> None:
    """Do what precedes a run, so that the memory it writes to is copied in advance."""
    example = Training(RunDir(Path("run")), Path("run"), EXAMPLE, 1, "cpu", 0.0, True, "", {})
    with contextlib.suppress(Exception):
        training = pickle.loads(pickle.dumps(example))
        os.environ.update(thread_environment(training.request.threads))
        backend_files(EXAMPLE.backend, EXAMPLE.command)
        Reporter(training.run)
        if isinstance(backend, CommandBackend):
            backend.rehearse(training.request)


def _outcome(
    training: Training, backend: Backend | None, own: int, should_stop: ShouldStop
) -> Result:
    try:
        request = training.request
        called = backend or resolve(request.backend, request.command)
        return _call(training, called, should_stop)
    except Interrupted:
        raise
    except ProcessLimitError as error:
        return Result("failed", error=Failure("process-limit", str(error)))
    except BaseException as error:
        if should_stop.requested:  # it has stopped: no reply is expected
            raise Interrupted(1) from error
        return Result("failed", error=_failure(error, training, own == os.getpid()))


def _call(training: Training, backend: Backend, should_stop: ShouldStop) -> Result:
    request = training.request
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(request.threads)
    report, resumed = Reporter(training.run), training.attempt > 1
    origin: dict[str, Any] = {}
    if request.backend == "command" or request.stage:
        origin[FILES] = backend_files(
            request.backend, request.command
        )  # as they are when it starts
    if request.stage:
        return _stage_result(training, backend, should_stop, origin)
    reply = call(backend, request, training.run_dir, training.device, report, resumed, should_stop)
    values = {name: v if abs(v) < float("inf") else None for name, v in reply.metrics.items()}
    origin |= _gpu_memory()
    if reply.unread:
        origin[UNREAD] = list(reply.unread)
    if reply.not_finite:
        return Result("diverged", values, Failure("diverged", reply.not_finite), origin)
    return Result("done", values, None, origin)


def _stage_result(
    training: Training, backend: Backend, should_stop: ShouldStop, origin: dict[str, Any]
) -> Result:
    """Take a stage over from another study, or execute it, and check its output."""
    request, run = training.request, RunDir(training.run_dir)
    origin[RECIPE] = recipe(request, origin[FILES], training.stages)
    taken = take_over(run, origin[RECIPE]) if request.reuse else {}
    if not taken:
        resumed = training.attempt > 1
        report = Reporter(training.run)
        call(backend, request, run.path, training.device, report, resumed, should_stop)
    if should_stop.requested:
        raise Interrupted(1)
    if not is_present(run):
        where = "{stage_dir}" if request.backend == "command" else "request.run_dir"
        raise DoeError(
            f"the stage {request.stage} wrote nothing to {where}, so its runs have no input"
        )
    return Result("done", {}, None, origin | taken | {DIGEST: content_digest(run.out)})


def _gpu_memory() -> dict[str, float]:
    """Return the peak GPU memory of this process in MB as torch reports it; nothing without a
    GPU."""
    torch = sys.modules.get("torch")
    with contextlib.suppress(Exception):
        if torch is not None and torch.cuda.is_initialized():
            return {"gpu_memory": torch.cuda.max_memory_reserved() / 2**20}
    return {}


def _arm(timeout: float, should_stop: ShouldStop) -> None:
    """Record SIGTERM; end a hang with its stack in the log."""
    with contextlib.suppress(Exception):
        faulthandler.enable(file=2, all_threads=False)
        if timeout > 0:
            faulthandler.dump_traceback_later(timeout, exit=True, file=2)
    signal.signal(signal.SIGTERM, should_stop.note)
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _failure(error: BaseException, training: Training, to_log: bool) -> Failure:
    name, message = type(error).__name__, _bounded(_text(error), MESSAGE_CHARACTERS)
    memory = name == "OutOfMemoryError" or "CUDA out of memory" in message
    kind: FailureKind = "gpu-memory" if memory else "exception"
    if isinstance(error, DoeError):  # a command that failed, or an invalid reply
        write_log(training.run, f"doe: {message}\n")
        return Failure(kind, message, alone=training.alone)
    frames = error.__traceback__.tb_next if error.__traceback__ else None
    try:
        lines = traceback.format_exception(type(error), error, frames)
        text = _bounded(encodable("".join(lines)), TRACEBACK_CHARACTERS)
    except Exception:  # even its traceback cannot be printed
        text = name
    if to_log:
        write_log(training.run, text)
    return Failure(kind, message, name, text, (), training.alone)


def _text(error: BaseException) -> str:
    try:
        return encodable(str(error))
    except Exception as another:
        return f"(its message cannot be printed: {type(another).__name__})"


def _bounded(text: str, most: int) -> str:
    """Shorten a text to its beginning and its end."""
    if len(text) <= most:
        return text
    return f"{text[: most // 2]}\n… {len(text) - most} characters …\n{text[-most // 2 :]}"


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            if isinstance(stream, io.TextIOBase):
                stream.flush()
