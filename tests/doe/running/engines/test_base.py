"""What a run's directory tells an engine."""

import subprocess
import time

import msgspec

from doe.running.engines import await_death
from doe.store.files import RunDir
from doe.store.leases import Watch, acquire, new_owner, process_alive, process_name, process_started


def test_an_engine_waits_for_the_death_of_its_own_start(tmp_path):
    """Seen alive, the process would be adopted and its crash not counted."""
    run = RunDir(tmp_path)
    child = subprocess.Popen(["sleep", "0.5"])
    name = process_name(child.pid)
    started = process_started(child.pid)
    owner = msgspec.structs.replace(new_owner("ours"), pid=child.pid, started=started)
    held = acquire(run, owner, Watch())
    assert held is not None
    began = time.monotonic()
    await_death(run, "another start", 10.0)
    assert process_alive(name)
    await_death(run, "ours", 10.0)
    assert not process_alive(name)
    assert time.monotonic() - began < 10.0
    child.wait()
    held.release()
