"""Running a planned study: engine, display and scheduler put together."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from doe.errors import DoeError, counted, were
from doe.running.engines import check_detach, open_engine
from doe.running.scheduler import Display, RunOptions, Scheduler
from doe.store.file_system import makes_links
from doe.store.files import StudyDir
from doe.store.plan import complete_design
from doe.store.scan import RunState, counts

LONGEST_SECONDS = 1e8
"""Three years: more than any run takes, and less than any clock can measure."""

if TYPE_CHECKING:
    from doe.store.plan import Plan


def execute(
    plan: Plan, options: RunOptions, engine: str, asked: Mapping[str, Any], display: Display
) -> tuple[dict[RunState, int], bool]:
    """Run a study to its end; return how many runs are in each state and whether it was let run.

    `asked` holds settings of the engine by name, as the options of `doe run`.

    On the way out, whatever the reason, idle helpers leave and running runs go on.
    """
    files = StudyDir(plan.directory)
    check_limits(options)
    check_writable(files)
    check_links(files)
    complete_design(plan)
    if options.detach:
        check_detach(engine)
    working = open_engine(engine, plan.study, plan.directory, asked)
    scheduler = Scheduler(files, plan.study, plan.design, working, options, display)
    try:
        with counted_interrupts() as interrupts:
            if options.detach:
                number = scheduler.hand_over()
                over = f"{counted(number, 'run')} {were(number)} handed over"
                display.note("detached", f"{over}; they go on by themselves")
            finished = options.detach or scheduler.run(lambda: len(interrupts))
        return counts(list(scheduler.statuses.values())), finished
    except OSError as error:
        with contextlib.suppress(OSError):
            scheduler.check_place()
        raise _broken_off(files, error) from error
    finally:
        scheduler.close()
        working.close()


def check_limits(options: RunOptions) -> None:
    """Refuse times that no clock can measure."""
    for name, seconds in (("timeout", options.timeout), ("grace", options.grace)):
        if not 0 <= seconds <= LONGEST_SECONDS:
            raise DoeError(
                f"--{name} {seconds:g}: expected seconds, at most {LONGEST_SECONDS:g}"
                + (" (0 for no limit)" if name == "timeout" else "")
            )


def check_writable(files: StudyDir) -> None:
    """Say early that results could not be written."""
    probe = files.root / f".writable.{os.urandom(6).hex()}"  # two containers have the same pids
    try:
        probe.write_bytes(b"x" * 4096)
        probe.unlink()
    except OSError as error:
        with contextlib.suppress(OSError):
            probe.unlink()
        raise DoeError(
            f"cannot write in {files.root}: {error.strerror}; results would have no place. "
            "Nothing was started, and what is there is untouched"
        ) from error


def check_links(files: StudyDir) -> None:
    """Say early that no verdict could be committed."""
    if not makes_links(files.root):
        raise DoeError(
            f"{files.root} is on a file system that makes no hard links, by which a result appears "
            "whole or not at all. Nothing was started; move the study to another file system"
        )


def _broken_off(files: StudyDir, error: OSError) -> DoeError:
    """What to say when the study's directory fails under a scheduler."""
    if not files.root.exists():
        return DoeError(
            f"{files.root} was deleted while its runs were under way; they stop within seconds. "
            "Plan the study again"
        )
    return DoeError(
        f"cannot go on in {files.root}: {error}. Runs that are under way go on, and what is there "
        "is untouched; start `doe run` again when this is mended"
    )


@contextmanager
def counted_interrupts() -> Iterator[list[int]]:
    """Collect Ctrl-C instead of breaking off, where this is the main thread."""
    interrupts: list[int] = []
    try:
        former = signal.signal(signal.SIGINT, lambda number, _: interrupts.append(number))
    except ValueError:  # a notebook's worker thread: its own interrupt stays as it is
        yield interrupts
        return
    try:
        yield interrupts
    finally:
        signal.signal(signal.SIGINT, former)
