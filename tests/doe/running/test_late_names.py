"""Two schedulers on a file system whose clients remember for a while that a name was absent."""

import os
import subprocess
import sys
import time
from ctypes.util import find_library
from pathlib import Path

import chaos
import pytest
from test_odd_files import call

SECONDS = 6.0
"""How long a mount remembers."""
MOUNT = Path(__file__).parents[1] / "backends" / "late_names.py"


@pytest.fixture
def clients(tmp_path):
    """One directory behind two mounts."""
    if find_library("fuse") is None:
        pytest.skip("needs libfuse: apt-get install libfuse2")
    if not os.path.exists("/dev/fuse"):
        pytest.skip("needs /dev/fuse, which this machine does not offer")
    if not chaos.namespaces_allowed():
        pytest.skip("this machine does not let us make process namespaces")
    places = [tmp_path / "first", tmp_path / "second"]
    (tmp_path / "runs").mkdir()
    mounts = []
    for place in places:
        place.mkdir()
        call = [sys.executable, str(MOUNT), str(tmp_path / "runs"), str(place), str(SECONDS)]
        mounts.append(subprocess.Popen(call, stderr=subprocess.PIPE, text=True))
    deadline = time.monotonic() + 30.0
    while not all(os.path.ismount(place) for place in places):
        if ended := [mount for mount in mounts if mount.poll() is not None]:
            pytest.skip(f"this machine does not let us mount: {ended[0].communicate()[1].strip()}")
        assert time.monotonic() < deadline, "the mounts never came"
        time.sleep(0.02)
    yield places
    for place, mount in zip(places, mounts, strict=True):
        subprocess.run(["umount", "--lazy", str(place)], check=False)
        mount.communicate(timeout=180)


@pytest.mark.parametrize("namespaces", [True, False])
def test_no_run_is_done_twice_where_absent_names_are_remembered(clients, planned, namespaces):
    """On two machines, and on one that has two mounts."""
    first, second = clients
    assert not (second / "name").exists()
    (first / "name").touch()
    assert not (second / "name").exists(), "the mounts forget at once, and this would prove nothing"
    plan = planned("traced", factors="ABCD", seconds=0.1)
    code = "from doe.cli import main; main()"
    apart = chaos.UNSHARE if namespaces else []
    run = [*apart, sys.executable, "-c", code, "run", "--cpu", "2", "--study"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    studies = [client / plan.directory.name for client in clients]
    said = call("plan", str(studies[0] / "study.toml"), "--out", str(studies[0]))[1]
    assert "is on fuse, which may show new files late" in " ".join(said.split())
    schedulers = [subprocess.Popen([*run, str(study)], **pipes) for study in studies]
    outputs = [scheduler.communicate(timeout=240)[0] for scheduler in schedulers]
    assert [scheduler.returncode for scheduler in schedulers] == [0, 0], outputs
    calls = [path.read_text().count("\n") for path in plan.directory.glob("*/calls.txt")]
    assert calls == [1] * 16
    assert len(list(plan.directory.glob("*/result.json"))) == 16
    executed = [output.count(" on cpu") for output in outputs]
    assert all(executed), f"one of the two had nothing to do: {executed}"
