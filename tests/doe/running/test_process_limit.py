"""At the limit of processes runs are put off: it is named, and neither run nor slot pays for it."""

import errno
import resource
import subprocess
import sys

import pytest
from users import as_user, share, users_allowed

from doe.running import processes
from doe.running.processes import ProcessLimitError, patiently
from doe.store.plan import load_plan
from doe.store.verdicts import failed_attempts, read_verdict

CROWDED_USER = 4713
PROCESSES = 60
STUDY = """
name = "crowded"
backend = "crowding:run"
replicates = 4
seeds = [1, 2, 3, 4]
[factors.A]
low = 0
high = 1
[responses]
metrics = ["y"]
"""


def limited():
    resource.setrlimit(resource.RLIMIT_NPROC, (PROCESSES, PROCESSES))


def doe(*words, cwd, **options):
    call = [sys.executable, "-c", "from doe.cli import main; main()", *words]
    return subprocess.run(
        [*as_user(CROWDED_USER), *call], cwd=cwd, capture_output=True, text=True, **options
    )


@pytest.mark.skipif(not users_allowed(), reason="needs root and setpriv")
def test_neighbours_of_a_run_that_takes_every_process_are_not_charged(tmp_path):
    share(tmp_path)
    tmp_path.chmod(0o777)
    (tmp_path / "study.toml").write_text(STUDY)
    planned = doe("plan", "--out", "st", cwd=tmp_path)
    assert planned.returncode == 0, planned.stderr
    ended = doe("run", "--study", "st", "--cpu", "2", cwd=tmp_path, preexec_fn=limited)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    plan = load_plan(tmp_path / "st")
    runs = [plan.files.run(run.run_id) for run in plan.design.runs]
    assert all(read_verdict(run).result.state == "done" for run in runs)
    assert max(read_verdict(run).result.metrics["y"] for run in runs) > 10, "it was crowded"
    assert not any(failed_attempts(run) for run in runs)
    assert "limit of processes" in ended.stdout
    assert "closed" not in ended.stdout


def test_a_start_waits_for_room(monkeypatch):
    refusals = [errno.EAGAIN, errno.EAGAIN]

    def start():
        if refusals:
            raise OSError(refusals.pop(), "refused")
        return 7

    assert patiently(start) == 7
    refusals = [errno.ENOENT]
    with pytest.raises(FileNotFoundError):
        patiently(start)
    monkeypatch.setattr(processes, "FORK_SECONDS", -1.0)
    refusals = [errno.EAGAIN]
    with pytest.raises(ProcessLimitError, match="limit of processes"):
        patiently(start)
