"""Ending all processes of a run. Each run is a session of its own, named by its first process."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterable

from doe.store.leases import process_started


def members(session: int) -> list[int]:
    """Living processes of a session."""
    found = []
    for pid in _all_pids():
        with contextlib.suppress(OSError):
            if os.getsid(pid) == session and process_started(pid) is not None:
                found.append(pid)
    return found


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


def end(sessions: Iterable[int], grace: float) -> None:
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
