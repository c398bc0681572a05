"""Kill at random: schedulers, slots, keepers, trainings, or all at once; then count the damage.

``python tests/doe/running/chaos.py --kills 1000`` is `make chaos`. Small studies are run one after
the other, by one scheduler or two, until so many kills have hit. Each has a mode (`MODES`). After
each study it counts verdicts lost, runs executed again after their verdict, torn files, wrong
numbers (a result of another study's run among them), runs begun before their stage, foreign
processes touched, processes left. Executions of stages are counted as runs are.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec
from users import USERS, as_user, share, users_allowed

from doe.errors import DoeError
from doe.running.execute import EngineChoice, execute
from doe.running.scheduler import RunOptions
from doe.store import leases
from doe.store.files import StudyDir
from doe.store.plan import Plan, load_plan, write_plan
from doe.store.verdicts import Policy, decode_result
from doe.study.values import Factor, Responses, Stage, Study
from doe.views.live import PlainDisplay

sys.path.insert(0, str(Path(__file__).parent))

HERE = Path(__file__).parent
MARK = "DOE_CHAOS"
TARGETS = ("scheduler", "slot", "keeper", "training", "training", "all")
COUNTED = ("lost", "run twice", "torn", "wrong", "early", "foreign", "left")
MODES = {
    "plain": "kill -9 and nothing else",
    "chdir": "the backend changes to a directory that holds another study of the same path",
    "lock": "the backend holds the interpreter lock all the time",
    "signals": "TERM, INT, HUP, USR1, SEGV, real-time signals and STOP instead of kill -9",
    "replaced": "half-way, the study is moved away and planned anew with other seeds",
    "replanned": "while its first schedulers begin, the study is planned with other seeds",
    "empties": "the backend empties its run's directory, at once and when it has finished",
    "users": "schedulers of two users of one group, in turn",
    "command": "each run is a program, forked before it is known",
    "stages": "runs share the executions of two stages, of which one needs the other",
    "namespaces": "each scheduler in a process namespace of its own, where numbers begin at 1",
}
BACKENDS = {mode: f"chaos_backends:{mode}" for mode in ("chdir", "lock", "empties", "stages")}
SCRIPT = """
echo $$ >> "$1/../calls.txt"
sleep "$2"
awk -v a="$3" -v b="$4" -v c="$5" -v s="$6" \
    'BEGIN {{ printf "{{\\"y\\": %.17g}}", a + 2 * b + 3 * c + s / 7 }}' > "$1/metrics.json"
"""
LEVELS = ("0{A:1}", "0{B:1}", "0{C:1}")
COMMAND = ("sh", "-c", SCRIPT, "sh", "{run_dir}", "{seconds}", *LEVELS, "{seed}")
STAGES = {
    "raw": Stage(function="chaos_backends:stage", settings={"seconds": 0.1}),
    "data": Stage(
        function="chaos_backends:stage", factors=("A",), needs=("raw",), settings={"seconds": 0.2}
    ),
}
AWAIT_SECONDS = 20.0
"""Time for a scheduler to begin a run on a busy machine."""
SIGNALS = ("SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1", "SIGSEGV", "SIGSTOP", "SIGRTMIN", "SIGKILL")
UNSHARE = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child=SIGKILL"]
STALE_SECONDS = 12.0
"""In namespaces, instead of a minute: the signs of life of another namespace alone can tell."""


def make_study(directory: Path, mode: str, seconds: float, first_seed: int = 1) -> Plan:
    factors, replicates = "ABC", 2
    study = Study(
        name="chaos",
        backend="command" if mode == "command" else BACKENDS.get(mode, "tiny_backends:traced"),
        command=COMMAND if mode == "command" else (),
        factors=tuple(Factor(key=key, levels=(False, True)) for key in factors),
        responses=Responses(metrics=("y",)),
        replicates=replicates,
        seeds=tuple(range(first_seed, first_seed + replicates)),
        settings={"seconds": seconds},
        stages=STAGES if mode == "stages" else {},
    )
    return write_plan(study, directory)[0]


def namespaces_allowed() -> bool:
    """Whether this machine lets us make process namespaces."""
    try:
        return subprocess.run([*UNSHARE, "true"], capture_output=True).returncode == 0
    except OSError:
        return False


def schedule(directory: Path, stale: float) -> int:
    """What `doe run` does, without the check that needs the design made anew."""
    from rich.console import Console

    leases.STALE_SECONDS = stale
    plan = load_plan(directory)
    options = RunOptions(policy=Policy(retries=10**6))
    display = PlainDisplay(Console(quiet=True))
    try:
        done = execute(plan, options, EngineChoice("local", {"cpu": 2}), display)
    except DoeError:  # its study was replaced
        return 3
    return 0 if done.finished and done.counts["done"] == len(plan.design.runs) else 3


class Chaos:
    """One study and its tormentor."""

    def __init__(self, directory: Path, mode: str, rng: random.Random, pace: float) -> None:
        self.seconds = pace * rng.choice((0.05, 0.2, 0.6))
        self.files, self.mode, self.rng = StudyDir(directory), mode, rng
        self.plan = make_study(directory, mode, self.seconds)
        if mode == "users":
            share(directory)
        self.bystander = subprocess.Popen(["sleep", "3600"], start_new_session=True)
        self.name = os.urandom(8).hex()
        self.schedulers: list[subprocess.Popen[bytes]] = []
        self.kills: Counter[str] = Counter()
        self.damage: Counter[str] = Counter(dict.fromkeys(COUNTED, 0))
        self.old: Path | None = None
        self.known: dict[str, tuple[bytes, int]] = {}
        """Run -> its committed verdict and how often it had been executed by then."""

    def start(self, number: int) -> None:
        path = os.pathsep.join(
            [str(HERE.parent / "backends"), os.environ.get("PYTHONPATH", "")]
        ).rstrip(os.pathsep)
        call = [sys.executable, str(HERE / "chaos.py"), "--schedule", self.files.root.name]
        if self.mode == "namespaces":
            call = [*UNSHARE, *call, "--stale", str(STALE_SECONDS)]
        environment = os.environ | {MARK: self.name, "PYTHONPATH": path}
        while len(self.schedulers) < number:
            user = as_user(self.rng.choice(USERS)) if self.mode == "users" else []
            self.schedulers.append(
                subprocess.Popen(
                    [*user, *call],
                    umask=0o002 if user else -1,
                    env=environment,
                    cwd=self.files.root.parent,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
            )

    def reap(self) -> None:
        self.schedulers = [one for one in self.schedulers if one.poll() is None]

    def processes(self) -> dict[str, list[int]]:
        """Living processes of this study by their role."""
        roles: dict[str, list[int]] = {role: [] for role in dict.fromkeys(TARGETS[:-1])}
        mark = f"{MARK}={self.name}".encode()
        for name in filter(str.isdecimal, os.listdir("/proc")):
            with contextlib.suppress(OSError):  # it may end meanwhile
                with open(f"/proc/{name}/environ", "rb") as file:
                    environment = file.read()
                if mark in environment.split(b"\0"):  # a zombie has none
                    roles[_role(int(name), environment)].append(int(name))
        return roles

    def kill(self) -> bool:
        """Kill something at random; False if there was nothing of that kind."""
        target = self.rng.choice(TARGETS)
        roles = self.await_role(target if target != "all" else self.rng.choice(TARGETS[:-1]))
        if target == "all":
            victims = [process for group in roles.values() for process in group]
        else:
            victims = roles[target][:]
            self.rng.shuffle(victims)
            victims = victims[:1]
        name = self.rng.choice(SIGNALS) if self.mode == "signals" else "SIGKILL"
        self.signal(victims, name)
        if name == "SIGSTOP":
            time.sleep(0.5)
            self.signal(victims, "SIGCONT")
        self.kills[target] += bool(victims)
        return bool(victims)

    def await_role(self, role: str) -> dict[str, list[int]]:
        """Living processes by their role, when there is one of this role or it may never be."""
        deadline = time.monotonic() + AWAIT_SECONDS
        roles = self.processes()
        while any(roles.values()) and not roles[role] and time.monotonic() < deadline:
            time.sleep(0.05)
            roles = self.processes()
        return roles

    def signal(self, victims: Sequence[int], name: str) -> None:
        """Signal processes of this study, and nobody who has got such a number meanwhile."""
        mark = f"{MARK}={self.name}".encode()
        for pid in victims:
            with contextlib.suppress(OSError):
                handle = os.pidfd_open(pid)
                try:
                    if mark in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                        signal.pidfd_send_signal(handle, getattr(signal, name))
                finally:
                    os.close(handle)

    def look(self) -> None:
        """Compare what stands on disk with what stood there before."""
        for run in self.plan.everything:
            place = self.files.run(run.run_id)
            before = self.known.get(run.run_id)
            if not place.result.exists():
                self.damage["lost"] += before is not None
                continue
            raw = place.result.read_bytes()
            if decode_result(raw) is None:
                self.damage["torn"] += 1
            elif before is None:
                self.known[run.run_id] = (raw, self.executions(run.run_id))
            else:
                self.damage["lost"] += raw != before[0]

    def executions(self, run_id: str) -> int:
        """How often a run was executed so far."""
        root = self.files.root
        inside, outside = root / run_id / "calls.txt", root / f"calls-{run_id}.txt"
        return len((outside if self.mode == "empties" else inside).read_text().splitlines())

    def torment(self, kills: int, deadline: float) -> int:
        """Kill up to so many times while the study runs; return how many hit."""
        hit = 0
        if self.mode == "replanned":
            self.replan()
        while hit < kills and time.monotonic() < deadline:
            self.reap()
            self.look()
            if len(self.known) == len(self.plan.everything):
                break
            half = hit >= kills // 2 or len(self.known) >= len(self.plan.design.runs) // 2
            if self.mode == "replaced" and half and not self.old:
                self.replace()
            self.start(self.rng.choice((1, 1, 1, 2)))
            time.sleep(self.rng.choice((0.0, 0.05, 0.1, 0.2, 0.4, 1.0)))
            hit += self.kill()
        return hit

    def replan(self) -> None:
        """Plan with other seeds as schedulers begin: no result may answer another plan."""
        for seed in range(10, 60, 10):
            self.reap()
            self.start(self.rng.choice((1, 2)))
            time.sleep(self.rng.uniform(0.2, 0.8))
            with contextlib.suppress(DoeError):
                self.plan = make_study(self.files.root, self.mode, self.seconds, first_seed=seed)

    def replace(self) -> None:
        """Move the study away and plan another of the same name: it must get nothing of the old."""
        self.old = self.files.root.rename(self.files.root.with_name("old"))
        self.plan = make_study(self.files.root, self.mode, self.seconds, first_seed=11)
        for run in self.plan.design.runs:
            (self.files.root / run.run_id).mkdir()
        self.known = {}

    def finish(self) -> None:
        """Let it end in peace, then count."""
        self.look()
        for _ in range(20):
            self.reap()
            self.start(1)
            if self.schedulers[0].wait(timeout=600) == 0:
                break
        for one in self.schedulers:
            one.wait(timeout=600)
        self.schedulers = []
        self.look()
        self.damage["early"] += len(list(self.files.root.glob("*/early.txt")))
        for run in self.plan.everything:
            place = self.files.run(run.run_id)
            raw, calls = self.known.get(run.run_id, (b"", 0))
            self.damage["run twice"] += self.executions(run.run_id) > calls
            result = decode_result(raw)
            expected = sum((i + 1) * (x > 0) for i, x in enumerate(run.coded)) + run.seed / 7
            metrics = {} if run.stage else {"y": expected}
            self.damage["wrong"] += result is None or result.metrics != metrics
            self._torn(place.path)
        deadline = time.monotonic() + 5
        while (left := sum(map(len, self.processes().values()))) and time.monotonic() < deadline:
            time.sleep(0.1)
        self.damage["left"] += left
        self.damage["foreign"] += self.bystander.poll() is not None
        self.bystander.kill()
        self.bystander.wait()
        for path in self.old.iterdir() if self.old else ():
            if path.is_dir():
                self._torn(path)

    def _torn(self, directory: Path) -> None:
        for path in directory.iterdir():
            if path.name.startswith("attempt-"):
                self.damage["torn"] += decode_result(path.read_bytes()) is None
            elif path.suffix == ".json" and path.name != "result.json":
                try:
                    msgspec.json.decode(path.read_bytes())
                except msgspec.MsgspecError:
                    self.damage["torn"] += 1


def _role(pid: int, environment: bytes) -> str:
    """A training bears the mark of its run, as its program does; a keeper has its lease open."""
    if b"--schedule" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"):
        return "scheduler"
    if b"\0DOE_RUN=" in b"\0" + environment:
        return "training"
    handles = []
    for handle in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(OSError):
            handles.append(os.readlink(f"/proc/{pid}/fd/{handle}"))
    if any("DOE_RUN" in handle for handle in handles):
        return "training"
    if any("/lease" in handle for handle in handles):
        return "keeper"
    return "slot"


MOST_KILLS = {mode: 6 if mode == "namespaces" else 40 for mode in MODES}
"""Kills of one study, so that all modes have their turn; each end of a namespace is waited out."""


def torment_studies(
    kills: int,
    seed: int,
    seconds: float,
    modes: Sequence[str] = tuple(MODES),
    told: bool = False,
    pace: float = 1.0,
) -> tuple[Counter[str], Counter[str], Counter[str]]:
    """Torment studies until so many kills have hit; kills by target, damage, studies by mode."""
    if "namespaces" in modes and not namespaces_allowed():
        print("skipped: this machine does not let us make process namespaces")
        modes = [mode for mode in modes if mode != "namespaces"]
    if "users" in modes and not users_allowed():
        print("skipped: this machine does not let us be two users")
        modes = [mode for mode in modes if mode != "users"]
    rng = random.Random(seed)
    killed: Counter[str] = Counter()
    damage: Counter[str] = Counter(dict.fromkeys(COUNTED, 0))
    studies: Counter[str] = Counter()
    deadline = time.monotonic() + seconds
    while killed.total() < kills and time.monotonic() < deadline:
        mode = modes[studies.total() % len(modes)]
        studies[mode] += 1
        with tempfile.TemporaryDirectory(prefix="doe-chaos-") as place:
            chaos = Chaos(Path(place) / "chaos", mode, rng, pace)
            left = kills - killed.total()
            chaos.torment(min(left, MOST_KILLS[mode]), deadline)
            chaos.finish()
            killed += chaos.kills
            damage.update(chaos.damage)
        if told:
            harm = {name: number for name, number in chaos.damage.items() if number}
            print(f"{killed.total():5} kills, {mode}: {harm or 'no damage'}", flush=True)
    return killed, damage, studies


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=3600.0, help="give up after this time")
    parser.add_argument("--mode", choices=MODES, action="append", help="only this one; repeatable")
    parser.add_argument("--pace", type=float, default=1.0, help="longer runs, for a busy machine")
    parser.add_argument("--schedule", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--stale", type=float, default=60.0, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.schedule:
        return schedule(given.schedule, given.stale)
    modes = tuple(given.mode or MODES)
    killed, damage, studies = torment_studies(
        given.kills, given.seed, given.seconds, modes, told=True, pace=given.pace
    )
    print(f"kills: {killed.total()} ({dict(killed)})")
    print(f"studies: {studies.total()} ({dict(studies)})")
    print(", ".join(f"{name} {damage[name]}" for name in COUNTED))
    return 1 if damage.total() or killed.total() < given.kills else 0


if __name__ == "__main__":
    sys.exit(main())
