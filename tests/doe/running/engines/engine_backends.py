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


def meet(request, number):
    """Wait until as many runs as that are under way at once, half a minute at most."""
    book = request.run_dir.parent / "met.txt"
    with open(book, "a") as file:
        file.write(f"{request.run_dir.name}\n")
    place = book.read_text().split().index(request.run_dir.name)
    deadline = time.monotonic() + 30
    while len(book.read_text().split()) < (place // number + 1) * number:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{number} runs were never under way at once")
        time.sleep(0.02)


def watched(request):
    """Say which GPU was given, and when; together with some other runs."""
    note(request)
    began = time.time()
    meet(request, request.settings.get("together", 1))
    time.sleep(request.settings.get("seconds", 0.2))
    gpu = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    (request.run_dir / "seen.txt").write_text(f"{gpu}|{request.device}|{began}|{time.time()}")
    return {"y": value(request)}


def stepwise(request):
    """Go on from a checkpoint, a step at a time; `begun.txt` holds where each attempt began.

    At the step `hold` it waits for the gate.
    """
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
        if step == request.settings.get("hold"):
            await_gate(request)
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


def unfinished_at_first(request):
    """Never end in the first attempt, with steps at the low level and without at the high one."""
    note(request)
    step = 0
    while not request.resumed:
        step += 1
        time.sleep(0.2)
        if not request.factors["A"]:
            request.report(step, 1_000_000)
    return {"y": value(request)}


def memory_on_a_share(request):
    """Out of memory where Slurm gave a share of a GPU."""
    note(request)
    if "SLURM_SHARDS_ON_NODE" in os.environ:
        raise RuntimeError("CUDA out of memory")
    return {"y": value(request)}


def flavoured(request):
    note(request)
    (request.run_dir / "flavour.txt").write_text(
        f"{os.environ.get('FLAVOUR')}|{os.environ.get('SLURM_CPUS_PER_TASK')}|{request.threads}"
    )
    return {"y": value(request)}


def gated(request):
    """Wait until the study's directory holds a file `gate`."""
    note(request)
    await_gate(request)
    return {"y": value(request)}


def await_gate(request):
    while not (request.run_dir.parent / "gate").exists():
        time.sleep(0.1)


def preemptible(request):
    """In the first attempt, go on until asked to stop; then save a checkpoint."""
    note(request)
    while not request.resumed:
        if request.should_stop():
            (request.run_dir / "checkpoint").write_text("saved")
            return None
        time.sleep(0.1)
    assert (request.run_dir / "checkpoint").exists()
    return {"y": value(request)}


def prepare(request):
    """A stage: leave what it was given."""
    with open(request.run_dir.parent / "calls.txt", "a") as file:
        file.write(f"{os.getpid()}\n")
    given = os.environ.get("SLURM_CPUS_PER_TASK", "")
    time.sleep(request.settings.get("seconds", 0.0))
    (request.run_dir / "cores.txt").write_text(f"{given} {request.device}")


def prepared(request):
    """A run that uses a stage; with `gated` it waits for the gate."""
    note(request)
    if request.settings.get("gated"):
        await_gate(request)
    stage = request.stages["data"]
    assert (stage.parent / "result.json").exists()
    (request.run_dir / "seen.txt").write_text((stage / "cores.txt").read_text())
    (request.run_dir / "own.txt").write_text(os.environ.get("SLURM_CPUS_PER_TASK", ""))
    return {"y": value(request)}
