"""The processes of a run: how they begin and end, and how all of them are ended.

Each run is a session of its own, named by its first process.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from doe.errors import DoeError
from doe.store.leases import process_started


def thread_environment(threads: int) -> dict[str, str]:
    """Variables by which numerical libraries learn how many threads they may use."""
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")
    return dict.fromkeys(names, str(threads))


def _load_prctl() -> Any:
    return ctypes.CDLL(None, use_errno=True).prctl if sys.platform == "linux" else None


_PRCTL = _load_prctl()


def end_with_parent() -> None:
    """Let the kernel kill this process when its parent is gone; no orphan trains on."""
    if _PRCTL is not None:
        _PRCTL(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def end_process(task: Callable[[], int]) -> NoReturn:
    """Run a task and leave without the clean-up of libraries, which a crash would skip as well."""
    code = 1
    try:
        code = task()
    except DoeError as error:
        print(f"error: {error}", file=sys.stderr)
    except SystemExit as stop:  # SIGTERM in the moment after the backend returned
        code = stop.code if isinstance(stop.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def forkable() -> bool:
    """Whether a fork of this process is as good as a new one."""
    torch = sys.modules.get("torch")
    cuda = torch is not None and torch.cuda.is_initialized()
    return threading.active_count() == 1 and not cuda


def ending(code: int) -> str:
    """Say how a process ended."""
    if code >= 0:
        return f"ended with exit code {code} and no result"
    name = signal.Signals(-code).name
    return f"killed by {name}" + (" (out of memory, or by hand)" if name == "SIGKILL" else "")


def members(session: int) -> list[int]:
    """Living processes of a session."""
    living = []
    for pid in _all_pids():
        with contextlib.suppress(OSError):
            if os.getsid(pid) == session and process_started(pid) is not None:
                living.append(pid)
    return living


def _all_pids() -> list[int]:
    if os.path.isdir("/proc/self"):
        return [int(name) for name in os.listdir("/proc") if name.isdecimal()]
    import psutil

    return psutil.pids()


def send(session: int, number: signal.Signals) -> None:
    """Send a signal to every process of a session."""
    for pid in members(session):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def sweep(leader: int) -> None:
    """Kill what a dead leader left behind.

    While a process of a session lives, the kernel gives the session's number to no other process;
    a living process of that number means that nothing of the old session is left.
    """
    if process_started(leader) is None:
        send(leader, signal.SIGKILL)


def end_sessions(sessions: Iterable[int], grace: float) -> None:
    """End sessions: TERM, after `grace` seconds KILL; return when no process of them is left."""
    left = {session for session in sessions if members(session)}
    for session in left:
        send(session, signal.SIGTERM)
    deadline = time.monotonic() + grace
    while left:
        late = time.monotonic() >= deadline
        for session in left:
            if late:
                send(session, signal.SIGKILL)
        time.sleep(0.02)
        left = {session for session in left if members(session)}
