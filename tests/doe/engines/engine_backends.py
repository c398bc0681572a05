"""Backends for the engine suite; each leaves what it saw in its run's directory."""

import os
import signal
import time


def value(request):
    return float(sum(bool(level) for level in request.factors.values())) + request.seed


def note(request):
    """Count the executions of a run."""
    with open(request.run_dir / "calls.txt", "a") as file:
        file.write(f"{os.getpid()}\n")


def quick(request):
    note(request)
    return {"y": value(request)}


def watched(request):
    """Say which GPU was given, and when."""
    note(request)
    began = time.time()
    time.sleep(request.settings.get("seconds", 1.0))
    gpu = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    (request.run_dir / "seen.txt").write_text(f"{gpu}|{request.device}|{began}|{time.time()}")
    return {"y": value(request)}


def stepwise(request):
    """Go on from a checkpoint, a step at a time; `begun.txt` holds where each attempt began."""
    note(request)
    checkpoint = request.run_dir / "checkpoint"
    done = int(checkpoint.read_text()) if request.resumed and checkpoint.exists() else 0
    with open(request.run_dir / "begun.txt", "a") as file:
        file.write(f"{done}\n")
    steps = request.settings.get("steps", 10)
    for step in range(done + 1, steps + 1):
        time.sleep(request.settings.get("pause", 0.1))
        checkpoint.with_suffix(".new").write_text(str(step))
        checkpoint.with_suffix(".new").rename(checkpoint)
        request.report(step, steps, y=float(step))
    return {"y": value(request)}


def segfault_at_high(request):
    note(request)
    print("about to crash")
    if request.factors["A"]:
        os.kill(os.getpid(), signal.SIGSEGV)
    return {"y": value(request)}


def wrong(request):
    note(request)
    return {"y": 1 / (request.seed - request.seed)}


def hang_at_high(request):
    note(request)
    while request.factors["A"]:
        time.sleep(0.1)
    return {"y": value(request)}
