"""A finished result is committed whatever its backend did, once, into its own study."""

import contextlib
import errno
import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import time

import msgspec
import numpy as np
import psutil
import pytest
from waiting import interrupt_twice, living, until

from doe.errors import DoeError
from doe.running.scheduler import RunOptions
from doe.store.files import RunDir, StudyDir
from doe.store.leases import Watch, acquire, new_owner
from doe.store.plan import augment_plan
from doe.store.progress import Reporter, read_progress
from doe.store.verdicts import Policy, failed_attempts, read_verdict
from tests.command_line import doe


def hostile(planned, deed, factors="A", **settings):
    return planned("hostile_backends:hostile", factors=factors, deed=deed, **settings)


def calls(plan):
    return [len(path.read_text().split()) for path in sorted(plan.directory.glob("*/calls.txt"))]


def results(plan):
    files = StudyDir(plan.directory)
    return [read_verdict(files.run(run.run_id)).result for run in plan.design.runs]


# Results lost or misplaced ------------------------------------------------------------------------


@pytest.mark.parametrize("at_import", [False, True])
def test_a_backend_that_changes_its_directory(planned, doe_run, tmp_path, monkeypatch, at_import):
    """Below its new directory stands another study of the same relative path."""
    other = tmp_path / "other"
    if at_import:
        monkeypatch.setenv("HOSTILE_TARGET", str(other))
        plan = planned("hostile_import:run", factors="A")
    else:
        plan = hostile(planned, "chdir", target=str(other))
    shutil.copytree(plan.directory, other / "runs" / "tiny")
    for run in plan.design.runs:
        (other / "runs" / "tiny" / run.run_id).mkdir()
    before = sorted(path.name for path in other.rglob("*"))
    scheduler = doe_run("runs/tiny", "--cpu", "1", cwd=tmp_path)
    said, _ = scheduler.communicate(timeout=180)
    assert scheduler.returncode == 0, said
    assert [result.state for result in results(plan)] == ["done", "done"]
    assert sorted(path.name for path in other.rglob("*")) == before


def test_a_study_that_was_moved_keeps_its_results_and_the_new_one_stays_empty(
    planned, doe_run, tmp_path
):
    mark = tmp_path / "mark"
    plan = planned("hostile_backends:waiting", factors="A", until=str(mark))
    scheduler = doe_run(plan.directory, "--cpu", "2")
    until(lambda: calls(plan) == [1, 1])
    scheduler.kill()
    old = plan.directory.rename(plan.directory.with_name("old"))
    plan = planned("hostile_backends:waiting", factors="A", until=str(mark))
    for run in plan.design.runs:
        (plan.directory / run.run_id).mkdir()
    mark.touch()
    until(lambda: len(list(old.glob("*/result.json"))) == 2)
    assert not list(plan.directory.glob("*/*"))


def test_a_scheduler_whose_study_was_replaced_says_so(planned, doe_run, tmp_path):
    mark = tmp_path / "mark"
    plan = planned("hostile_backends:waiting", factors="ABC", until=str(mark))
    scheduler = doe_run(plan.directory, "--cpu", "1")
    until(lambda: calls(plan) == [1])
    old = plan.directory.rename(plan.directory.with_name("old"))
    planned("hostile_backends:waiting", factors="ABC", until=str(mark))
    mark.touch()
    said, _ = scheduler.communicate(timeout=180)
    assert scheduler.returncode == 1
    assert "was moved or replaced" in said
    until(lambda: len(list(old.glob("*/result.json"))) == 1)
    assert not list(plan.directory.glob("*/*"))


def test_signs_of_life_do_not_wait_for_the_interpreter_lock(planned, doe_run, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    plan = hostile(planned, "hold the lock", factors="A", pipe=str(pipe))
    scheduler = doe_run(plan.directory, "--cpu", "2")
    until(lambda: calls(plan) == [1, 1])
    (first, _) = plan.directory.glob("*/lease.json")
    for _ in range(2):
        before = first.read_bytes()
        until(lambda before=before: first.read_bytes() != before)
    os.close(os.open(pipe, os.O_WRONLY))
    scheduler.communicate(timeout=180)
    assert scheduler.returncode == 0
    assert calls(plan) == [1, 1]


@pytest.mark.parametrize("fault", ["ESTALE:1", "EIO:2", "ENOSPC:2", "EROFS:1"])
def test_an_error_that_passes_costs_no_result(planned, go, monkeypatch, fault):
    monkeypatch.setenv("DISK_FAULT", fault)
    plan = planned("faulty_disk:run", factors="A")
    number, _ = go(plan)
    assert number["done"] == 2
    assert calls(plan) == [1, 1]
    name, times = fault.split(":")
    log = (plan.directory / "000-r1" / "log.txt").read_text()
    assert log.count(os.strerror(getattr(errno, name))) == int(times)


def test_a_verdict_that_can_never_be_written_stops_the_study(planned, go, monkeypatch):
    monkeypatch.setenv("DISK_FAULT", f"ENOSPC:{10**9}")
    plan = planned("faulty_disk:run", factors="A")
    with pytest.raises(DoeError, match="could not write its verdict"):
        go(plan)
    assert not list(plan.directory.glob("*/result.json"))


@pytest.mark.parametrize(
    "deed",
    [
        *("stdout closed", "stdout none", "stdout replaced", "surrogate", "close all"),
        *("forked child returns", "forked child raises", "own result"),
        *("numpy report", "full report"),
    ],
)
def test_what_a_backend_does_to_its_process_costs_no_result(planned, go, deed):
    plan = hostile(planned, deed)
    number, _ = go(plan)
    assert number["done"] == 2
    assert calls(plan) == [1, 1]
    assert all(result.metrics["y"] == 1.0 for result in results(plan))


@pytest.mark.parametrize(
    ("deed", "words"),
    [
        ("untold error", "its message cannot be printed"),
        ("surrogate error", "ValueError: bad?"),
        ("long error", "ValueError: xxx"),
    ],
)
def test_an_exception_that_cannot_be_told_is_one_failure(planned, go, deed, words):
    plan = hostile(planned, deed)
    with contextlib.suppress(DoeError):  # the same failure everywhere stops the study
        go(plan, cpu=1)
    (first, *_) = [path.parent for path in plan.directory.glob("*/result.json")]
    assert words in read_verdict(RunDir(first)).result.error.reason
    assert (first / "calls.txt").read_text().count("\n") == 1
    assert (first / "result.json").stat().st_size < 1_000_000
    assert (first / "log.txt").stat().st_size < 1_000_000


@pytest.mark.parametrize("reaper", ["ignored", "reaped"])
def test_an_import_that_waits_for_all_children_takes_none_of_ours(planned, go, monkeypatch, reaper):
    """It stands in the training as the import has left it, and nowhere else."""
    monkeypatch.setenv("HOSTILE_REAPER", reaper)
    monkeypatch.setenv("HOSTILE_SECONDS", "0.3")
    plan = planned("hostile_import:run", factors="A")
    assert go(plan)[0]["done"] == 2
    assert [result.metrics["y"] for result in results(plan)] == [1.0, 1.0]
    assert calls(plan) == [1, 1]


def test_pipes_in_the_place_of_log_and_progress_are_not_waited_for(planned, go):
    plan = hostile(planned, "pipes")
    number, _ = go(plan, options=RunOptions(timeout=20.0))
    assert (number["done"], number["failed"]) == (1, 1)
    assert "told to nobody" in results(plan)[1].error.message
    assert calls(plan) == [1, 1]


def test_a_log_without_room_keeps_no_run_from_its_start(tmp_path):
    """Nothing can be written as on a full disk: the line that separates attempts neither."""
    script = (
        "import os, resource, pathlib\n"
        "from doe.store.files import RunDir\n"
        "from doe.store.progress import open_log\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
        f"open_log(RunDir(pathlib.Path({str(tmp_path)!r})), 2)\n"
        "os._exit(7)\n"
    )
    assert subprocess.run([sys.executable, "-c", script]).returncode == 7


def test_an_integer_beyond_all_floats_is_a_divergence(planned, go):
    plan = hostile(planned, "huge integer")
    assert go(plan)[0]["diverged"] == 2


def test_a_heartbeat_writes_into_no_file_of_the_backend(planned, go):
    plan = hostile(planned, "close all", seconds=6.0)
    assert go(plan, cpu=2)[0]["done"] == 2
    assert {path.stat().st_size for path in plan.directory.glob("*/mine-*")} == {0}


def test_numpy_integers_are_steps(tmp_path):
    run = RunDir(tmp_path)
    Reporter(run)(np.int64(3), np.int32(9), y=np.float32(0.5))
    assert read_progress(run).step == 3


def test_two_augmentations_at_once_are_both_kept(planned):
    context = multiprocessing.get_context("fork")  # both begin at once, and neither imports first
    for trial in range(10):
        plan = planned(factors="AB")
        both = [context.Process(target=augment_plan, args=(plan.directory, "1")) for _ in range(2)]
        for process in both:
            process.start()
        for process in both:
            process.join()
        assert [process.exitcode for process in both] == [0, 0]
        text = (plan.directory / "study.toml").read_text()
        assert text.count("[[augment]]") == 2, f"trial {trial}"
        shutil.rmtree(plan.directory)


# Wrong verdicts, endless work ---------------------------------------------------------------------


def command(code):
    return (sys.executable, "-c", code, "{A}", "{run_dir}", "{seed}")


WRITE = "import sys, os, signal; open(sys.argv[2] + '/metrics.json', 'w').write('{}'); "


@pytest.mark.parametrize("name", ["SIGPIPE", "SIGXFSZ", "SIGUSR1"])
def test_a_command_killed_by_a_signal_has_crashed(planned, go, name):
    code = WRITE.format('{{"y": 1.0}}') + (
        f"signal.signal(signal.{name}, signal.SIG_DFL); os.kill(os.getpid(), signal.{name})"
    )
    plan = planned(factors="A", command=command(code))
    number, _ = go(plan, options=RunOptions(policy=Policy(retries=0)))
    assert number["failed"] == 2
    assert {result.error.kind for result in results(plan)} == {"crash"}
    assert name in results(plan)[0].error.reason


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "null", "1e999"])
def test_a_command_can_diverge(planned, go, value):
    plan = planned(factors="A", command=command(WRITE.format(f'{{{{"y": {value}}}}}')))
    number, _ = go(plan)
    assert number["diverged"] == 2


@pytest.mark.parametrize(
    "deed",
    ["terminate", "kill keeper", "own records", "real-time signal"]
    + [f"exit {code}" for code in (0, 74, 75, 76, 143)],
)
def test_no_run_is_tried_more_often_than_the_policy_says(planned, go, deed):
    plan = hostile(planned, deed)
    number, said = go(plan, options=RunOptions(policy=Policy(retries=1)))
    assert number["failed"] == 2, said
    assert calls(plan) == [2, 2]
    for run in plan.design.runs:
        records = failed_attempts(StudyDir(plan.directory).run(run.run_id))
        assert [record.failure.kind for record in records] == ["crash", "crash"]


def test_durations_do_not_hang_on_the_time_of_day(planned, go, monkeypatch):
    plan = planned("hostile_clock:run", factors="A")
    go(plan)
    assert all(0 <= result.provenance["seconds"] < 60 for result in results(plan))


@pytest.mark.parametrize("given", ["inf", "nan", "1e300"])
def test_a_limit_beyond_all_time_is_refused(planned, given):
    study = planned().directory
    for option in ("timeout", "grace"):
        said = doe("run", "--study", study, "--cpu", "1", f"--{option}", given, code=1)
        assert said.stderr.startswith(f"error: {option} {float(given):g}: expected seconds")
        assert not list(study.glob("*/lease.json"))


# Foreign processes, and our own left behind -------------------------------------------------------


def test_a_copy_of_a_study_touches_nothing_of_the_original(planned, doe_run, tmp_path):
    mark = tmp_path / "mark"
    plan = planned("hostile_backends:waiting", factors="A", until=str(mark))
    first = doe_run(plan.directory, "--cpu", "2")
    until(lambda: calls(plan) == [1, 1])
    first.kill()
    pids = [path.read_text().strip() for path in plan.directory.glob("*/calls.txt")]
    copy = shutil.copytree(plan.directory, tmp_path / "copy")
    second = doe_run(copy, "--cpu", "2", "--grace", "0.5")
    until(lambda: len(list(copy.glob("*/lease-2.json"))) == 2)
    interrupt_twice(second)
    second.communicate(timeout=180)
    assert all(living(pid) for pid in pids)
    mark.touch()
    until(lambda: len(list(plan.directory.glob("*/result.json"))) == 2)
    assert not list(copy.glob("*/result.json"))


def test_a_process_that_only_has_the_number_of_an_old_one_is_left_alone(planned, doe_run):
    """Its session is the number in the lease, its start another or even the same."""
    stranger = subprocess.Popen(["sleep", "60"], start_new_session=True)
    plan = planned("traced", factors="A")
    started = __import__("doe.store.leases", fromlist=["x"]).process_started(stranger.pid)
    for start in (started, "1"):
        run = StudyDir(plan.directory).run(plan.design.runs[0].run_id)
        shutil.rmtree(run.path, ignore_errors=True)
        run.path.mkdir()
        owner = msgspec.structs.replace(new_owner(), pid=stranger.pid, started=start)
        acquire(run, owner, Watch())
        scheduler = doe_run(plan.directory, "--cpu", "1")
        said, _ = scheduler.communicate(timeout=180)
        assert scheduler.returncode == 0, said
        assert living(stranger.pid)
    stranger.kill()
    stranger.wait()


@pytest.mark.parametrize("deed", ["leave group", "leave session", "leave fork"])
def test_a_successful_run_leaves_no_process(planned, go, deed):
    plan = hostile(planned, deed)
    assert go(plan)[0]["done"] == 2
    pids = [path.read_text() for path in plan.directory.glob("*/child.txt")]
    assert len(pids) == 2
    assert not [pid for pid in pids if living(pid)]


def test_what_an_import_began_ends_with_its_slot(planned, go, tmp_path, monkeypatch):
    monkeypatch.setenv("HOSTILE_CHILD", str(tmp_path / "children"))
    plan = planned("hostile_import:run", factors="A")
    assert go(plan)[0]["done"] == 2
    pids = (tmp_path / "children").read_text().split()
    assert pids
    until(lambda: not [pid for pid in pids if living(pid)])


def test_a_scheduler_that_dies_while_it_ends_its_runs_leaves_no_process(planned, doe_run):
    plan = planned("stubborn", factors="A")
    scheduler = doe_run(plan.directory, "--cpu", "2", "--grace", "2")
    until(lambda: len(list(plan.directory.glob("*/calls.txt"))) == 2)
    family = psutil.Process(scheduler.pid).children(recursive=True)
    interrupt_twice(scheduler)
    time.sleep(0.5)
    scheduler.kill()
    until(lambda: not [process for process in family if living(process.pid)])


@pytest.mark.parametrize("adopted", [False, True])
def test_a_keeper_that_does_not_answer_leaves_no_process(planned, doe_run, adopted):
    """Stopped, it cannot end what its training has left; its slot does, or else the scheduler."""
    plan = hostile(planned, "stop keeper")
    scheduler = doe_run(plan.directory, "--cpu", "1", "--grace", "0.1")
    stopped = until(lambda: list(plan.directory.glob("*/stopped")))[0]
    pid = (stopped.parent / "child.txt").read_text()
    if adopted:
        keeper = psutil.Process(json.loads((stopped.parent / "lease.json").read_text())["pid"])
        slot = keeper.parent()
        scheduler.kill()
        slot.kill()
        scheduler = doe_run(plan.directory, "--cpu", "1", "--grace", "0.1")
        assert "already running" in until(scheduler.stdout.readline)
    interrupt_twice(scheduler)
    scheduler.communicate(timeout=180)
    assert scheduler.returncode == 130
    assert not living(pid)


@pytest.mark.parametrize("imports", [False, True])
def test_an_import_that_hangs_ends_with_its_scheduler(
    planned, doe_run, tmp_path, monkeypatch, imports
):
    """Killed while the import hangs, or as soon as the process is there that will import."""
    began = tmp_path / "began"
    (tmp_path / "hanging_backend.py").write_text(
        f"import pathlib, time\npathlib.Path({str(began)!r}).touch()\ntime.sleep(600)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    plan = planned("hanging_backend:run", factors="A")
    scheduler = doe_run(plan.directory, "--cpu", "1")
    family = until(lambda: psutil.Process(scheduler.pid).children())
    until(lambda: began.exists() or not imports)
    scheduler.kill()
    until(lambda: not [process for process in family if living(process.pid)])


def test_what_a_killed_keeper_left_is_swept_by_its_mark(planned, doe_run):
    plan = planned("hostile_backends:hostile", factors="A", deed="leave then wait")
    scheduler = doe_run(plan.directory, "--cpu", "1")
    path = until(lambda: list(plan.directory.glob("*/child.txt")))[0]
    pid = until(path.read_text)
    keeper = psutil.Process(int((path.parent / "calls.txt").read_text())).parent()
    slot = keeper.parent()
    os.kill(scheduler.pid, 9)
    slot.kill()
    keeper.kill()
    assert living(pid)
    again = doe_run(plan.directory, "--cpu", "1")
    until(lambda: not living(pid))
    again.kill()
    for run in plan.directory.glob("*/lease*.json"):
        with contextlib.suppress(psutil.NoSuchProcess):
            psutil.Process(json.loads(run.read_text())["pid"]).kill()


# Restarted containers -----------------------------------------------------------------------------

CONTAINER = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child=SIGKILL"]


def test_a_container_that_was_started_again_is_told_from_the_former(planned, tmp_path):
    """Numbers begin at 1 again, and the kernel may give the namespace the same number.

    Then boot, namespace, process number and even the start can be those of the old lease; what
    stands in its place is no keeper, for it does not have the lease open, and is left alone.
    """
    try:
        allowed = subprocess.run([*CONTAINER, "true"], capture_output=True).returncode == 0
    except OSError:
        allowed = False
    if not allowed:
        pytest.skip("this machine does not let us make process namespaces")
    plan = planned("traced", factors="A")
    run = StudyDir(plan.directory).run(plan.design.runs[0].run_id)
    run.path.mkdir()
    code = (
        "import os, subprocess, sys, pathlib, msgspec\n"
        "from doe.cli import main\n"
        "from doe.store.files import RunDir\n"
        "from doe.store.leases import Watch, acquire, machine, new_owner, process_started\n"
        "assert os.getpid() < 10\n"
        "stranger = subprocess.Popen(['sleep', '60'], start_new_session=True)\n"
        "owner = msgspec.structs.replace(new_owner(), machine=machine(), pid=stranger.pid,"
        " started=process_started(stranger.pid))\n"
        "held = acquire(RunDir(pathlib.Path(sys.argv[1])), owner, Watch())\n"
        "held.beat(); os.close(held._file)\n"
        "sys.argv[1:] = ['run', '--study', sys.argv[2], '--cpu', '1']\n"
        "try:\n    main()\nexcept SystemExit as end:\n    code = end.code or 0\n"
        "print('code', code, 'stranger', stranger.poll())\n"
        "stranger.kill()\n"
    )
    began = time.monotonic()
    done = subprocess.run(
        [*CONTAINER, sys.executable, "-c", code, str(run.path), str(plan.directory)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "code 0 stranger None" in done.stdout, done.stdout + done.stderr
    assert run.result.exists()
    assert time.monotonic() - began < 50, "the old lease was waited for"
