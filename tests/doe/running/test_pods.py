"""An indexed Job of pods as how-to/machines.md has it: a process namespace and an index each."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import until

from doe.store.files import StudyDir
from doe.store.verdicts import failed_attempts, read_verdict

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "machines.md"
PODS = 4
UNSHARE = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child=SIGKILL"]
ALLOWED = subprocess.run([*UNSHARE, "true"], capture_output=True).returncode == 0


def manifest(key):
    """The list that stands in the manifest of the page after a key."""
    return re.search(rf"{key}: \[(.*?)\]", PAGE.read_text())[1].replace('"', "").split(", ")


@pytest.fixture
def pods(tmp_path):
    """Start what a pod runs, where the volume is mounted; all of them are ended at last."""
    program, *words = manifest("command")
    assert program == "doe"
    started = []

    def start(index):
        call = [*UNSHARE, sys.executable, "-c", "from doe.cli import main; main()", *words]
        said = open(tmp_path / f"pod-{index}.txt", "a")  # noqa: SIM115
        surroundings = os.environ | {"JOB_COMPLETION_INDEX": str(index)}
        started.append(
            subprocess.Popen(call, cwd=tmp_path, env=surroundings, stdout=said, stderr=said)
        )
        return started[-1]

    yield start
    for pod in started:
        if pod.poll() is None:
            pod.kill()
        pod.wait()


@pytest.mark.skipif(not ALLOWED, reason="needs the right to make process namespaces")
def test_pods_of_an_indexed_job_share_a_study_and_outlive_evictions(planned, pods, tmp_path):
    plan = planned("hostile_backends:preemptible", factors="AB")
    plan.directory.rename(tmp_path / "runs" / "study")
    study = StudyDir(tmp_path / "runs" / "study")
    runs = [study.run(run.run_id) for run in plan.design.runs]
    evicted = [pods(index) for index in range(PODS)]
    until(lambda: all((run.path / "calls.txt").exists() for run in runs), 120)
    for pod in evicted:  # the first process of the pod, as the kubelet does
        scheduler = int(subprocess.check_output(["pgrep", "-P", str(pod.pid)]))
        os.kill(scheduler, signal.SIGTERM)
    codes = {str(pod.wait(timeout=120)) for pod in evicted}
    assert codes.isdisjoint(manifest("values")), "the Job starts them again"
    assert all((run.path / "checkpoint").exists() for run in runs)
    assert [pod.wait(timeout=120) for pod in [pods(index) for index in range(PODS)]] == [0] * PODS
    assert {read_verdict(run).result.state for run in runs} == {"done"}
    assert [len((run.path / "calls.txt").read_text().split()) for run in runs] == [2] * PODS
    assert not any(map(failed_attempts, runs))
