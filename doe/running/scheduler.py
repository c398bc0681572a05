"""Pending runs x slots -> engine -> verdicts.

The scheduler decides what starts where and what is tried again. It never decides success: that is
read from the run's directory, whatever an engine says. It keeps nothing on disk, so it can be
killed at any time; all it knows is read again when it starts.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import islice
from typing import Literal, NamedTuple, Protocol

from doe.design.runs import Run, runs_of
from doe.errors import DoeError, counted, were
from doe.numbers import cell_text
from doe.running.engines.base import Ended, Engine, Job, Slot, failure_recorded
from doe.running.processes import end_keepers
from doe.running.worker import BUSY, UNWRITABLE, WorkOrder, record_crash
from doe.store.files import RunDir, StudyDir, held_name
from doe.store.leases import (
    Lease,
    Watch,
    machine,
    new_owner,
    process_alive,
    process_name,
)
from doe.store.plan import Plan, PlanInUse
from doe.store.requests import check_unchanged, prepare
from doe.store.scan import RunStatus, look, scan
from doe.store.verdicts import UNREAD, Failure, Policy, failed_attempts, sweep_leftovers

WATCH_SECONDS = 0.5
"""Time between two looks at runs that others execute."""
IN_A_ROW = 3
"""Failures of different runs in a row that close a slot."""


class RunOptions(NamedTuple):
    """What `doe run` was asked for."""

    policy: Policy = Policy()
    timeout: float = 0.0
    only: tuple[str, ...] = ()
    """Configurations; empty for all."""
    replicates: tuple[int, ...] = ()
    """Numbers of replicates; empty for all."""
    limit: int = 0
    """Most runs to start; 0 for all."""
    retry_failed: bool = False
    grace: float = 10.0
    """Seconds between TERM and KILL."""
    detach: bool = False
    """Hand the runs over and leave: no scheduler watches them."""


class Active(NamedTuple):
    """A run that this scheduler has started."""

    run_id: str
    slot: Slot
    alone: bool
    since: float


class Snapshot(NamedTuple):
    """The state of a study under a scheduler at one moment, for displays."""

    study: str
    files: StudyDir
    statuses: Mapping[str, RunStatus]
    active: tuple[Active, ...]
    """Runs that this scheduler has started."""
    elsewhere: tuple[str, ...]
    """Runs that others execute."""
    closed: Mapping[str, str]
    """Slot -> the reason of the failure that closed it."""
    places: int
    """How many runs go on at once."""


class Display(Protocol):
    """Who shows what happens."""

    def note(self, kind: str, text: str) -> None:
        """Something happened: done, diverged, failed, again, closed, adopted, skipped, warning,
        stop, detached."""

    def show(self, snapshot: Snapshot) -> None:
        """Draw the present state; called a few times a second."""


class Scheduler:
    """One scheduler's view of one study."""

    def __init__(self, plan: Plan, engine: Engine, options: RunOptions, display: Display) -> None:
        self.files = self.named = plan.files
        self.study, self.engine, self.options = plan.study, engine, options
        self.display = display
        self.watch = Watch()
        self.runs = {run.run_id: run for run in plan.design.runs}
        self.statuses: dict[str, RunStatus] = {}
        self.active: dict[str, Active] = {}
        self.elsewhere: set[str] = set()
        self.breaker = Breaker(slot.name for slot in engine.slots)
        self.stopping = False
        self._started = 0
        self._queue: deque[str] = deque()
        self._lonely: deque[str] = deque()
        """Runs that ran out of GPU memory beside others."""
        self._ready: set[str] = set()
        """Runs whose request is in place."""
        self._replace: dict[str, str] = {}
        self._unseen: dict[str, int] = {}
        """How often nobody saw how a run ended."""
        self._here = machine()
        self._me = process_name(os.getpid())
        self._looked = 0.0
        self._root = -1
        """The study's directory, held open: its name may come to mean another one."""
        self._plan = PlanInUse(plan)

    def run(self, interrupts: Callable[[], int] = lambda: 0) -> bool:
        """Work until nothing is left to do; False if interrupted.

        Parameters
        ----------
        interrupts : callable
            How often the user asked to stop: once lets running runs finish, twice ends them.
        """
        self._begin()
        while True:
            asked = interrupts()
            if asked and not self.stopping:
                self.stopping = True
                self.display.note("stop", "no more runs are started; running ones finish")
                self.engine.withdraw()
            if asked > 1:
                self._end_all()
                return False
            self.check_place()
            self._watch_others()
            self._dispatch()
            if not self._busy():
                break
            for ended in self.engine.wait(0.2):
                self._ended(ended)
            self.display.show(self.snapshot())
        self.display.show(self.snapshot())
        if self.breaker.all_closed and self.waiting:
            reasons = "; ".join(f"{slot}: {why}" for slot, why in self.breaker.closed.items())
            raise DoeError(
                f"every slot was closed after three failures in a row ({reasons}); "
                f"{counted(self.waiting, 'run')} {were(self.waiting)} not started. Mend it, then "
                "`doe run --retry-failed`"
            )
        return not self.stopping

    def hand_over(self) -> int:
        """Start all that waits and leave it to the engine; return how many runs that are."""
        self._begin()
        self._dispatch()
        return self._started

    def snapshot(self) -> Snapshot:
        """The present state, for displays."""
        own = sum(s.places for s in self.engine.slots if s.name not in self.breaker.closed)
        return Snapshot(
            self.study.name,
            self.files,
            dict(self.statuses),
            tuple(self.active.values()),
            tuple(sorted(self.elsewhere)),
            dict(self.breaker.closed),
            max(1, min(own + len(self.elsewhere), len(self.runs))),
        )

    def close(self) -> None:
        """Let go of the study's directory."""
        self._plan.release()
        if self._root >= 0:
            os.close(self._root)
            self._root = -1

    # Beginning ------------------------------------------------------------------------------------

    def _begin(self) -> None:
        """Read the study, clear up after killed writers, and queue what is asked for."""
        self._root = os.open(self.named.root, os.O_RDONLY | os.O_DIRECTORY)
        self.files = StudyDir(held_name(self._root, self.named.root))
        for status in scan(self.files, self.runs.values(), self.watch):
            self.statuses[status.run.run_id] = status
            if status.result:
                with contextlib.suppress(OSError):
                    sweep_leftovers(self.files.run(status.run.run_id))
        check_unchanged(self.study, self.statuses.values(), self.named)
        self._plan.check()
        if any(status.state == "done" for status in self.statuses.values()):
            self.breaker.prove()
        self._queue_asked()

    def _queue_asked(self) -> None:
        """Queue what is asked for, in the planned order."""
        slots = {slot.name: slot for slot in self.engine.slots}
        for run_id, job, slot in self.engine.adopt():
            self.active[job] = Active(run_id, slots[slot], True, time.monotonic())
        under_way = {active.run_id for active in self.active.values()}
        if under_way:
            self.display.note("adopted", f"runs that were submitted before: {len(under_way)}")
        for run_id in selected(list(self.runs.values()), self.options):
            status = self.statuses[run_id]
            if run_id in under_way:
                continue
            if status.problem:
                self._skip(run_id, status.problem)
                continue
            if status.state == "failed" and self.options.retry_failed:
                self._replace[run_id] = status.checksum
                self._queue.append(run_id)
            elif status.result is not None:
                continue
            elif self._taken(status):
                self.elsewhere.add(run_id)
                self.display.note("adopted", f"{run_id} {status.run.config} is running already")
            else:
                self._queue.append(run_id)

    def _taken(self, status: RunStatus) -> bool:
        """Whether somebody else executes a run.

        A lease of another machine is known to be over only by watching it. Where nobody stays to
        watch, the run is started all the same, and its worker does the watching (`WorkOrder.wait`).
        """
        lease = status.holder
        certain = lease is not None and lease.machine == self._here
        return status.state == "running" and (certain or not self.options.detach)

    def check_place(self) -> None:
        """Refuse to go on in a study that has taken the place of this one, or its plan of ours."""
        held = os.fstat(self._root)
        try:
            named = os.stat(self.named.root)
            same = (held.st_dev, held.st_ino) == (named.st_dev, named.st_ino)
        except FileNotFoundError:
            if held.st_nlink == 0:
                raise
            same = False
        if not same:
            raise DoeError(
                f"{self.named.root} was moved or replaced while its runs were under way; they go "
                "on, and put their results where their own directories are now. Start `doe run` "
                "again there"
            )
        self._plan.check()

    # Choosing -------------------------------------------------------------------------------------

    @property
    def waiting(self) -> int:
        """Runs that are still to be started."""
        return len(self._queue) + len(self._lonely)

    def _may_start(self) -> bool:
        limited = self.options.limit and self._started >= self.options.limit
        return not (self.stopping or limited or self.breaker.all_closed) and self.waiting > 0

    def _busy(self) -> bool:
        """Whether something is under way that is worth waiting for."""
        if self.stopping:
            return bool(self.active) or bool(self._orphans())
        return bool(self.active or self.elsewhere) or self._may_start()

    def _dispatch(self) -> None:
        jobs = []
        orphans = [self._orphan_slot(self.statuses[run_id]) for run_id in self.elsewhere]
        for slot in self.engine.slots:
            while self._may_start() and slot.name not in self.breaker.closed:
                active = self.active.values()
                kind = next_kind(slot, active, orphans, bool(self._queue), bool(self._lonely))
                if kind is None:
                    break
                alone = kind == "lonely"
                run_id = (self._lonely if alone else self._queue).popleft()
                if job := self._job(run_id, slot, alone):
                    jobs.append(job)
        if jobs:
            self.check_place()  # after their requests were written
            self.engine.start(jobs)
        for run_id in list(islice(self._queue, len(self.engine.slots))):
            # While the slots work, not while they wait.
            if self._may_start() and run_id not in self._ready and not self._prepare(run_id):
                self._queue.remove(run_id)

    def _job(self, run_id: str, slot: Slot, lonely: bool) -> Job | None:
        """Make a run ready to start; None if somebody else has it meanwhile."""
        status = self._look(run_id)
        if self._taken(status):
            self.elsewhere.add(run_id)
            return None
        if status.stands(self._replace.get(run_id, "")):
            self._settled(status, "")
            return None
        run_dir = self.files.run(run_id)
        if status.problem:
            self._skip(run_id, status.problem)
            return None
        if run_id not in self._ready and not self._prepare(run_id):
            return None
        holder = status.holder
        sharing = sum(other.group == slot.group for other in self.engine.slots) > 1
        order = WorkOrder(
            job=f"{self._me}/{os.urandom(6).hex()}",
            slot=slot.name,
            device=slot.device,
            timeout=self.options.timeout,
            policy=self.options.policy,
            replace=self._replace.get(run_id, ""),
            over=holder.nonce if holder and status.state == "pending" else "",
            wait=self.options.detach,
            alone=lonely or not (slot.group and sharing),
            supervisor="" if self.options.detach else self._me,
            grace=self.options.grace,
        )
        self.active[order.job] = Active(run_id, slot, lonely, time.monotonic())
        self._started += 1
        return Job(run_id, run_dir.path, slot, order)

    def _prepare(self, run_id: str) -> bool:
        """Put a run's request in place; a run that cannot have one is left out."""
        problem = prepare(self.files.run(run_id), self.study, self.runs[run_id])
        if problem:
            self._skip(run_id, problem)
            return False
        self._ready.add(run_id)
        return True

    def _skip(self, run_id: str, problem: str) -> None:
        """Leave one run alone and go on with the rest."""
        self.statuses[run_id] = self.statuses[run_id]._replace(problem=problem)
        self.display.note("skipped", f"{run_id} {self.runs[run_id].config}: {problem}")

    # Seeing what came of it -----------------------------------------------------------------------

    def _look(self, run_id: str) -> RunStatus:
        status = look(self.files, self.runs[run_id], self.watch)
        self.statuses[run_id] = status
        return status

    def _ended(self, ended: Ended) -> None:
        active = self.active.pop(ended.job, None)
        if active is None:
            return
        run_id, slot = active.run_id, active.slot.name
        if ended.code == UNWRITABLE:
            raise DoeError(
                f"{run_id} could not write its verdict; see its log. Free space on the disk or "
                f"make {self.named.root} writable, then `doe run` again: nothing committed is lost"
            )
        status = self._look(run_id)
        lease = status.holder
        # Of another machine's process, the engine knows sooner than its lease falls silent.
        far = lease is not None and lease.machine != self._here and lease.job == ended.job
        gone = far and not ended.interrupted
        if status.stands(self._replace.get(run_id, "")):
            self._settled(status, slot)
        elif status.state == "running" and not gone:
            self.elsewhere.add(run_id)
        elif status.problem:
            self._skip(run_id, status.problem)
        else:
            self._without_verdict(ended, status, slot)

    def _without_verdict(self, ended: Ended, status: RunStatus, slot: str) -> None:
        """A process is gone and left no verdict: a failed attempt, a crash, or an interruption."""
        self.check_place()
        run_id = status.run.run_id
        run_dir = self.files.run(run_id)
        if ended.code == BUSY:
            self.elsewhere.add(run_id)  # until it is looked at again
            return
        self._ready.discard(run_id)  # its backend may have removed the request
        if not self._prepare(run_id):
            return
        recorded = failure_recorded(run_dir, ended.job)
        self._unseen[run_id] = self._unseen.get(run_id, 0) + ended.unseen
        excused = ended.interrupted and self._unseen[run_id] <= self.options.policy.retries
        if excused and not recorded:
            self._ready.discard(run_id)
            self._queue.appendleft(run_id)
            return
        if not recorded:
            owner = new_owner(ended.job, slot, self._me)
            record_crash(run_dir, owner, self.options.policy, ended.message, ended.timeout)
        status = self._look(run_id)
        if status.state == "failed":
            self._settled(status, slot)
            return
        records = failed_attempts(run_dir)
        if records:
            self._again(run_id, slot, records[-1].failure)
        else:
            self._queue.append(run_id)

    def _again(self, run_id: str, slot: str, failure: Failure) -> None:
        self._replace.pop(run_id, None)
        self.display.note("again", f"{run_id} on {slot}: {failure.reason}; will be tried again")
        (self._lonely if failure.kind == "gpu-memory" else self._queue).append(run_id)
        if failure.kind != "gpu-memory":
            self._count_failure(slot, run_id, failure)

    def _settled(self, status: RunStatus, slot: str) -> None:
        """A run has its verdict; the slot is empty where somebody else has run it."""
        run, seconds = status.run, cell_text(status.seconds or 0.0, "fixed1")
        text = f"{run.run_id} {run.config} on {slot or 'another scheduler'}, {seconds} s"
        self.display.note(status.state, f"{text}: {status.reason}" if status.reason else text)
        self._replace.pop(run.run_id, None)
        if not slot:
            return
        if status.state == "failed" and status.result and status.result.error:
            self._count_failure(slot, run.run_id, status.result.error)
        else:
            self._warn_unread(status)
            self.breaker.succeeded(slot)

    def _warn_unread(self, status: RunStatus) -> None:
        """After the first run: factors that the backend never read would measure nothing."""
        noted = status.provenance.get(UNREAD, [])
        unread = [f.key for f in self.study.factors if f.key in noted and not f.sets]
        if unread and self.breaker.unproven:
            self.display.note(
                "warning",
                f"the backend never read {', '.join(unread)} in its first run; if it never does, "
                "it measures nothing",
            )

    def _count_failure(self, slot: str, run_id: str, failure: Failure) -> None:
        if self.breaker.failed(slot, run_id, failure):
            self.display.note("closed", f"{slot}: three runs in a row failed; it takes no more")
            if self.breaker.all_closed:
                self.engine.withdraw()
        if self.breaker.hopeless:
            self.engine.stop(self.options.grace)
            self.active.clear()
            evidence = failure.traceback or "\n".join([*failure.log, failure.reason])
            raise DoeError(
                f"the first runs all failed in the same way, so the study was stopped:\n"
                f"{evidence}\nMend it, then go on with `doe run --retry-failed`"
            )

    # Runs that others execute ---------------------------------------------------------------------

    def _watch_others(self) -> None:
        """Look at runs that others execute: they commit, or fall silent and are taken over."""
        now = time.monotonic()
        if now - self._looked < WATCH_SECONDS:
            return
        self._looked = now
        for run_id in sorted(self.elsewhere, key=lambda run_id: self.runs[run_id].run_order):
            status = self._look(run_id)
            if status.state == "running":
                continue
            self.elsewhere.discard(run_id)
            if status.state == "pending":
                self._queue.appendleft(run_id)
            else:
                self._settled(status, "")

    def _orphan_slot(self, status: RunStatus) -> str:
        """Slot of a run on this machine whose scheduler is gone, or an empty text."""
        lease = status.holder
        if lease is None or lease.machine != self._here or process_alive(lease.supervisor):
            return ""
        return lease.slot

    def _orphans(self) -> list[tuple[RunDir, Lease]]:
        """Runs on this machine whose scheduler is gone: this one has adopted them."""
        others = [self.statuses[run_id] for run_id in self.elsewhere]
        return [
            (self.files.run(status.run.run_id), status.holder)
            for status in others
            if status.holder and self._orphan_slot(status)
        ]

    def _end_all(self) -> None:
        self.display.note("stop", "ending the running runs; `doe run` goes on with them later")
        self.engine.stop(self.options.grace)
        end_keepers(self._orphans(), self.options.grace)
        self.active.clear()


def selected(runs: Sequence[Run], options: RunOptions) -> list[str]:
    """Ids of the runs that are asked for, in the planned order."""
    only = {run.run_id for config in options.only for run in runs_of(runs, config)}
    planned = sorted({run.replicate for run in runs})
    for number in options.replicates:
        if number not in planned:
            raise DoeError(f"replicate {number} is not planned; there are {planned}")
    return [
        run.run_id
        for run in runs
        if (not only or run.run_id in only)
        and (not options.replicates or run.replicate in options.replicates)
    ]


def next_kind(
    slot: Slot,
    active: Collection[Active],
    orphans: Sequence[str],
    any_waits: bool,
    lonely_waits: bool,
) -> Literal["any", "lonely"] | None:
    """Choose for one slot.

    Parameters
    ----------
    active : collection of Active
        What this scheduler has started, on all slots.
    orphans : sequence of str
        Slots held by runs that a dead scheduler has left on this machine.
    any_waits, lonely_waits : bool
        Whether runs wait, and whether some wait that ran out of GPU memory beside others. Those
        come first: slots that share a GPU stay empty until one of the GPUs is idle for them.
    """
    held = sum(run.slot.name == slot.name for run in active) + orphans.count(slot.name)
    if held >= slot.places:
        return None
    shares = [run for run in active if slot.group and run.slot.group == slot.group]
    if lonely_waits and not shares:
        return "lonely"
    held_back = bool(slot.group) and (lonely_waits or any(run.alone for run in shares))
    return "any" if any_waits and not held_back else None


# When to stop ------------------------------------------------------------------------------------


class Breaker:
    """Tells a slot that only fails, and a mistake that every run makes."""

    def __init__(self, slots: Iterable[str]) -> None:
        self._streaks: dict[str, list[str]] = {name: [] for name in slots}
        self._first: dict[str, str] = {}
        """Signature of each run's failure, as long as no run has succeeded."""
        self._first_slots: set[str] = set()
        self._trial = True
        self.closed: dict[str, str] = {}
        """Slot -> the reason of the failure that closed it."""

    @property
    def unproven(self) -> bool:
        """Whether nothing is done yet."""
        return self._trial

    def prove(self) -> None:
        """Something is done: there is no mistake that every run makes."""
        self._trial = False

    def succeeded(self, slot: str) -> None:
        """A run of a slot came to its end, with finite metrics or not."""
        self._streaks[slot] = []
        self.prove()

    def failed(self, slot: str, run_id: str, failure: Failure) -> bool:
        """A run of a slot failed; tell whether this closes the slot."""
        streak = self._streaks[slot]
        if run_id not in streak:
            streak.append(run_id)
        if self._trial:
            self._first.setdefault(run_id, signature(failure))
            self._first_slots.add(slot)
        if len(streak) < IN_A_ROW or slot in self.closed:
            return False
        self.closed[slot] = failure.reason
        return True

    @property
    def hopeless(self) -> bool:
        """Whether the first runs of all slots, two at least, failed with the same traceback."""
        same = set(self._first.values())
        everywhere = self._trial and self._first_slots == self._streaks.keys()
        return len(self._first) >= 2 and everywhere and len(same) == 1 and "" not in same

    @property
    def all_closed(self) -> bool:
        """Whether no slot is left."""
        return self.closed.keys() == self._streaks.keys()


def signature(failure: Failure) -> str:
    """Where an exception was raised: its type and its stack, without the values in its message."""
    if failure.kind != "exception":
        return ""
    if not failure.traceback:
        return failure.reason
    places = re.findall(r'^  File "(.*)", line (\d+)', failure.traceback, re.MULTILINE)
    return f"{failure.type} {places}"
