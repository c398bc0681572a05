"""A backend whose import goes elsewhere, leaves a child, and answers SIGTERM its own way."""

import os
import signal
import subprocess

if target := os.environ.get("HOSTILE_TARGET"):
    os.chdir(target)
if place := os.environ.get("HOSTILE_CHILD"):
    child = subprocess.Popen(["sleep", "600"], start_new_session=True)
    with open(place, "a") as file:
        file.write(f"{child.pid}\n")
signal.signal(signal.SIGTERM, signal.SIG_IGN)


def run(request):
    with open(request.run_dir / "calls.txt", "a") as file:
        file.write(f"{os.getpid()}\n")
    return {"y": 1.0}
