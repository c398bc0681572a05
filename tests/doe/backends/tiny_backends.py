"""Backends that end in every way a run can end."""

import ctypes
import math
import os
import random
import signal
import subprocess
import time


def value(request):
    """A number that depends on the levels and the seed alone."""
    levels = sum((i + 1) * bool(level) for i, level in enumerate(request.factors.values()))
    return levels + request.seed / 7


def noop(request):
    return {"y": value(request)}


def seedless(request):
    """Return what the levels alone say."""
    return {"y": value(request) - request.seed / 7}


def threads_told(request):
    """Tells how many threads it may use, by the request and by what libraries read."""
    assert int(os.environ["OMP_NUM_THREADS"]) == request.threads
    return {"y": request.seed, "threads": request.threads}


def noisy(request):
    """A value with chance in it, the same for the same levels and seed; A is worth 3."""
    chance = random.Random(f"{request.seed} {sorted(request.factors.items())}")
    time.sleep(request.settings.get("seconds", 0.0))
    return {"y": 3.0 * request.factors["A"] + chance.gauss(0.0, 0.5)}


def slow_stage(request):
    """Leave a file after a moment."""
    time.sleep(0.1)
    (request.run_dir / "made.txt").write_text("made")


def lucky(request):
    """A value that follows the loss at the start, which is chance; with `shifted` B changes it."""
    chance = random.Random(f"{request.seed} {sorted(request.factors.items())}")
    start = chance.gauss(0.0, 1.0)
    shown = start + 4.0 * request.factors["B"] * bool(request.settings.get("shifted"))
    request.report(0, 2, loss=shown)
    request.report(2, 2, loss=0.0)
    y = 3.0 * request.factors["A"] + start + chance.gauss(0.0, 0.3)
    return {"y": y, "start": shown}


def bent(request):
    """A bowl around 5 that is steeper in lr, with chance in it."""
    chance = random.Random(f"{request.seed} {sorted(request.factors.items())}")
    lr, wd = request.factors["lr"], request.factors["wd"]
    return {"y": 0.2 * lr + 0.3 * (lr - 5.0) ** 2 + 0.1 * wd + chance.gauss(0.0, 0.1)}


def hill(request):
    """Highest at rate 6 and decay 3.2, with a little chance in it; words change nothing."""
    chance = random.Random(f"{request.seed} {sorted(request.factors.items())}")
    rate, decay = (request.factors.get(key, 0.0) for key in ("rate", "decay"))
    return {"y": 90.0 - (rate - 6.0) ** 2 - 2.0 * (decay - 3.2) ** 2 + chance.gauss(0.0, 0.1)}


def traced(request):
    """Leave a mark for each call, to count executions."""
    with open(request.run_dir / "calls.txt", "a") as file:
        file.write(f"{os.getpid()}\n")
    seconds = request.settings.get("seconds", 0.0)
    for step in range(1, 5):
        time.sleep(seconds / 4)
        request.report(step, 4, y=value(request) / step)
    return {"y": value(request)}


def ending(request):
    """End as the first factor's level says, in the high state of factor B."""
    kind = request.settings["kind"]
    print("about to end:", kind)
    if not request.factors["B"]:
        return {"y": value(request)}
    return ENDINGS[kind](request)


def stubborn(request):
    """Neither a request to end nor an exception ends this."""
    with open(request.run_dir / "calls.txt", "a") as file:
        file.write(f"{os.getpid()}\n")
    while True:
        try:
            time.sleep(0.05)
        except BaseException:
            continue


def always_wrong(request):
    return {"y": 1 / (request.seed - request.seed)}


def wrong_in_many_ways(request):
    kind = (KeyError, ValueError, TypeError)[sum(request.factors.values()) % 3]
    if sum(request.factors.values()) % 2:
        raise kind("one way")
    raise kind("another way")


def visible(request):
    return {"y": float(os.environ["CUDA_VISIBLE_DEVICES"])}


def leaves_children(request):
    child = subprocess.Popen(["sleep", "60"])
    (request.run_dir / "child.txt").write_text(str(child.pid))
    return {"y": 1.0}


def memory_when_shared(request):
    """Out of GPU memory while another run is on the same GPU."""
    if list(request.run_dir.parent.glob("busy-*")):
        _gpu_memory(request)
    mark = request.run_dir.parent / f"busy-{os.getpid()}"
    mark.touch()
    time.sleep(0.2)
    mark.unlink()
    return {"y": value(request)}


def _sleep_for_ever(request):
    while True:
        time.sleep(0.05)


def _once(end):
    """End that way in the first attempt only."""

    def run(request):
        return {"y": 1.0} if request.resumed else end(request)

    return run


def _gpu_memory(request):
    raise RuntimeError("CUDA out of memory. Tried to allocate 20.00 GiB")


ENDINGS = {
    "segfault": lambda request: ctypes.string_at(0),
    "exit": lambda request: os._exit(7),
    "kill": lambda request: os.kill(os.getpid(), signal.SIGKILL),
    "hang": _sleep_for_ever,
    "stop": lambda request: os.kill(os.getpid(), signal.SIGSTOP),
    "exception": lambda request: {}["nothing"],
    "sysexit": lambda request: exit(4),
    "nan": lambda request: {"y": math.nan},
    "missing": lambda request: {"z": 1.0},
    "segfault once": _once(lambda request: ctypes.string_at(0)),
    "memory": _gpu_memory,
}


def huge(request):
    """One value beyond all others, as of a training that is about to diverge."""
    far = request.factors["A"] and request.seed == 2
    return {"y": request.settings["far"] if far else 1.0 + request.seed + request.factors["B"]}
