"""What becomes of a run: every event in every state, as a table."""

import pytest

from doe.design.runs import make_design
from doe.running.engines import Ended, Slot
from doe.running.transitions import (
    Abort,
    Active,
    Adopt,
    Blocked,
    Breaker,
    Enqueue,
    Exited,
    Finish,
    Observed,
    Offered,
    Phase,
    Postpone,
    Record,
    Recorded,
    Refuse,
    Requested,
    Retry,
    RunTask,
    Skip,
    StageFailed,
    StageGone,
    StagesReady,
    Start,
    choose_queue,
    stage_news,
    transition,
)
from doe.running.worker import ExitCode
from doe.store.scan import RunStatus
from doe.store.verdicts import Failure, Result
from doe.study.presets import preset_study

RETRIES = 2
RUN = make_design(preset_study("demo")).runs[0]
PENDING, RUNNING = RunStatus(RUN, "pending"), RunStatus(RUN, "running")
DONE = RunStatus(RUN, "done", Result("done"), "good")
FAILED = RunStatus(RUN, "failed", Result("failed"), "bad")
BROKEN = RunStatus(RUN, "pending", problem="unreadable")
CRASH, MEMORY = Failure("crash", "killed"), Failure("gpu-memory", "too little", alone=False)

IDLE, QUEUED, STARTED = RunTask(), RunTask(Phase.QUEUED), RunTask(Phase.STARTED)
WAITING = RunTask(Phase.WAITING)
ELSEWHERE, EXCLUSIVE = RunTask(Phase.ELSEWHERE), RunTask(Phase.EXCLUSIVE)
REPLACING = RunTask(Phase.QUEUED, replace="bad")
FRONT, BACK = Enqueue(front=True), Enqueue()


def end(code=1, interrupted=False, unseen=False):
    return Ended("run", "job", code, "killed", False, interrupted, unseen)


def exited(ended=None, status=PENDING, held=False, recorded=False):
    return Exited(ended or end(), status, held, recorded)


def started(**facts):
    return STARTED._replace(**facts)


def queued(**facts):
    return QUEUED._replace(**facts)


UNSEEN = end(None, interrupted=True, unseen=True)

TABLE = {
    # no process could be started
    "at the process limit": (
        started(unseen=2),
        exited(end(ExitCode.SCARCE)),
        queued(unseen=2),
        (FRONT, Postpone()),
    ),
    # what is requested
    "pending": (IDLE, Requested(PENDING, False), QUEUED, (BACK,)),
    "running elsewhere": (IDLE, Requested(RUNNING, True), ELSEWHERE, (Adopt(),)),
    "running where nobody can tell": (IDLE, Requested(RUNNING, False), QUEUED, (BACK,)),
    "done": (IDLE, Requested(DONE, False), IDLE, ()),
    "failed": (IDLE, Requested(FAILED, False), IDLE, ()),
    "failed, to be tried again": (IDLE, Requested(FAILED, False, True), REPLACING, (BACK,)),
    "done, failed ones again": (IDLE, Requested(DONE, False, True), IDLE, ()),
    "unreadable": (IDLE, Requested(BROKEN, False), IDLE, (Skip("unreadable"),)),
    # stages
    "its stage is to come": (IDLE, Requested(PENDING, False, early=True), WAITING, ()),
    "done, whatever its stage is": (IDLE, Requested(DONE, False, early=True), IDLE, ()),
    "failed, and so was its stage": (
        IDLE,
        Requested(FAILED, False, True, early=True),
        RunTask(Phase.WAITING, replace="bad"),
        (),
    ),
    "running elsewhere beside its stage": (
        IDLE,
        Requested(RUNNING, True, early=True),
        ELSEWHERE,
        (Adopt(),),
    ),
    "a stage whose product is gone": (
        IDLE,
        Requested(DONE, False, removed=True),
        RunTask(Phase.QUEUED, replace="good"),
        (BACK,),
    ),
    "its stages are done": (WAITING, StagesReady(), QUEUED, (FRONT,)),
    "its stages are done again": (
        RunTask(Phase.WAITING, replace="bad"),
        StagesReady(),
        REPLACING,
        (FRONT,),
    ),
    "its stage has failed": (WAITING, StageFailed(), ELSEWHERE, (Refuse(),)),
    "its stage cannot be read": (WAITING, Blocked("no"), IDLE, (Skip("no"),)),
    "its stage is gone": (QUEUED, StageGone(), WAITING, ()),
    "refused": (ELSEWHERE, Observed(FAILED), IDLE, (Finish(FAILED, False),)),
    # a slot is free
    "starts": (QUEUED, Offered(PENDING, False), STARTED, (Start(),)),
    "starts alone": (EXCLUSIVE, Offered(PENDING, False), STARTED, (Start(),)),
    "taken meanwhile": (QUEUED, Offered(RUNNING, True), ELSEWHERE, ()),
    "done meanwhile": (QUEUED, Offered(DONE, False), IDLE, (Finish(DONE, False),)),
    "replaces": (REPLACING, Offered(FAILED, False), started(replace="bad"), (Start(),)),
    "replaced meanwhile": (REPLACING, Offered(DONE, False), IDLE, (Finish(DONE, False),)),
    "unreadable meanwhile": (QUEUED, Offered(BROKEN, False), IDLE, (Skip("unreadable"),)),
    "no request": (STARTED, Blocked("no room"), IDLE, (Skip("no room"),)),
    # its process has ended
    "verdict": (STARTED, exited(status=DONE), IDLE, (Finish(DONE, True),)),
    "verdict and a crash": (STARTED, exited(end(-9), DONE), IDLE, (Finish(DONE, True),)),
    "somebody else goes on": (STARTED, exited(status=RUNNING, held=True), ELSEWHERE, ()),
    "somebody else had it": (STARTED, exited(end(ExitCode.BUSY)), ELSEWHERE, ()),
    "no room for the verdict": (STARTED, exited(end(ExitCode.UNWRITABLE)), IDLE, (Abort(),)),
    "unreadable after its end": (STARTED, exited(status=BROKEN), IDLE, (Skip("unreadable"),)),
    "crash": (started(ready=True), exited(), STARTED, (Record(end()),)),
    "crash of a replacement": (
        started(replace="bad"),
        exited(status=FAILED),
        started(replace="bad"),
        (Record(end()),),
    ),
    "failure on record": (STARTED, exited(recorded=True), STARTED, (Record(None),)),
    "stopped": (
        started(ready=True),
        exited(end(ExitCode.INTERRUPTED, interrupted=True)),
        QUEUED,
        (FRONT,),
    ),
    "stopped for the hundredth time": (
        started(),
        exited(end(ExitCode.INTERRUPTED, interrupted=True)),
        QUEUED,
        (FRONT,),
    ),
    "stopped with a failure on record": (
        STARTED,
        exited(end(interrupted=True), recorded=True),
        STARTED,
        (Record(None),),
    ),
    "ended unseen": (STARTED, exited(UNSEEN), queued(unseen=1), (FRONT,)),
    "ended unseen as often as is excused": (
        started(unseen=RETRIES - 1),
        exited(UNSEEN),
        queued(unseen=RETRIES),
        (FRONT,),
    ),
    "ended unseen once too often": (
        started(unseen=RETRIES),
        exited(UNSEEN),
        started(unseen=RETRIES + 1),
        (Record(UNSEEN),),
    ),
    # its failure is on record
    "tried again": (STARTED, Recorded(PENDING, CRASH), QUEUED, (BACK, Retry(CRASH))),
    "tried again alone": (STARTED, Recorded(PENDING, MEMORY), EXCLUSIVE, (BACK, Retry(MEMORY))),
    "tried again, replaced already": (
        started(replace="bad"),
        Recorded(PENDING, CRASH),
        QUEUED,
        (BACK, Retry(CRASH)),
    ),
    "failed for good": (STARTED, Recorded(FAILED, CRASH), IDLE, (Finish(FAILED, True),)),
    "begun by another": (STARTED, Recorded(PENDING, None), QUEUED, (BACK,)),
    # another process has it
    "goes on": (ELSEWHERE, Observed(RUNNING), ELSEWHERE, ()),
    "fell silent": (ELSEWHERE, Observed(PENDING), QUEUED, (FRONT,)),
    "committed": (ELSEWHERE, Observed(DONE), IDLE, (Finish(DONE, False),)),
    "failed there": (ELSEWHERE, Observed(FAILED), IDLE, (Finish(FAILED, False),)),
}


@pytest.mark.parametrize("case", TABLE)
def test_transition(case):
    task, event, after, actions = TABLE[case]
    assert transition(task, event, RETRIES) == (after, actions)


def test_endings_that_nobody_sees_are_excused_as_often_as_crashes_and_no_more():
    """A machine whose slots die under a run must not execute it for ever."""
    task, starts = QUEUED, 0
    while starts < 100:
        task, (action,) = transition(task, Offered(PENDING, False), RETRIES)
        assert action == Start()
        starts += 1
        task, (action,) = transition(task, exited(UNSEEN), RETRIES)
        if action == Record(UNSEEN):
            break
    assert starts == RETRIES + 1


# Who gets a slot ----------------------------------------------------------------------------------

CPU, CLUSTER = Slot("cpu0"), Slot("slurm", places=3)
FIRST, SECOND = Slot("gpu0.1", group="gpu0"), Slot("gpu0.2", group="gpu0")
ANY, BOTH = (Phase.QUEUED,), (Phase.QUEUED, Phase.EXCLUSIVE)


def on(slot, exclusive=False, left=False):
    return Active("000-r1", slot, exclusive, 0.0, left)


@pytest.mark.parametrize(
    ("slot", "active", "orphans", "waiting", "queue"),
    [
        (CPU, [], [], ANY, Phase.QUEUED),
        (CPU, [on(CPU)], [], ANY, None),
        (CPU, [], [], (), None),
        (CPU, [on(CPU, left=True)], [], ANY, Phase.QUEUED),  # while it is committed
        (CPU, [on(CPU, left=True), on(CPU)], [], ANY, None),
        (CPU, [on(CPU, left=True)] * 2, [], ANY, None),  # verdicts cannot be written
        (CLUSTER, [on(CLUSTER)] * 2, [], ANY, Phase.QUEUED),
        (CLUSTER, [on(CLUSTER)] * 3, [], ANY, None),
        (CPU, [], ["cpu0"], ANY, None),  # held by what a dead scheduler has left
        (CPU, [], ["cpu1", ""], ANY, Phase.QUEUED),
        (SECOND, [on(FIRST)], [], ANY, Phase.QUEUED),
        (SECOND, [on(FIRST)], [], BOTH, None),  # until the GPU is idle
        (SECOND, [], [], BOTH, Phase.EXCLUSIVE),
        (SECOND, [on(FIRST, left=True)], [], BOTH, Phase.EXCLUSIVE),
        (SECOND, [on(FIRST, exclusive=True)], [], ANY, None),
    ],
)
def test_choose_queue(slot, active, orphans, waiting, queue):
    assert choose_queue(slot, active, orphans, waiting) == queue


# When to stop -------------------------------------------------------------------------------------


def test_three_failures_of_different_runs_in_a_row_close_a_slot():
    breaker = Breaker(["a", "b"])
    assert [breaker.failed("a", run, CRASH) for run in "1123"] == [False, False, False, True]
    assert (breaker.closed, breaker.all_closed) == ({"a": "killed"}, False)
    breaker.failed("b", "4", CRASH)
    breaker.succeeded("b")
    assert [breaker.failed("b", run, CRASH) for run in "567"] == [False, False, True]
    assert breaker.all_closed


def test_the_same_traceback_in_the_first_runs_of_all_slots_is_hopeless():
    trace = Failure("exception", "x", "KeyError", '  File "a.py", line 3')
    breaker = Breaker(["a", "b"])
    breaker.failed("a", "1", trace)
    assert not breaker.hopeless
    breaker.failed("b", "2", trace)
    assert breaker.hopeless
    breaker.unproven = False
    assert not breaker.hopeless


UNREADABLE = Blocked(f"its stage {RUN.run_id} cannot be used: unreadable")
NEWS = {
    "one is queued": ([(QUEUED, PENDING)], None),
    "one is under way": ([(IDLE, DONE), (STARTED, RUNNING)], None),
    "one is under way elsewhere": ([(IDLE, DONE), (ELSEWHERE, RUNNING)], None),
    "one waits for another": ([(IDLE, DONE), (WAITING, PENDING)], None),
    "one is made again": ([(RunTask(Phase.QUEUED, replace="good"), DONE)], None),
    "one is tried again": ([(REPLACING, FAILED)], None),
    "one was left out": ([(IDLE, PENDING)], None),
    "all are done": ([(IDLE, DONE), (IDLE, DONE)], StagesReady()),
    "one has failed": ([(IDLE, FAILED)], StageFailed()),
    "one has failed, another is to come": ([(STARTED, RUNNING), (IDLE, FAILED)], StageFailed()),
    "one cannot be read": ([(IDLE, DONE), (IDLE, BROKEN)], UNREADABLE),
}


@pytest.mark.parametrize("case", NEWS)
def test_what_a_run_learns_of_its_stages(case):
    stages, news = NEWS[case]
    assert stage_news(stages) == news
    assert type(stage_news(stages)) is type(news)
