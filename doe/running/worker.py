"""``python -m doe.running.worker RUN_DIR``: take the run's lease, run it, commit its verdict once.

Idempotent: where a verdict stands, or somebody else holds the lease, it does nothing. It is what
every engine starts. The local engine calls `work` in a process forked from a warm parent instead,
which saves the imports and changes nothing else.

Exit codes: 0 a verdict or a failed attempt is on record; `BUSY` somebody else has the run;
`INTERRUPTED` stopped by SIGTERM, the lease given back; `LOST` the lease was taken over meanwhile;
`UNWRITABLE` the verdict could not be written. Anything else is a crash.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import faulthandler
import hashlib
import os
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import msgspec

from doe.errors import DoeError
from doe.running.backend import Backend, Request, checked_reply, not_finite, resolve
from doe.running.processes import end_process, sweep, thread_environment
from doe.running.provenance import ask_gpus, provenance, static_facts
from doe.store.files import RunDir
from doe.store.leases import Held, Lease, Watch, acquire, last_lease, new_owner, read_lease
from doe.store.log import log_tail, open_log, portable
from doe.store.progress import Reporter
from doe.store.requests import RunRequest, read_request
from doe.store.verdicts import (
    Failure,
    FailureKind,
    Policy,
    Result,
    commit,
    read_verdict,
    record_failure,
    recover,
    set_aside,
    settle,
)

BUSY = 75
UNWRITABLE = 74
LOST = 76
INTERRUPTED = 143
PATIENCE_SECONDS = 3600.0
"""How long a finished run waits for room on a full disk before it gives up its result."""
ROOM_SECONDS = 5.0
"""Time between two tries to write a verdict on a full disk."""


class WorkOrder(msgspec.Struct, frozen=True):
    """How to execute a run; nothing here may change its outcome."""

    job: str = ""
    """The engine's name for this start."""
    slot: str = ""
    device: str = "cpu"
    threads: int = 1
    timeout: float = 0.0
    """Seconds after which the run is ended; 0 for no limit."""
    policy: Policy = Policy()
    replace: str = ""
    """Checksum of a failed verdict that this run is to replace."""
    over: str = ""
    """Nonce of another machine's lease that was watched long enough to know that it is over."""
    wait: bool = False
    """Wait for another holder to finish or to fall silent, instead of leaving at once."""
    alone: bool = True
    """Whether the run has its GPU to itself."""
    supervisor: str = ""
    """The scheduler's process; empty where there is none."""


class Prepared(NamedTuple):
    """What a warm parent has done already for all of its runs."""

    backend: Backend
    facts: dict[str, Any]


class Interrupted(SystemExit):
    """SIGTERM arrived."""


def work(run: RunDir, order: WorkOrder, prepared: Prepared | None = None) -> int:
    """Execute a run unless it is done or taken; return the exit code."""
    request, raw = read_request(run)
    held = begin(run, order, new_owner(order.job, order.slot, order.supervisor), Watch())
    if isinstance(held, int):
        return held
    return _execute(held, order, request, hashlib.sha256(raw).hexdigest(), prepared)


def begin(run: RunDir, order: WorkOrder, owner: Lease, watch: Watch) -> Held | int:
    """Take a run that needs running; otherwise the exit code that says why not."""
    if _settled(run, order):
        return 0
    held = acquire(run, owner, watch, order.over)
    while held is None:
        if _settled(run, order):
            return 0
        if not order.wait:
            return BUSY
        time.sleep(1.0)
        held = acquire(run, owner, watch, order.over)
    _sweep_former(run, held.lease)
    recover(run, owner.nonce)
    # Again, now that nobody else can begin: the former holder may have committed at last.
    verdict = read_verdict(run)
    if verdict is not None and verdict.stands(order.replace):
        held.release()
        return 0
    if verdict is not None:
        kind = "failed" if verdict.result else "damaged"
        set_aside(run, kind, held.lease.attempt, verdict.raw)
    elif settle(run, order.policy, owner.nonce):  # the record was made, the verdict was not
        held.release()
        return 0
    return held


def _sweep_former(run: RunDir, lease: Lease) -> None:
    """Kill what the processes of a dead former holder left running on this machine."""
    former = read_lease(run, lease.attempt - 1) if lease.attempt > 1 else None
    if former and former.lease and former.lease.machine == lease.machine:
        sweep(former.lease.pid)


def _settled(run: RunDir, order: WorkOrder) -> bool:
    verdict = read_verdict(run)
    return verdict is not None and verdict.stands(order.replace)


def _execute(
    held: Held, order: WorkOrder, request: RunRequest, digest: str, prepared: Prepared | None
) -> int:
    run, attempt = held.run, held.lease.attempt
    open_log(run, attempt)
    _arm(order.timeout)
    held.keep(on_loss=_stop_lost)
    began = time.time()
    outcome: Result
    try:
        backend, facts = prepared or _prepare(request, order.device)
        call = Request(
            factors=request.factors,
            settings=request.settings,
            seed=request.seed,
            device=order.device,
            threads=order.threads,
            run_dir=run.path.resolve(),
            resumed=attempt > 1,
            report=Reporter(run),
        )
        outcome = _judge(checked_reply(backend(call), request), request)
    except Interrupted:
        held.release()
        return INTERRUPTED
    except BaseException as error:
        outcome = Result("failed", error=_failure(error, order.alone))
        facts = prepared.facts if prepared else {}
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # from here to the commit takes milliseconds
    faulthandler.cancel_dump_traceback_later()
    sys.stdout.flush()
    sys.stderr.flush()
    outcome = _complete(outcome, held, order, request, digest, facts, began)
    return finish(held, order, outcome)


def finish(held: Held, order: WorkOrder, outcome: Result) -> int:
    """Put the outcome on record; on a full disk, wait for room rather than lose it."""
    run, nonce = held.run, held.lease.nonce

    def record() -> None:
        if outcome.error is None or outcome.state == "diverged":
            commit(run, outcome, nonce)
        else:
            record_failure(run, held.lease.attempt, outcome, nonce)
            settle(run, order.policy, nonce)

    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            record()
            break
        except OSError as error:
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            with contextlib.suppress(OSError):
                print(f"doe: cannot write the verdict: {error.strerror}", file=sys.stderr)
            if not full or time.monotonic() > deadline:
                return UNWRITABLE
            time.sleep(ROOM_SECONDS)
    held.release()
    return 0


# What a run came to -----------------------------------------------------------------------------


def _judge(metrics: dict[str, float], request: RunRequest) -> Result:
    problem = not_finite(metrics, request)
    values = {name: value if abs(value) < float("inf") else None for name, value in metrics.items()}
    if problem:
        return Result("diverged", values, Failure("diverged", problem))
    return Result("done", values)


def _failure(error: BaseException, alone: bool) -> Failure:
    name = type(error).__name__
    memory = name == "OutOfMemoryError" or "CUDA out of memory" in str(error)
    kind: FailureKind = "gpu-memory" if memory else "exception"
    if isinstance(error, DoeError):  # a command that failed, or a reply that is none
        print(f"doe: {error}", file=sys.stderr)
        return Failure(kind, str(error), alone=alone)
    place = error.__traceback__.tb_next if error.__traceback__ else None
    text = "".join(traceback.format_exception(type(error), error, place))
    print(text, file=sys.stderr, end="")
    return Failure(kind, str(error), name, text, (), alone)


def _complete(
    outcome: Result,
    held: Held,
    order: WorkOrder,
    request: RunRequest,
    digest: str,
    facts: dict[str, Any],
    began: float,
) -> Result:
    """Add the log's end and the provenance."""
    origin = provenance(facts, held.lease, request, digest, began, time.time()) | {
        "device": order.device,
        "threads": order.threads,
    }
    error = outcome.error
    if error is not None:
        error = msgspec.structs.replace(
            error, message=portable(error.message, held.run), log=log_tail(held.run)
        )
    return msgspec.structs.replace(outcome, error=error, provenance=origin)


def record_crash(
    run: RunDir, owner: Lease, policy: Policy, message: str, late: bool = False
) -> None:
    """Put on record how a process ended that could not do so itself; settle what was the last.

    A process that died before it had a lease gets one here, so that every failure has its number.
    """
    last = last_lease(run)
    if last is not None and last.lease is not None and last.lease.job == owner.job:
        lease = last.lease
    else:
        held = acquire(run, owner, Watch())
        if held is None:  # somebody else has begun meanwhile
            return
        lease = held.lease
        held.release()
    request, raw = read_request(run)
    facts = static_facts(request.backend) | {"host": lease.host}
    digest = hashlib.sha256(raw).hexdigest()
    origin = provenance(facts, lease, request, digest, lease.since, time.time())
    failure = Failure("timeout" if late else "crash", message, log=log_tail(run))
    record_failure(run, lease.attempt, Result("failed", {}, failure, origin), owner.nonce)
    settle(run, policy, owner.nonce)


# The process ------------------------------------------------------------------------------------


def _prepare(request: RunRequest, device: str) -> Prepared:
    backend = resolve(request.backend, request.command)
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "0").partition(",")[0]
    gpus = ask_gpus() if device != "cpu" else ()
    gpu = next((gpu for gpu in gpus if str(gpu.number) == visible), None)
    return Prepared(backend, static_facts(request.backend, gpu))


def _arm(timeout: float) -> None:
    """End on SIGTERM with the lease given back; end a hang with its stack in the log."""
    faulthandler.enable(file=2, all_threads=False)
    if timeout > 0:
        faulthandler.dump_traceback_later(timeout, exit=True, file=2)

    def interrupt(_number: int, _frame: object) -> NoReturn:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second one must not stop the giving back
        raise Interrupted(INTERRUPTED)

    signal.signal(signal.SIGTERM, interrupt)


def _stop_lost() -> None:
    os.write(2, b"doe: another process has taken this run over, or it was deleted; ending\n")
    os._exit(LOST)


def main() -> NoReturn:
    """The command line of a worker."""
    parser = argparse.ArgumentParser(
        prog="python -m doe.running.worker", description="Execute one run."
    )
    parser.add_argument("run_dir", type=Path)
    parser.add_argument("--order", default="{}", help="how to execute it, as JSON")
    given = parser.parse_args()
    order = msgspec.json.decode(given.order, type=WorkOrder)
    os.environ.update(thread_environment(order.threads))
    end_process(lambda: work(RunDir(given.run_dir), order))


if __name__ == "__main__":
    main()
