"""Pending runs x slots -> engine -> verdicts.

The scheduler reads directories, starts workers and tells the display; `transitions` decides what
follows from what it sees. Success is never decided here: it is read from the run's directory,
whatever an engine says. Nothing is kept on disk, so the scheduler can be killed at any time; all it
knows is read again when it starts.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import NamedTuple, Protocol

from doe.design.runs import Run, runs_of, stage_needs
from doe.errors import DoeError, counted, were
from doe.numbers import cell_text
from doe.running.engines import Ended, Engine, Job, Slot, failure_recorded
from doe.running.processes import PROCESS_LIMIT, end_keepers
from doe.running.transitions import (
    Abort,
    Action,
    Active,
    Adopt,
    Blocked,
    Breaker,
    Enqueue,
    Event,
    Exited,
    Finish,
    Observed,
    Offered,
    Phase,
    Placed,
    Postpone,
    Record,
    Recorded,
    Refuse,
    Requested,
    Retry,
    RunTask,
    Skip,
    StageGone,
    StagesReady,
    Start,
    choose_queue,
    pick,
    stage_news,
    transition,
    unbalanced,
)
from doe.running.worker import WorkerOptions, record_crash, refuse
from doe.store.files import RunDir, StudyDir, held_name
from doe.store.leases import Lease, Watch, machine, new_owner, process_alive, process_name
from doe.store.plan import Plan, PlanInUse
from doe.store.requests import check_unchanged, prepare
from doe.store.scan import RunStatus, read_status, scan
from doe.store.stages import is_present, remove_product
from doe.store.timing import WATCH_SECONDS
from doe.store.verdicts import UNREAD, Failure, Policy, failed_attempts, sweep_leftovers
from doe.study.stages import read_by_runs

SETTLED = ("done", "diverged")
"""States in which a run never needs its stages again."""


class RunOptions(NamedTuple):
    """Options of `doe run`."""

    policy: Policy = Policy()
    timeout: float = 0.0
    only: tuple[str, ...] = ()
    """Configurations; empty for all."""
    replicates: tuple[int, ...] = ()
    """Numbers of replicates; empty for all."""
    runs: frozenset[str] = frozenset()
    """Ids of runs; empty for all."""
    limit: int = 0
    """Maximum number of runs to start; 0 for all."""
    retry_failed: bool = False
    grace: float = 10.0
    """Seconds between TERM and KILL."""
    detach: bool = False
    """Submit the runs and exit: no scheduler watches them."""
    keep_stages: bool = False
    """Keep the output of stages when no run needs it any more."""


class Snapshot(NamedTuple):
    """State of a study under a scheduler at one moment, for displays."""

    study: str
    files: StudyDir
    statuses: Mapping[str, RunStatus]
    """State of runs, and of executions of stages."""
    active: tuple[Active, ...]
    """Runs that this scheduler has started."""
    elsewhere: tuple[str, ...]
    """Runs that others execute."""
    closed: Mapping[str, str]
    """Slot -> the reason of the failure that closed it."""
    places: int
    """Number of runs executing at once."""

    @property
    def runs(self) -> list[RunStatus]:
        """Return the runs without the executions of stages."""
        return [status for status in self.statuses.values() if not status.run.stage]


class Display(Protocol):
    """Interface of displays."""

    def note(self, kind: str, text: str) -> None:
        """Show an event: done, diverged, failed, again, closed, adopted, skipped, removed, warning,
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
        self.runs = {run.run_id: run for run in (*plan.stages, *plan.design.runs)}
        """Runs, and executions of stages, which are treated as runs."""
        self._needs = {
            key: [*stage_needs(plan.study, run).values()] for key, run in self.runs.items()
        }
        self._users: dict[str, list[str]] = {stage.run_id: [] for stage in plan.stages}
        """Execution of a stage -> the runs that need it, in run order."""
        for run_id, stages in self._needs.items():
            for stage in stages:
                self._users[stage].append(run_id)
        self.statuses: dict[str, RunStatus] = {}
        self.breaker = Breaker(slot.name for slot in engine.slots)
        self.stopping = False
        self._tasks = dict.fromkeys(self.runs, RunTask())
        self._active: dict[str, Active] = {}
        """Job -> the run in `Phase.STARTED` that it executes."""
        self._elsewhere: set[str] = set()
        """Runs in `Phase.ELSEWHERE`."""
        self._queues: dict[Phase, deque[str]] = {Phase.QUEUED: deque(), Phase.EXCLUSIVE: deque()}
        self._kinds = {slot.kind for slot in engine.slots if slot.kind}
        self._placed: dict[str, Placed] = {}
        self._starts = 0
        self._here = machine()
        self._me = process_name(os.getpid())
        self._last_watch = 0.0
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
            number = interrupts()
            if number and not self.stopping:
                self.stopping = True
                self.display.note("stop", "no more runs are started; running ones finish")
                self.engine.withdraw()
            if number > 1:
                self._end_all()
                return False
            self.check_not_replaced()
            self._watch_others()
            self._dispatch()
            self.display.show(self.snapshot())  # while the slots work
            if not self._busy():
                break
            for news in self.engine.wait(0.2):
                if isinstance(news, Ended):
                    self._handle_exit(news)
                elif active := self._active.get(news.job):
                    self._active[news.job] = active._replace(left=True)
        for stage in self._users:
            self._remove_stage(stage, look=True)
        if len(self._kinds) > 1:
            for text in unbalanced([*self._placed.values()]):
                self.display.note(
                    "warning", f"different kinds of machine could not be balanced: {text}"
                )
        if self.breaker.all_closed and self.waiting:
            reasons = "; ".join(f"{slot}: {why}" for slot, why in self.breaker.closed.items())
            raise DoeError(
                f"every slot was closed after three failures in a row ({reasons}); "
                f"{counted(self.waiting, 'run')} {were(self.waiting)} not started. Fix the cause, "
                "then "
                "`doe run --retry-failed`"
            )
        return not self.stopping

    def hand_over(self) -> int:
        """Start all waiting runs and leave them to the engine; return their number."""
        self._begin()
        self._dispatch()
        if late := sum(task.phase is Phase.WAITING for task in self._tasks.values()):
            text = (
                f"{counted(late, 'run')} {were(late)} skipped, because another scheduler executes "
            )
            self.display.note("warning", f"{text}a stage before; `doe run` again later")
        return self._starts

    def snapshot(self) -> Snapshot:
        """Return the present state, for displays."""
        own = sum(s.places for s in self.engine.slots if s.name not in self.breaker.closed)
        return Snapshot(
            self.study.name,
            self.files,
            dict(self.statuses),
            tuple(active for active in self._active.values() if not active.left),
            tuple(sorted(self._elsewhere)),
            dict(self.breaker.closed),
            max(1, min(own + len(self._elsewhere), len(self.runs))),
        )

    def close(self) -> None:
        """Close the study's directory."""
        self._plan.release()
        if self._root >= 0:
            os.close(self._root)
            self._root = -1

    # Starting up ---------------------------------------------------------------------------------

    def _begin(self) -> None:
        """Read the study, clean up after killed writers, and queue the requested runs."""
        self._root = os.open(self.named.root, os.O_RDONLY | os.O_DIRECTORY)
        self.files = StudyDir(held_name(self._root, self.named.root))
        for status in scan(self.files, self.runs.values(), self.watch):
            self.statuses[status.run.run_id] = status
            if not status.run.stage:
                self._note_machine(status.run, status.provenance.get("hardware", ""))
            if status.result:
                with contextlib.suppress(OSError):
                    sweep_leftovers(self.files.run(status.run.run_id))
        check_unchanged(self.study, self.statuses.values(), self.named)
        self._plan.check()
        own = [status for status in self.statuses.values() if not status.run.stage]
        self.breaker.unproven = all(status.state != "done" for status in own)
        slots = {slot.name: slot for slot in self.engine.slots}
        for run_id, job, slot in self.engine.adopt():
            self._active[job] = Active(run_id, slots[slot], True, time.monotonic())
            self._tasks[run_id] = RunTask(Phase.STARTED)
        if self._active:
            number = len({active.run_id for active in self._active.values()})
            self.display.note("adopted", f"runs submitted earlier: {number}")
        begun = 0
        for run_id in selected([s.run for s in own], self.options):
            failed = self.statuses[run_id].state == "failed"
            wanted = self.statuses[run_id].result is None or (failed and self.options.retry_failed)
            # Stages are executed only for the runs that may start.
            late = bool(self.options.limit) and begun >= self.options.limit
            if self._tasks[run_id].phase is Phase.IDLE and wanted:
                begun += 1
                if not (late and self._needs[run_id]):
                    self._request(run_id)

    def _request(self, run_id: str) -> None:
        """Queue a run, after the stages that it needs."""
        status, needs = self.statuses[run_id], self._needs[run_id]
        # A stage is removed after the verdicts of its runs: one that is gone may not be missing.
        if not all(map(self._is_done, needs)) and self._read(run_id).result != status.result:
            return
        for stage in needs:
            if self._tasks[stage].phase is Phase.IDLE:
                self._request(stage)
        removed = bool(status.run.stage) and status.state == "done" and not self._is_done(run_id)
        held, again = self._is_held(status), self.options.retry_failed
        self._apply(run_id, Requested(status, held, again, removed, early=bool(needs)))
        self._wake(run_id)

    def check_not_replaced(self) -> None:
        """Refuse to continue if another study has replaced this one, or another plan ours."""
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
                f"{self.named.root} was moved or replaced while its runs were executing; they "
                "continue and write their results to their own directories. Start `doe run` "
                "again there"
            )
        self._plan.check()

    # Stages -------------------------------------------------------------------------------------

    def _is_done(self, stage: str) -> bool:
        """Return whether an execution of a stage is done and its output exists."""
        return self.statuses[stage].state == "done" and is_present(self.files.run(stage))

    def _is_ready(self, stage: str) -> bool:
        """Return whether runs may follow a stage: it is done, or the engine orders them."""
        handed_over = self.options.detach and self._tasks[stage].phase is Phase.STARTED
        return handed_over or self._is_done(stage)

    def _wake(self, run_id: str) -> None:
        """Tell a run that waits for its stages about their state."""
        if self._tasks[run_id].phase is not Phase.WAITING:
            return
        needs = self._needs[run_id]
        news = stage_news([(self._tasks[stage], self.statuses[stage]) for stage in needs])
        if self.options.detach and all(map(self._is_ready, needs)):
            news = StagesReady()
        if news is not None:
            self._apply(run_id, news)

    def _await_stages(self, run_id: str) -> None:
        """Let a run wait again whose stage has lost its output since it was queued."""
        self._apply(run_id, StageGone())
        for stage in self._needs[run_id]:
            if self._tasks[stage].phase is Phase.IDLE and self._read(stage).state != "failed":
                self._request(stage)
        self._wake(run_id)

    def _refuse(self, run_id: str) -> None:
        """Record that a run fails because its stage has failed."""
        if self._prepare(run_id):
            job, replace = f"{self._me}/{os.urandom(6).hex()}", self._tasks[run_id].replace
            policy = self.options.policy
            options = WorkerOptions(job, policy=policy, replace=replace, supervisor=self._me)
            refuse(self.files.run(run_id), options)
            self._apply(run_id, Observed(self._read(run_id)))

    def _remove_stage(self, stage: str, look: bool = False) -> None:
        """Remove the output of a stage once every run that needs it is done.

        Parameters
        ----------
        look : bool
            Whether to look at runs that others may have finished.
        """
        kept = self.options.keep_stages or self.study.stages[self.runs[stage].stage].reuse
        if kept or not self._is_done(stage):
            return
        for user in self._users[stage] if look else ():
            if self.statuses[user].state not in SETTLED:
                self._read(user)
        if all(self.statuses[user].state in SETTLED for user in self._users[stage]):
            remove_product(self.files.run(stage))
            self.display.note("removed", f"{stage}: its output is no longer needed")

    # Events and actions -------------------------------------------------------------------------

    def _apply(self, run_id: str, event: Event, slot: Slot | None = None) -> None:
        """Apply an event on a slot to a run, and perform the resulting actions."""
        task, actions = transition(self._tasks[run_id], event, self.options.policy.retries)
        self._tasks[run_id] = task
        if task.phase is Phase.ELSEWHERE:
            self._elsewhere.add(run_id)
        else:
            self._elsewhere.discard(run_id)
        for action in actions:
            self._perform(run_id, action, slot)
        if self.runs[run_id].stage and self._tasks[run_id].phase is Phase.IDLE:
            for user in reversed(self._users[run_id]):  # each goes to the front of the queue
                self._wake(user)

    def _perform(self, run_id: str, action: Action, slot: Slot | None) -> None:
        name = slot.name if slot else ""
        match action:
            case Enqueue(front):
                queue = self._queues[self._tasks[run_id].phase]
                (queue.appendleft if front else queue.append)(run_id)
            case Refuse():
                self._refuse(run_id)
            case Adopt():
                config = self.runs[run_id].config
                self.display.note("adopted", f"{run_id} {config} is already running")
            case Skip(problem):
                self.statuses[run_id] = self.statuses[run_id]._replace(problem=problem)
                self.display.note("skipped", f"{run_id} {self.runs[run_id].config}: {problem}")
            case Record(crash):
                self._record(run_id, crash, slot)
            case Retry(failure):
                text = f"{run_id} on {name}: {failure.reason}; will be retried"
                self.display.note("again", text)
                if failure.kind != "gpu-memory" and not self.runs[run_id].stage:
                    self._count_failure(name, run_id, failure)
            case Finish(status, here):
                self._finish(status, name if here else "")
            case Postpone():
                self.display.note("again", f"{run_id} on {name}: {PROCESS_LIMIT}; not counted")
            case Abort():
                raise DoeError(
                    f"{run_id} could not write its verdict; see its log. Free space on the disk or "
                    f"make {self.named.root} writable, then `doe run` again: nothing committed is "
                    "lost"
                )
            case Start():
                pass  # by `_dispatch`, together with others

    def _record(self, run_id: str, crash: Ended | None, slot: Slot | None) -> None:
        """Record a crash that its process could not record itself."""
        if not self._prepare(run_id):
            return
        run_dir = self.files.run(run_id)
        if crash is not None:
            owner = new_owner(crash.job, slot.name if slot else "", self._me)
            record_crash(run_dir, owner, self.options.policy, crash.message, crash.timeout)
        status = self._read(run_id)
        records = failed_attempts(run_dir)
        self._apply(run_id, Recorded(status, records[-1].failure if records else None), slot)

    def _finish(self, status: RunStatus, slot: str) -> None:
        """Report a verdict; the slot is empty if another scheduler executed the run."""
        run, seconds = status.run, cell_text(status.seconds or 0.0, "fixed1")
        error = status.result.error if status.result else None
        refused = error is not None and error.kind == "stage"
        where = "not started" if refused else f"on {slot or 'another scheduler'}, {seconds} s"
        text = f"{run.run_id} {run.config} {where}"
        self.display.note(status.state, f"{text}: {status.reason}" if status.reason else text)
        for stage in self._needs[run.run_id] if not run.stage else ():
            self._remove_stage(stage)
        if not slot or run.stage or refused:
            return
        if status.state == "failed" and error:
            self._count_failure(slot, run.run_id, error)
        else:
            self._warn_unread(status)
            self.breaker.succeeded(slot)

    def _warn_unread(self, status: RunStatus) -> None:
        """Warn after the first run about factors that the backend never read."""
        noted = status.provenance.get(UNREAD, [])
        unread = [name for name in read_by_runs(self.study) if name in noted]
        if unread and self.breaker.unproven:
            self.display.note(
                "warning",
                f"the backend never read {', '.join(unread)} in its first run; if it never does, "
                "changing it has no effect",
            )

    def _count_failure(self, slot: str, run_id: str, failure: Failure) -> None:
        if self.breaker.failed(slot, run_id, failure):
            self.display.note("closed", f"{slot}: three runs in a row failed; the slot is closed")
            if self.breaker.all_closed:
                self.engine.withdraw()
        if self.breaker.hopeless:
            self.engine.stop(self.options.grace)
            self._active.clear()
            evidence = failure.traceback or "\n".join([*failure.log, failure.reason])
            raise DoeError(
                "the first runs all failed in the same way, so the study was stopped:\n"
                f"{evidence}\nFix the cause, then continue with `doe run --retry-failed`"
            )

    # Starting runs -------------------------------------------------------------------------------

    @property
    def waiting(self) -> int:
        """Return runs that are still to be started."""
        return sum(map(len, self._queues.values()))

    def _may_start(self) -> bool:
        limited = self.options.limit and self._starts >= self.options.limit
        return not (self.stopping or limited or self.breaker.all_closed) and self.waiting > 0

    def _busy(self) -> bool:
        """Return whether something worth waiting for is in progress."""
        if self.stopping:
            return bool(self._active) or bool(self._orphans())
        return bool(self._active or self._elsewhere) or self._may_start()

    def _dispatch(self) -> None:
        jobs = []
        orphans = [self._orphan_slot(self.statuses[run_id]) for run_id in self._elsewhere]
        for slot in self.engine.slots:
            while self._may_start() and slot.name not in self.breaker.closed:
                waiting = [phase for phase, queue in self._queues.items() if queue]
                phase = choose_queue(slot, self._active.values(), orphans, waiting)
                if phase is None:
                    break
                run_id = self._next(phase, slot)
                ready = all(map(self._is_ready, self._needs[run_id]))
                status = self._read(run_id)  # after its stages, which are removed after its verdict
                held, final = self._is_held(status), status.is_final(self._tasks[run_id].replace)
                if not (ready or held or final):
                    self._await_stages(run_id)
                    continue
                self._apply(run_id, Offered(status, held), slot)
                started = self._tasks[run_id].phase is Phase.STARTED
                if started and self._prepare(run_id):
                    jobs.append(self._job(status, slot, phase is Phase.EXCLUSIVE))
                    for user in self._users.get(run_id, ()) if self.options.detach else ():
                        self._wake(user)
        if jobs:
            self.check_not_replaced()  # after their requests were written
            self.engine.start(jobs)
        queue = self._queues[Phase.QUEUED]
        for run_id in list(islice(queue, len(self.engine.slots))):
            # While the slots work, not while they wait.
            if self._may_start() and not self._prepare(run_id):
                queue.remove(run_id)

    def _next(self, phase: Phase, slot: Slot) -> str:
        """Take a run from a queue: the first, or one that keeps unlike machines balanced."""
        queue = self._queues[phase]
        if len(self._kinds) < 2 or not slot.kind:
            return queue.popleft()
        first = self.runs[queue[0]]
        if first.stage:
            return queue.popleft()
        waiting = [
            run
            for run in map(self.runs.__getitem__, queue)
            if (run.replicate, run.whole_plot) == (first.replicate, first.whole_plot)
            and not run.stage
        ]
        run = pick(waiting, slot.kind, self._placed.values())
        queue.remove(run.run_id)
        return run.run_id

    def _note_machine(self, run: Run, kind: str) -> None:
        """Record the kind of machine on which a run is executed."""
        if kind:
            self._placed[run.run_id] = Placed(run, kind)
            self._kinds.add(kind)

    def _job(self, status: RunStatus, slot: Slot, exclusive: bool) -> Job:
        """Record the start of a run, and build its worker's options."""
        run_id, lease = status.run.run_id, status.lease
        sharing = sum(other.group == slot.group for other in self.engine.slots) > 1
        options = WorkerOptions(
            job=f"{self._me}/{os.urandom(6).hex()}",
            slot=slot.name,
            device=slot.device,
            timeout=self._timeout(status.run),
            policy=self.options.policy,
            replace=self._tasks[run_id].replace,
            expired=lease.digest if lease and status.state == "pending" else "",
            wait=self.options.detach,
            alone=exclusive or not (slot.group and sharing),
            supervisor="" if self.options.detach else self._me,
            grace=self.options.grace,
        )
        self._active[options.job] = Active(run_id, slot, exclusive, time.monotonic())
        if not status.run.stage:
            self._note_machine(status.run, slot.kind)
            self._starts += 1
        needs = self._needs[run_id] if self.options.detach else ()
        begun = {active.run_id: job for job, active in self._active.items()} if needs else {}
        after = tuple(begun[stage] for stage in needs if stage in begun)
        return Job(run_id, self.files.run(run_id).path, slot, options, status.run.stage, after)

    def _timeout(self, run: Run) -> float:
        return self.study.stages[run.stage].timeout if run.stage else self.options.timeout

    def _prepare(self, run_id: str) -> bool:
        """Write a run's request; a run that cannot have one is skipped."""
        if self._tasks[run_id].ready:
            return True
        if problem := prepare(self.files.run(run_id), self.study, self.runs[run_id]):
            self._apply(run_id, Blocked(problem))
            return False
        self._tasks[run_id] = self._tasks[run_id]._replace(ready=True)
        return True

    # Seeing what came of it ---------------------------------------------------------------------

    def _read(self, run_id: str) -> RunStatus:
        status = read_status(self.files, self.runs[run_id], self.watch)
        self.statuses[run_id] = status
        return status

    def _is_held(self, status: RunStatus) -> bool:
        """Return whether another process has a run.

        A lease of another machine is known to be over only by watching it. Where nobody stays to
        watch, the run is started all the same, and its worker watches (`WorkerOptions.wait`).
        """
        lease = status.holder
        certain = lease is not None and lease.machine == self._here
        return status.state == "running" and (certain or not self.options.detach)

    def _handle_exit(self, ended: Ended) -> None:
        active = self._active.pop(ended.job, None)
        if active is None:
            return
        status = self._read(active.run_id)
        lease = status.holder
        # The engine knows about another machine's process before its lease falls silent.
        far = lease is not None and lease.machine != self._here and lease.job == ended.job
        held = status.state == "running" and not (far and not ended.interrupted)
        recorded = False
        if not (status.problem or status.is_final(self._tasks[active.run_id].replace)):
            self.check_not_replaced()  # a plan that was replaced has taken the request away
            recorded = failure_recorded(self.files.run(active.run_id), ended.job)
        self._apply(active.run_id, Exited(ended, status, held, recorded), active.slot)

    def _watch_others(self) -> None:
        """Check runs that others execute: they commit, or fall silent and are taken over."""
        now = time.monotonic()
        if now - self._last_watch < WATCH_SECONDS:
            return
        self._last_watch = now
        for run_id in sorted(self._elsewhere, key=lambda run_id: self.runs[run_id].run_order):
            self._apply(run_id, Observed(self._read(run_id)))

    def _orphan_slot(self, status: RunStatus) -> str:
        """Return the slot of a run on this machine whose scheduler is gone, or an empty text."""
        lease = status.holder
        if lease is None or lease.machine != self._here or process_alive(lease.supervisor):
            return ""
        return lease.slot

    def _orphans(self) -> list[tuple[RunDir, Lease]]:
        """Return runs on this machine whose scheduler is gone: this one has adopted them."""
        others = [self.statuses[run_id] for run_id in self._elsewhere]
        return [
            (self.files.run(status.run.run_id), status.holder)
            for status in others
            if status.holder and self._orphan_slot(status)
        ]

    def _end_all(self) -> None:
        self.display.note("stop", "ending the running runs; `doe run` resumes them later")
        self.engine.stop(self.options.grace)
        end_keepers(self._orphans(), self.options.grace)
        self._active.clear()


def selected(runs: Sequence[Run], options: RunOptions) -> list[str]:
    """Return the ids of the requested runs, in the planned order."""
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
        and (not options.runs or run.run_id in options.runs)
    ]
