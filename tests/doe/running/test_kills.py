"""Kill -9 of anything at any time: nothing is lost, nothing is run twice, nothing is left."""

import os
import shutil
import signal
from concurrent.futures import ThreadPoolExecutor

import chaos
import psutil
import pytest
from waiting import interrupt_twice, living, until

from doe.store.files import StudyDir
from doe.store.verdicts import read_verdict


@pytest.fixture(scope="module")
def torments(request):
    """The chosen modes, some at a time: a study that is killed mostly waits."""
    allowed = {"namespaces": chaos.namespaces_allowed, "users": chaos.users_allowed}
    marks = [item.callspec.params for item in request.session.items if hasattr(item, "callspec")]
    chosen = [mode for mode in chaos.MODES if {"mode": mode} in marks]
    with ThreadPoolExecutor(4) as pool:
        yield {
            mode: pool.submit(torment, mode)
            for mode in chosen
            if mode not in allowed or allowed[mode]()
        }


def torment(mode):
    kills = 4 if mode == "namespaces" else 12
    return chaos.torment_studies(kills, seed=20, seconds=60.0, modes=(mode,))


@pytest.mark.parametrize("mode", chaos.MODES)
def test_random_kills(torments, mode):
    if mode not in torments:
        pytest.skip("this machine does not let us")
    killed, damage, _ = torments[mode].result()
    assert damage == dict.fromkeys(chaos.COUNTED, 0)
    assert killed.total() >= 1


def calls(plan):
    return [path.read_text().split() for path in plan.directory.glob("*/calls.txt")]


def first_call(plan):
    """The process of the only run that has begun, as soon as it has."""
    ((pid,),) = until(lambda: calls(plan) and all(calls(plan)) and calls(plan))
    return pid


def test_a_restarted_scheduler_adopts_what_still_runs(planned, doe_run, tmp_path):
    mark, output = tmp_path / "mark", tmp_path / "output"
    plan = planned("hostile_backends:waiting", factors="A", until=str(mark))
    first = doe_run(plan.directory, "--cpu", "2")
    until(lambda: len(calls(plan)) == 2)
    first.kill()
    first.wait()
    assert all(living(pid) for (pid,) in calls(plan))
    with open(output, "w") as file:
        second = doe_run(plan.directory, "--cpu", "2", stdout=file)
    until(lambda: output.read_text().count("adopted") == 2)
    mark.touch()
    assert second.wait(180) == 0
    assert [len(pids) for pids in calls(plan)] == [1, 1]


def test_a_run_survives_the_death_of_its_slot(planned, doe_run):
    plan = planned("traced", factors="A", seconds=2.0)
    scheduler = doe_run(plan.directory, "--cpu", "1")
    pid = first_call(plan)
    psutil.Process(int(pid)).parent().parent().kill()  # its keeper's
    scheduler.communicate(timeout=180)
    assert scheduler.returncode == 0
    assert [len(pids) for pids in calls(plan)] == [1, 1]


def test_the_first_interrupt_lets_running_runs_finish(planned, doe_run):
    plan = planned("traced", factors="ABC", seconds=1.0)
    scheduler = doe_run(plan.directory, "--cpu", "2")
    until(lambda: len(calls(plan)) == 2)
    scheduler.send_signal(signal.SIGINT)
    said, _ = scheduler.communicate(timeout=180)
    assert scheduler.returncode == 130
    assert "running ones finish" in said
    assert len(list(plan.directory.glob("*/result.json"))) == len(calls(plan)) < 8
    again = doe_run(plan.directory, "--cpu", "2")
    again.communicate(timeout=180)
    assert again.returncode == 0
    assert [len(pids) for pids in calls(plan)] == [1] * 8


def test_the_second_interrupt_ends_them_and_leaves_no_process(planned, doe_run):
    plan = planned("stubborn", factors="AB")
    scheduler = doe_run(plan.directory, "--cpu", "2", "--grace", "0.5")
    until(lambda: len(calls(plan)) == 2)
    children = psutil.Process(scheduler.pid).children(recursive=True)
    assert len(children) >= 4
    interrupt_twice(scheduler)
    scheduler.communicate(timeout=180)
    assert scheduler.returncode == 130
    assert not [child for child in children if living(child.pid)]
    assert not list(plan.directory.glob("*/result.json"))


def test_two_schedulers_share_the_work(planned, doe_run):
    plan = planned("traced", factors="ABCD", seconds=0.2)
    both = [doe_run(plan.directory, "--cpu", "1"), doe_run(plan.directory, "--cpu", "1")]
    for scheduler in both:
        scheduler.communicate(timeout=180)
        assert scheduler.returncode == 0
    assert [len(pids) for pids in calls(plan)] == [1] * 16
    files = StudyDir(plan.directory)
    origins = [read_verdict(files.run(run.run_id)).result.provenance for run in plan.design.runs]
    assert len({origin["job"].partition("/")[0] for origin in origins}) == 2


def test_a_run_that_was_taken_over_stops(planned, doe_run):
    """What happens after a network partition: the old process finds a newer lease."""
    plan = planned("traced", factors="A", seconds=30.0)
    scheduler = doe_run(plan.directory, "--cpu", "1")
    pid = first_call(plan)
    (run_dir,) = {path.parent for path in plan.directory.glob("*/calls.txt")}
    lease = (run_dir / "lease.json").read_text()
    (run_dir / "lease-2.json").write_text(lease.replace('"attempt":1', '"attempt":2'))
    until(lambda: not living(pid))
    assert "taken this run over" in (run_dir / "log.txt").read_text()
    os.killpg(scheduler.pid, signal.SIGKILL)


def test_a_run_whose_study_was_deleted_stops(planned, doe_run):
    """It must not put its verdict into a study that is planned anew in the same place."""
    plan = planned("traced", factors="A", seconds=240.0)
    scheduler = doe_run(plan.directory, "--cpu", "1")
    pid = first_call(plan)
    scheduler.kill()
    shutil.rmtree(plan.directory)
    planned("traced", factors="A", seconds=240.0)
    until(lambda: not living(pid))
    assert not list(plan.directory.glob("*/result.json"))


def test_a_scheduler_whose_study_was_deleted_says_so(planned, doe_run):
    plan = planned("traced", factors="A", seconds=240.0)
    scheduler = doe_run(plan.directory, "--cpu", "1")
    pid = first_call(plan)
    shutil.rmtree(plan.directory)
    said, _ = scheduler.communicate(timeout=180)
    assert scheduler.returncode == 1
    assert "was deleted while its runs were under way" in said
    until(lambda: not living(pid))
