"""Processes: identify them reliably, keep them together, end them.

A run has two: its keeper (`worker`) holds the lease and commits, its training (`training`) is the
keeper's child and runs the backend. A command (`program`) is the training's child. The keeper
adopts whatever its training leaves behind, in whatever session or process group, and ends it. No
process is signalled by its number alone: it is our own child that was not waited for, or it
carries the run's mark.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import select
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn, TypeVar

from doe.errors import DoeError
from doe.store.files import RunDir
from doe.store.leases import Lease, holds_file, machine, process_alive
from doe.store.timing import FORK_SECONDS, KILL_SECONDS

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
"""Parent directory of the package `doe`."""
Started = TypeVar("Started")
MARK = "DOE_RUN"
"""Environment variable, and name of an open descriptor, that identify the processes of a run."""


def thread_environment(threads: int) -> dict[str, str]:
    """Return the variables that set the number of threads of numerical libraries."""
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")
    return dict.fromkeys(names, str(threads))


def module_words(module: str) -> list[str]:
    """Return the command line that starts one of our modules, independent of the current directory.

    A `doe.py` or `random.py` there would stand in the way; a backend still finds its modules
    (`doe.running.backend.resolve`).
    """
    return [sys.executable, "-P", "-m", module]


def shadowing(directory: str) -> str:
    """List files of a directory that shadow modules of Python or ours."""
    with contextlib.suppress(OSError):
        names = {name.removesuffix(".py"): name for name in sorted(os.listdir(directory))}
        taken = [names[name] for name in names if name in (*sys.stdlib_module_names, "doe")]
        files = [name for name in taken if _is_foreign_module(os.path.join(directory, name))]
        if files:
            return (
                f"{', '.join(files)} in {directory} shadows a module of that name; rename it if "
                "that is not intended"
            )
    return ""


def _is_foreign_module(path: str) -> bool:
    ours = os.path.abspath(path) == PACKAGE
    package = os.path.isfile(os.path.join(path, "__init__.py")) and not ours
    return path.endswith(".py") or package


def _load_prctl() -> Any:
    return ctypes.CDLL(None, use_errno=True).prctl if sys.platform == "linux" else None


_PRCTL = _load_prctl()


def end_with_parent(number: int = signal.SIGKILL) -> None:
    """Let the kernel end this process when its parent ends; 0 undoes it."""
    if _PRCTL is not None:
        _PRCTL(1, int(number))  # PR_SET_PDEATHSIG


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends."""
    if _PRCTL is not None:
        _PRCTL(36, 1)  # PR_SET_CHILD_SUBREAPER


PROCESS_LIMIT = (
    "no process can be started: the limit of processes is reached (ulimit -u, or pids.max of the "
    "container)"
)


class ProcessLimitError(Exception):
    """The system refuses another process, through no fault of the run."""


def at_process_limit(error: OSError) -> bool:
    """Return whether a process could not be started because there are too many."""
    return error.errno == errno.EAGAIN


def patiently(start: Callable[[], Started]) -> Started:
    """Start a process; at the process limit wait a while, then raise ProcessLimitError."""
    deadline = time.monotonic() + FORK_SECONDS
    while True:
        try:
            return start()
        except OSError as error:
            if not at_process_limit(error):
                raise
            if time.monotonic() > deadline:
                raise ProcessLimitError(PROCESS_LIMIT) from error
        time.sleep(0.1)


def forkable() -> bool:
    """Return whether a fork of this process is equivalent to a new one."""
    torch = sys.modules.get("torch")
    cuda = torch is not None and torch.cuda.is_initialized()
    return threading.active_count() == 1 and not cuda


def end_process(task: Callable[[], int]) -> NoReturn:
    """Run a task and exit without the clean-up of libraries, which a crash would skip as well."""
    code = 1
    try:
        code = task()
    except DoeError as error:
        os.write(2, f"error: {error}\n".encode(errors="replace"))
    except BaseException:
        with contextlib.suppress(Exception):
            os.write(2, traceback.format_exc().encode(errors="replace"))
    finally:
        os._exit(code)


def end_by_signal(number: int) -> NoReturn:
    """End this process by a signal, including one that Python ignores."""
    with contextlib.suppress(OSError, ValueError):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)
    os._exit(128 + number)  # by default, the signal does not end a process


@contextmanager
def counted_interrupts(termination: int = 0) -> Iterator[list[int]]:
    """Count Ctrl-C instead of raising KeyboardInterrupt, in the main thread.

    Parameters
    ----------
    termination : int
        How many of them SIGTERM stands for; 0 leaves it as it is.
    """
    interrupts: list[int] = []
    counted = {signal.SIGINT: 1} | ({signal.SIGTERM: termination} if termination else {})

    def note(number: int, _frame: object) -> None:
        interrupts.extend([number] * counted[signal.Signals(number)])

    former = {}
    try:
        for number in counted:
            former[number] = signal.signal(number, note)
    except ValueError:  # a notebook's worker thread: its own interrupt handling stays
        pass
    try:
        yield interrupts
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


def ending(code: int) -> str:
    """Describe how a process ended, by its exit code or minus the signal's number."""
    if code >= 0:
        return f"ended with exit code {code} and no result"
    name = signal_name(-code)
    return f"killed by {name}" + (" (out of memory, or by a user)" if name == "SIGKILL" else "")


def signal_name(number: int) -> str:
    """Return the usual name of a signal."""
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return f"signal {number}"


# Descendants ------------------------------------------------------------------------------------


def descendants(without: Collection[int] = ()) -> set[int]:
    """Return living processes below this one, except some and what is below them."""
    children: dict[int, list[int]] = {}
    for pid in _all_pids():
        with contextlib.suppress(OSError, ValueError, IndexError):
            with open(f"/proc/{pid}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
            if fields[0] not in (b"Z", b"X"):
                children.setdefault(int(fields[1]), []).append(pid)
    below: set[int] = set()
    left = [os.getpid()]
    while left:
        new = [p for p in children.get(left.pop(), ()) if p not in below and p not in without]
        below.update(new)
        left += new
    return below


def _all_pids() -> list[int]:
    if os.path.isdir("/proc/self"):
        return [int(name) for name in os.listdir("/proc") if name.isdecimal()]
    import psutil

    return psutil.pids()


def has_ended(pid: int, seconds: float, pipe: int | None = None) -> bool:
    """Wait until a child has ended, the pipe has data, or a timeout.

    Tells whether the child has ended; it is still to be waited for.
    """
    handle = os.pidfd_open(pid) if hasattr(os, "pidfd_open") else None
    pipes = [] if pipe is None else [pipe]
    try:
        if handle is not None:
            return handle in select.select([handle, *pipes], [], [], seconds)[0]
        deadline = time.monotonic() + seconds
        while not (ended := os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)):
            if select.select(pipes, [], [], 0.02)[0] or time.monotonic() > deadline:
                break
        return ended is not None
    finally:
        if handle is not None:
            os.close(handle)


def has_children() -> bool:
    """Return whether this process has a child, after reaping those that have ended."""
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, _ = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return True
    return False


def signal_all(pids: Iterable[int], number: int) -> None:
    """Send a signal to processes that are known to be ours."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def end_descendants(keep: Collection[int] = ()) -> None:
    """Kill everything below this process; a descendant cannot be foreign.

    Children to `keep` stay, with what is below them, and are left to be waited for.
    """
    deadline = time.monotonic() + KILL_SECONDS
    while (keep or has_children()) and time.monotonic() < deadline:
        left = descendants(keep)
        if not left:
            return
        signal_all(left, signal.SIGKILL)
        time.sleep(0.002)
        for pid in left:
            with contextlib.suppress(ChildProcessError):  # not a child yet: retry at the next look
                os.waitpid(pid, os.WNOHANG)


# Marks ------------------------------------------------------------------------------------------


def run_mark(run: RunDir, lease: Lease) -> str:
    """Return the mark of the processes of an attempt: its nonce and the very file of its lease.

    In a copy of a study the nonce is the same and the file another.
    """
    try:
        status = os.stat(run.lease(lease.attempt))
    except OSError:
        return ""
    return f"{status.st_dev}:{status.st_ino}:{lease.nonce}"


def mark_process(mark: str) -> None:
    """Mark this process and all that it forks (a descriptor) or executes (a variable)."""
    os.environ[MARK] = mark
    if hasattr(os, "memfd_create"):
        with contextlib.suppress(OSError):
            os.memfd_create(f"{MARK}:{mark}")  # closed when the process ends


def _is_marked(pid: int, mark: str) -> bool:
    with contextlib.suppress(OSError), open(f"/proc/{pid}/environ", "rb") as file:
        if f"{MARK}={mark}".encode() in file.read().split(b"\0"):
            return True
    with contextlib.suppress(OSError):
        for handle in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/{pid}/fd/{handle}").startswith(f"/memfd:{MARK}:{mark}"):
                    return True
    return False


def sweep_marked(mark: str) -> None:
    """Kill what the dead processes of an attempt have left on this machine."""
    if not mark or not hasattr(os, "pidfd_open"):
        return
    for pid in _all_pids():
        if pid != os.getpid() and _is_marked(pid, mark):
            with contextlib.suppress(OSError):
                handle = os.pidfd_open(pid)
                try:
                    if _is_marked(pid, mark):  # still the process that was examined
                        signal.pidfd_send_signal(handle, signal.SIGKILL)
                finally:
                    os.close(handle)


def end_keepers(keepers: Collection[tuple[RunDir, Lease]], grace: float) -> None:
    """End runs of another scheduler: TERM to their keepers, which end all of their processes.

    A keeper is known by boot, namespace, process number, start time and the lease that it has open.
    """
    for number, seconds in ((signal.SIGTERM, grace + KILL_SECONDS), (signal.SIGKILL, 5.0)):
        living = [pair for pair in keepers if _is_keeper(*pair)]
        signal_all((lease.pid for _, lease in living), number)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and any(_is_keeper(*pair) for pair in living):
            time.sleep(0.02)
    for run, lease in living:  # killed keepers, whose slot may be gone
        sweep_marked(run_mark(run, lease))


def _is_keeper(run: RunDir, lease: Lease) -> bool:
    alive = lease.machine == machine() and process_alive(lease.process)
    return alive and holds_file(lease.pid, run.lease(lease.attempt)) is True
