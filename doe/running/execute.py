"""Execution of a planned study: engine, display and scheduler put together.

A study that declares when it may stop is run portion by portion. Nothing is kept on disk but
its own rule: what comes next follows from the verdicts that are there, so any `doe run` can be
killed, and two of them agree.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from doe.design.changes import confirming
from doe.design.runs import portion, portions_per_replicate
from doe.errors import DoeError, counted, were
from doe.running.engines import check_detach, open_engine
from doe.running.processes import counted_interrupts
from doe.running.scheduler import Display, RunOptions, Scheduler
from doe.store.files import StudyDir, makes_links
from doe.store.plan import Plan, complete_design, extend_plan, load_plan
from doe.store.scan import RunState, RunStatus, complete_portions, counts
from doe.store.timing import LONGEST_SECONDS, NOTIFY_SECONDS
from doe.study.values import Study


class Execution(NamedTuple):
    """Outcome of `doe run`."""

    plan: Plan
    """The study's final plan: a stopping rule adds its replicates one by one."""
    counts: dict[RunState, int]
    finished: bool
    """Whether it ran to its end."""


class EngineChoice(NamedTuple):
    """The engine for the runs."""

    name: str
    requested: Mapping[str, Any]
    """Settings of the engine, by the names of `doe run`'s options."""


def run_study(
    plan: Plan,
    options: RunOptions,
    engine: EngineChoice,
    display: Display,
    asked: Callable[[Study, Sequence[RunStatus]], int],
) -> Execution:
    """Execute the requested runs of a study that are not done.

    A study that declares when it may stop is run portion by portion as long as its rule asks for
    the next, unless some of its runs were asked for by name.

    Parameters
    ----------
    asked : callable
        Tells how many portions the study asks for, given its runs so far: no more than are complete
        where it stops.
    """
    if plan.study.stopping is None or options.only or options.replicates:
        return execute(plan, options, engine, display)
    if options.detach:
        raise DoeError(
            "a study with a stopping rule needs a running scheduler for its interim looks; remove "
            "--detach"
        )
    while True:
        statuses = plan.scan()
        complete = _complete(plan, statuses)
        last = complete if confirming(plan.study) else asked(plan.study, statuses)
        over = last <= complete
        if not over:
            plan = extend_plan(plan.directory, -(-last // portions_per_replicate(plan.study)))
        wanted = _portions_up_to(plan, last)
        asked_for = [s.state for s in statuses if s.run.run_id in wanted]
        again = options.retry_failed and "failed" in asked_for
        if over and not again and not {"pending", "running"} & {*asked_for}:
            return Execution(plan, counts(statuses), True)
        done = execute(plan, options._replace(runs=wanted), engine, display)
        if over or not done.finished or options.limit:
            return done
        if _complete(plan, plan.scan()) <= complete:
            return done  # a run that cannot be read blocks the portion
        options = options._replace(retry_failed=False)
        plan = load_plan(plan.directory)


def _complete(plan: Plan, statuses: Sequence[RunStatus]) -> int:
    """Count the complete portions of the runs that are not confirmations."""
    fresh = confirming(plan.study)
    return complete_portions(plan.study, [s for s in statuses if s.run.replicate not in fresh])


def _portions_up_to(plan: Plan, last: int) -> frozenset[str]:
    """Return the ids of the runs of the first portions, and of confirmations."""
    fresh = confirming(plan.study)
    return frozenset(
        run.run_id
        for run in plan.design.runs
        if run.replicate in fresh or portion(plan.study, run) <= last
    )


def execute(plan: Plan, options: RunOptions, engine: EngineChoice, display: Display) -> Execution:
    """Execute the chosen runs of a study to their end.

    On the way out, whatever the reason, idle helpers leave and running runs go on.
    """
    files = plan.files
    check_limits(options)
    check_writable(files)
    check_links(files)
    complete_design(plan)
    if options.detach:
        check_detach(engine.name)
    working = open_engine(engine.name, plan.study, plan.directory, engine.requested)
    scheduler = Scheduler(plan, working, options, display)
    try:
        with counted_interrupts(termination=2) as interrupts:  # a machine that is taken away
            if options.detach:
                number = scheduler.hand_over()
                over = f"{counted(number, 'run')} {were(number)} submitted"
                display.note("detached", f"{over}; they continue without a scheduler")
            finished = options.detach or scheduler.run(lambda: len(interrupts))
        runs = [status for status in scheduler.statuses.values() if not status.run.stage]
        return Execution(plan, counts(runs), finished)
    except OSError as error:
        with contextlib.suppress(OSError):
            scheduler.check_not_replaced()
        raise _broken_off(files, error) from error
    finally:
        scheduler.close()
        working.close()


def check_limits(options: RunOptions) -> None:
    """Refuse times that no clock can measure."""
    for name, seconds in (("timeout", options.timeout), ("grace", options.grace)):
        if not 0 <= seconds <= LONGEST_SECONDS:
            raise DoeError(
                f"{name} {seconds:g}: expected seconds, at most {LONGEST_SECONDS:g}"
                + (" (0 for no limit)" if name == "timeout" else "")
            )


def check_writable(files: StudyDir) -> None:
    """Refuse early if results could not be written."""
    probe = files.root / f".writable.{os.urandom(6).hex()}"  # two containers have the same pids
    try:
        probe.write_bytes(b"x" * 4096)
        probe.unlink()
    except OSError as error:
        with contextlib.suppress(OSError):
            probe.unlink()
        raise DoeError(
            f"cannot write in {files.root}: {error.strerror}; results could not be saved. Nothing "
            "was started, and existing files are unchanged"
        ) from error


def check_links(files: StudyDir) -> None:
    """Refuse early if no verdict could be committed."""
    if not makes_links(files.root):
        raise DoeError(
            f"{files.root} is on a file system without hard links, which are needed so that a "
            "result appears whole or not at all. Nothing was started; move the study to another "
            "file system"
        )


def _broken_off(files: StudyDir, error: OSError) -> DoeError:
    """Return the message for when the study's directory fails under a scheduler."""
    if not files.root.exists():
        return DoeError(
            f"{files.root} was deleted while its runs were under way; they stop within seconds. "
            "Plan the study again"
        )
    return DoeError(
        f"cannot continue in {files.root}: {error}. Running runs continue, and existing files are "
        "unchanged; start `doe run` again when this is fixed"
    )


def notify(command: str, summary: Mapping[str, str]) -> str:
    """Run a shell command with the summary in its environment; return why it failed, or an empty
    text.

    It never decides how `doe run` ends: what was computed is safe, whatever becomes of the message.
    """
    try:
        done = subprocess.run(
            command,
            shell=True,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **summary},
            timeout=NOTIFY_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"took longer than {NOTIFY_SECONDS:g} s and was ended"
    except OSError as error:
        return f"could not be started: {error.strerror}"
    return f"ended with exit code {done.returncode}" if done.returncode else ""
