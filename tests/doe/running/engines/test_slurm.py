"""What only happens on Slurm, on a real one: lost jobs, dead controllers, limits, lost nodes."""

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
    executions,
    kill,
    open_gate,
    places,
    queued,
    run,
    until,
    verdicts,
    workers,
)

from doe.errors import DoeError
from doe.store.verdicts import Policy, failed_attempts
from doe.study.values import Stage

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("slurm")]
BENCH = Bench("slurm", {"jobs": 2}, {"gres": "gpu:1"}, {"gres": "shard:1"})


def call(*words):
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def step_reached(plan, number):
    return any(
        path.read_text() and int(path.read_text()) >= number
        for place in places(plan)
        if (path := place.path / "checkpoint").exists()
    )


# Stages -------------------------------------------------------------------------------------------


def test_stages_are_jobs_of_their_own_before_their_runs(planned):
    stage = Stage(
        function="engine_backends:prepare", factors=("A",), engines={"slurm": {"cpus": 2}}
    )
    plan = planned("prepared", factors="AB", slurm={"runs_per_job": 2}, stages={"data": stage})
    counts, said = run(plan, BENCH, keep_stages=True)
    assert counts == {"done": 8}, said
    assert len(plan.stages) == 4
    for stage in plan.stages:
        assert executions(plan, stage) == 1
    assert {len(pids) for pids in calls(plan).values()} == {1}
    for place in places(plan):
        assert (place.path / "seen.txt").read_text() == "2 cpu"
        assert (place.path / "own.txt").read_text() == "1"


def test_runs_follow_their_stages_without_a_scheduler(planned):
    raw = Stage(function="engine_backends:prepare")
    stage = Stage(function="engine_backends:prepare", factors=("A",), needs=("raw",))
    plan = planned("prepared", factors="AB", stages={"data": stage, "raw": raw})
    _, said = run(plan, BENCH, detach=True)
    assert "8 runs were submitted" in said
    assert len(verdicts(plan)) < 8
    until(lambda: len(verdicts(plan)) == 8, what="all runs without a scheduler")
    assert run(plan, BENCH)[0] == {"done": 8}
    assert {len(pids) for pids in calls(plan).values()} == {1}
    for execution in plan.stages:
        assert executions(plan, execution) == 1
        assert not plan.files.run(execution.run_id).out.exists()


def test_a_stage_that_fails_without_a_scheduler_fails_its_runs(planned):
    stage = Stage(function="engine_backends:wrong", factors=("A",))
    plan = planned("prepared", factors="AB", replicates=1, stages={"data": stage})
    run(plan, BENCH, detach=True, policy=Policy(retries=0))
    until(lambda: len(verdicts(plan)) == 4, what="all runs without a scheduler")
    assert {result.error.kind for result in verdicts(plan).values()} == {"stage"}
    assert not any(calls(plan).values())


def test_a_stage_that_was_handed_over_before_is_waited_for(planned):
    stage = Stage(function="engine_backends:prepare", factors=("A",), settings={"seconds": 5.0})
    plan = planned("prepared", factors="AB", replicates=1, stages={"data": stage})
    run(plan, BENCH, detach=True, limit=1)
    _, said = run(plan, BENCH, detach=True)
    assert "submitted earlier: 2" in said
    until(lambda: len(verdicts(plan)) == 4, what="all runs without a scheduler")
    for execution in plan.stages:
        assert executions(plan, execution) == 1


def test_a_scheduler_here_and_one_on_slurm_share_stages_and_runs(planned):
    stage = Stage(function="engine_backends:prepare", factors=("A",))
    plan = planned("prepared", factors="ABC", replicates=1, stages={"data": stage}, gated=True)
    both = [Scheduler(plan, BENCH), Scheduler(plan, Bench("local", {"cpu": 1}, {}, {}))]
    until(lambda: sum(map(len, calls(plan).values())) == 3, what="two jobs and a run here")
    open_gate(plan)
    assert [one.wait() for one in both] == [0, 0], [one.said() for one in both]
    assert len(verdicts(plan)) == 8
    assert {len(pids) for pids in calls(plan).values()} == {1}
    assert [executions(plan, stage) for stage in plan.stages] == [1, 1]
    assert {result.provenance["slot"] for result in verdicts(plan).values()} == {"slurm", "cpu0"}


# The controller -----------------------------------------------------------------------------------


def test_a_killed_controller_is_waited_for(slurm, planned):
    plan = planned("gated", factors="AB", replicates=1)
    scheduler = Scheduler(plan, BENCH)
    until(lambda: len(workers(plan)) == 2, what="two runs under way")
    time.sleep(5)  # what the controller saves every few seconds
    slurm.kill_controller()
    time.sleep(3)
    open_gate(plan)
    slurm.start_controller()
    assert scheduler.wait() == 0, scheduler.said()
    assert {len(pids) for pids in calls(plan).values()} == {1}


def test_a_controller_that_is_away_at_the_start(slurm, planned):
    plan = planned("quick")
    slurm.kill_controller()
    scheduler = Scheduler(plan, BENCH)
    time.sleep(3)
    slurm.start_controller()
    assert scheduler.wait() == 0, scheduler.said()
    assert {len(pids) for pids in calls(plan).values()} == {1}


def test_a_lost_submission_whose_number_is_given_again(slurm, planned, tmp_path):
    slurm.kill_controller()
    slurm.forget()
    slurm.start_controller(clean=True)
    slurm.wait_idle()
    call("scontrol", "update", "partitionname=debug", "state=down")
    plan = planned("quick")
    scheduler = Scheduler(plan, BENCH)
    until(lambda: queued("PENDING"), what="the submission")
    number = queued()[0].partition("_")[0]
    scheduler.process.send_signal(signal.SIGSTOP)
    slurm.kill_controller()
    slurm.forget()
    slurm.start_controller(clean=True)
    slurm.wait_idle()
    mark = tmp_path / "mark"
    words = ("sbatch", "--parsable", "--output=/dev/null", "--job-name=stranger")
    assert call(*words, f"--wrap=sleep 3; touch {mark}").strip() == number
    scheduler.process.send_signal(signal.SIGCONT)
    assert scheduler.wait() == 0, scheduler.said()
    assert {len(pids) for pids in calls(plan).values()} == {1}
    until(mark.exists, what="the stranger is left alone")


# Ends that are nobody's fault ---------------------------------------------------------------------


def test_jobs_cancelled_by_hand_are_submitted_again(planned):
    plan = planned("stepwise", factors="AB", replicates=1, steps=4, hold=2)
    scheduler = Scheduler(plan, BENCH)
    until(lambda: step_reached(plan, 2), what="two steps")
    call("scancel", *queued("RUNNING,PENDING"))
    until(lambda: not workers(plan), what="the jobs end")
    open_gate(plan)
    assert scheduler.wait() == 0, scheduler.said()
    assert not any(failed_attempts(place) for place in places(plan))
    begun = [(place.path / "begun.txt").read_text().split() for place in places(plan)]
    assert any(int(lines[-1]) >= 2 for lines in begun)


def test_a_lost_node(slurm, planned):
    plan = planned("stepwise", replicates=1, steps=4, hold=2)
    scheduler = Scheduler(plan, BENCH)
    until(lambda: step_reached(plan, 2), what="two steps")
    slurm.kill_node()
    until(lambda: not workers(plan), what="the power cut")
    open_gate(plan)
    # What the controller does by itself when the node was silent for SlurmdTimeout.
    call("scontrol", "update", f"nodename={slurm.host}", "state=down", "reason=lost")
    slurm.start_node()
    assert scheduler.wait() == 0, scheduler.said()
    assert not any(failed_attempts(place) for place in places(plan))
    begun = [(place.path / "begun.txt").read_text().split() for place in places(plan)]
    assert any(int(lines[-1]) >= 2 for lines in begun)


def test_a_job_at_its_time_limit_resumes_only_if_it_got_further(planned):
    plan = planned("unfinished_at_first", replicates=1)
    scheduler = Scheduler(plan, BENCH, "--retries", "0", asked={"time": "1"})
    until(lambda: len(workers(plan)) == 2, what="both runs under way")
    time.sleep(1)
    now = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(time.time() + 1))
    for job in queued("RUNNING"):  # the shortest limit is a minute: bring it forward
        call("scontrol", "update", f"jobid={job}", f"endtime={now}")
    assert scheduler.wait() == 3, scheduler.said()
    steady, stuck = sorted(verdicts(plan).values(), key=lambda result: result.state)
    assert (steady.state, stuck.state) == ("done", "failed")
    assert stuck.error.kind == "timeout"
    assert "increase the time limit" in stuck.error.message
    assert sorted(len(pids) for pids in calls(plan).values()) == [1, 2]


def test_a_job_is_asked_to_stop_before_its_time_limit(planned):
    """By Slurm itself: sbatch --signal=B:TERM@120. It saves a checkpoint and costs no attempt."""
    plan = planned("preemptible", replicates=1)
    asked = {"time": "30", "stop_before": 120}
    scheduler = Scheduler(plan, BENCH, "--retries", "0", "--grace", "60", asked=asked)
    until(lambda: all(calls(plan).values()), what="both runs under way")
    soon = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(time.time() + 110))
    for job in queued("RUNNING"):
        call("scontrol", "update", f"jobid={job}", f"endtime={soon}")
    assert scheduler.wait(300) == 0, scheduler.said()
    assert [result.state for result in verdicts(plan).values()] == ["done", "done"]
    assert [len(pids) for pids in calls(plan).values()] == [2, 2]
    assert not any(failed_attempts(place) for place in places(plan))


# Crashes ------------------------------------------------------------------------------------------


def test_a_killed_job_leaves_no_process_and_counts_as_a_crash(planned, monkeypatch):
    """Also where the scheduler is on another machine and cannot see the process."""
    plan = planned("stepwise", replicates=1, steps=4, hold=3)
    for module in ("doe.running.scheduler", "doe.store.leases"):
        monkeypatch.setattr(f"{module}.machine", lambda: "a login node/1")
    killed = []

    def kill_a_job(_display, _runner):
        if not killed and step_reached(plan, 3):
            worker = workers(plan)[0]
            killed.append(worker)
            os.kill(psutil.Process(worker).ppid(), signal.SIGKILL)
            open_gate(plan)

    monkeypatch.setattr("doe.views.live.PlainDisplay.show", kill_a_job)
    began = time.monotonic()
    assert run(plan, BENCH)[0] == {"done": 2}
    assert time.monotonic() - began < 45  # not after the lease has fallen silent
    until(lambda: killed[0] not in workers(plan), what="the worker ends with its job")
    kinds = [record.failure.kind for place in places(plan) for record in failed_attempts(place)]
    assert kinds == ["crash"]


def test_a_job_that_never_gets_to_its_run_is_not_submitted_for_ever(planned):
    plan = planned("quick", replicates=1, slurm={"setup": ["no-such-command --please"]})
    assert run(plan, BENCH, policy=Policy(retries=1))[0] == {"failed": 2}
    for result in verdicts(plan).values():
        assert "no-such-command" in result.error.message
    assert not any(calls(plan).values())


def test_a_submission_that_slurm_refuses(planned):
    plan = planned("quick")
    with pytest.raises(DoeError, match="nvalid partition"):
        run(plan, BENCH, {"partition": "nowhere"})
    assert not (plan.directory / "slurm").exists()


def test_a_run_that_needs_its_gpu_alone(planned):
    plan = planned("memory_on_a_share", replicates=1)
    assert run(plan, BENCH, BENCH.shares, policy=Policy(retries=0))[0] == {"done": 2}
    for place in places(plan):
        (record,) = failed_attempts(place)
        assert (record.failure.kind, record.failure.alone) == ("gpu-memory", False)


# Several runs in a job ----------------------------------------------------------------------------


def test_a_crash_in_a_packed_job_is_that_runs_alone(planned):
    plan = planned("segfault_at_high", factors="AB", replicates=1)
    number, _ = run(plan, BENCH, {"runs_per_job": 4}, policy=Policy(retries=1))
    assert number == {"done": 2, "failed": 2}
    assert sorted(len(pids) for pids in calls(plan).values()) == [1, 1, 2, 2]


def test_a_packed_job_begins_no_further_run_after_an_interrupt(planned):
    plan = planned("gated", factors="AB", replicates=1)
    scheduler = Scheduler(plan, BENCH, asked={"runs_per_job": 4})
    until(lambda: workers(plan), what="a run under way")
    scheduler.interrupt()
    until(lambda: "no more runs" in scheduler.said(), what="the interrupt is told")
    until(lambda: list(plan.directory.glob("slurm/*.stop")), what="the job is told")
    open_gate(plan)
    assert scheduler.wait() == 130, scheduler.said()
    assert len(verdicts(plan)) == 1
    assert run(plan, BENCH)[0] == {"done": 4}
    assert {len(pids) for pids in calls(plan).values()} == {1}


# Without a scheduler ------------------------------------------------------------------------------


def test_a_detached_study_finishes_by_itself(planned):
    plan = planned("segfault_at_high", factors="AB", replicates=1)
    scheduler = Scheduler(plan, BENCH, "--detach")
    assert scheduler.wait() == 0, scheduler.said()
    assert "4 runs were submitted" in scheduler.said()
    until(lambda: not queued("PENDING,RUNNING,COMPLETING"), what="the jobs end")
    assert len(verdicts(plan)) == 2
    reasons = [record.failure.reason for place in places(plan) for record in failed_attempts(place)]
    assert len(reasons) == 2
    assert all("SIGSEGV" in reason for reason in reasons)
    assert run(plan, BENCH, policy=Policy(retries=1))[0] == {"done": 2, "failed": 2}
    assert not (plan.directory / "slurm").exists()


def test_a_detached_study_is_picked_up_and_not_submitted_twice(planned):
    plan = planned("gated", factors="AB", replicates=1)
    for _ in range(2):
        assert Scheduler(plan, BENCH, "--detach").wait() == 0
    assert len(queued("PENDING,RUNNING")) == 4
    open_gate(plan)
    assert run(plan, BENCH)[0] == {"done": 4}
    assert {len(pids) for pids in calls(plan).values()} == {1}


def test_detached_everything_killed(planned):
    plan = planned("stepwise", replicates=1, steps=4, hold=3)
    assert Scheduler(plan, BENCH, "--detach").wait() == 0
    until(lambda: step_reached(plan, 3), what="three steps")
    kill(workers(plan))
    open_gate(plan)
    assert run(plan, BENCH)[0] == {"done": 2}


# The study's own table ----------------------------------------------------------------------------


def test_the_slurm_table_of_the_study_is_obeyed(planned):
    table = {"cpus": 2, "setup": ["export FLAVOUR='a b'"], "extra": ["--comment=hello"], "time": 5}
    plan = planned("flavoured", replicates=1, slurm=table)
    assert run(plan, BENCH)[0] == {"done": 2}
    said = {(place.path / "flavour.txt").read_text() for place in places(plan)}
    assert said == {"a b|2|1"}
