"""What every engine has to keep, on this machine, on Slurm and on Ray."""

import pytest
from engine_harness import (
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


def seen(plan):
    """GPU, device, begin and end of each run."""
    rows = [(place.path / "seen.txt").read_text().split("|") for place in places(plan)]
    return [(gpu, device, float(began), float(ended)) for gpu, device, began, ended in rows]


def most_at_once(rows):
    """Most runs under way at one time."""
    return max(sum(b[2] <= a[2] < b[3] for b in rows) for a in rows)


def test_64_short_runs_are_each_run_once(bench, planned):
    plan = planned("quick", factors="ABCDE", replicates=2)
    asked = bench.cores | ({"runs_per_job": 4} if bench.engine == "slurm" else {})
    assert run(plan, bench, asked)[0] == {"done": 64}
    assert {len(pids) for pids in calls(plan).values()} == {1}
    assert run(plan, bench)[0] == {"done": 64}
    assert {len(pids) for pids in calls(plan).values()} == {1}


def test_stages_are_executed_once_before_their_runs(bench, planned):
    stage = Stage(function="engine_backends:prepare", factors=("A",))
    plan = planned("prepared", factors="AB", stages={"data": stage})
    counts, said = run(plan, bench)
    assert counts == {"done": 8}, said
    assert {len(pids) for pids in calls(plan).values()} == {1}
    for stage in plan.stages:
        assert executions(plan, stage) == 1
        assert not plan.files.run(stage.run_id).out.exists()


def test_each_run_has_a_gpu_of_its_own(bench, planned):
    plan = planned("watched", together=2)
    assert run(plan, bench, bench.gpus)[0] == {"done": 4}
    rows = seen(plan)
    assert {device for _, device, _, _ in rows} == {"cuda:0"}
    for gpu in ("0", "1"):
        of_gpu = [row for row in rows if row[0] == gpu]
        assert len(of_gpu) == 2
        assert most_at_once(of_gpu) == 1


def test_several_runs_share_a_gpu(bench, planned):
    plan = planned("watched", together=4)
    assert run(plan, bench, bench.shares)[0] == {"done": 4}
    rows = seen(plan)
    assert most_at_once(rows) == 4
    for gpu in ("0", "1"):
        assert most_at_once([row for row in rows if row[0] == gpu]) == 2


def test_a_crash_is_tried_again_and_ends_in_a_verdict(bench, planned):
    plan = planned("segfault_at_high", replicates=1)
    number, shown = run(plan, bench, policy=Policy(retries=1))
    assert number == {"done": 1, "failed": 1}
    assert "will be retried" in shown
    failed = next(result for result in verdicts(plan).values() if result.state == "failed")
    assert failed.error.kind == "crash"
    assert "SIGSEGV" in failed.error.message
    assert "about to crash" in "\n".join(failed.error.log)
    assert sorted(len(pids) for pids in calls(plan).values()) == [1, 2]


def test_a_killed_worker_goes_on_from_its_checkpoint(bench, planned):
    plan = planned("stepwise", replicates=1, steps=4, hold=3)
    scheduler = Scheduler(plan, bench)
    first = places(plan)[0]
    until(lambda: _step(first) == 3, what="three steps")
    kill(int(pid) for pid in calls(plan)[first.path.name])
    open_gate(plan)
    assert scheduler.wait() == 0, scheduler.said()
    assert (first.path / "begun.txt").read_text().split() == ["0", "3"]
    assert [record.failure.kind for record in failed_attempts(first)] == ["crash"]
    assert {result.state for result in verdicts(plan).values()} == {"done"}


def _step(place):
    path = place.path / "checkpoint"
    return int(path.read_text()) if path.exists() else 0


def test_a_hang_is_ended_at_its_time_limit(bench, planned):
    plan = planned("hang_at_high", replicates=1)
    assert run(plan, bench, timeout=2.0, policy=Policy(retries=0))[0] == {"done": 1, "failed": 1}
    failed = next(result for result in verdicts(plan).values() if result.state == "failed")
    assert failed.error.kind == "timeout"
    assert "longer than 2 s" in failed.error.message
    assert not workers(plan)


def test_a_mistake_in_every_run_stops_the_study(bench, planned):
    plan = planned("wrong", factors="ABCD", replicates=2)
    with pytest.raises(DoeError, match="ZeroDivisionError"):
        run(plan, bench)
    assert 2 <= len(verdicts(plan)) < 16
    assert not workers(plan)


def test_a_killed_scheduler_costs_nothing(bench, planned):
    plan = planned("gated", factors="AB", replicates=1)
    scheduler = Scheduler(plan, bench)
    until(lambda: sum(map(len, calls(plan).values())) >= 2, what="two runs under way")
    scheduler.kill()
    if bench.engine == "ray":  # Ray ends the tasks of a driver that is gone
        until(lambda: not workers(plan), what="the tasks end with their driver")
    open_gate(plan)
    assert run(plan, bench)[0] == {"done": 4}
    again = 2 if bench.engine == "ray" else 1
    assert max(len(pids) for pids in calls(plan).values()) == again


def test_everything_killed_at_once(bench, planned):
    plan = planned("stepwise", factors="AB", replicates=1, steps=4, hold=3)
    scheduler = Scheduler(plan, bench)
    until(lambda: any(_step(place) == 3 for place in places(plan)), what="three steps")
    scheduler.kill()
    kill(workers(plan))
    open_gate(plan)
    assert run(plan, bench)[0] == {"done": 4}
    begun = [(place.path / "begun.txt").read_text().split() for place in places(plan)]
    assert any(int(lines[-1]) == 3 for lines in begun)
    assert not workers(plan)


def test_one_interrupt_lets_running_runs_finish(bench, planned):
    plan = planned("gated", factors="ABC", replicates=1)
    scheduler = Scheduler(plan, bench)
    until(lambda: workers(plan), what="a run under way")
    scheduler.interrupt()
    until(lambda: "no more runs" in scheduler.said(), what="the interrupt is told")
    if bench.engine == "slurm":
        until(lambda: not queued("PENDING"), what="waiting jobs are withdrawn")
    open_gate(plan)
    assert scheduler.wait() == 130, scheduler.said()
    done = verdicts(plan)
    assert 1 <= len(done) <= 4
    assert {name for name, pids in calls(plan).items() if pids} == set(done)
    assert not workers(plan)
    assert run(plan, bench)[0] == {"done": 8}
    assert {len(pids) for pids in calls(plan).values()} == {1}


def test_two_interrupts_end_them(bench, planned):
    plan = planned("stepwise", factors="AB", replicates=1, steps=4, hold=2)
    scheduler = Scheduler(plan, bench, "--grace", "5")
    until(lambda: any(_step(place) == 2 for place in places(plan)), what="two steps")
    scheduler.interrupt()
    until(lambda: "no more runs" in scheduler.said(), what="the first interrupt is told")
    scheduler.interrupt()
    assert scheduler.wait() == 130, scheduler.said()
    assert not workers(plan)
    assert not verdicts(plan)
    open_gate(plan)
    assert run(plan, bench)[0] == {"done": 4}
    assert not any(failed_attempts(place) for place in places(plan))


@pytest.mark.parametrize(
    "bench", ["local", pytest.param("slurm", marks=pytest.mark.cluster)], indirect=True
)
def test_two_interrupts_end_what_was_taken_over(bench, planned):
    """Under Ray nothing is left to take over: runs end with their scheduler."""
    plan = planned("gated", factors="AB", replicates=1)
    first = Scheduler(plan, bench)
    until(lambda: any(calls(plan).values()), what="a run under way")
    first.kill()
    second = Scheduler(plan, bench, "--grace", "5")
    until(lambda: "adopted" in second.said(), what="the runs are taken over")
    second.interrupt()
    until(lambda: "no more runs" in second.said(), what="the first interrupt is told")
    second.interrupt()
    assert second.wait() == 130, second.said()
    assert not workers(plan)
    assert not verdicts(plan)


def test_two_schedulers_share_the_work(bench, planned):
    stage = Stage(function="engine_backends:prepare", factors=("A",), settings={"seconds": 0.2})
    plan = planned("prepared", factors="ABC", replicates=1, stages={"data": stage})
    both = [Scheduler(plan, bench) for _ in range(2)]
    assert [one.wait() for one in both] == [0, 0], [one.said() for one in both]
    assert {len(pids) for pids in calls(plan).values()} == {1}
    assert len(verdicts(plan)) == 8
    assert [executions(plan, stage) for stage in plan.stages] == [1, 1]
