"""``python -m doe.running.worker RUN_DIR``: take the run's lease, run it, commit its verdict once.

This process is the run's keeper. It never imports the backend: it forks the training that does
(`training`), shows signs of life while that works, and commits what it came to. So nothing that a
backend does to its own process, its lock, its descriptors, its directory, can lose a result.

Idempotent: if there is a verdict, or somebody else holds the lease, it does nothing. It is what
every engine starts. The local engine calls `work` in a process forked from a warm parent instead,
which saves the imports and changes nothing else.
"""

from __future__ import annotations

import argparse
import codecs
import contextlib
import errno
import os
import pickle
import signal
import time
from collections.abc import Callable
from enum import IntEnum
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import msgspec

from doe.errors import DoeError
from doe.running.backend import Backend
from doe.running.processes import (
    ProcessLimitError,
    adopt_orphans,
    descendants,
    end_descendants,
    end_process,
    ending,
    has_children,
    module_words,
    run_mark,
    signal_all,
    sweep_marked,
)
from doe.running.provenance import ask_gpus, provenance, static_facts
from doe.running.training import EXAMPLE, ForkedTraining, Training
from doe.store.files import RunDir, StudyDir, put_once, sync
from doe.store.leases import (
    Held,
    Lease,
    Watch,
    acquire,
    age,
    last_lease,
    new_owner,
    read_lease,
)
from doe.store.progress import log_tail, portable, write_log
from doe.store.requests import RunRequest, read_request
from doe.store.stages import STAGES, StageResults, stage_results
from doe.store.timing import (
    BEAT_SECONDS,
    COMMIT_RETRY_SECONDS,
    COMMIT_SECONDS,
    DISK_FULL_SECONDS,
    FLUSH_SECONDS,
    KEEPER_POLL_SECONDS,
    LATE_SECONDS,
    RESTORE_SECONDS,
)
from doe.store.verdicts import (
    Failure,
    Policy,
    Result,
    checksum,
    commit,
    decode_result,
    encode_result,
    finalize,
    has_final_verdict,
    read_verdict,
    record_failure,
    recover,
    set_aside,
)


class ExitCode(IntEnum):
    """Outcome of a worker; any other exit code is a crash."""

    RECORDED = 0
    """A verdict or a failed attempt is recorded."""
    SCARCE = 71
    """No process could be started; the lease is given back."""
    UNWRITABLE = 74
    """The verdict could not be written."""
    BUSY = 75
    """Another process has the run."""
    LOST = 76
    """The lease was taken over, or the study deleted or planned again."""
    INTERRUPTED = 143
    """Ended by SIGTERM; the lease is given back."""


STOPPED = (ExitCode.INTERRUPTED, ExitCode.LOST)
"""Endings through no fault of the run."""
ORDERLY = tuple(ExitCode)
"""Return whether all of its processes were ended by the worker itself."""


class WorkerOptions(msgspec.Struct, frozen=True):
    """Options for executing a run; none of them may change its outcome."""

    job: str = ""
    """The engine's name for this start."""
    slot: str = ""
    device: str = "cpu"
    timeout: float = 0.0
    """Time limit of the run in seconds; 0 for none."""
    policy: Policy = Policy()
    replace: str = ""
    """Checksum of a failed verdict that this run is to replace."""
    expired: str = ""
    """Digest of a lease that was watched long enough to know that its holder is gone."""
    wait: bool = False
    """Wait for another holder to finish or to fall silent, instead of exiting at once."""
    alone: bool = True
    """Whether the run has its GPU to itself."""
    supervisor: str = ""
    """The scheduler's process; empty if there is none."""
    grace: float = 10.0
    """Seconds between asking the run to end and killing it."""


class Prepared(NamedTuple):
    """Preparations of a warm parent for all of its runs."""

    backend: Backend | None
    """None if the training is to import it."""
    facts: dict[str, Any]
    on_child: Any = None
    """Callback of the import for the end of a child: for the training, not for its keeper."""
    training: ForkedTraining | None = None
    """A training on standby."""
    leave: Callable[[], None] = lambda: None
    """Report that the training has ended: another may begin while this keeper commits."""


def work(run: RunDir, options: WorkerOptions, prepared: Prepared | None = None) -> int:
    """Execute a run unless it is done or taken; return the exit code."""
    run = run.held_open()
    request, digest = read_request(run)
    held = begin(run, options, new_owner(options.job, options.slot, options.supervisor), Watch())
    if isinstance(held, int):
        return held
    try:
        unchanged = read_request(run)[1] == digest
    except DoeError:
        unchanged = False
    if not unchanged:  # the study was planned again before this lease was visible
        held.release()
        return ExitCode.LOST
    if (stages := met_stages(held, options, request, digest)) is None:
        return ExitCode.RECORDED
    if stages.missing:
        held.release()
        return ExitCode.LOST
    return _execute(held, options, request, digest, prepared, stages.used)


def met_stages(
    held: Held, options: WorkerOptions, request: RunRequest, digest: str
) -> StageResults | None:
    """Read the stages of a run; None if one of them has failed, and therefore the run."""
    stages = stage_results(StudyDir(held.run.path.parent), request)
    if stages.failure is None:
        return stages
    facts = static_facts(request.backend, None, request.command)
    origin = provenance(facts, held.lease, request, digest, held.lease.since, 0.0)
    finish(held, options, Result("failed", {}, stages.failure, origin))
    return None


def refuse(run: RunDir, options: WorkerOptions) -> None:
    """Record that a run fails because its stage has failed, without starting a process."""
    request, digest = read_request(run)
    owner = new_owner(options.job, options.slot, options.supervisor)
    held = begin(run, options, owner, Watch())
    if not isinstance(held, int) and met_stages(held, options, request, digest) is not None:
        held.release()  # it has not failed after all


def begin(run: RunDir, options: WorkerOptions, owner: Lease, watch: Watch) -> Held | int:
    """Take a run that needs running; otherwise return the exit code with the reason."""
    if has_final_verdict(run, options.replace):
        return ExitCode.RECORDED
    held = acquire(run, owner, watch, options.expired)
    while held is None:
        if has_final_verdict(run, options.replace):
            return ExitCode.RECORDED
        if not options.wait:
            return ExitCode.BUSY
        time.sleep(1.0)
        held = acquire(run, owner, watch, options.expired)
    _sweep_former(run, held.lease)
    recover(run, owner.nonce)
    # Check again, now that nobody else can begin: the former holder may have committed at last.
    verdict = read_verdict(run)
    if verdict is not None and verdict.is_final(options.replace):
        held.release()
        return ExitCode.RECORDED
    if verdict is not None:
        kind = "damaged"
        if verdict.result:
            kind = "removed" if verdict.result.state == "done" else "failed"
        set_aside(run, kind, held.lease.attempt, verdict.raw)
    elif finalize(run, options.policy, owner.nonce):  # the record was made, the verdict was not
        held.release()
        return ExitCode.RECORDED
    return held


def _sweep_former(run: RunDir, lease: Lease) -> None:
    """Kill what the processes of a dead former holder left running on this machine."""
    former = read_lease(run, lease.attempt - 1) if lease.attempt > 1 else None
    if former and former.lease and former.lease.machine == lease.machine:
        sweep_marked(run_mark(run, former.lease))


class Stop:
    """Whether this keeper was asked to end its run."""

    def __init__(self) -> None:
        self.requested = False
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._note)

    def _note(self, _number: int, _frame: object) -> None:
        self.requested = True


def _execute(
    held: Held,
    options: WorkerOptions,
    request: RunRequest,
    digest: str,
    prepared: Prepared | None,
    stages: dict[str, dict[str, str]],
) -> int:
    run, lease, stop = held.run, held.lease, Stop()
    prepared = prepared or Prepared(None, {})
    training = Training(
        run=run,
        run_dir=run.path.resolve(),
        request=request,
        attempt=lease.attempt,
        device=options.device,
        timeout=options.timeout,
        alone=options.alone,
        mark=run_mark(run, lease),
        stages=stages,
    )
    held.keep()
    adopt_orphans()
    began, ticks = time.time(), time.monotonic()
    try:
        forked = prepared.training or ForkedTraining(prepared.backend, prepared.on_child)
    except ProcessLimitError:
        held.release()
        return ExitCode.SCARCE
    forked.begin(training)
    with contextlib.suppress(OSError):
        sync(run.request)
    facts = prepared.facts or _facts(request, options.device)
    code, lost = _keep(forked, held, options, stop, prepared.leave)
    seconds = time.monotonic() - ticks
    result = forked.reply.read()  # before anything is tidied up
    if result is None:
        if not lost and not stop.requested and code == -signal.SIGTERM:
            time.sleep(0.5)  # a cluster signals all processes of a job, this one as well
        if stop.requested or lost:
            end_descendants()
            held.release()
            return ExitCode.LOST if lost else ExitCode.INTERRUPTED
        result = _without_reply(code, seconds, options)
    error = result.error
    if error is not None and error.kind == "process-limit":
        end_descendants()
        held.release()
        return ExitCode.SCARCE
    if result.state != "failed" and not has_children():
        prepared.leave()
    if error is not None:
        error = msgspec.structs.replace(
            error, message=portable(error.message, run), log=log_tail(run)
        )
    origin = provenance(facts, lease, request, digest, began, seconds) | {
        "device": options.device,
        **({STAGES: stages} if stages else {}),
        **result.provenance,  # what the training recorded itself
    }
    final = finish(held, options, msgspec.structs.replace(result, error=error, provenance=origin))
    end_descendants()
    return final


def _without_reply(code: int, seconds: float, options: WorkerOptions) -> Result:
    """Return the failure of a training without reply: a crash, or the time limit."""
    if 0 < options.timeout <= seconds:
        failure = Failure("timeout", f"took longer than {options.timeout:g} s")
    else:
        failure = Failure("crash", ending(code))
    return Result("failed", error=failure)


def _facts(request: RunRequest, device: str) -> dict[str, Any]:
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "0").partition(",")[0]
    gpus = ask_gpus() if device != "cpu" else ()
    gpu = next((gpu for gpu in gpus if str(gpu.number) == visible), None)
    return static_facts(request.backend, gpu, request.command)


def _keep(
    forked: ForkedTraining,
    held: Held,
    options: WorkerOptions,
    stop: Stop,
    leave: Callable[[], None],
) -> tuple[int, bool]:
    """Write heartbeats until the training has ended; return its exit code, and whether it was lost.

    It is ended past its time limit, when this keeper is asked to, when the lease is lost, or when
    its reply is there and it does not leave.
    """
    began = beaten = time.monotonic()
    limit = began + options.timeout + LATE_SECONDS if options.timeout > 0 else float("inf")
    requested_at, lost, there = float("inf"), False, began
    while True:
        if forked.wait(KEEPER_POLL_SECONDS):
            return os.waitstatus_to_exitcode(os.waitpid(forked.pid, 0)[1]), lost
        if forked.has_left():
            leave()
        now = time.monotonic()
        if forked.reply.written:
            limit = min(limit, now + FLUSH_SECONDS)
        with contextlib.suppress(OSError):
            there = there if held.displaced() else now
            if now - there >= RESTORE_SECONDS:
                lost = lost or not _put_back(held)
        if now - beaten >= BEAT_SECONDS:
            beaten = now
            with contextlib.suppress(OSError):  # the disk is temporarily away
                held.beat()
                lost = lost or held.lost()
        if (stop.requested or lost) and requested_at == float("inf"):
            requested_at = now
            if lost:
                write_log(
                    held.run,
                    "doe: another process has taken this run over, or it was deleted; ending\n",
                )
            # The training only: its forked children may help it to save a checkpoint.
            signal_all({forked.pid}, signal.SIGTERM)
        if now >= min(limit, requested_at + (0.0 if lost else options.grace)):
            signal_all(descendants(), signal.SIGKILL)


def _put_back(held: Held) -> bool:
    """Put back what the backend has removed of ours; False if somebody else has the run."""
    ours = held.restore()
    write_log(
        held.run,
        "doe: the run's directory was emptied, replaced or closed; its records were restored\n",
    )
    return ours


# Committing -------------------------------------------------------------------------------------


def finish(held: Held, options: WorkerOptions, outcome: Result) -> int:
    """Record the outcome, whoever holds the run by now: the first verdict wins.

    An error that can pass is waited out, with signs of life, rather than lose the outcome.
    """
    began = time.monotonic()
    while True:
        try:
            if held.displaced():
                _put_back(held)
            _record(held, options, outcome)
            break
        except OSError as error:
            scarce = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
            waited = time.monotonic() - began
            write_log(held.run, f"doe: cannot write the verdict: {error.strerror}\n")
            with contextlib.suppress(OSError):
                if held.deleted():
                    return ExitCode.LOST
                held.beat(waiting=True)
            if waited > (DISK_FULL_SECONDS if scarce else COMMIT_SECONDS):
                return ExitCode.UNWRITABLE
            time.sleep(COMMIT_RETRY_SECONDS if scarce else min(COMMIT_RETRY_SECONDS, 0.1 + waited))
    verdict = None
    with contextlib.suppress(Exception):
        verdict = read_verdict(held.run)
    held.release(checksum(verdict.raw) if verdict else "")
    return ExitCode.RECORDED


def _record(held: Held, options: WorkerOptions, outcome: Result) -> None:
    run, nonce, attempt = held.run, held.lease.nonce, held.lease.attempt
    if outcome.state == "failed":
        record_failure(run, attempt, outcome, nonce)
        finalize(run, options.policy, nonce)
        return
    for _ in range(3):
        if commit(run, outcome, nonce):
            return
        verdict = read_verdict(run)
        if verdict is not None and verdict.is_final():
            return  # somebody else was first
        if verdict is not None:  # the backend has written a file of that name itself
            set_aside(run, "foreign", attempt, verdict.raw)


def record_crash(
    run: RunDir, owner: Lease, policy: Policy, message: str, late: bool = False
) -> None:
    """Record how a process ended that could not do so itself; finalize after the last attempt.

    A process that died before it had a lease gets one here, so that every failure has its number.
    """
    last = last_lease(run)
    if last is not None and last.lease is not None and last.is_of(owner.job):
        lease = last.lease
    else:
        held = acquire(run, owner, Watch())
        if held is None:  # somebody else has begun meanwhile
            return
        lease = held.lease
        held.release()
    request, digest = read_request(run)
    facts = static_facts(request.backend, None, request.command) | {"host": lease.host}
    origin = provenance(facts, lease, request, digest, lease.since, age(lease))
    failure = Failure("timeout" if late else "crash", message, log=log_tail(run))
    record_failure(run, lease.attempt, Result("failed", {}, failure, origin), owner.nonce)
    finalize(run, policy, owner.nonce)


def rehearse() -> None:
    """Do what every run does, without a file, so that its memory is allocated in advance.

    In a process that was forked, memory is copied when it is first written to.
    """
    nowhere = RunDir(Path("/proc/none/run"))
    request = msgspec.json.decode(msgspec.json.encode(EXAMPLE), type=RunRequest)
    owner = msgspec.json.decode(msgspec.json.encode(new_owner()), type=Lease)
    for step in (
        lambda: read_request(nowhere),
        lambda: begin(nowhere, WorkerOptions(), owner, Watch()),
        lambda: put_once(nowhere.lease(1), b"", owner.nonce),
        lambda: Held(nowhere, owner),
    ):
        with contextlib.suppress(OSError, DoeError):
            step()
    adopt_orphans()
    nowhere.is_record(nowhere.log.name)
    stage_results(StudyDir(nowhere.path), request)
    pickle.dumps(Training(nowhere, nowhere.path, request, 1, "cpu", 0.0, True, "", {}))
    origin = provenance({}, owner, request, "", time.time(), 0.0)
    decode_result(encode_result(Result("done", {"y": 1.0}, None, origin)))
    codecs.lookup("utf-8-sig")  # for a table of metrics


# The child process -------------------------------------------------------------------------------


def worker_words(run_dir: Path | str, options: WorkerOptions) -> list[str]:
    """Return the command line that starts a worker in a new process."""
    text = msgspec.json.encode(options).decode()
    return [*module_words("doe.running.worker"), str(run_dir), "--options", text]


def main() -> NoReturn:
    """Parse that command line and execute the run."""
    parser = argparse.ArgumentParser(
        prog="python -m doe.running.worker", description="Execute one run."
    )
    parser.add_argument("run_dir", type=Path)
    parser.add_argument("--options", default="{}", help="how to execute it, as JSON")
    arguments = parser.parse_args()
    options = msgspec.json.decode(arguments.options, type=WorkerOptions)
    end_process(lambda: work(RunDir(arguments.run_dir), options))


if __name__ == "__main__":
    main()
