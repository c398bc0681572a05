"""Waiting for what other processes do, and looking whether they live."""

import signal
import time

import psutil


def until(condition, seconds=90.0):
    """Wait until something is true, and return it."""
    deadline = time.monotonic() + seconds
    while not (answer := condition()):
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.02)
    return answer


def living(pid):
    """Whether a process runs; one that has ended and was not waited for does not."""
    try:
        return psutil.Process(int(pid)).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def interrupt_twice(scheduler):
    """Press Ctrl-C, and once more as soon as `doe run` has told of the first."""
    for told in ("no more runs", "ending the running runs"):
        scheduler.send_signal(signal.SIGINT)
        until(lambda told=told: told in scheduler.stdout.readline())
