"""Backends of `make chaos` that do harm to their process and count their executions."""

import ctypes
import os
import pathlib
import shutil
import tempfile
import time

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


def empties(request):
    """Empty the run's directory at once and in the end; executions are counted outside of it."""
    with open(request.run_dir.parent / f"calls-{request.run_dir.name}.txt", "a") as file:
        file.write(f"{os.getpid()}\n")
    shutil.rmtree(request.run_dir, ignore_errors=True)
    request.run_dir.mkdir(exist_ok=True)
    time.sleep(request.settings["seconds"])
    for path in request.run_dir.iterdir():
        path.unlink(missing_ok=True)
    return {"y": value(request)}


def lock(request):
    """Hold the interpreter lock from the first step to the last."""
    with open(request.run_dir / "calls.txt", "a") as file:
        file.write(f"{os.getpid()}\n")
    ctypes.PyDLL(None).usleep(int(1e6 * request.settings["seconds"]))
    return {"y": value(request)}


def stage(request):
    """Leave the levels and the seed, in two steps: half of it is nothing to train with."""
    with open(request.run_dir.parent / "calls.txt", "a") as file:
        file.write(f"{os.getpid()}\n")
    for name, directory in request.stages.items():
        check_stage(request.run_dir.parent, directory, name)
    (request.run_dir / "levels.txt").write_text(str(sum(map(bool, request.factors.values()))))
    time.sleep(request.settings["seconds"])
    (request.run_dir / "seed.txt").write_text(str(request.seed))


def check_stage(own, directory, name):
    """Note where a stage is used that is not done."""
    if not (directory.parent / "result.json").exists():
        (own / "early.txt").write_text(name)


def stages(request):
    """Train with what the stages have left."""
    with open(request.run_dir / "calls.txt", "a") as file:
        file.write(f"{os.getpid()}\n")
    for name, directory in request.stages.items():
        check_stage(request.run_dir, directory, name)
    time.sleep(request.settings["seconds"])
    first = int((request.stages["data"] / "levels.txt").read_text())
    seed = int((request.stages["raw"] / "seed.txt").read_text())
    levels = first + 2 * request.factors["B"] + 3 * request.factors["C"]
    return {"y": levels + seed / 7}
