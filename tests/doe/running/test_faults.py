"""A process that ends at any step of lease and commit loses nothing and tears nothing."""

import json
import os
from pathlib import Path

import pytest

from doe.running.worker import Prepared, WorkerOptions, record_crash, work
from doe.store import files
from doe.store.files import RunDir
from doe.store.leases import Watch, acquire, new_owner
from doe.store.requests import RunRequest, request_bytes
from doe.store.verdicts import (
    Failure,
    Policy,
    Result,
    checksum,
    commit,
    decode_result,
    read_verdict,
    record_failure,
    sweep_leftovers,
)

COMMITTED = Result("done", {"y": 2.0}, None, {"request": ""})
FAILED = Result("failed", {}, Failure("exception", "no"), {"request": ""})


def good(request):
    return {"y": 2.0}


def bad(request):
    raise ValueError("no")


def nothing_before(run):
    return WorkerOptions()


def dead_holder(run):
    """A process that took the lease and is dead."""
    in_child(lambda: acquire(run, new_owner(), Watch()))
    return WorkerOptions()


def damaged_verdict(run):
    commit(run, COMMITTED, "x")
    run.result.write_bytes(run.result.read_bytes()[:-9])
    return WorkerOptions()


def failed_verdict(run):
    in_child(lambda: acquire(run, new_owner(), Watch()))
    record_failure(run, 1, FAILED, "x")
    commit(run, FAILED, "x")
    return WorkerOptions(replace=checksum(run.result.read_bytes()))


def wrongly_set_aside(run):
    """A good verdict that a paused process had moved away before it was killed."""
    commit(run, COMMITTED, "x")
    os.rename(run.result, run.aside("damaged", 1))
    return WorkerOptions()


def working(backend):
    return lambda run, order: work(run, order, Prepared(backend, {}))


def crashing(run, order):
    """What a scheduler writes when a worker died with its lease."""
    record_crash(run, new_owner(), Policy(retries=0), "killed by SIGSEGV")


SCENES = {
    "new run": (nothing_before, working(good)),
    "failing run": (nothing_before, working(bad)),
    "takeover": (dead_holder, working(good)),
    "damaged verdict": (damaged_verdict, working(good)),
    "failed verdict again": (failed_verdict, working(good)),
    "verdict put back": (wrongly_set_aside, working(good)),
    "crash on record": (dead_holder, crashing),
}


def in_child(task):
    """Do something in a process of its own; return its exit code."""
    pid = os.fork()
    if pid == 0:
        code = 99
        try:
            task()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def exit_at(number):
    """Replace the mark between system calls by one that ends the process at the n-th."""
    count = 0

    def step(name):
        nonlocal count
        count += 1
        if count == number:
            os._exit(50)

    files.fault_point = step


def count_steps(task, place: Path):
    def counted():
        names = []
        files.fault_point = names.append
        task()
        place.write_text(json.dumps(names))

    assert in_child(counted) == 0
    return json.loads(place.read_text())


@pytest.fixture
def fresh(planned, tmp_path):
    plan = planned()

    def make(name):
        run = RunDir(tmp_path / "faults" / name)
        run.path.mkdir(parents=True)
        run.request.write_bytes(request_bytes(plan.study, plan.design.runs[0]))
        return run

    return make


def assert_nothing_is_torn(run):
    for path in run.path.iterdir():
        if path.name == "result.json" or path.name.startswith("attempt-"):
            damaged = path.name == "result.json" and b"checksum" not in path.read_bytes()[-80:]
            assert decode_result(path.read_bytes()) or damaged, path
        if path.name.startswith("lease"):
            json.loads(path.read_text())


@pytest.mark.parametrize("scene", SCENES)
def test_exit_at_every_step(scene, fresh, tmp_path):
    before, act = SCENES[scene]
    run = fresh("counted")
    options = before(run)
    steps = count_steps(lambda: act(run, options), tmp_path / "steps.json")
    assert len(steps) >= 6
    final = read_verdict(run).result
    for number in range(1, len(steps) + 1):
        run = fresh(str(number))
        options = before(run)

        def until_the_step(number=number, run=run, options=options):
            exit_at(number)
            act(run, options)

        assert in_child(until_the_step) == 50, steps[number - 1]
        if scene != "damaged verdict":
            assert_nothing_is_torn(run)
        committed = run.result.read_bytes() if run.result.exists() else b""
        assert in_child(lambda run=run, options=options: act(run, options)) == 0
        verdict = read_verdict(run)
        assert verdict.result.state == final.state
        assert verdict.result.metrics == final.metrics
        known = decode_result(committed)
        if known and checksum(committed) != options.replace:
            assert verdict.raw == committed, "a committed verdict was run again"
        assert_nothing_is_torn(run)
        sweep_leftovers(run)
        assert not [p.name for p in run.path.iterdir() if p.name.startswith(".")]


def test_the_steps_cover_lease_and_commit(fresh, tmp_path):
    run = fresh("named")
    steps = count_steps(lambda: working(good)(run, WorkerOptions()), tmp_path / "steps.json")
    for name in ("lease.json", "result.json"):
        for point in ("written", "synced", "linked", "cleared", "durable"):
            assert f"{name} {point}" in steps


def test_a_late_second_writer_changes_nothing(fresh):
    run = fresh("late")
    assert commit(run, COMMITTED, "a")
    before = run.result.read_bytes()
    assert not commit(run, FAILED, "b")
    assert run.result.read_bytes() == before


def test_a_request_holds_no_path(fresh, tmp_path):
    run = fresh("paths")
    in_child(lambda: working(bad)(run, WorkerOptions()))
    for name in ("request.json", "lease.json"):
        assert str(tmp_path) not in (run.path / name).read_text()
    result = read_verdict(run).result
    assert str(tmp_path) not in repr(result.provenance) + result.error.message
    assert RunRequest.__struct_fields__[0] == "study"
