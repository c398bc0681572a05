"""Backends of `make chaos` that do harm to their process and count their executions."""

import ctypes
import os
import pathlib
import shutil
import tempfile

from tiny_backends import traced, value


def chdir(request):
    """Change to a directory below which another study has the same relative path."""
    with tempfile.TemporaryDirectory() as place:
        run = pathlib.Path(place) / request.run_dir.parent.name / request.run_dir.name
        run.mkdir(parents=True)
        shutil.copy(request.run_dir / "request.json", run)
        os.chdir(place)
        try:
            return traced(request)
        finally:
            os.chdir("/")


def lock(request):
    """Hold the interpreter lock from the first step to the last."""
    with open(request.run_dir / "calls.txt", "a") as file:
        file.write(f"{os.getpid()}\n")
    ctypes.PyDLL(None).usleep(int(1e6 * request.settings["seconds"]))
    return {"y": value(request)}
