"""What only happens on Ray: the driver owns its tasks, and a cluster of its own ends with it."""

import _thread
import io
import os
import signal
import subprocess
import time

import psutil
import pytest
from engine_harness import (
    Bench,
    Scheduler,
    calls,
    kill,
    open_gate,
    places,
    run,
    until,
    verdicts,
    workers,
)
from rich.console import Console

from doe.errors import DoeError
from doe.running.engines.ray import RayEngine, Settings, run_worker
from doe.running.scheduler import RunOptions
from doe.running.scheduler import Scheduler as RunScheduler
from doe.running.worker import ExitCode, WorkerOptions
from doe.store.requests import prepare
from doe.store.verdicts import failed_attempts, read_verdict
from doe.study.values import Stage
from doe.views.live import PlainDisplay

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("ray_token")]


@pytest.fixture
def head(ray_head):
    at = {"ray_address": ray_head}
    return Bench("ray", at | {"jobs": 2}, at | {"gpus_per_run": 1.0}, at | {"gpus_per_run": 0.5})


def test_more_than_the_cluster_has_is_refused(head, planned):
    with pytest.raises(DoeError, match="each run or stage needs 3 GPU, but the Ray cluster has 2"):
        run(planned("quick"), head, head.gpus | {"gpus_per_run": 3.0})


def staged(planned, seconds=0.0, **resources):
    stage = Stage(
        function="engine_backends:prepare",
        factors=("A",),
        settings={"seconds": seconds},
        engines={"ray": resources},
    )
    return planned("prepared", factors="AB", stages={"data": stage})


def test_a_stage_asks_for_resources_of_its_own(head, planned):
    plan = staged(planned, gpus_per_run=1.0)
    assert run(plan, head)[0] == {"done": 8}
    assert {(place.path / "seen.txt").read_text() for place in places(plan)} == {" cuda:0"}


def test_more_than_the_cluster_has_is_refused_for_a_stage(head, planned):
    plan = staged(planned, gpus_per_run=3.0)
    with pytest.raises(DoeError, match="each run or stage needs 3 GPU, but the Ray cluster has 2"):
        run(plan, head, {"ray_address": head.cores["ray_address"]})


def test_stages_of_a_killed_scheduler_are_committed_once(head, planned):
    """Ray ends the tasks of a driver that is gone: what had no verdict is executed again."""
    plan = staged(planned, seconds=1.0)
    files = [plan.directory / stage.run_id / "calls.txt" for stage in plan.stages]
    scheduler = Scheduler(plan, head)
    until(lambda: any(path.exists() for path in files), what="a stage under way")
    scheduler.kill()
    committed = [read_verdict(plan.files.run(stage.run_id)) for stage in plan.stages]
    assert run(plan, head)[0] == {"done": 8}
    executed = [len(path.read_text().split()) for path in files]
    assert max(executed) == 2 - all(committed)
    assert all(number == 1 for number, done in zip(executed, committed, strict=True) if done)
    assert {len(pids) for pids in calls(plan).values()} == {1}


def test_a_cluster_that_is_not_there(planned):
    bench = Bench("ray", {"ray_address": "127.0.0.1:1"}, {}, {})
    with pytest.raises(DoeError, match="cannot reach a Ray cluster"):
        run(planned("quick"), bench)


def test_a_cluster_of_its_own_that_does_not_start_in_time(planned, monkeypatch):
    def late(**_options):
        raise Exception("The current node timed out during startup.")

    monkeypatch.setattr("ray.init", late)
    with pytest.raises(DoeError, match="cannot reach a Ray cluster at this machine"):
        run(planned("quick"), Bench("ray", {}, {}, {}))


def test_a_killed_task_is_tried_again(head, planned):
    """Ray's own process around a worker dies, and the worker with it."""
    plan = planned("gated", replicates=1)
    scheduler = Scheduler(plan, head)
    until(lambda: workers(plan), what="a run under way")
    worker = workers(plan)[0]
    os.kill(psutil.Process(worker).ppid(), signal.SIGKILL)
    until(lambda: worker not in workers(plan), what="the worker ends with its task")
    open_gate(plan)
    assert scheduler.wait() == 0, scheduler.said()
    kinds = [record.failure.kind for place in places(plan) for record in failed_attempts(place)]
    assert kinds == ["crash"]


def test_what_waits_in_ray_is_taken_back(head, planned):
    plan = planned("gated", factors="ABC", replicates=1)
    scheduler = Scheduler(plan, head, asked=head.gpus | {"jobs": 8})
    until(lambda: workers(plan), what="a run under way")
    scheduler.interrupt()
    until(lambda: "no more runs" in scheduler.said(), what="the interrupt is told")
    open_gate(plan)
    assert scheduler.wait() == 130, scheduler.said()
    assert 1 <= len(verdicts(plan)) <= 4
    assert not workers(plan)


def test_a_run_that_begins_while_it_is_taken_back(head, planned, monkeypatch):
    """Between the look at a task and its end, the worker may begin."""
    plan = planned("stepwise", replicates=1, steps=10)
    engine = RayEngine(Settings(**head.cores, cpus=1))
    start, cancel, cancelled = engine.start, engine._ray.cancel, []
    deadline = time.monotonic() + 6

    def start_and_take_back(jobs):
        start(jobs)
        scheduler.stopping = True
        engine.withdraw()

    def cancel_late(reference, **options):
        cancelled.append(reference)
        while not any(calls(plan).values()) and time.monotonic() < deadline:
            time.sleep(0.05)
        cancel(reference, **options)

    monkeypatch.setattr(engine, "start", start_and_take_back)
    monkeypatch.setattr(engine._ray, "cancel", cancel_late)
    try:
        display = PlainDisplay(Console(file=io.StringIO()))
        scheduler = RunScheduler(plan, engine, RunOptions(), display)
        assert not scheduler.run()
    finally:
        scheduler.close()
        engine.close()
    assert cancelled
    assert {name for name, pids in calls(plan).items() if pids} == set(verdicts(plan))
    assert run(plan, head)[0] == {"done": 2}
    assert {len(pids) for pids in calls(plan).values()} == {1}


def test_a_task_that_is_cancelled_while_it_makes_its_worker_ends_it(planned, monkeypatch):
    plan = planned("gated", replicates=1)
    place = places(plan)[0]
    assert prepare(place, plan.study, plan.design.runs[0]) == ""
    made = []

    class Interrupted(subprocess.Popen):
        def __init__(self, *words, **options):
            super().__init__(*words, **options)
            made.append(self)
            until(lambda: workers(plan), what="a run under way")
            _thread.interrupt_main()  # what Ray does to cancel a task

    monkeypatch.setattr("doe.running.engines.ray.subprocess.Popen", Interrupted)
    try:
        assert (
            run_worker(str(place.path), WorkerOptions(job="one"), os.getcwd(), "")
            == ExitCode.INTERRUPTED
        )
    except KeyboardInterrupt:
        pytest.fail("the worker was left to itself")
    finally:
        kill(process.pid for process in made if process.returncode is None)
    assert not workers(plan)


def test_a_cluster_of_its_own_ends_with_a_killed_driver(planned):
    plan = planned("gated", replicates=1)  # outlives the cluster's end
    scheduler = Scheduler(plan, Bench("ray", {}, {}, {}))
    until(lambda: any(calls(plan).values()), what="a run that has begun its training")
    family = psutil.Process(scheduler.process.pid).children(recursive=True)
    family = [one for one in family if living(one)]  # Ray's helpers come and go
    # Ray's two agents try to reach the dead cluster for a minute before they leave.
    agents = [one for one in family if "Agent" in command_line(one)]
    daemons = [one for one in family if one not in agents]
    assert {"raylet", "gcs_server"} <= {one.name() for one in daemons if living(one)}
    scheduler.kill()
    until(lambda: not workers(plan), what="no worker is left")
    until(lambda: not [one for one in daemons if living(one)], what="the cluster is gone")
    kill(one.pid for one in agents if living(one))
    open_gate(plan)
    assert run(plan, Bench("ray", {}, {}, {}))[0] == {"done": 2}
    assert max(len(pids) for pids in calls(plan).values()) == 2


def living(process):
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def command_line(process):
    try:
        return " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        return ""
