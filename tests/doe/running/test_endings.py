"""Every way in which a run can end leaves a verdict with its reason, and no process."""

import contextlib
import json
import os
import subprocess
import sys

import msgspec
import psutil
import pytest
from waiting import living

from doe import load
from doe.errors import DoeError
from doe.results.status import overview
from doe.running.scheduler import RunOptions
from doe.store.files import StudyDir
from doe.store.leases import Watch, acquire, new_owner
from doe.store.requests import prepare
from doe.store.verdicts import Policy, encode_result, read_verdict

ENDINGS = {
    "segfault": ("crash", "SIGSEGV"),
    "exit": ("crash", "exit code 7"),
    "kill": ("crash", "SIGKILL"),
    "exception": ("exception", "KeyError: 'nothing'"),
    "sysexit": ("exception", "SystemExit: 4"),
    "missing": ("exception", "returned no y; it returned z"),
}


def verdict(plan, run_id):
    return read_verdict(StudyDir(plan.directory).run(run_id)).result


def attempts(plan, run_id):
    return len(list((plan.directory / run_id).glob("lease*.json")))


@pytest.mark.parametrize("kind", ENDINGS)
def test_an_ending_is_told_and_the_other_runs_go_on(kind, planned, go):
    plan = planned("ending", kind=kind)
    number, _ = go(plan, options=RunOptions(policy=Policy(retries=1)))
    assert number["done"] == 2
    assert number["failed"] == 2
    failed = verdict(plan, "002-r1")
    expected, words = ENDINGS[kind]
    assert failed.error.kind == expected
    assert words in failed.error.reason
    assert "about to end" in "\n".join(failed.error.log)
    assert attempts(plan, "002-r1") == (2 if expected == "crash" else 1)
    assert failed.provenance["attempt"] == attempts(plan, "002-r1")


def test_a_hang_is_ended_with_its_stack_in_the_log(planned, go):
    plan = planned("ending", kind="hang")
    options = RunOptions(policy=Policy(retries=0), timeout=0.5)
    number, _ = go(plan, options=options)
    assert number["failed"] == 2
    failed = verdict(plan, "002-r1")
    assert failed.error.kind == "timeout"
    assert "longer than 0.5 s" in failed.error.reason
    assert "_sleep_for_ever" in "\n".join(failed.error.log)


def test_a_stopped_process_is_killed_after_its_time(planned, go):
    plan = planned("ending", factors="B", kind="stop")
    options = RunOptions(policy=Policy(retries=0), timeout=0.3)
    number, _ = go(plan, options=options)
    assert number["failed"] == 1
    assert verdict(plan, "001-r1").error.kind == "timeout"


def test_a_metric_that_is_not_finite_is_a_divergence(planned, go):
    plan = planned("ending", kind="nan")
    number, _ = go(plan)
    assert number["diverged"] == 2
    diverged = verdict(plan, "003-r1")
    assert diverged.metrics == {"y": None}
    assert diverged.error.reason == "y is nan"
    table = load(plan.directory).set_index("run_id")
    assert table.loc["003-r1", "state"] == "diverged"
    assert table.loc["003-r1", "reason"] == "y is nan"
    assert table.loc["003-r1", ["y"]].isna().all()


def test_a_crash_is_tried_again_and_may_succeed(planned, go):
    plan = planned("ending", kind="segfault once")
    number, said = go(plan)
    assert number["done"] == 4
    assert "will be retried" in said
    assert attempts(plan, "002-r1") == 2


def test_exceptions_are_tried_again_only_if_asked(planned, go):
    plan = planned("ending", kind="exception")
    go(plan, options=RunOptions(policy=Policy(retries=1, errors=True)))
    assert attempts(plan, "002-r1") == 2


def test_failed_runs_are_run_again_on_request_only(planned, go):
    plan = planned("ending", kind="exception")
    go(plan)
    before = attempts(plan, "002-r1")
    go(plan)
    assert attempts(plan, "002-r1") == before
    go(plan, options=RunOptions(retry_failed=True))
    assert attempts(plan, "002-r1") == before + 1
    assert (plan.directory / "002-r1" / f"result.json.failed-{before + 1}").exists()
    assert verdict(plan, "002-r1").state == "failed"


def test_a_typo_does_not_burn_the_study(planned, go):
    plan = planned("typo", factors="ABCD")
    with pytest.raises(DoeError, match=r"has no function 'typo'"):
        go(plan)
    assert not list(plan.directory.glob("*/lease.json"))


def test_the_same_traceback_everywhere_stops_the_study(planned, go):
    plan = planned("always_wrong", factors="ABCD")
    with pytest.raises(DoeError, match=r"(?s)same way.*ZeroDivisionError.*--retry-failed"):
        go(plan)
    assert len(list(plan.directory.glob("*/lease.json"))) <= 5


def test_three_failures_in_a_row_close_a_slot(planned, go):
    plan = planned("wrong_in_many_ways", factors="ABCD")
    with pytest.raises(DoeError, match="every slot was closed"):
        go(plan, cpu=1)
    assert len(list(plan.directory.glob("*/result.json"))) == 3


def test_torch_computes_in_a_forked_child_with_its_threads(planned, go):
    plan = planned("torch_backend:run", factors="A", threads=3)
    number, _ = go(plan)
    assert number["done"] == 2
    results = [verdict(plan, run.run_id) for run in plan.design.runs]
    assert len({result.metrics["imported_by"] for result in results}) == 1
    result = verdict(plan, "001-r1")
    assert result.metrics["y"] == 256.0**3 + 1
    assert result.metrics["threads"] == result.provenance["threads"] == 3


@pytest.mark.parametrize("slots", [1, 2])
def test_threads_belong_to_the_study_and_not_to_the_number_of_slots(planned, go, slots):
    """Whatever its slots, its machine and its surroundings, a run is told the same number."""
    plan = planned("threads_told", factors="A", threads=3)
    assert go(plan, cpu=slots)[0]["done"] == 2
    results = [verdict(plan, run.run_id) for run in plan.design.runs]
    assert {result.metrics["threads"] for result in results} == {3}
    assert {result.provenance["threads"] for result in results} == {3}
    assert '"threads": 3' in (plan.directory / "000-r1" / "request.json").read_text()


def test_a_run_does_not_go_on_under_another_number_of_threads(planned, go):
    plan = planned("traced", factors="A")
    changed = plan._replace(study=msgspec.structs.replace(plan.study, threads=2))
    first = plan.design.runs[0]
    run = StudyDir(plan.directory).run(first.run_id)
    prepare(run, plan.study, first)
    acquire(run, new_owner(), Watch()).release()
    with pytest.raises(DoeError, match=r"had begun \(threads 1, now 2\)"):
        go(changed)
    assert go(plan)[0]["done"] == 2
    with pytest.raises(DoeError, match=r"were done .* \(threads 1, now 2\)"):
        go(changed)


def test_results_of_different_numbers_of_threads_are_told(planned, go):
    plan = planned("traced", factors="A")
    go(plan)
    run = StudyDir(plan.directory).run("000-r1")
    result = read_verdict(run).result
    older = result.provenance | {"threads": 2}
    run.result.write_bytes(encode_result(msgspec.structs.replace(result, provenance=older)))
    (warning,) = [text for text in overview(plan.directory).warnings if "threads" in text]
    assert "1 (1 run)" in warning
    assert "2 (1 run)" in warning


def test_a_backend_that_begins_threads_gets_new_processes(planned, go):
    plan = planned("threaded_backend:run", factors="A")
    number, _ = go(plan, cpu=1)
    assert number["done"] == 2
    assert verdict(plan, "001-r1").metrics["threads"] == 2  # main and its own


def test_no_process_is_left(planned, go):
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    plan = planned("leaves_children", factors="A")
    number, _ = go(plan, cpu=2)
    assert number["done"] == 2
    pids = [int(path.read_text()) for path in plan.directory.glob("*/child.txt")]
    assert len(pids) == 2
    assert not [pid for pid in pids if living(pid)]
    after = {child.pid for child in psutil.Process().children(recursive=True)}
    assert after <= before


# GPUs ---------------------------------------------------------------------------------------------


@pytest.fixture
def two_gpus(tmp_path, monkeypatch):
    """A stand-in for nvidia-smi that lists two GPUs."""
    tool = tmp_path / "bin" / "nvidia-smi"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\nprintf '0, Fake A100, 550.1\\n1, Fake A100, 550.1\\n'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}{os.pathsep}{os.environ['PATH']}")


def test_each_gpu_has_a_slot_and_is_the_only_one_visible(planned, go, two_gpus):
    plan = planned("visible", factors="AB")
    number, _ = go(plan, asked={"gpus": "0,1"})
    assert number["done"] == 4
    results = [verdict(plan, run.run_id) for run in plan.design.runs]
    assert {r.provenance["slot"] for r in results} == {"gpu0", "gpu1"}
    for result in results:
        assert result.provenance["slot"] == f"gpu{result.metrics['y']:.0f}"
        assert result.provenance["hardware"] == "Fake A100"
        assert result.provenance["driver"] == "550.1"
        assert result.provenance["device"] == "cuda:0"


def test_a_gpu_that_is_not_there_is_an_error_that_names_what_is(planned, go, two_gpus):
    with pytest.raises(DoeError, match=r"no GPU 2; nvidia-smi lists: 0 \(Fake A100\), 1"):
        go(planned(), asked={"gpus": "1,2"})


def test_out_of_gpu_memory_is_tried_again_when_the_gpu_is_alone(planned, go, two_gpus):
    plan = planned("memory_when_shared", factors="ABC")
    number, said = go(plan, asked={"gpus": "0", "per_gpu": 2})
    assert number["done"] == 8
    assert "CUDA out of memory" in said
    records = [json.loads(path.read_text()) for path in plan.directory.glob("*/attempt-*.json")]
    assert records
    assert all(r["error"]["kind"] == "gpu-memory" and not r["error"]["alone"] for r in records)


def test_out_of_gpu_memory_alone_is_final(planned, go, two_gpus):
    plan = planned("ending", kind="memory")
    number, _ = go(plan, asked={"gpus": "0"})
    assert number["failed"] == 2
    assert attempts(plan, "002-r1") == 1


# Commands -----------------------------------------------------------------------------------------


def command(code):
    return (sys.executable, "-c", code, "{A}", "{seed}", "{run_dir}", "{device}")


GOOD = (
    "import sys, json; "
    "json.dump({{'y': float(sys.argv[2])}}, open(sys.argv[3] + '/metrics.json', 'w'))"
)


def test_a_command_leaves_its_metrics(planned, go):
    plan = planned(factors="A", command=command(GOOD), replicates=2)
    number, _ = go(plan)
    assert number["done"] == 4
    assert verdict(plan, "001-r2").metrics == {"y": 2.0}


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("raise SystemExit(5)", "exit code 5"),
        ("pass", "wrote no metrics.json"),
        ("import sys; open(sys.argv[3] + '/metrics.json', 'w').write('[1]')", "not a JSON object"),
        ("import os; os.kill(os.getpid(), 11)", "SIGSEGV"),
    ],
)
def test_a_command_that_fails_says_how(planned, go, code, words):
    plan = planned(factors="A", command=command(code))
    with contextlib.suppress(DoeError):  # the same failure everywhere stops the study
        go(plan, cpu=1, options=RunOptions(policy=Policy(retries=0)))
    assert words in verdict(plan, "000-r1").error.reason


def test_a_command_dies_with_its_run(planned, go):
    code = (
        "import os, sys, time; "
        "open(sys.argv[3] + '/pid', 'w').write(str(os.getpid())); time.sleep(60)"
    )
    plan = planned(factors="A", command=command(code))
    number, _ = go(plan, options=RunOptions(policy=Policy(retries=0), timeout=0.7))
    assert number["failed"] == 2
    for path in plan.directory.glob("*/pid"):
        assert not living(int(path.read_text()))


def test_the_worker_alone_is_idempotent(planned, go):
    plan = planned("traced", factors="A")
    go(plan, options=RunOptions(limit=1), cpu=1)
    (done,) = plan.directory.glob("*/result.json")
    before = done.read_bytes()
    call = [sys.executable, "-m", "doe.running.worker", str(done.parent)]
    assert subprocess.run(call, check=False).returncode == 0
    assert done.read_bytes() == before
    assert len((done.parent / "calls.txt").read_text().split()) == 1
