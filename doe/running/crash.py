"""Writing down how a run's process ended that could not do so itself."""

from __future__ import annotations

import hashlib
import time

from doe.running.engines.base import Ended
from doe.running.provenance import static_facts
from doe.running.worker import timestamp
from doe.store.files import RunDir
from doe.store.leases import Lease, Watch, acquire, last_lease
from doe.store.log import log_tail
from doe.store.requests import read_request
from doe.store.verdicts import Failure, FailureKind, Policy, Result, record_failure, settle


def record_crash(place: RunDir, ended: Ended, owner: Lease, policy: Policy) -> None:
    """Put a crash on record for the attempt that it ended, and settle the run if it was the last.

    A process that died before it had a lease gets one here, so that every failure has its number.
    """
    found = last_lease(place)
    if found is not None and found.lease is not None and found.lease.job == ended.job:
        lease = found.lease
    else:
        held = acquire(place, owner, Watch())
        if held is None:  # somebody else has begun meanwhile
            return
        lease = held.lease
        held.release()
    request, raw = read_request(place)
    now = time.time()
    facts = static_facts(request.backend) | {
        "host": lease.host,
        "slot": lease.slot,
        "job": ended.job,
        "seed": request.seed,
        "attempt": lease.attempt,
        "start": timestamp(lease.since),
        "end": timestamp(now),
        "seconds": round(now - lease.since, 3),
        "request": hashlib.sha256(raw).hexdigest(),
    }
    kind: FailureKind = "timeout" if ended.timeout else "crash"
    failure = Failure(kind, ended.message, log=log_tail(place))
    record_failure(place, lease.attempt, Result("failed", {}, failure, facts), owner.nonce)
    settle(place, policy, owner.nonce)
