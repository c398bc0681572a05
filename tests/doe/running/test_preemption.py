"""SIGTERM with a grace period ends in a checkpoint and costs no attempt."""

import signal
import subprocess
import sys
import time

import psutil
import pytest
from waiting import living, until

from doe.running.scheduler import RunOptions
from doe.running.worker import ExitCode
from doe.store.requests import prepare
from doe.store.verdicts import Policy, failed_attempts, read_verdict

SCRIPT = """
import json, os, signal, sys, time
place = sys.argv[2]
def stop(number, frame):
    time.sleep(0.3)  # a checkpoint takes its time
    open(place + "/checkpoint", "a").write("saved ")
    {ending}
signal.signal(signal.SIGTERM, stop)
open(place + "/calls.txt", "a").write(str(os.getpid()) + " ")
json.dump({{"y": -1.0}}, open(place + "/metrics.json", "w"))  # of the first epoch
while not os.path.exists(place + "/checkpoint"):
    time.sleep(0.02)
json.dump({{"y": 1.0}}, open(place + "/metrics.json", "w"))
"""
ENDINGS = {
    "exit code 0": "os._exit(0)",
    "exit code 9": "os._exit(9)",
    "killed": "os.kill(os.getpid(), 9)",
}


def results(plan):
    return [read_verdict(plan.files.run(run.run_id)).result for run in plan.design.runs]


def found(plan, name):
    return list(plan.directory.rglob(name))


def preempt(plan, scheduler):
    """TERM to `doe run` alone, as to the first process of a container."""
    until(lambda: len(found(plan, "calls.txt")) == 2)
    family = psutil.Process(scheduler.pid).children(recursive=True)
    scheduler.send_signal(signal.SIGTERM)
    said, _ = scheduler.communicate(timeout=180)
    assert scheduler.returncode == 130, said
    assert not [process for process in family if living(process.pid)]
    assert len(found(plan, "checkpoint")) == 2, "both had their time"
    assert not found(plan, "result.json")
    assert not found(plan, "attempt-*.json")


def test_a_function_that_asks_saves_and_goes_on_later(planned, doe_run, go):
    plan = planned("hostile_backends:preemptible", factors="A")
    preempt(plan, doe_run(plan.directory, "--cpu", "2", "--grace", "20"))
    assert go(plan, options=RunOptions(policy=Policy(retries=0)))[0]["done"] == 2
    assert [result.metrics["y"] for result in results(plan)] == [1.0, 1.0]


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_command_gets_the_signal_and_its_time(planned, doe_run, go, ending):
    """And what it leaves then is no result, whatever its exit code."""
    code = SCRIPT.format(ending=ENDINGS[ending]).replace("{", "{{").replace("}", "}}")
    plan = planned(factors="A", command=(sys.executable, "-c", code, "{A}", "{run_dir}", "{seed}"))
    preempt(plan, doe_run(plan.directory, "--cpu", "2", "--grace", "20"))
    assert [path.read_text() for path in found(plan, "checkpoint")] == ["saved "] * 2, (
        "signalled once"
    )
    assert go(plan, options=RunOptions(policy=Policy(retries=0)))[0]["done"] == 2
    assert [result.metrics["y"] for result in results(plan)] == [1.0, 1.0]


def test_a_function_that_never_asks_ends_at_once(planned, doe_run):
    plan = planned("traced", factors="A", seconds=600.0)
    scheduler = doe_run(plan.directory, "--cpu", "2", "--grace", "300")
    until(lambda: len(found(plan, "calls.txt")) == 2)
    scheduler.send_signal(signal.SIGTERM)
    scheduler.communicate(timeout=180)
    assert scheduler.returncode == 130
    assert not any(failed_attempts(plan.files.run(run.run_id)) for run in plan.design.runs)


def test_a_reply_is_committed_though_the_last_flush_hangs(planned, go):
    plan = planned("hostile_backends:hostile", factors="A", deed="flush hangs")
    assert go(plan, cpu=2)[0]["done"] == 2


def test_a_signal_to_the_job_alone_reaches_its_worker(planned):
    """As by --signal=B:TERM@60: the run saves its checkpoint, and costs no attempt."""
    plan = planned("hostile_backends:preemptible", factors="A")
    study, run = plan.files, plan.design.runs[0]
    run_dir = study.run(run.run_id)
    prepare(run_dir, plan.study, run)
    code = (
        "import sys; from pathlib import Path; from doe.store.files import StudyDir\n"
        "from doe.running.engines.slurm.job import Entry, JobStop, execute_entries\n"
        "from doe.running.worker import WorkerOptions\n"
        "study = StudyDir(Path(sys.argv[1]))\n"
        "entry = Entry(sys.argv[2], WorkerOptions(job='one', grace=30.0))\n"
        "sys.exit(execute_entries(study, [entry], JobStop(study.root / 'absent')))\n"
    )
    job = subprocess.Popen([sys.executable, "-c", code, str(study.root), run.run_id])
    until((run_dir.path / "calls.txt").exists)
    time.sleep(0.2)
    job.terminate()
    assert job.wait(180) == ExitCode.INTERRUPTED
    assert (run_dir.path / "checkpoint").exists()
    assert not failed_attempts(run_dir)
