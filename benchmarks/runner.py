"""What the runner costs: overhead per run and parallel efficiency, against process pools.

The pools keep nothing on disk and share one process among many runs; `doe run` gives every run a
process, a log, a lease and a durable verdict. A pool with a new process per task is the peer that
isolates as well. Commands are compared with a shell loop on each slot, which keeps nothing at all.
"""

from __future__ import annotations

import shlex
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks import Section, side_by_side

SLOTS = 2
NOTHING_RUNS = 256
ISOLATED_RUNS = 16
"""Fewer for the pool that starts an interpreter for each."""
BUSY_RUNS = 16
BUSY_LOOPS = 20_000_000
SLOT_LIMIT_MS = 15.0
EFFICIENCY_LIMIT = 0.95
COMMAND_RUNS = 48
COMMAND = 'sleep 0.2; echo "y,1" | tr , "\\n" > "$1/metrics.csv"; date +%s%N > "$1/ended"'
COMMAND_LIMIT, LATENCY_LIMIT_MS = 1.05, 20.0
LATENCIES: list[float] = []
"""Milliseconds between the last line of each command and its verdict."""
BUSY_SHARES: list[float] = []
"""Of each study that was run: the share of its slots' time in which a run computed."""


def burn(loops: int) -> float:
    """Keep a core busy."""
    total = 0.0
    for i in range(loops):
        total += i & 7
    return total


def nothing(request: Any) -> dict[str, float]:
    """The backend of a run that does nothing."""
    return {"y": 1.0}


def busy(request: Any) -> dict[str, float]:
    """The backend of a run that computes."""
    return {"y": burn(BUSY_LOOPS)}


def _return_one(_: int) -> float:
    return 1.0


def _burn_one(_: int) -> float:
    return burn(BUSY_LOOPS)


def sleeping(request: Any) -> dict[str, float]:
    """The backend that waits as long as the command does."""
    time.sleep(0.2)
    return {"y": 1.0}


def with_doe(backend: str, runs: int) -> float:
    """Run a study; return the seconds between the begin of its first and the end of its last run.

    Imports and the start of the slots are left out, as the pools are warm before they are timed.
    """
    from datetime import datetime
    from io import StringIO

    from rich.console import Console

    from doe.running.execute import EngineChoice, execute
    from doe.running.scheduler import RunOptions
    from doe.store.plan import write_plan
    from doe.study.values import Factor, MetricsSection, Responses, Study
    from doe.views.live import PlainDisplay

    named = backend == "command"
    study = Study(
        name="bench",
        backend=backend if backend == "command" else f"benchmarks.runner:{backend}",
        command=("sh", "-c", COMMAND, "sh", "{run_dir}", "{A}{B}{C}{D}") if named else (),
        factors=tuple(Factor(key=key, levels=(False, True)) for key in "ABCD"),
        responses=Responses(metrics=("y",)),
        metrics=MetricsSection(file="metrics.csv") if named else MetricsSection(),
        replicates=runs // 16,
        seeds=tuple(range(runs // 16)),
    )
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as place:
        plan = write_plan(study, Path(place) / "bench")[0]
        engine = EngineChoice("local", {"cpu": SLOTS})
        done = execute(plan, RunOptions(), engine, PlainDisplay(Console(file=StringIO())))
        assert done.counts["done"] == runs
        views = plan.scan()
        for path in plan.directory.rglob("ended"):
            run = path.relative_to(plan.directory).parts[0]
            committed = plan.files.run(run).result.stat().st_ctime_ns  # when it was linked
            LATENCIES.append((committed - int(path.read_text())) / 1e6)
    facts = [seen.result.provenance for seen in views if seen.result]
    times = [datetime.fromisoformat(fact[end]) for fact in facts for end in ("start", "end")]
    whole = (max(times) - min(times)).total_seconds()
    BUSY_SHARES.append(sum(fact["seconds"] for fact in facts) / (SLOTS * whole))
    return whole


def with_shell(runs: int) -> float:
    """The same command from a plain shell loop per slot."""
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as place:
        one = f"d={place}/$1-$i; mkdir $d; sh -c {shlex.quote(COMMAND)} sh $d; i=$((i+1))"
        loop = f"i=0; while [ $i -lt {runs // SLOTS} ]; do {one}; done"
        began = time.perf_counter()
        slots = [subprocess.Popen(["sh", "-c", loop, "sh", str(slot)]) for slot in range(SLOTS)]
        for slot in slots:
            slot.wait()
        return time.perf_counter() - began


def with_pool(task: Callable[[int], float], runs: int, isolated: bool = False) -> float:
    """The same with concurrent.futures."""
    fresh = 1 if isolated else None
    with ProcessPoolExecutor(SLOTS, max_tasks_per_child=fresh) as pool:
        list(pool.map(_return_one, range(SLOTS)))
        began = time.perf_counter()
        list(pool.map(task, range(runs)))
        return time.perf_counter() - began


def with_joblib(task: Callable[[int], float], runs: int) -> float:
    """The same with joblib."""
    from joblib import Parallel, delayed

    with Parallel(SLOTS) as pool:
        pool(delayed(_return_one)(i) for i in range(SLOTS))
        began = time.perf_counter()
        pool(delayed(task)(i) for i in range(runs))
        return time.perf_counter() - began


def run() -> list[Section]:
    """Measure both kinds of runs."""
    return [_overhead(), _commands(), _efficiency()]


def _timed(cases: dict[str, Callable[[], float]], repeats: int) -> dict[str, float]:
    """The median of some repeats, cases taking turns; each case tells its own seconds."""
    told: dict[str, list[float]] = {name: [] for name in cases}
    side_by_side(
        {name: lambda n=name, c=case: told[n].append(c()) for name, case in cases.items()}, repeats
    )
    return {name: statistics.median(seconds) for name, seconds in told.items()}


def _overhead() -> Section:
    isolated = "concurrent.futures, a process per task"
    seconds = _timed(
        {
            "doe run": lambda: with_doe("nothing", NOTHING_RUNS),
            isolated: lambda: with_pool(_return_one, ISOLATED_RUNS, isolated=True),
            "concurrent.futures": lambda: with_pool(_return_one, NOTHING_RUNS),
            "joblib": lambda: with_joblib(_return_one, NOTHING_RUNS),
        },
        repeats=3,
    )
    runs = dict.fromkeys(seconds, NOTHING_RUNS) | {isolated: ISOLATED_RUNS}
    own = seconds["doe run"] / NOTHING_RUNS
    rows = tuple(
        (
            name,
            f"{1000 * SLOTS * total / runs[name]:.2f} ms",
            f"{total / runs[name] / own:.2f}",
            f"{runs[name]}",
        )
        for name, total in seconds.items()
    )
    return Section(
        f"{NOTHING_RUNS} runs that do nothing, {SLOTS} slots",
        ("runner", "slot time per run", "ratio", "runs"),
        rows,
        f"Aim: at most {SLOT_LIMIT_MS:g} ms of slot time for `doe run`, durable commit included. "
        "The other runners write nothing; the isolated pool was given fewer tasks.",
    )


def _commands() -> Section:
    seconds = _timed(
        {
            "shell loop": lambda: with_shell(COMMAND_RUNS),
            "doe run, the command": lambda: with_doe("command", COMMAND_RUNS),
            "doe run, a function that waits as long": lambda: with_doe("sleeping", COMMAND_RUNS),
        },
        repeats=3,
    )
    plain = seconds["shell loop"]
    rows = tuple((name, f"{s:.2f} s", f"{s / plain:.2f}") for name, s in seconds.items())
    return Section(
        f"{COMMAND_RUNS} commands of 0.2 s, {SLOTS} slots",
        ("runner", "seconds", "against the loop"),
        rows,
        f"Aim: at most {COMMAND_LIMIT:g} times the loop, and a verdict {LATENCY_LIMIT_MS:g} ms "
        "after the command's last line on an idle machine; here the median was "
        f"{statistics.median(LATENCIES):.1f} ms ({min(LATENCIES):.1f} to {max(LATENCIES):.1f}).",
    )


def _efficiency() -> Section:
    def alone() -> float:
        began = time.perf_counter()
        for i in range(BUSY_RUNS // SLOTS):
            _burn_one(i)
        return time.perf_counter() - began

    pool = "concurrent.futures"
    seconds = _timed(
        {
            "one process, half of the runs": alone,
            "doe run": lambda: with_doe("busy", BUSY_RUNS),
            pool: lambda: with_pool(_burn_one, BUSY_RUNS),
            "joblib": lambda: with_joblib(_burn_one, BUSY_RUNS),
        },
        repeats=3,
    )
    ideal, best = seconds["one process, half of the runs"], seconds[pool]
    rows = tuple(
        (name, f"{total:.2f} s", f"{ideal / total:.2f}", f"{total / best:.2f}")
        for name, total in seconds.items()
    )
    return Section(
        f"{BUSY_RUNS} runs that compute, {SLOTS} slots",
        ("runner", "seconds", "parallel efficiency", "against concurrent.futures"),
        rows,
        f"Aim: efficiency of at least {EFFICIENCY_LIMIT:g} on {SLOTS} idle cores: the time that "
        "one process needs for half of the runs, over the time for all. Whatever else the machine "
        f"does, runs filled {100 * max(BUSY_SHARES):.1f}% of the slots' time under `doe run`.",
    )
