"""What the command line costs: before it does anything, and to look at a study."""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks import Section, median_ratio, side_by_side

DOE = [sys.executable, "-c", "from doe.cli import main; main()"]
FLOOR = "python -c 'import typer, rich'"
CASES = {
    "python -c pass": [sys.executable, "-c", "pass"],
    FLOOR: [sys.executable, "-c", "import typer, rich"],
    "doe --help": [*DOE, "--help"],
}
HELP_LIMIT = 2.0
IMPORTS = "import numpy, pandas, scipy.special"
ANALYZE_LIMIT = 1.3
STATUS_LIMITS = {4: 0.5, 160: 2.0}
"""Seconds for `doe status` by replicates of 64 configurations: 256 and 10,240 runs."""


def run() -> list[Section]:
    """Time `doe --help`, `doe status` and `doe analyze`."""
    return [_help(), _status(), _analyze()]


def _call(command: list[str]) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def _help() -> Section:
    seconds = side_by_side({n: (lambda c=c: _call(c)) for n, c in CASES.items()}, repeats=15)
    rows = tuple(
        (name, f"{1000 * statistics.median(s):.0f} ms", f"{median_ratio(s, seconds[FLOOR]):.2f}")
        for name, s in seconds.items()
    )
    note = f"Aim: `doe --help` at most {HELP_LIMIT:g} times the import of typer and rich."
    return Section("Start of the command line", ("command", "median", "ratio"), rows, note)


def _status() -> Section:
    with tempfile.TemporaryDirectory() as place:
        studies = {n: finished_study(Path(place) / str(n), n) for n in STATUS_LIMITS}
        seconds = side_by_side(
            {
                FLOOR: lambda: _call(CASES[FLOOR]),
                **{
                    str(n): (lambda d=d: _call([*DOE, "status", "--study", str(d)]))
                    for n, d in studies.items()
                },
            },
            repeats=7,
        )
    rows = tuple(
        (f"{64 * n}", f"{statistics.median(seconds[str(n)]):.2f} s", f"{limit:g} s")
        for n, limit in STATUS_LIMITS.items()
    )
    floor = 1000 * statistics.median(seconds[FLOOR])
    note = f"The whole command; importing typer and rich took {floor:.0f} ms beside it."
    return Section("`doe status`", ("runs", "median", "aim"), rows, note)


def _analyze() -> Section:
    with tempfile.TemporaryDirectory() as place:
        study = finished_study(Path(place) / "study", 4)
        analyze = [*DOE, "analyze", "--study", str(study), "--response", "y"]
        imports = [sys.executable, "-c", IMPORTS]
        seconds = side_by_side(
            {IMPORTS: lambda: _call(imports), "doe analyze": lambda: _call(analyze)},
            repeats=9,
            clock=_children,
        )
    rows = tuple(
        (name, f"{1000 * statistics.median(s):.0f} ms", f"{median_ratio(s, seconds[IMPORTS]):.2f}")
        for name, s in seconds.items()
    )
    note = f"Processor time on 256 runs. Aim: at most {ANALYZE_LIMIT:g} times the import."
    return Section("`doe analyze`", ("command", "median", "ratio"), rows, note)


def _children() -> float:
    """Processor seconds of all commands so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def finished_study(directory: Path, replicates: int) -> Path:
    """Plan a study of 64 configurations and give every run a verdict without running it."""
    from doe.store.files import StudyDir
    from doe.store.plan import write_plan
    from doe.store.verdicts import Result, encode_result
    from doe.study.values import Factor, Responses, Study

    study = Study(
        name="bench",
        backend="benchmarks.runner:nothing",
        factors=tuple(Factor(key=key, levels=(False, True)) for key in "ABCDEF"),
        responses=Responses(metrics=("y",)),
        replicates=replicates,
        seeds=tuple(range(replicates)),
    )
    plan, _ = write_plan(study, directory)
    facts = {"seconds": 1.0, "commit": "c", "request": "r", "versions": {"python": "3"}}
    for i, planned in enumerate(plan.design.runs):
        place = StudyDir(directory).run(planned.run_id)
        place.path.mkdir()
        place.result.write_bytes(encode_result(Result("done", {"y": float(i)}, None, facts)))
    return directory
