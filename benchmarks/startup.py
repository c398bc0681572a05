"""What the command line costs: before it does anything, and to look at a study."""

from __future__ import annotations

import os
import random
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
REPORT_LIMIT = 4.0
INSTALLED = {name: v for name, v in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
"""The packages beside `doe` come compiled; so does `doe` itself where it is not editable."""
STATUS_LIMITS = {4: 0.5, 160: 2.0}
"""Seconds for `doe status` by replicates of 64 configurations: 256 and 10,240 runs."""


def run() -> list[Section]:
    """Time `doe --help`, `doe status`, `doe analyze` and `doe report`."""
    return [_help(), _status(), _analyze(), _report()]


def _call(command: list[str]) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=INSTALLED)


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


def _report() -> Section:
    with tempfile.TemporaryDirectory() as place:
        study = finished_study(Path(place) / "study", 4, responses=17)
        report = [*DOE, "report", "--study", str(study), "--out", str(Path(place) / "out")]
        imports = [sys.executable, "-c", IMPORTS]
        timed = {IMPORTS: lambda: _call(imports), "doe report": lambda: _call(report)}
        _call(report)  # the first one ever bundles Vega, which is kept
        elapsed = side_by_side(timed, repeats=5)
        busy = side_by_side(timed, repeats=5, clock=_children)
    rows = tuple(
        (
            name,
            f"{statistics.median(elapsed[name]):.2f} s",
            f"{statistics.median(busy[name]):.2f} s",
            f"{median_ratio(busy[name], busy[IMPORTS]):.2f}",
        )
        for name in timed
    )
    note = f"Page and tables of 256 runs and 17 responses. Aim: within {REPORT_LIMIT:g} s."
    return Section("`doe report`", ("command", "elapsed", "processor", "ratio"), rows, note)


def _children() -> float:
    """Processor seconds of all commands so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def finished_study(directory: Path, replicates: int, responses: int = 1) -> Path:
    """Plan a study of 64 configurations and give every run a verdict without running it."""
    from doe.store.files import StudyDir
    from doe.store.plan import write_plan
    from doe.store.verdicts import Result, encode_result
    from doe.study.values import Factor, Responses, Study

    names = ("y", *(f"y{k}" for k in range(2, responses + 1)))
    rng = random.Random(1)
    study = Study(
        name="bench",
        backend="benchmarks.runner:nothing",
        factors=tuple(Factor(key=key, levels=(False, True)) for key in "ABCDEF"),
        responses=Responses(metrics=names),
        replicates=replicates,
        seeds=tuple(range(replicates)),
    )
    plan, _ = write_plan(study, directory)
    facts = {"seconds": 1.0, "commit": "c", "request": "r", "versions": {"python": "3"}}
    for i, planned in enumerate(plan.design.runs):
        place = StudyDir(directory).run(planned.run_id)
        place.path.mkdir()
        values = {name: float(i) + rng.gauss(9.0, 1.0) for name in names}
        place.result.write_bytes(encode_result(Result("done", values, None, facts)))
    return directory
