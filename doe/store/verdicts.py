"""Verdicts: how a run ended, which failures are retried, and how a damaged result is handled."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec

from doe.errors import DoeError
from doe.store import files
from doe.store.files import STRANGE, RunDir, put_once, read_file

State = Literal["done", "diverged", "failed"]
IMPORTED = "imported"
"""Fact of the provenance: the table that a verdict was imported from, if no run was made here."""
UNREAD = "unread"
"""Fact of the provenance: factors that a backend function never read."""
FILES = "files"
"""Fact of the provenance: the files that a command names, and the hash of each at its start."""


FailureKind = Literal["exception", "crash", "timeout", "gpu-memory", "stage", "process-limit"]
"""Reaching the process limit is never recorded: the run is put off."""


class Failure(msgspec.Struct, frozen=True):
    """The reason why a run has no metrics."""

    kind: FailureKind | Literal["diverged"]
    message: str
    type: str = ""
    traceback: str = ""
    log: tuple[str, ...] = ()
    """The last lines of the log."""
    alone: bool = True
    """Whether the run had its GPU to itself."""

    @property
    def reason(self) -> str:
        """One line for tables."""
        first = self.message.strip().splitlines()[0] if self.message.strip() else ""
        return f"{self.type}: {first}" if self.type else first


FORMAT = 2
"""Format of verdicts as written; those of format 1 do not name it."""
LATER = "its result was written by a later version of doe and is left unchanged: update doe"


class Result(msgspec.Struct, frozen=True):
    """Content of `result.json` besides its checksum."""

    state: State
    metrics: dict[str, float | None] = {}
    """A metric that is not finite is null; the error says what it was."""
    error: Failure | None = None
    provenance: dict[str, Any] = {}
    format: int = FORMAT


class Verdict(NamedTuple):
    """Content of `result.json` as read: a result, or None if damaged or of a later version."""

    result: Result | None
    raw: bytes

    @property
    def later(self) -> bool:
        """Whether it is intact but was written by a later version."""
        return self.result is None and _checksum_matches(self.raw)

    def is_final(self, replace: str = "") -> bool:
        """Return whether it settles its run, unless its checksum is `replace`."""
        return self.later or is_final(self.result, checksum(self.raw), replace)


def is_final(result: Result | None, name: str, replace: str) -> bool:
    """Return whether a verdict settles its run: it is intact, and not the one to be replaced."""
    return result is not None and name != replace


_SEAL = b',\n "checksum": "%b"\n}\n'
"""Last field of a verdict."""
_SEALED = re.compile(_SEAL % b"([0-9a-f]{64})")
_SEAL_BYTES = len(_SEAL % bytes(64))

_RESULTS = msgspec.json.Decoder(Result)


def encode_result(result: Result) -> bytes:
    """Encode a verdict; its last field is the SHA-256 of every byte before it."""
    text = msgspec.json.format(msgspec.json.encode(result), indent=1)
    body = text.removesuffix(b"\n}")
    return body + _SEAL % hashlib.sha256(body).hexdigest().encode()


def decode_result(raw: bytes) -> Result | None:
    """Decode a verdict; None if a byte is missing or altered, or it cannot be understood."""
    if not _checksum_matches(raw):
        return None
    try:
        result = _RESULTS.decode(raw)
    except msgspec.MsgspecError:
        return None
    if result.format > FORMAT:
        return None
    if not _sound(result.provenance):  # signed again by somebody else
        kept = {key: value for key, value in result.provenance.items() if _sound({key: value})}
        result = msgspec.structs.replace(result, provenance=kept)
    return result


def _checksum_matches(raw: bytes) -> bool:
    """Return whether the bytes are those that were written."""
    return hashlib.sha256(raw[:-_SEAL_BYTES]).hexdigest() == checksum(raw)


Moment = Annotated[datetime, msgspec.Meta(tz=True)]


class Origin(msgspec.Struct):
    """Facts of a provenance on which others rely, with their types; further ones are free."""

    commit: str = ""
    dirty: bool = False
    versions: dict[str, str] = {}
    host: str = ""
    hardware: str = ""
    driver: str = ""
    device: str = ""
    slot: str = ""
    job: str = ""
    seed: int = 0
    seeds: dict[str, int] = {}
    threads: int = 0
    attempt: int = 0
    start: Moment | msgspec.UnsetType = msgspec.UNSET
    end: Moment | msgspec.UnsetType = msgspec.UNSET
    seconds: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    request: str = ""
    unread: list[str] = []
    imported: str = ""
    stages: dict[str, dict[str, str]] = {}
    digest: str = ""
    recipe: str = ""
    reused: str = ""


def _sound(provenance: dict[str, Any]) -> bool:
    """Return whether the facts have their types, so that readers need not check."""
    try:
        msgspec.convert(provenance, Origin)
    except (msgspec.ValidationError, OverflowError):
        return False
    return True


def checksum(raw: bytes) -> str:
    """Return the checksum in a verdict, which names it."""
    end = _SEALED.fullmatch(raw, max(0, len(raw) - _SEAL_BYTES))
    return end[1].decode() if end else ""


def read_verdict(run: RunDir) -> Verdict | None:
    """Read `result.json`; None if there is none."""
    return verdict_in(run.result)


def has_final_verdict(run: RunDir, replace: str) -> bool:
    """Return whether a run has a final verdict other than the one of this checksum."""
    verdict = read_verdict(run)
    return verdict is not None and verdict.is_final(replace)


def verdict_in(path: Path | str) -> Verdict | None:
    """Read the verdict at `path`; None if absent."""
    try:
        raw = read_file(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno in STRANGE:  # damaged beyond doubt
            return Verdict(None, b"")
        run_id, name = Path(path).parts[-2:]
        raise DoeError(f"cannot read {run_id}/{name}: {error.strerror}") from error
    return Verdict(decode_result(raw), raw)


def commit(run: RunDir, result: Result, nonce: str) -> bool:
    """Give a run its verdict; False, without any change, if it has one."""
    return put_once(run.result, encode_result(result), nonce)


def set_aside(run: RunDir, kind: str, attempt: int, judged: bytes) -> None:
    """Move a verdict away, for the holder of a lease only; put it back if it is not the one judged.

    The name holds the number of the attempt, and an attempt has one holder, so no name is taken.
    """
    aside = run.aside(kind, attempt)
    files.fault_point("aside judged")
    try:
        os.rename(run.result, aside)
    except FileNotFoundError:
        return
    files.fault_point("aside moved")
    if _bytes(aside) != judged:
        with contextlib.suppress(FileExistsError):
            os.link(aside, run.result)
    files.fault_point("aside checked")


def _bytes(path: Path) -> bytes:
    """Read a file; empty if it is not a plain file."""
    try:
        return read_file(path)
    except OSError as error:
        if error.errno in STRANGE:
            return b""
        raise


def sweep_leftovers(run: RunDir, nonce: str = "") -> list[str]:
    """Remove what killed writers left, for the holder of the lease or after the verdict.

    A writer that is late rather than dead finds its temporary file gone, and changes nothing. The
    caller's own writes, by its nonce, stay. Returns the names that were there.
    """
    names = os.listdir(run.path)
    for name in names:
        if run.is_leftover(name) and not (nonce and name.endswith(nonce)):
            (run.path / name).unlink(missing_ok=True)
    return names


def recover(run: RunDir, nonce: str) -> None:
    """Remove leftovers, and put back a good verdict that was moved away by mistake."""
    names = sweep_leftovers(run, nonce)
    files.fault_point("swept")
    if run.result.name in names:
        return
    for name in names:
        if run.aside_number(name):
            result = decode_result(_bytes(run.path / name))
            if result and result.state != "failed":
                with contextlib.suppress(FileExistsError):
                    os.link(run.path / name, run.result)
                files.fault_point("put back")


class Policy(msgspec.Struct, frozen=True):
    """Limits on retrying a failed run."""

    retries: int = 2
    """Retries after crashes: a signal, an exit without verdict, a hang past the time limit."""
    errors: bool = False
    """Whether a clean exception is retried as well."""


def exhausted(failures: tuple[Failure, ...], policy: Policy) -> bool:
    """Return whether the last failure is final.

    Out of GPU memory is final only where the run had its GPU to itself.
    """
    kinds = [failure.kind for failure in failures]
    crashes = kinds.count("crash") + kinds.count("timeout")
    exceptions = kinds.count("exception")
    alone = any(failure.kind == "gpu-memory" and failure.alone for failure in failures)
    return (
        alone
        or "stage" in kinds
        or crashes > policy.retries
        or exceptions > (policy.retries if policy.errors else 0)
        or kinds.count("gpu-memory") > 1 + policy.retries
    )


REPLACED = ("failed", "removed")
"""Why a verdict was set aside: retried after a failure, or after its output was removed."""


class Attempt(NamedTuple):
    """A recorded failed attempt, with the bytes that may become the verdict."""

    number: int
    raw: bytes
    failure: Failure


def failed_attempts(run: RunDir) -> tuple[Attempt, ...]:
    """Return recorded failures, oldest first, since the last time that a verdict was replaced."""
    names = run.names()
    first = max((run.aside_number(name, k) for name in names for k in REPLACED), default=0)
    numbers = sorted(filter(None, map(run.attempt_number, names)))
    return tuple(_read_attempt(run, number) for number in numbers if number >= first)


def _read_attempt(run: RunDir, number: int) -> Attempt:
    """Read a recorded failure; one that cannot be read still counts as a failure."""
    with contextlib.suppress(OSError):
        raw = read_file(run.attempt(number))
        result = decode_result(raw)
        if result and result.error:
            return Attempt(number, raw, result.error)
    failure = Failure("crash", f"the record of attempt {number} is damaged")
    return Attempt(number, encode_result(Result("failed", error=failure)), failure)


def record_failure(run: RunDir, attempt: int, result: Result, nonce: str) -> None:
    """Record how an attempt failed, once; move away a backend's file of that name."""
    record, raw = run.attempt(attempt), encode_result(result)
    if not put_once(record, raw, nonce) and decode_result(_bytes(record)) is None:
        os.replace(record, record.with_suffix(".foreign"))
        put_once(record, raw, nonce)


def finalize(run: RunDir, policy: Policy, nonce: str) -> bool:
    """Make the last recorded failure the verdict if no attempt is left."""
    records = failed_attempts(run)
    if not records or not exhausted(tuple(record.failure for record in records), policy):
        return False
    return put_once(run.result, records[-1].raw, nonce)
