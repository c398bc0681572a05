"""`doe plan` of an edited study beside `doe run`: one wins, and no run answers the other one."""

import contextlib
import json

import msgspec
import pytest

from doe.errors import DoeError
from doe.running import scheduler as schedulers
from doe.running import worker
from doe.running.worker import ExitCode, WorkerOptions, work
from doe.store import plan as plans
from doe.store.leases import last_lease
from doe.store.plan import PlanInUse, augment_plan, load_plan, write_plan
from doe.store.requests import prepare
from doe.study.values import Factor
from tests.command_line import doe


def edited(study):
    """The same study with another high level of A."""
    factors = (Factor(key="A", levels=(6, 7)), *study.factors[1:])
    return msgspec.structs.replace(study, factors=factors)


def before(monkeypatch, module, name, deed):
    """Do something just before the first call of a function."""
    function, left = getattr(module, name), [deed]

    def called(*given, **named):
        while left:
            left.pop()()
        return function(*given, **named)

    monkeypatch.setattr(module, name, called)


def first(plan):
    run = plan.design.runs[0]
    return run, plan.files.run(run.run_id)


def test_a_plan_is_not_replaced_while_a_scheduler_has_it(planned):
    plan = planned()
    in_use = PlanInUse(plan)
    in_use.check()
    with pytest.raises(DoeError, match="`doe run` is executing now"):
        write_plan(edited(plan.study), plan.directory)
    assert load_plan(plan.directory) == plan
    in_use.release()
    assert write_plan(edited(plan.study), plan.directory)[1] == "replanned"


def test_a_plan_that_only_grew_or_changed_its_words_is_gone_on_with(planned):
    plan = planned()
    in_use = PlanInUse(plan)
    in_use.check()
    augment_plan(plan.directory, "1")
    in_use.check()
    with pytest.raises(DoeError, match="is executing now"):  # the new file is locked as well
        write_plan(edited(plan.study), plan.directory)
    in_use.release()


def test_a_worker_that_takes_its_lease_in_the_middle_keeps_the_old_plan(planned, monkeypatch):
    plan = planned("traced")
    run, run_dir = first(plan)
    prepare(run_dir, plan.study, run)

    def lease():
        assert worker.begin(run_dir, WorkerOptions(), worker.new_owner(), worker.Watch())

    before(monkeypatch, plans, "_write", lease)  # after the planner has looked for leases
    with pytest.raises(DoeError, match="1 of 4 runs have begun"):
        write_plan(edited(plan.study), plan.directory)
    assert load_plan(plan.directory) == plan
    assert json.loads(run_dir.request.read_bytes())["factors"]["A"] is run.levels["A"]


def test_a_worker_whose_request_went_before_its_lease_gives_the_lease_back(planned, monkeypatch):
    plan = planned("traced")
    run, run_dir = first(plan)
    prepare(run_dir, plan.study, run)
    before(monkeypatch, worker, "begin", lambda: run_dir.request.unlink())
    assert work(run_dir, WorkerOptions()) == ExitCode.LOST
    assert not (run_dir.path / "calls.txt").exists()
    assert last_lease(run_dir).lease.beat.startswith("released")


@pytest.mark.parametrize("moment", ["scan", "prepare", "WorkerOptions"])
def test_a_scheduler_starts_nothing_of_a_plan_that_was_replaced(planned, go, monkeypatch, moment):
    """At its begin, before and after a request is written."""
    plan = planned("traced")

    @contextlib.contextmanager
    def no_lock(_study):
        yield True

    def replan():
        monkeypatch.setattr(plans, "_exclusive", no_lock)  # a file system without locks
        write_plan(edited(plan.study), plan.directory)

    before(monkeypatch, schedulers, moment, replan)
    with pytest.raises(DoeError, match="was replanned meanwhile"):
        go(plan)
    assert not list(plan.directory.glob("*/calls.txt"))


@pytest.mark.parametrize("command", ["analyze", "export"])
def test_results_of_another_request_are_named_before_they_are_used(planned, go, command):
    plan = planned("noop", replicates=2)
    go(plan)
    assert "warning" not in doe(command, "--study", plan.directory).stderr
    text = plan.files.study.read_text()
    plan.files.study.write_text(text.replace("threads = 1", "threads = 3"))
    said = doe(command, "--study", plan.directory).stderr
    assert "warning: The study file was changed after 8 runs were done" in said
