"""One suite over three engines: this machine, a real Slurm of one node, a real Ray of one node."""

import contextlib
import os
import re
import secrets
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import psutil
import pytest
from engine_harness import Bench
from slurm_cluster import SlurmCluster, available

from doe.store.plan import write_plan
from doe.study.values import Factor, Responses, Study

HERE = Path(__file__).parent
FAKE_NVIDIA_SMI = "#!/bin/sh\nprintf '0, Tiny GPU, 1.0\\n1, Tiny GPU, 1.0\\n'\n"


# Clusters -----------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def slurm_node(tmp_path_factory):
    """A Slurm cluster of one node with two GPUs, for all tests."""
    if not available():
        pytest.fail("needs root and Debian's slurmctld, slurmd, slurm-client and munge")
    cluster = SlurmCluster(tmp_path_factory.mktemp("slurm"))
    cluster.up()
    yield cluster
    cluster.down()


@pytest.fixture
def slurm(slurm_node, monkeypatch):
    """The same with all daemons up and no jobs."""
    monkeypatch.setenv("SLURM_CONF", str(slurm_node.configuration))
    yield slurm_node
    slurm_node.ensure_up()


@pytest.fixture(scope="session")
def ray_token(tmp_path_factory):
    """Ray asks for a token; one of the tests' own, so that none is made in the home directory.

    Ray reads these variables once, when it is imported: not before here.
    """
    if find_spec("ray") is None:
        pytest.fail("needs the package ray")
    token = tmp_path_factory.mktemp("ray") / "token"
    token.write_text(secrets.token_hex(32))
    token.chmod(0o600)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_AUTH_MODE", "token")
        patch.setenv("RAY_AUTH_TOKEN_PATH", str(token))
        yield


@pytest.fixture(scope="session")
def ray_head(ray_token):
    """Address of a Ray cluster of one node with four cores and two GPUs."""
    for _ in range(3):  # Ray gives up after 30 s, which a busy machine may need
        head, address, said = _start_ray()
        if address:
            break
        head.wait()
    assert address, f"ray start said no address:\n{said}"
    yield address
    processes = psutil.Process(head.pid).children(True)
    head.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        head.wait(10)
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()


def _start_ray():
    """The process of a new cluster, its address, and what it printed before."""
    words = ["start", "--head", "--block", "--port=0", "--num-cpus=4", "--num-gpus=2"]
    words += ["--include-dashboard=false", "--disable-usage-stats", "--node-ip-address=127.0.0.1"]
    ray = Path(sys.executable).parent / "ray"
    head = subprocess.Popen(
        [ray, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    said = ""
    for line in head.stdout:
        said += line
        if found := re.search(r"--address='([\d.:]+)'", line):
            return head, found[1], said
    return head, "", said


@pytest.fixture(
    params=[
        "local",
        pytest.param("slurm", marks=pytest.mark.cluster),
        pytest.param("ray", marks=pytest.mark.cluster),
    ]
)
def bench(request, tmp_path, monkeypatch):
    """Each engine in turn."""
    if request.param == "slurm":
        request.getfixturevalue("slurm")
        return Bench("slurm", {"jobs": 2}, {"gres": "gpu:1"}, {"gres": "shard:1"})
    if request.param == "ray":
        at = {"ray_address": request.getfixturevalue("ray_head")}
        return Bench(
            "ray", at | {"jobs": 2}, at | {"gpus_per_run": 1.0}, at | {"gpus_per_run": 0.5}
        )
    program = tmp_path / "bin" / "nvidia-smi"
    program.parent.mkdir()
    program.write_text(FAKE_NVIDIA_SMI)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    return Bench("local", {"cpu": 2}, {"gpus": "0,1"}, {"gpus": "0,1", "per_gpu": 2})


# Studies ------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def _backends_can_be_imported(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(HERE), prepend=os.pathsep)


@pytest.fixture
def planned(tmp_path):
    """Plan a small study in a directory whose name needs quoting."""

    def plan(backend, factors="A", replicates=2, slurm=None, stages=None, **settings):
        study = Study(
            name="tiny study",
            backend=f"engine_backends:{backend}",
            factors=tuple(Factor(key=key, levels=(False, True)) for key in factors),
            responses=Responses(metrics=("y",)),
            replicates=replicates,
            seeds=tuple(range(1, replicates + 1)),
            settings=settings,
            engines={"slurm": slurm} if slurm else {},
            stages=stages or {},
        )
        return write_plan(study, tmp_path / "my runs" / "100% tiny")[0]

    return plan
