"""Backends that do to their process what no backend should."""

import ctypes
import io
import os
import resource
import shutil
import signal
import subprocess
import sys
import time


def note(request):
    """Leave a mark for each execution."""
    with open(request.run_dir / "calls.txt", "a") as file:
        file.write(f"{os.getpid()}\n")


def hostile(request):
    """Do what the settings say, then return as if nothing had happened."""
    note(request)
    answer = DEEDS[request.settings["deed"]](request)
    return {"y": 1.0} if answer is None else answer


def waiting(request):
    """Wait for a file beside the study, then return."""
    note(request)
    while not os.path.exists(request.settings["until"]):
        time.sleep(0.02)
    return {"y": 1.0}


def preemptible(request):
    """Work until asked to stop, save, and be done the next time."""
    note(request)
    if (request.run_dir / "checkpoint").exists():
        return {"y": 1.0}
    while not request.should_stop():
        time.sleep(0.02)
    time.sleep(0.3)
    (request.run_dir / "checkpoint").touch()
    return None


def _flush_hangs(request):
    class Stream(io.TextIOBase):
        def write(self, text):
            return len(text)

        def flush(self):
            time.sleep(600)

    sys.stdout = Stream()


class NoStream:
    """Stands in place of a stream and is none."""

    def write(self, text):
        return len(text)


class UntoldError(Exception):
    def __str__(self):
        raise RuntimeError("no text")


def _raise(error):
    raise error


def _chdir(request):
    os.chdir(request.settings["target"])


def _forked_child_returns(request):
    os.fork()  # both return


def _forked_child_raises(request):
    if os.fork() == 0:
        raise ValueError("in the child")


def _own_result(request):
    (request.run_dir / "result.json").write_text('{"state": "done"}\n')


def _own_records(request):
    (request.run_dir / "attempt-1.json").write_text("mine")
    os._exit(9)


def _pipes(request):
    for name in ("log.txt", "progress.jsonl"):
        (request.run_dir / name).unlink(missing_ok=True)
        os.mkfifo(request.run_dir / name)
    request.report(1, 2, y=1.0)
    if request.factors["A"]:
        raise ValueError("told to nobody")


def _stop_keeper(request):
    _leave(start_new_session=True)(request)
    os.kill(os.getppid(), signal.SIGSTOP)
    (request.run_dir / "stopped").touch()
    time.sleep(600)


def _numpy_report(request):
    import numpy as np

    request.report(np.int64(1), np.int32(2), y=np.float32(0.5))
    request.report(np.int64(2), np.int64(2), **{"bad\udc80": 1.0})


def _report_on_a_full_disk(request):
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    request.report(1, 1, y=1.0)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def _close_all(request):
    os.closerange(0, 256)
    handles = [os.open(request.run_dir / f"mine-{i}", os.O_CREAT | os.O_RDWR) for i in range(64)]
    time.sleep(request.settings.get("seconds", 0.0))
    assert handles


def _hold_the_lock(request):
    """Wait in C, with the interpreter's lock, for somebody who writes into a pipe."""
    ctypes.PyDLL(None).open(os.fsencode(request.settings["pipe"]), os.O_RDONLY)


def _leave(**options):
    def leave(request):
        child = subprocess.Popen(["sleep", "600"], **options)
        (request.run_dir / "child.txt").write_text(str(child.pid))

    return leave


def _leave_a_fork(request):
    pid = os.fork()
    if pid == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        (request.run_dir / "child.txt").write_text(str(os.getpid()))
        time.sleep(600)
        os._exit(0)
    os.waitpid(pid, 0)
    while not (request.run_dir / "child.txt").exists():
        time.sleep(0.01)


DEEDS = {
    "flush hangs": _flush_hangs,
    "chdir": _chdir,
    "stdout closed": lambda request: sys.stdout.close(),
    "stdout none": lambda request: setattr(sys, "stdout", None),
    "stdout replaced": lambda request: setattr(sys, "stdout", NoStream()),
    "surrogate": lambda request: {"y": 1.0, "bad\udc80": 2.0},
    "huge integer": lambda request: {"y": 10**400},
    "untold error": lambda request: _raise(UntoldError()),
    "long error": lambda request: _raise(ValueError("x" * 50_000_000)),
    "surrogate error": lambda request: _raise(ValueError("bad\udc80")),
    "forked child returns": _forked_child_returns,
    "forked child raises": _forked_child_raises,
    "own result": _own_result,
    "own records": _own_records,
    "pipes": _pipes,
    "stop keeper": _stop_keeper,
    "numpy report": _numpy_report,
    "full report": _report_on_a_full_disk,
    "close all": _close_all,
    "hold the lock": _hold_the_lock,
    "terminate": lambda request: os.kill(os.getpid(), signal.SIGTERM) or time.sleep(5),
    "kill keeper": lambda request: os.kill(os.getppid(), signal.SIGKILL) or time.sleep(5),
    "real-time signal": lambda request: os.kill(os.getpid(), signal.SIGRTMIN + 3),
    **{f"exit {code}": lambda request, code=code: os._exit(code) for code in (0, 74, 75, 76, 143)},
    "leave group": _leave(process_group=0),
    "leave session": _leave(start_new_session=True),
    "leave fork": _leave_a_fork,
    "leave then wait": lambda request: _leave()(request) or time.sleep(600),
}


def _note(request):
    """Count an execution outside of the run's directory."""
    with open(request.run_dir.parent / f"calls-{request.run_dir.name}", "a") as file:
        file.write("x\n")


def _emptied(request):
    """Begin with a clean output directory, as many scripts do; wait until the lease is back."""
    _note(request)
    shutil.rmtree(request.run_dir)
    request.run_dir.mkdir()
    end = time.monotonic() + 30
    while not list(request.run_dir.glob("lease*")) and time.monotonic() < end:
        time.sleep(0.05)


def empties(request):
    """Empty the run's directory at once and again at the end."""
    _emptied(request)
    wanted = ["lease.json", "log.txt", "request.json"]  # put back one after the other
    end = time.monotonic() + 30
    while (back := sorted(path.name for path in request.run_dir.iterdir())) != wanted:
        if time.monotonic() > end:
            break
        time.sleep(0.05)
    shutil.rmtree(request.run_dir)
    return {"y": float(back == wanted)}


def empties_and_crashes(request):
    _emptied(request)
    os._exit(7)


def moves_away(request):
    """Keep what an earlier run left under another name, as many scripts do."""
    _note(request)
    request.run_dir.rename(request.run_dir.with_name(f"{request.run_dir.name}.bak"))
    return {"y": 1.0}


def becomes_a_file(request):
    """Leave the weights in the place of the directory."""
    _note(request)
    shutil.rmtree(request.run_dir)
    request.run_dir.write_text("weights")
    return {"y": 1.0}


def becomes_a_link(request):
    """Move the directory to a larger disk, with a link in its place."""
    _note(request)
    scratch = request.run_dir.with_name(f"{request.run_dir.name}.scratch")
    request.run_dir.rename(scratch)
    request.run_dir.symlink_to(scratch.resolve())
    return {"y": 1.0}


def becomes_a_file_and_kills_its_keeper(request):
    """Nobody is left who could put the directory back."""
    becomes_a_file(request)
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(60)


def forbids_writing(request):
    """Protect what it left."""
    _note(request)
    request.run_dir.chmod(0o500)
    return {"y": 1.0}


def empties_and_kills_its_keeper(request):
    """Only in the first attempt, which leaves a mark outside."""
    _note(request)
    mark = request.run_dir.parent / f"calls-{request.run_dir.name}"
    if mark.read_text() == "x\n":
        shutil.rmtree(request.run_dir)
        os.kill(os.getppid(), signal.SIGKILL)
    return {"y": 1.0}


ESCAPES = "\x1b]0;pwned\x07\x1b[2J\x1b[31mred\x9b31m\u202e"


def escaping(request):
    """Print, report and raise what would drive a terminal."""
    print(ESCAPES, flush=True)
    request.report(1, 1, **{f"{ESCAPES}metric": 1.0})
    if request.factors["A"] == "b":
        raise ValueError(ESCAPES)
    return {"y": 1.0, f"{ESCAPES}metric": 2.0}


def unicode_error(request):
    if request.factors["A"] == "b":
        raise ValueError("lr → 0: “bad”")
    return {"y": 1.0}
