"""Stages, and runs that use what they leave."""

import os
import random
import time


def note(path, text):
    with open(path, "a") as file:
        file.write(f"{text}\n")


def prepare(request):
    """Leave a number by levels and seed; note each call outside of what is handed over."""
    note(request.run_dir.parent / "calls.txt", os.getpid())
    time.sleep(request.settings.get("seconds", 0.0))
    if request.settings.get("fails") in (*request.factors.values(), "all"):
        raise ValueError("no data today")
    if "leaves" in request.settings:
        return
    if "linked" in request.settings:
        (request.run_dir / "data").symlink_to(request.settings["linked"])
    if request.settings.get("once") and not (request.run_dir.parent / "lease-2.json").exists():
        os.kill(os.getpid(), 9)
    before = [float((path / "value.txt").read_text()) for path in request.stages.values()]
    levels = sum((i + 1) * bool(level) for i, level in enumerate(request.factors.values()))
    (request.run_dir / "value.txt").write_text(str(levels + request.seed / 7 + sum(before)))


def train(request):
    """Read the stages that are handed over, which must be done."""
    note(request.run_dir / "calls.txt", os.getpid())
    time.sleep(request.settings.get("seconds", 0.0))
    stages = [float((path / "value.txt").read_text()) for path in request.stages.values()]
    for path in request.stages.values():
        assert (path.parent / "result.json").exists(), "begun before its stage"
    return {"y": 10 * request.factors["C"] + sum(stages)}


def blind(request):
    """Never look at a stage."""
    return {"y": float(request.factors["C"])}


def draw(request):
    """Leave an error of its own, as a tokenizer that is learnt on a random part of a text."""
    error = random.Random(f"stage {request.seed} {request.factors}").gauss(0, 1)
    (request.run_dir / "error.txt").write_text(str(error))


def drawn(request):
    """The error of the stage, that of the run, and 3 of C."""
    error = random.Random(f"run {request.seed} {request.factors}").gauss(0, 0.1)
    stage = float((request.stages["data"] / "error.txt").read_text())
    return {"y": 3 * request.factors["C"] + stage + error}
