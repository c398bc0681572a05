"""A study that two users of a group share: each goes on with what the other has left."""

import contextlib
import os
import signal
import subprocess
import sys
import time

import pytest
from users import USERS, as_user, share, users_allowed

from doe.store.leases import last_lease
from doe.store.plan import load_plan
from doe.store.verdicts import failed_attempts, read_verdict

pytestmark = pytest.mark.skipif(not users_allowed(), reason="needs root and setpriv")

STUDY = """
name = "shared"
backend = "tiny_backends:traced"
settings.seconds = 0.6
[factors.A]
low = 0
high = 1
[responses]
metrics = ["y"]
"""


def start(user, *words, cwd):
    call = [*as_user(user), sys.executable, "-c", "from doe.cli import main; main()", *words]
    return subprocess.Popen(
        call,
        cwd=cwd,
        umask=0o002,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def abandoned(tmp_path):
    """A study whose first run was begun by the first user, and killed with its scheduler."""
    place = tmp_path / "shared"
    place.mkdir()
    share(place)
    (place / "study.toml").write_text(STUDY)
    assert start(USERS[0], "plan", "--out", "st", cwd=place).wait() == 0
    first = start(USERS[0], "run", "--study", "st", "--cpu", "1", cwd=place)
    plan = load_plan(place / "st")
    run = plan.files.run(plan.design.runs[0].run_id)
    while not run.progress.exists():
        assert first.poll() is None, first.stdout.read()
        time.sleep(0.01)
    first.kill()
    with contextlib.suppress(ProcessLookupError):
        os.kill(last_lease(run).lease.pid, signal.SIGKILL)
    first.communicate()
    assert read_verdict(run) is None
    return plan, run


def test_a_directory_that_its_backend_protects_gets_its_verdict(tmp_path):
    """As somebody whom a missing permission stops."""
    share(tmp_path)
    text = STUDY.replace("tiny_backends:traced", "hostile_backends:forbids_writing")
    (tmp_path / "study.toml").write_text(text)
    assert start(USERS[0], "plan", "--out", "st", cwd=tmp_path).wait() == 0
    ended = start(USERS[0], "run", "--study", "st", "--cpu", "1", cwd=tmp_path)
    said, _ = ended.communicate(timeout=180)
    assert ended.returncode == 0, said
    assert "2 done" in said


@pytest.mark.parametrize("mode", [None, 0o644], ids=["by the umask", "as earlier versions"])
def test_the_second_user_goes_on_with_what_the_first_has_begun(tmp_path, mode):
    plan, run = abandoned(tmp_path)
    if mode is None:
        assert {path.stat().st_mode & 0o777 for path in run.path.iterdir()} == {0o664}
    for path in run.path.iterdir() if mode else ():
        path.chmod(mode)
    (run.path / "calls.txt").chmod(0o664)  # the backend's own
    second = start(USERS[1], "run", "--study", "st", "--cpu", "1", cwd=plan.directory.parent)
    said, _ = second.communicate(timeout=180)
    assert second.returncode == 0, said
    assert read_verdict(run).result.state == "done"
    assert not failed_attempts(run)
    assert "== attempt 2 ==" in run.log.read_text()
    assert run.log.stat().st_uid == (USERS[1] if mode else USERS[0])
    assert (run.path / "log-1.txt").exists() is bool(mode)
