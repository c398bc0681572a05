"""A study of 65,536 runs: what looking at it costs, and its report; and a log of 300 MB."""

from __future__ import annotations

import hashlib
import os
import random
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import Section
from benchmarks.startup import DOE

KEYS = "ABCDEFGHJKLMNOPQ"
LOG_BYTES = 300_000_000
LIMITS = {"doe status": "3 s", "doe report": "60 s, 1 GB", "doe logs": "-"}
READ = """
import os, sys
for name in os.listdir(sys.argv[1]):
    if "-r" in name:
        with open(f"{sys.argv[1]}/{name}/result.json", "rb") as file:
            file.read()
"""


def run() -> list[Section]:
    """Time the commands in processor seconds, against reading the same files and no more."""
    with tempfile.TemporaryDirectory() as place:
        return [measure(finished_study(Path(place) / "scale"), Path(place))]


def measure(directory: Path, place: Path) -> Section:
    """Processor seconds and memory of each command on a finished study."""
    log = directory / f"{0:05d}-r1" / "log.txt"
    with open(log, "wb") as file:
        file.truncate(LOG_BYTES)
    study = ["--study", str(directory)]
    calls = {
        "reading every result.json": [sys.executable, "-c", READ, str(directory)],
        "doe status": [*DOE, "status", *study],
        "doe report": [*DOE, "report", *study, "--out", str(place / "report")],
        "doe logs": [*DOE, "logs", log.parent.name, *study, "--lines", "10"],
    }
    used = {name: _used(call) for name, call in calls.items()}
    log.unlink()
    floor = used["reading every result.json"][0]
    rows = tuple(
        (name, f"{seconds:.1f} s", f"{seconds / floor:.1f}", f"{memory} MB", LIMITS.get(name, "-"))
        for name, (seconds, memory) in used.items()
    )
    note = (
        "One process each: its processor seconds, the ratio to reading the results in a bare loop, "
        "its memory at most. The log of `doe logs` has 300 MB."
    )
    columns = ("command", "processor time", "ratio", "memory", "aim")
    return Section("2^16 runs, all done", columns, rows, note)


def _used(call: list[str]) -> tuple[float, int]:
    """Processor seconds and megabytes of a command."""
    pid = os.posix_spawn(
        call[0],
        call,
        os.environ,
        file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)],
    )
    _, status, usage = os.wait4(pid, 0)
    assert status == 0, call
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss // 1000


def finished_study(directory: Path) -> Path:
    """Plan a full factorial of 16 factors and give every run a verdict without running it."""
    from doe.store.files import StudyDir
    from doe.store.plan import write_plan
    from doe.store.requests import request_bytes
    from doe.store.verdicts import Result, encode_result
    from doe.study.values import Factor, Responses, Study

    study = Study(
        name="scale",
        backend="benchmarks.runner:nothing",
        factors=tuple(Factor(key=key, levels=(False, True)) for key in KEYS),
        responses=Responses(metrics=("y",)),
        seeds=(1,),
    )
    plan, _ = write_plan(study, directory)
    chance = random.Random(1)
    moment = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime())
    facts = {
        "seconds": 1.0,
        "commit": "c",
        "host": "h",
        "slot": "cpu0",
        "versions": {"python": "3"},
    }
    for planned in plan.design.runs:
        place = StudyDir(directory).run(planned.run_id)
        place.path.mkdir()
        digest = hashlib.sha256(request_bytes(study, planned)).hexdigest()
        origin = facts | {"start": moment, "end": moment, "request": digest}
        value = sum(planned.coded[:4]) + chance.gauss(0.0, 1.0)
        place.result.write_bytes(encode_result(Result("done", {"y": value}, None, origin)))
    return directory
