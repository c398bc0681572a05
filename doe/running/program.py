"""The process of a command: forked in advance, then given its program, read and waited for.

A fork of a Python process costs more than all that follows; a slot makes it while the run before
is still under way.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import re
import select
import signal
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import NamedTuple, NoReturn

from doe.errors import DoeError
from doe.running.processes import end_with_parent, has_ended, patiently
from doe.store.timing import COMMAND_POLL_SECONDS

Listener = Callable[[str], None]
CHUNK_BYTES = 65536
MOST_DESCRIPTORS = 65536
RESET = (signal.SIGTERM, signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD)
"""Signals whose Python handler or ignored state a program must not inherit."""


class Call(NamedTuple):
    """A command and its streams."""

    words: list[str]
    cwd: Path
    environment: Mapping[str, str] = {}
    """Its additions to our environment."""


class Program:
    """A child on standby to become a program; it ends with this process."""

    def __init__(self) -> None:
        self._channel, theirs = socket.socketpair()
        parent = os.getpid()
        try:
            self.pid = os.fork()
        except OSError:
            self._channel.close()
            theirs.close()
            raise
        if self.pid == 0:
            self._channel.close()
            _stand_by(theirs, parent)
        theirs.close()

    def start(self, call: Call, output: int, errors: int) -> None:
        """Let it become the program, with these descriptors as its streams.

        Raises
        ------
        OSError, ValueError
            As the system or Python says why it cannot; the process is gone then.
        """
        # Lines arrive as they are printed.
        environment = {**os.environ, "PYTHONUNBUFFERED": "1", **call.environment}
        data = pickle.dumps((call.words, str(call.cwd), environment))
        refusal = b""
        with contextlib.suppress(ConnectionError), self._channel as channel:  # its end shows
            socket.send_fds(channel, [len(data).to_bytes(8, "little")], [output, errors])
            channel.sendall(data)
            refusal = channel.recv(CHUNK_BYTES)  # empty if it has become the program
        if refusal:
            self.wait()
            raise pickle.loads(refusal)

    def wait(self) -> int:
        """Wait for its end; return its exit code, or minus a signal's number."""
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def terminate(self) -> None:
        """Ask it to end. It is not waited for yet, so its number is still its own."""
        os.kill(self.pid, signal.SIGTERM)

    def kill(self) -> None:
        """Kill it and its process group."""
        with contextlib.suppress(ProcessLookupError):  # it has none yet
            os.killpg(self.pid, signal.SIGKILL)
        os.kill(self.pid, signal.SIGKILL)


def _stand_by(channel: socket.socket, parent: int) -> NoReturn:
    """Wait in the new process for a program, and become it."""
    try:
        end_with_parent()
        if os.getppid() != parent:  # died before the kernel was told
            os._exit(0)
        os.setpgid(0, 0)  # `kill 0` in a script means the script
        for number in RESET:
            signal.signal(number, signal.SIG_DFL)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.closerange(3, channel.fileno())
        os.closerange(channel.fileno() + 1, MOST_DESCRIPTORS)
        with contextlib.suppress(OSError):  # touches the memory that the real call needs
            os.execvpe("/", ["/"], {})
        size, handles, _, _ = socket.recv_fds(channel, 8, 2)
        left, data = int.from_bytes(size, "little"), b""
        while left > len(data) and (chunk := channel.recv(left - len(data))):
            data += chunk
        if not data or len(data) < left:  # no run is left for it
            os._exit(0)
        words, cwd, environment = pickle.loads(data)
        for handle, stream in zip(handles, (1, 2), strict=True):
            os.dup2(handle, stream)
            os.close(handle)
        os.chdir(cwd)
        os.execvpe(words[0], words, environment)
    except Exception as error:
        with contextlib.suppress(OSError):
            channel.sendall(pickle.dumps(error))
    finally:
        os._exit(127)


def run(
    call: Call,
    program: Program | None,
    listeners: Sequence[Listener],
    poll: Callable[[], None],
    should_stop: Callable[[], bool],
) -> int:
    """Run a program to its end; pass on its output line by line to the listeners.

    Parameters
    ----------
    program
        One that stands by, if any.
    poll
        Called now and then while it runs, and at its end.
    should_stop
        Whether the run is asked to end early; SIGTERM is passed on.
    """
    program = program or patiently(Program)
    pipe, output = os.pipe() if listeners else (-1, 1)
    try:
        try:
            program.start(call, output, output if listeners else 2)
        except OSError as error:
            raise _not_started(call.words[0], error) from error
        finally:
            if listeners:
                os.close(output)
        try:
            with _passing_on(program, should_stop):
                if listeners:
                    _listen(program.pid, pipe, listeners, poll)
                while not has_ended(program.pid, COMMAND_POLL_SECONDS):
                    poll()
        except BaseException:
            program.kill()
            program.wait()
            raise
    finally:
        if listeners:
            os.close(pipe)
    code = program.wait()
    poll()
    return code


def _not_started(program: str, error: OSError) -> DoeError:
    """Explain why a program could not be started, and how to fix it."""
    if isinstance(error, FileNotFoundError):
        reason = "no such program here or on the PATH"
    elif isinstance(error, PermissionError):
        reason = (
            "it is not executable; run chmod +x on it, or put its interpreter first, such as sh "
            "or python"
        )
    else:
        reason = str(error.strerror)
    return DoeError(f"cannot start {program!r}: {reason}")


@contextlib.contextmanager
def _passing_on(program: Program, should_stop: Callable[[], bool]) -> Iterator[None]:
    """Pass SIGTERM on to the program, once."""
    former = signal.getsignal(signal.SIGTERM)
    passed: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        if not passed:
            passed.append(number)
            program.terminate()
        if callable(former):
            former(number, frame)

    if not callable(former):  # `doe try`
        yield
        return
    signal.signal(signal.SIGTERM, note)
    try:
        if should_stop():  # requested before it was started
            program.terminate()
        yield
    finally:
        signal.signal(signal.SIGTERM, former)


def _listen(pid: int, pipe: int, listeners: Sequence[Listener], poll: Callable[[], None]) -> None:
    """Pass on output until the program ends, even if a child of it keeps the pipe open."""
    rest = b""
    while True:
        ended = has_ended(pid, COMMAND_POLL_SECONDS, pipe)
        ready, _, _ = select.select([pipe], [], [], 0.0)
        chunk = os.read(pipe, CHUNK_BYTES) if ready else b""
        with contextlib.suppress(OSError):  # a run must not fail because of its log
            view = memoryview(chunk)
            while view:
                view = view[os.write(1, view) :]
        *lines, rest = re.split(rb"[\r\n]", rest + chunk)
        rest = rest[-CHUNK_BYTES:]
        ended = not chunk and (bool(ready) or ended)
        for line in [*lines, rest] if ended else lines:
            for listen in listeners:
                listen(line.decode(errors="replace"))
        if ended:
            return
        poll()
