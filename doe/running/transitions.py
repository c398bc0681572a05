"""State transitions of a run under a scheduler, as pure values: no disk, no clock, no process.

``task, actions = transition(task, event, retries)``: the scheduler turns what it sees into events,
and does what the actions say.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from enum import Enum
from typing import NamedTuple

from doe.design.runs import Run
from doe.running.engines import Ended, Slot
from doe.running.worker import ExitCode
from doe.store.progress import without_log
from doe.store.scan import RunStatus
from doe.store.verdicts import Failure
from doe.terms import level_text

FAILURES_IN_A_ROW = 3
"""Consecutive failures of different runs that close a slot."""


class Phase(Enum):
    """State of a run, seen from its scheduler."""

    IDLE = "Not requested, skipped, or ended."
    WAITING = "Waits for its stages."
    QUEUED = "Waits for a slot."
    EXCLUSIVE = "Waits for a GPU of its own, because it ran out of memory next to others."
    STARTED = "A process of this scheduler has it."
    ELSEWHERE = "Another process has it."


class RunTask(NamedTuple):
    """A run's state under one scheduler."""

    phase: Phase = Phase.IDLE
    replace: str = ""
    """Checksum of a failed verdict that the run is to replace."""
    unseen: int = 0
    """Number of endings that nobody saw."""
    ready: bool = False
    """Whether its request is written."""


# Events -----------------------------------------------------------------------------------------


class Requested(NamedTuple):
    """The user wants the run."""

    status: RunStatus
    held: bool
    """Whether another process has it."""
    retry_failed: bool = False
    removed: bool = False
    """Whether it is a stage whose output was removed and is needed again."""
    early: bool = False
    """Whether a stage that it needs is still to come."""


class StagesReady(NamedTuple):
    """All stages that the run needs are done."""


class StageFailed(NamedTuple):
    """A stage that the run needs has failed."""


class StageGone(NamedTuple):
    """A stage that the run needs has lost its output and is executed again."""


class Offered(NamedTuple):
    """A slot is free for the run, whose directory was read again."""

    status: RunStatus
    held: bool


class Blocked(NamedTuple):
    """The run's request cannot be written."""

    problem: str


class Exited(NamedTuple):
    """The run's process has ended."""

    ended: Ended
    status: RunStatus
    held: bool
    recorded: bool
    """Whether the process recorded its failure."""


class Recorded(NamedTuple):
    """The failure of the run is recorded."""

    status: RunStatus
    failure: Failure | None
    """The last failure; None if another process has begun instead."""


class Observed(NamedTuple):
    """The state of a run that another process has."""

    status: RunStatus


Event = (
    Requested
    | StagesReady
    | StageFailed
    | StageGone
    | Offered
    | Blocked
    | Exited
    | Recorded
    | Observed
)


# Actions ----------------------------------------------------------------------------------------


class Enqueue(NamedTuple):
    """Put the run into the queue of its phase."""

    front: bool = False


class Start(NamedTuple):
    """Start a worker on the offered slot."""


class Refuse(NamedTuple):
    """Record that the run fails because its stage has failed, and answer with `Observed`."""


class Adopt(NamedTuple):
    """Report that the run is already executing."""


class Skip(NamedTuple):
    """Skip the run and report why."""

    problem: str


class Record(NamedTuple):
    """Record the crash, unless None, and answer with `Recorded`."""

    crash: Ended | None


class Retry(NamedTuple):
    """Report that the run is retried; count its failure against the slot."""

    failure: Failure


class Finish(NamedTuple):
    """Report that the run has its verdict."""

    status: RunStatus
    here: bool
    """Whether this scheduler's slot executed it."""


class Postpone(NamedTuple):
    """Report that no process could be started for the run; nothing is counted."""


class Abort(NamedTuple):
    """Stop: verdicts cannot be written."""


Action = Enqueue | Start | Refuse | Adopt | Skip | Record | Retry | Finish | Postpone | Abort


def transition(task: RunTask, event: Event, retries: int) -> tuple[RunTask, tuple[Action, ...]]:
    """Return the run's next state and the actions to take.

    Parameters
    ----------
    retries : int
        How many endings that nobody saw are excused; a later one is a crash.
    """
    match event:
        case Requested(status, held, retry_failed, removed, early):
            if status.problem:
                return task, (Skip(status.problem),)
            again = removed or (status.state == "failed" and retry_failed)
            if status.result is not None and not again:
                return task, ()
            if held:
                return task._replace(phase=Phase.ELSEWHERE), (Adopt(),)
            task = RunTask(replace=status.checksum) if again else task
            if early:
                return task._replace(phase=Phase.WAITING), ()
            return task._replace(phase=Phase.QUEUED), (Enqueue(),)
        case StagesReady():
            return task._replace(phase=Phase.QUEUED), (Enqueue(front=True),)
        case StageFailed():
            return task._replace(phase=Phase.ELSEWHERE), (Refuse(),)
        case StageGone():
            return task._replace(phase=Phase.WAITING), ()
        case Offered(status, held):
            if held:
                return task._replace(phase=Phase.ELSEWHERE), ()
            if status.is_final(task.replace):
                return RunTask(), (Finish(status, here=False),)
            if status.problem:
                return RunTask(), (Skip(status.problem),)
            return task._replace(phase=Phase.STARTED), (Start(),)
        case Blocked(problem):
            return RunTask(), (Skip(problem),)
        case Exited():
            return _exited(task, event, retries)
        case Recorded(status, failure):
            if status.state == "failed":
                return RunTask(), (Finish(status, here=True),)
            if failure is None:
                return task._replace(phase=Phase.QUEUED), (Enqueue(),)
            exclusive = failure.kind == "gpu-memory"
            phase = Phase.EXCLUSIVE if exclusive else Phase.QUEUED
            return task._replace(phase=phase, replace=""), (Enqueue(), Retry(failure))
        case Observed(status):
            if status.state == "running":
                return task, ()
            if status.state == "pending":
                return task._replace(phase=Phase.QUEUED), (Enqueue(front=True),)
            return RunTask(), (Finish(status, here=False),)


def _exited(task: RunTask, event: Exited, retries: int) -> tuple[RunTask, tuple[Action, ...]]:
    ended, status, held, recorded = event
    if ended.code == ExitCode.UNWRITABLE:
        return RunTask(), (Abort(),)
    if status.is_final(task.replace):
        return RunTask(), (Finish(status, here=True),)
    if held:
        return task._replace(phase=Phase.ELSEWHERE), ()
    if status.problem:
        return RunTask(), (Skip(status.problem),)
    if ended.code == ExitCode.SCARCE:
        return task._replace(phase=Phase.QUEUED), (Enqueue(front=True), Postpone())
    if ended.code == ExitCode.BUSY:
        return task._replace(phase=Phase.ELSEWHERE), ()
    # Its request is written again: a backend or another plan may have removed it.
    task = task._replace(unseen=task.unseen + ended.unseen, ready=False)
    if recorded:
        return task, (Record(None),)
    if ended.interrupted and task.unseen <= retries:
        return task._replace(phase=Phase.QUEUED), (Enqueue(front=True),)
    return task, (Record(ended),)


# Stages -----------------------------------------------------------------------------------------


def stage_news(stages: Sequence[tuple[RunTask, RunStatus]]) -> Event | None:
    """Return the event for a run that waits for stages; None while one of them is to come.

    A stage is settled when this scheduler has nothing more to do for it. One that has failed
    decides at once, whatever the others come to.
    """
    settled = [status for task, status in stages if task.phase is Phase.IDLE]
    for status in settled:
        if status.state == "failed":
            return StageFailed()
    for status in settled:
        if status.problem:
            return Blocked(f"its stage {status.run.run_id} cannot be used: {status.problem}")
    complete = all(task.phase is Phase.IDLE for task, _ in stages)
    return StagesReady() if complete and all(s.state == "done" for s in settled) else None


# Choosing ---------------------------------------------------------------------------------------


class Active(NamedTuple):
    """A run that this scheduler has started."""

    run_id: str
    slot: Slot
    exclusive: bool
    since: float
    left: bool = False
    """Whether it has left its slot and is being committed."""


def choose_queue(
    slot: Slot, active: Collection[Active], orphans: Sequence[str], waiting: Collection[Phase]
) -> Phase | None:
    """Return the queue from which a slot takes its next run; None if it takes none now.

    Parameters
    ----------
    active : collection of Active
        What this scheduler has started, on all slots.
    orphans : sequence of str
        Slots held by runs that a dead scheduler has left on this machine.
    waiting : collection of Phase
        The queues that are not empty. Runs that need a GPU of their own come first: slots that
        share a GPU stay empty until one of the GPUs is idle for them.
    """
    own = [run.left for run in active if run.slot.name == slot.name]
    # At most one commit in arrears: if verdicts cannot be written, nothing more is trained.
    held = own.count(False) + max(0, own.count(True) - 1) + orphans.count(slot.name)
    if held >= slot.places:
        return None
    neighbours = [
        run for run in active if slot.group and run.slot.group == slot.group and not run.left
    ]
    if Phase.EXCLUSIVE in waiting and not neighbours:
        return Phase.EXCLUSIVE
    reserved = Phase.EXCLUSIVE in waiting or any(run.exclusive for run in neighbours)
    free = Phase.QUEUED in waiting and not (slot.group and reserved)
    return Phase.QUEUED if free else None


# When to stop -----------------------------------------------------------------------------------


class Breaker:
    """Detects a slot on which every run fails, and a mistake that every run makes."""

    def __init__(self, slots: Iterable[str]) -> None:
        self._streaks: dict[str, list[str]] = {name: [] for name in slots}
        self._first: dict[str, str] = {}
        """Signature of each run's failure, as long as no run has succeeded."""
        self._first_slots: set[str] = set()
        self.unproven = True
        """Whether nothing is done yet."""
        self.closed: dict[str, str] = {}
        """Slot -> the reason of the failure that closed it."""

    def succeeded(self, slot: str) -> None:
        """Record that a run of a slot ended, with finite metrics or not."""
        self._streaks[slot] = []
        self.unproven = False

    def failed(self, slot: str, run_id: str, failure: Failure) -> bool:
        """Record that a run of a slot failed; return whether this closes the slot."""
        streak = self._streaks[slot]
        if run_id not in streak:
            streak.append(run_id)
        if self.unproven:
            self._first.setdefault(run_id, signature(failure))
            self._first_slots.add(slot)
        if len(streak) < FAILURES_IN_A_ROW or slot in self.closed:
            return False
        self.closed[slot] = failure.reason
        return True

    @property
    def hopeless(self) -> bool:
        """Whether the first runs of all slots, two at least, failed with the same traceback."""
        same = set(self._first.values())
        everywhere = self.unproven and self._first_slots == self._streaks.keys()
        return len(self._first) >= 2 and everywhere and len(same) == 1 and "" not in same

    @property
    def all_closed(self) -> bool:
        """Return whether all slots are closed."""
        return self.closed.keys() == self._streaks.keys()


def signature(failure: Failure) -> str:
    """Return where a run failed, without values: an exception's type and stack, or the reason
    without what the command printed."""
    if failure.kind != "exception":
        return ""
    if not failure.traceback:
        return without_log(failure.reason, failure.log)
    places = re.findall(r'^  File "(.*)", line (\d+)', failure.traceback, re.MULTILINE)
    return f"{failure.type} {places}"


# Balance over machines ----------------------------------------------------------------------------


TOLERATED_RUNS, TOLERATED_SHARE = 1.0, 0.1
"""Deviation of a level from its share of a machine kind's runs above which it is reported."""


class Placed(NamedTuple):
    """A run and the kind of machine that executes or executed it."""

    run: Run
    kind: str


def pick(waiting: Sequence[Run], kind: str, placed: Iterable[Placed]) -> Run:
    """Return the waiting run whose levels this kind has had least; among equals, the first."""
    had = Counter(item for p in placed if p.kind == kind for item in p.run.levels.items())
    return min(waiting, key=lambda run: sum(had[item] for item in run.levels.items()))


def unbalanced(placed: Sequence[Placed]) -> list[str]:
    """Name the levels that a kind of machine has had more often than its share of the runs."""
    number = Counter(p.kind for p in placed)
    total = Counter(item for p in placed for item in p.run.levels.items())
    texts = []
    for kind, runs in number.items():
        had = Counter(item for p in placed if p.kind == kind for item in p.run.levels.items())
        for (key, level), count in had.items():
            expected = runs * total[key, level] / len(placed)
            if count - expected > max(TOLERATED_RUNS, TOLERATED_SHARE * runs):
                texts.append(
                    f"{key} = {level_text(level)} in {count} of {runs} runs on {kind}, and in "
                    f"{total[key, level] - count} of {len(placed) - runs} elsewhere"
                )
    return texts
