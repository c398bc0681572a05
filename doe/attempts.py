"""Failed attempts of a run: what is on record, what is tried again, what becomes the verdict."""

from __future__ import annotations

import os
import re
from typing import NamedTuple

import msgspec

from doe.store import Failure, Result, RunDir, decode_result, encode_result, put_once


class Policy(msgspec.Struct, frozen=True):
    """How often a failed run is tried again."""

    retries: int = 2
    """For crashes: a signal, an exit without verdict, a hang past the time limit."""
    errors: bool = False
    """Whether a clean exception is tried again as well."""


def exhausted(failures: tuple[Failure, ...], policy: Policy) -> bool:
    """Whether the last failure is final.

    Out of GPU memory is final only where the run had its GPU to itself.
    """
    kinds = [failure.kind for failure in failures]
    crashes = kinds.count("crash") + kinds.count("timeout")
    exceptions = kinds.count("exception")
    alone = any(failure.kind == "gpu-memory" and failure.alone for failure in failures)
    return (
        alone
        or crashes > policy.retries
        or exceptions > (policy.retries if policy.errors else 0)
        or kinds.count("gpu-memory") > 1 + policy.retries
    )


class Attempt(NamedTuple):
    """A failed attempt on record, with the bytes that may become the verdict."""

    number: int
    raw: bytes
    failure: Failure


def failed_attempts(run: RunDir) -> tuple[Attempt, ...]:
    """Failures on record, oldest first, since the last time that a verdict was replaced."""
    try:
        names = os.listdir(run.path)
    except (FileNotFoundError, NotADirectoryError):
        return ()
    numbers = sorted(int(m[1]) for n in names if (m := re.fullmatch(r"attempt-(\d+)\.json", n)))
    again = re.compile(re.escape(run.result.name) + r"\.failed-(\d+)")
    first = max((int(m[1]) for n in names if (m := again.fullmatch(n))), default=0)
    found = []
    for number in numbers:
        if number >= first:
            raw = run.attempt(number).read_bytes()
            result = decode_result(raw)
            if result and result.error:
                found.append(Attempt(number, raw, result.error))
    return tuple(found)


def record_failure(run: RunDir, attempt: int, result: Result, nonce: str) -> bool:
    """Put on record how an attempt failed, once."""
    return put_once(run.attempt(attempt), encode_result(result), nonce)


def settle(run: RunDir, policy: Policy, nonce: str) -> bool:
    """Make the last recorded failure the verdict if no attempt is left."""
    records = failed_attempts(run)
    if not records or not exhausted(tuple(record.failure for record in records), policy):
        return False
    return put_once(run.result, records[-1].raw, nonce)
