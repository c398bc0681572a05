"""Kill -9 at random: schedulers, slots, training processes, or all at once; then count the damage.

``python tests/doe/running/chaos.py --kills 1000`` is `make chaos`. Small studies are run one after
the other, by one scheduler or two, until so many kills have hit. After each study it counts
verdicts lost, runs executed again after their verdict, torn files, wrong numbers, processes left.
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
from pathlib import Path

import msgspec
import psutil

from doe.running.execute import execute
from doe.running.scheduler import RunOptions
from doe.store.files import StudyDir
from doe.store.plan import Plan, load_plan, write_plan
from doe.store.verdicts import Policy, decode_result
from doe.study.values import Factor, Responses, Study
from doe.views.live import PlainDisplay

HERE = Path(__file__).parent
MARK = "DOE_CHAOS"
TARGETS = ("scheduler", "slot", "training", "training", "all")
COUNTED = ("lost", "run twice", "torn", "wrong", "left")


def make_study(directory: Path, seconds: float, factors: str = "ABC", replicates: int = 2) -> Plan:
    study = Study(
        name="chaos",
        backend="tiny_backends:traced",
        factors=tuple(Factor(key=key, levels=(False, True)) for key in factors),
        responses=Responses(metrics=("y",)),
        replicates=replicates,
        seeds=tuple(range(1, replicates + 1)),
        settings={"seconds": seconds},
    )
    return write_plan(study, directory)[0]


def schedule(directory: Path) -> int:
    """What `doe run` does, without the check that needs the design made anew."""
    from rich.console import Console

    _, study, design = load_plan(directory)
    options = RunOptions(policy=Policy(retries=10**6))
    display = PlainDisplay(Console(quiet=True))
    plan = Plan(directory, study, design)
    number, finished = execute(plan, options, "local", {"cpu": 2}, display)
    return 0 if finished and number["done"] == len(design.runs) else 3


class Chaos:
    """One study and its tormentor."""

    def __init__(self, directory: Path, plan: Plan, rng: random.Random) -> None:
        self.files, self.plan, self.rng = StudyDir(directory), plan, rng
        self.name = f"{os.getpid()}-{rng.random()}"
        self.schedulers: list[subprocess.Popen[bytes]] = []
        self.kills: Counter[str] = Counter()
        self.damage: Counter[str] = Counter(dict.fromkeys(COUNTED, 0))
        self.known: dict[str, tuple[bytes, int]] = {}
        """Run -> its committed verdict and how often it had been executed by then."""

    def start(self, number: int) -> None:
        path = os.pathsep.join(
            [str(HERE.parent / "backends"), os.environ.get("PYTHONPATH", "")]
        ).rstrip(os.pathsep)
        call = [sys.executable, str(HERE / "chaos.py"), "--schedule", str(self.files.root)]
        environment = os.environ | {MARK: self.name, "PYTHONPATH": path}
        while len(self.schedulers) < number:
            self.schedulers.append(subprocess.Popen(call, env=environment, start_new_session=True))

    def reap(self) -> None:
        self.schedulers = [one for one in self.schedulers if one.poll() is None]

    def processes(self) -> dict[str, list[psutil.Process]]:
        """Living processes of this study by their role."""
        roles: dict[str, list[psutil.Process]] = {"scheduler": [], "slot": [], "training": []}
        own = {one.pid for one in self.schedulers}
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.status() == psutil.STATUS_ZOMBIE:
                    continue
                if process.environ().get(MARK) != self.name:
                    continue
                if process.pid in own:
                    roles["scheduler"].append(process)
                elif "doe.running.engines.slot" in process.cmdline():
                    slot = process.parent() is None or process.parent().pid in own
                    roles["slot" if slot else "training"].append(process)
                else:
                    roles["training"].append(process)
        return roles

    def kill(self) -> bool:
        """Kill something at random; False if there was nothing of that kind."""
        target = self.rng.choice(TARGETS)
        roles = self.processes()
        if target == "all":
            victims = [process for group in roles.values() for process in group]
        else:
            victims = roles[target][:]
            self.rng.shuffle(victims)
            victims = victims[:1]
        for process in victims:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGKILL)
        self.kills[target] += bool(victims)
        return bool(victims)

    def look(self) -> None:
        """Compare what stands on disk with what stood there before."""
        for run in self.plan.design.runs:
            place = self.files.run(run.run_id)
            calls = place.path / "calls.txt"
            before = self.known.get(run.run_id)
            if not place.result.exists():
                self.damage["lost"] += before is not None
                continue
            raw = place.result.read_bytes()
            if decode_result(raw) is None:
                self.damage["torn"] += 1
            elif before is None:
                self.known[run.run_id] = (raw, len(calls.read_text().splitlines()))
            else:
                self.damage["lost"] += raw != before[0]

    def torment(self, kills: int, deadline: float) -> int:
        """Kill up to so many times while the study runs; return how many hit."""
        hit = 0
        while hit < kills and time.monotonic() < deadline:
            self.reap()
            self.look()
            if len(self.known) == len(self.plan.design.runs):
                break
            self.start(self.rng.choice((1, 1, 1, 2)))
            time.sleep(self.rng.choice((0.0, 0.02, 0.05, 0.1, 0.2, 0.4)))
            hit += self.kill()
        return hit

    def finish(self) -> None:
        """Let it end in peace, then count."""
        self.look()
        for _ in range(20):
            self.reap()
            self.start(1)
            if self.schedulers[0].wait(timeout=120) == 0:
                break
        for one in self.schedulers:
            one.wait(timeout=120)
        self.schedulers = []
        self.look()
        for run in self.plan.design.runs:
            place = self.files.run(run.run_id)
            raw, calls = self.known.get(run.run_id, (b"", 0))
            self.damage["run twice"] += (
                len((place.path / "calls.txt").read_text().splitlines()) > calls
            )
            result = decode_result(raw)
            expected = sum((i + 1) * (x > 0) for i, x in enumerate(run.coded)) + run.seed / 7
            self.damage["wrong"] += result is None or result.metrics != {"y": expected}
            self._torn(place.path)
        deadline = time.monotonic() + 5
        while (left := sum(map(len, self.processes().values()))) and time.monotonic() < deadline:
            time.sleep(0.1)
        self.damage["left"] += left

    def _torn(self, directory: Path) -> None:
        for path in directory.iterdir():
            if path.name.startswith("attempt-"):
                self.damage["torn"] += decode_result(path.read_bytes()) is None
            elif path.suffix == ".json" and path.name != "result.json":
                try:
                    msgspec.json.decode(path.read_bytes())
                except msgspec.MsgspecError:
                    self.damage["torn"] += 1


def torment_studies(
    kills: int, seed: int, seconds: float
) -> tuple[Counter[str], Counter[str], int]:
    """Torment studies until so many kills have hit; return kills by target, damage, studies."""
    rng = random.Random(seed)
    killed: Counter[str] = Counter()
    damage: Counter[str] = Counter(dict.fromkeys(COUNTED, 0))
    studies, deadline = 0, time.monotonic() + seconds
    while killed.total() < kills and time.monotonic() < deadline:
        studies += 1
        with tempfile.TemporaryDirectory(prefix="doe-chaos-") as place:
            directory = Path(place) / "chaos"
            chaos = Chaos(directory, make_study(directory, rng.choice((0.05, 0.2, 0.6))), rng)
            chaos.torment(kills - killed.total(), deadline)
            chaos.finish()
            killed += chaos.kills
            damage.update(chaos.damage)
    return killed, damage, studies


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=3600.0, help="give up after this time")
    parser.add_argument("--schedule", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.schedule:
        return schedule(given.schedule)
    killed, damage, studies = torment_studies(given.kills, given.seed, given.seconds)
    print(f"kills: {killed.total()} in {studies} studies ({dict(killed)})")
    print(", ".join(f"{name} {damage[name]}" for name in COUNTED))
    return 1 if damage.total() or killed.total() < given.kills else 0


if __name__ == "__main__":
    sys.exit(main())
