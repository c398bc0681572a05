"""A real Slurm of one node on loopback, with two GPUs made of character devices; needs root.

python tests/doe/running/engines/slurm_cluster.py up DIR     prints the SLURM_CONF to export
python tests/doe/running/engines/slurm_cluster.py down DIR
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch")
CONFIGURATION = """\
ClusterName=doetest
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
AuthType=auth/munge
AuthInfo=socket={root}/munge.socket
SlurmUser=root
SlurmdUser=root
StateSaveLocation={root}/state
SlurmdSpoolDir={root}/spool
SlurmctldPidFile={root}/slurmctld.pid
SlurmdPidFile={root}/slurmd.pid
SlurmctldLogFile={root}/slurmctld.log
SlurmdLogFile={root}/slurmd.log
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=1,sched_min_interval=10000,bf_interval=1,batch_sched_delay=0
GresTypes=gpu,shard
SlurmdParameters=config_overrides
ReturnToService=2
SlurmdTimeout=10
SlurmctldTimeout=10
MessageTimeout=5
KillWait=2
InactiveLimit=0
MinJobAge=300
OverTimeLimit=0
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory=2000 Gres=gpu:{gpus},shard:{shards} \
State=UNKNOWN
PartitionName=debug Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


def available() -> bool:
    """Whether Slurm is installed and may be started."""
    return os.geteuid() == 0 and all(_program(name) for name in PROGRAMS)


class SlurmCluster:
    """The daemons of one cluster, found by the pid files in its directory."""

    def __init__(self, root: Path, gpus: int = 2, cpus: int = 4) -> None:
        self.root = root.resolve()
        self.gpus, self.cpus = gpus, cpus
        self.host = socket.gethostname().partition(".")[0]
        self.configuration = self.root / "slurm.conf"

    def up(self) -> None:
        """Start everything and wait until the node is idle."""
        for name in ("state", "spool"):
            (self.root / name).mkdir(parents=True, exist_ok=True)
        self._start_munge()
        for number in range(self.gpus):
            # Only a character device makes Slurm set CUDA_VISIBLE_DEVICES.
            device = self.root / f"gpu{number}"
            if not device.exists():
                os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(1, 3))
        (self.root / "gres.conf").write_text(
            f"NodeName={self.host} Name=gpu File={self.root}/gpu[0-{self.gpus - 1}]\n"
            f"NodeName={self.host} Name=shard Count={2 * self.gpus}\n"
        )
        controller_port, node_port = _free_ports(2)
        self.configuration.write_text(
            CONFIGURATION.format(
                host=self.host,
                root=self.root,
                cpus=self.cpus,
                gpus=self.gpus,
                shards=2 * self.gpus,
                controller_port=controller_port,
                node_port=node_port,
            )
        )
        self.start_controller(clean=True)
        self.start_node()
        self.wait_idle()

    def down(self) -> None:
        """End the node, then the controller."""
        for name in ("slurmd", "slurmctld", "munged"):
            self._kill(name, signal.SIGTERM)

    def start_controller(self, clean: bool = False) -> None:
        """Start slurmctld, with an empty memory if `clean`."""
        self._start("slurmctld", *(["-c"] if clean else []))

    def kill_controller(self) -> None:
        """Kill slurmctld with no chance to save its state."""
        self._kill("slurmctld", signal.SIGKILL)

    def forget(self) -> None:
        """Wipe what the controller has saved: its jobs are lost, their ids are given again."""
        shutil.rmtree(self.root / "state")
        (self.root / "state").mkdir()

    def start_node(self) -> None:
        """Start slurmd."""
        self._start("slurmd", "-N", self.host)

    def kill_node(self) -> None:
        """Kill slurmd and all jobs on it, as a power cut would."""
        self._kill("slurmd", signal.SIGKILL)
        for pid in _pids_of("slurmstepd", str(self.configuration)):
            _kill_tree(pid)

    def ensure_up(self) -> None:
        """Start again what a test has killed, cancel what it has left, wait until all is idle."""
        for name, start in (("slurmctld", self.start_controller), ("slurmd", self.start_node)):
            if name not in _command(self._pid(name)):
                start()
        deadline = time.monotonic() + 120
        while self.node_state() != "idle" and time.monotonic() < deadline:
            user = f"--user={os.getuid()}"
            subprocess.run(["scancel", "--quiet", user], env=self.env, capture_output=True)
            time.sleep(0.2)
        self.wait_idle(1)
        up = ["scontrol", "update", "partitionname=debug", "state=up"]
        subprocess.run(up, env=self.env, check=True, capture_output=True)

    def node_state(self) -> str:
        """The node's state as sinfo tells it, empty while no controller answers."""
        call = ["sinfo", "--noheader", "--format=%T"]
        return subprocess.run(call, capture_output=True, text=True, env=self.env).stdout.strip()

    def wait_idle(self, seconds: float = 120.0) -> None:
        """Wait until the node takes jobs and has none."""
        deadline = time.monotonic() + seconds
        while self.node_state() != "idle":
            if time.monotonic() > deadline:
                raise TimeoutError(f"the node is {self.node_state()!r}; see {self.root}/*.log")
            time.sleep(0.1)

    @property
    def env(self) -> dict[str, str]:
        """The environment in which Slurm's commands reach this cluster."""
        return os.environ | {"SLURM_CONF": str(self.configuration)}

    def _start(self, name: str, *words: str) -> None:
        call = [_program(name), "-f", str(self.configuration), *words]
        subprocess.run(call, check=True, env=self.env, capture_output=True, text=True)
        deadline = time.monotonic() + 60
        while name not in _command(self._pid(name)):  # it is in the background, and kept by its pid
            if time.monotonic() > deadline:
                raise TimeoutError(f"{name} did not start; see {self.root}/*.log")
            time.sleep(0.02)

    def _start_munge(self) -> None:
        """Start a munged of its own, so that no other cluster's end takes it away."""
        key = self.root / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        files = {"key-file": key, "socket": self.root / "munge.socket"}
        files |= {f"{name}-file": self.root / f"munged.{name}" for name in ("pid", "log", "seed")}
        words = [f"--{name}={path}" for name, path in files.items()]
        # By force: the directory of the socket is its owner's alone.
        subprocess.run([_program("munged"), "--force", *words], check=True, capture_output=True)

    def _kill(self, name: str, number: signal.Signals) -> None:
        """Send a signal to a daemon and wait until it is gone."""
        pid = self._pid(name)
        with contextlib.suppress(ProcessLookupError):
            for _ in range(200):
                if name not in _command(pid):
                    break
                os.kill(pid, number)
                time.sleep(0.05)
        (self.root / f"{name}.pid").unlink(missing_ok=True)

    def _pid(self, name: str) -> int:
        """The number in a daemon's pid file, 0 if there is none."""
        try:
            return int((self.root / f"{name}.pid").read_text())
        except (FileNotFoundError, ValueError):
            return 0


def _program(name: str) -> str:
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin") or ""


def _free_ports(number: int) -> list[int]:
    sockets = [socket.socket() for _ in range(number)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def _command(pid: int) -> str:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""
    return "" if state in "ZX" else words


def _pids_of(program: str, configuration: str) -> list[int]:
    """Processes of a program that belong to this cluster, by the configuration they were given."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdecimal() and program in _command(int(name)):
            with contextlib.suppress(OSError):
                if configuration.encode() in Path(f"/proc/{name}/environ").read_bytes():
                    found.append(int(name))
    return found


def _kill_tree(pid: int) -> None:
    """Kill a process and all below it, from above: none may tell of another's end."""
    import psutil

    with contextlib.suppress(psutil.NoSuchProcess):
        top = psutil.Process(pid)
        for process in [top, *top.children(recursive=True)]:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()


if __name__ == "__main__":
    action, directory = sys.argv[1:]
    cluster = SlurmCluster(Path(directory))
    if action == "up":
        cluster.up()
        print(f"export SLURM_CONF={cluster.configuration}")
    else:
        cluster.down()
