"""A backend whose import goes elsewhere, leaves a child, and answers signals its own way."""

import contextlib
import os
import signal
import subprocess
import time

if target := os.environ.get("HOSTILE_TARGET"):
    os.chdir(target)
if place := os.environ.get("HOSTILE_CHILD"):
    child = subprocess.Popen(["sleep", "600"], start_new_session=True)
    with open(place, "a") as file:
        file.write(f"{child.pid}\n")
signal.signal(signal.SIGTERM, signal.SIG_IGN)


def reap(_number, _frame):
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


WANTED = {"": signal.SIG_DFL, "ignored": signal.SIG_IGN, "reaped": reap}[
    os.environ.get("HOSTILE_REAPER", "")
]
signal.signal(signal.SIGCHLD, WANTED)


def run(request):
    with open(request.run_dir / "calls.txt", "a") as file:
        file.write(f"{os.getpid()}\n")
    time.sleep(float(os.environ.get("HOSTILE_SECONDS", "0")))
    return {"y": float(signal.getsignal(signal.SIGCHLD) == WANTED)}
