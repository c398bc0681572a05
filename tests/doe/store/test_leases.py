"""Leases: who holds a run, and when its holder is gone."""

import contextlib
import os
import subprocess
import sys

import msgspec
import pytest

from doe.running.worker import WorkerOptions, begin, finish
from doe.store.files import RunDir
from doe.store.leases import HIDDEN, HolderState, Watch, acquire, last_lease, machine, new_owner
from doe.store.verdicts import Result, read_verdict


def taken(tmp_path, **changes):
    """A run whose lease another machine's process has."""
    run = RunDir(tmp_path / "run")
    run.path.mkdir()
    owner = msgspec.structs.replace(new_owner(), **({"machine": "elsewhere"} | changes))
    return run, acquire(run, owner, Watch())


def test_an_observer_ignores_the_time_in_which_it_was_blocked(tmp_path):
    run, _ = taken(tmp_path)
    now = [0.0]
    watch = Watch(clock=lambda: now[0])
    look = lambda: watch.is_expired(run, last_lease(run))  # noqa: E731
    assert not look()
    for pause in (70.0, 70.0, 5.0, 300.0):
        now[0] += pause
        assert not look(), "blocked time was counted"
    for _ in range(10):
        now[0] += 5.0
        assert not look()
    now[0] += 5.0
    assert look()


def test_a_process_of_another_user_under_hidepid_is_not_taken_for_dead(tmp_path):
    if os.getuid() != 0:
        pytest.skip("needs root, to mount /proc with hidepid")
    run, held = taken(tmp_path, machine=machine())
    code = (
        "import os, sys, pathlib; sys.path[:] = eval(sys.argv[2])\n"
        "from doe.store.files import RunDir\n"
        "from doe.store import leases\n"
        "os.setgid(65534), os.setuid(65534)\n"
        "last = leases.last_lease(RunDir(pathlib.Path(sys.argv[1])))\n"
        "last = last._replace(lease=type(last.lease)(**{**{f: getattr(last.lease, f) for f in "
        "last.lease.__struct_fields__}, 'machine': leases.machine()}))\n"
        "print(leases.process_started(last.lease.pid))\n"
        "print(leases.Watch().is_expired(RunDir(pathlib.Path(sys.argv[1])), last))\n"
    )
    for folder in (tmp_path, *tmp_path.parents[:3]):
        with contextlib.suppress(OSError):
            folder.chmod(0o755)
    words = [sys.executable, "-c", code, str(run.path), repr([os.getcwd(), *sys.path])]
    mount = 'mount -t proc -o hidepid=2 proc /proc && exec "$@"'
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", mount, "sh", *words], capture_output=True, text=True
    )
    if "mount:" in done.stderr:
        pytest.skip(f"this machine does not let us: {done.stderr.strip()}")
    assert done.stdout.split() == [HIDDEN, "False"], done.stderr
    held.release()


def test_a_lease_that_is_listed_and_not_seen_yet_is_somebodys(tmp_path, monkeypatch):
    """As on file systems that remember for a while that a name was absent."""
    run, held = taken(tmp_path)
    monkeypatch.setattr(RunDir, "names", lambda _: ["lease.json", "lease-2.json"])
    last, watch = last_lease(run), Watch()
    assert (last.attempt, last.lease) == (2, None)
    assert not watch.is_expired(run, last)
    assert acquire(run, new_owner(), watch) is None
    held.release()


@pytest.mark.parametrize("raw", [b"", bytes(320)], ids=["empty", "zeros"])
def test_a_lease_that_a_power_failure_left_unreadable_is_taken_over(planned, go, monkeypatch, raw):
    """By a worker, which has not watched it itself."""
    plan = planned(factors="A")
    run = plan.files.run("000-r1")
    run.path.mkdir()
    run.lease(1).write_bytes(raw)
    monkeypatch.setattr("doe.store.leases.STALE_SECONDS", 1.0)  # of this scheduler alone
    number, said = go(plan)
    assert number["done"] == 2, said
    assert last_lease(run).attempt == 2


def test_a_holder_behind_another_mount_is_judged_by_its_silence(tmp_path):
    """There names come late: whether it holds this very file, or what it wrote last, is unknown."""
    run, held = taken(tmp_path, machine=machine())
    lease = held.lease
    assert Watch().holder_gone(run, lease) is False
    dead = msgspec.structs.replace(lease, started="1")
    assert Watch().holder_gone(run, dead) is True
    for holder in (lease, dead):
        behind = msgspec.structs.replace(holder, device=lease.device + 1)
        assert Watch().holder_gone(run, behind) is None
    held.release()


def test_who_lost_the_lease_and_has_finished_commits_all_the_same(tmp_path):
    run = RunDir(tmp_path)
    held = begin(run, WorkerOptions(), new_owner(), Watch())
    run.lease(2).write_bytes(run.lease(1).read_bytes())
    assert held.lost()
    assert finish(held, WorkerOptions(), Result("done", {"y": 3.0})) == 0
    assert read_verdict(run).result.metrics == {"y": 3.0}


@pytest.mark.parametrize(
    ("act", "state", "beat"),
    [
        (lambda held: None, HolderState.ALIVE, "000000000000"),
        (lambda held: held.beat(), HolderState.ALIVE, "000000000001"),
        (lambda held: held.beat(waiting=True), HolderState.WAITING, "waits0000001"),
        (lambda held: held.release(), HolderState.RELEASED, "released----"),
        (lambda held: held.release("ab" * 32), HolderState.SETTLED, "vabababababa"),
    ],
)
def test_a_heartbeat_says_what_became_of_the_holder(tmp_path, act, state, beat):
    """In bytes that earlier versions read as well."""
    run, held = taken(tmp_path)
    size = run.lease(1).stat().st_size
    act(held)
    lease = last_lease(run).lease
    assert (lease.state, lease.beat) == (state, beat)
    assert run.lease(1).stat().st_size == size


def test_a_lease_tells_of_a_verdict_that_is_not_seen_yet(tmp_path):
    """As on file systems that remember for a while that a name was absent."""
    run = RunDir(tmp_path)
    held = begin(run, WorkerOptions(), new_owner(), Watch())
    finish(held, WorkerOptions(), Result("done", {"y": 3.0}))
    hidden = run.result.rename(tmp_path / "hidden")
    assert acquire(run, new_owner(), Watch()) is None
    hidden.rename(run.result)
    assert begin(run, WorkerOptions(), new_owner(), Watch()) == 0
    # Who has watched for long enough knows that it was deleted.
    run.result.unlink()
    now = [0.0]
    watch = Watch(clock=lambda: now[0])
    over = []
    for _ in range(14):
        over.append(watch.is_expired(run, last_lease(run)))
        now[0] += 5.0
    assert over == [False] * 12 + [True] * 2
