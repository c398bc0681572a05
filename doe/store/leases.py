"""Leases: which process executes a run. Append-only, so that no lock is needed and no manual
cleanup.

The leases of a run are `lease.json`, `lease-2.json`, `lease-3.json`, …, one per attempt. Each is
made by link-if-absent and never removed or replaced, so lease k + 1 can be won once, and only the
highest number counts. Compare "remove the stale lock, then take it": there, two who saw the same
stale lock can each remove one lock, the second one a fresh one.

Lease k is over when its holder gave it back, when its failure is on record, when its holder's
process is dead (on the same machine), or when, on another machine, its bytes did not change for
`STALE_SECONDS` of the observer's own monotonic clock. Clocks of two machines are never compared.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import socket
import stat
import time
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import NamedTuple

import msgspec

from doe.store import files
from doe.store.files import STRANGE, RunDir, put_once, read_file
from doe.store.timing import GAP_SECONDS, STALE_SECONDS
from doe.study.values import STUDY_FILE


class HolderState(Enum):
    """State of a lease's holder, by the first word of the heartbeat."""

    ALIVE = ""
    WAITING = "waits"
    """Finished, but cannot write its verdict yet."""
    RELEASED = "released"
    """Gave the lease back without a verdict."""
    SETTLED = "v"
    """Committed a verdict, whose checksum follows."""

    def encode(self, rest: int | str = "-") -> str:
        """Return the heartbeat, always of the same width, so that it can be overwritten in
        place."""
        width = BEAT_CHARACTERS - len(self.value)
        text = f"{rest:0{width}d}" if isinstance(rest, int) else f"{rest[:width]:-<{width}}"
        return self.value + text


BEAT_CHARACTERS = 12


class Lease(msgspec.Struct, frozen=True):
    """Content of a lease: its holder."""

    attempt: int
    nonce: str
    host: str
    machine: str
    """Boot id and process namespace, within which process numbers are unique."""
    pid: int
    started: str
    """Start time of the process; a reused process number has another one."""
    job: str = ""
    """The engine's name for this start."""
    slot: str = ""
    supervisor: str = ""
    """Process and start time of the scheduler, empty if there is none."""
    since: float = 0.0
    """Start of the run, in seconds since the epoch; for display only."""
    ticks: float = 0.0
    """Start of the run by the monotonic clock of this boot."""
    device: int = 0
    """Device number of the run's file system on the holder's side; another mount has another."""
    beat: str = HolderState.ALIVE.encode(0)
    """Heartbeat, overwritten in place."""

    @property
    def state(self) -> HolderState:
        """State in the heartbeat."""
        states = (state for state in HolderState if state is not HolderState.ALIVE)
        return next((s for s in states if self.beat.startswith(s.value)), HolderState.ALIVE)

    @property
    def process(self) -> str:
        """The holder's process, as `process_name` names it."""
        return f"{self.pid}:{self.started}"


class LeaseFile(NamedTuple):
    """A lease as read: its number and bytes, and its content if readable."""

    attempt: int
    raw: bytes
    lease: Lease | None
    plain: bool = True
    """False if it is not a regular file, so no worker made it."""

    @property
    def digest(self) -> str:
        """Identify this lease as it is now, readable or not; a heartbeat changes it."""
        return f"{self.attempt}:{hashlib.sha256(self.raw).hexdigest()}"

    def is_of(self, job: str) -> bool:
        """Return whether the start with this name took the lease."""
        return self.lease is not None and self.lease.job == job


# Processes and machines -------------------------------------------------------------------------


def machine() -> str:
    """Name this boot of this kernel and this process namespace."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        import psutil

        return f"{socket.gethostname()}/{psutil.boot_time():.0f}"


def process_started(pid: int) -> str | None:
    """Return the start time of a process, as text to compare; None if dead, a zombie or unknown.

    The kernel's own count of ticks since boot: a start in wall time moves when the clock is set.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        if not os.path.exists("/proc/self/stat"):
            return _started_elsewhere(pid)
        return HIDDEN if _exists(pid) else None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else fields[19]


HIDDEN = "hidden"
"""Start of a process that exists but cannot be inspected: another user's, under `hidepid`."""


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (ProcessLookupError, OverflowError):
        return False
    return True


def _started_elsewhere(pid: int) -> str | None:
    """Return the start time of a process on systems without /proc."""
    import psutil

    try:
        process = psutil.Process(pid)
        dead = process.status() == psutil.STATUS_ZOMBIE
        return None if dead else f"{process.create_time():.0f}"
    except psutil.NoSuchProcess:
        return None


def process_name(pid: int) -> str:
    """Name a process uniquely: its number and start time."""
    return f"{pid}:{process_started(pid)}"


def process_alive(name: str) -> bool:
    """Return whether the process of this name still runs on this machine."""
    pid, _, started = name.partition(":")
    return pid.isdecimal() and process_started(int(pid)) == started


def holds_file(pid: int, path: Path) -> bool | None:
    """Return whether a process has this very file open; None if that cannot be determined."""
    try:
        wanted = os.stat(path)
        handles = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return None
    for handle in handles:
        try:
            status = os.stat(f"/proc/{pid}/fd/{handle}")
        except PermissionError:  # another user's process
            return None
        except OSError:
            continue
        if (status.st_ino, status.st_dev) == (wanted.st_ino, wanted.st_dev):
            return True
    return False


def age(lease: Lease) -> float:
    """Return the seconds since a run began, by the clock of the boot if possible."""
    if lease.ticks and lease.machine.partition("/")[0] == machine().partition("/")[0]:
        return max(0.0, time.monotonic() - lease.ticks)
    return max(0.0, time.time() - lease.since)


# Reading and judging ----------------------------------------------------------------------------

_LEASES = msgspec.json.Decoder(Lease)


def last_lease(run: RunDir) -> LeaseFile | None:
    """Return the lease with the highest number, the only one that counts."""
    last = max(map(run.lease_number, run.names()), default=0)
    return read_lease(run, last) if last else None


def read_lease(run: RunDir, attempt: int) -> LeaseFile:
    """Return the lease of an attempt."""
    try:
        raw = read_file(run.lease(attempt))
    except FileNotFoundError:  # listed but not yet visible: somebody holds it
        return LeaseFile(attempt, b"", None)
    except OSError as error:
        if error.errno not in STRANGE:
            raise
        return LeaseFile(attempt, b"", None, plain=False)  # the next number is free
    try:
        return LeaseFile(attempt, raw, _LEASES.decode(raw))
    except msgspec.MsgspecError:  # power failed before its bytes were on the disk
        return LeaseFile(attempt, raw, None)


class Watch:
    """Judge leases, remembering how long each one has been silent."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, here: str | None = None
    ) -> None:
        self._clock = clock
        self._here = here or machine()
        self._known: dict[Path, _Silence] = {}

    def is_expired(self, run: RunDir, last: LeaseFile) -> bool:
        """Return whether the holder of a lease is certainly or presumably gone."""
        lease = last.lease
        if not last.plain or run.attempt(last.attempt).exists():
            return True
        if lease is not None:
            if lease.state is HolderState.RELEASED:
                return True
            if lease.state is HolderState.SETTLED and run.result.exists():
                return True
            gone = self.holder_gone(run, lease)
            if gone is not None:
                return gone
        return self._silent(run.lease(last.attempt), last.raw)

    def holder_gone(self, run: RunDir, lease: Lease) -> bool | None:
        """Return whether a holder on this machine is gone; None if only its silence can show."""
        if lease.state is HolderState.SETTLED or lease.machine != self._here:
            return None
        # Behind another mount, the last writes of a dead holder may appear late.
        if lease.device not in (0, os.stat(run.path).st_dev):
            return None
        started = process_started(lease.pid)
        if started == HIDDEN:
            return None
        if started != lease.started:
            return True
        # In a copy of the study, or in a restarted container, the number belongs to another
        # process.
        holds = holds_file(lease.pid, run.lease(lease.attempt))
        return None if holds is None else not holds

    def _silent(self, path: Path, raw: bytes) -> bool:
        """Return whether a lease was unchanged for long enough, counting only time under
        observation."""
        now = self._clock()
        former = self._known.get(path)
        if former is None or former.raw != raw:
            self._known[path] = _Silence(raw, 0.0, now)
            return False
        gap = now - former.looked
        seconds = former.seconds + (gap if gap <= GAP_SECONDS else 0.0)
        self._known[path] = _Silence(raw, seconds, now)
        return seconds >= STALE_SECONDS


class _Silence(NamedTuple):
    """Time that a lease has been unchanged, and the time of the last look."""

    raw: bytes
    seconds: float
    looked: float


def silent_since(run: RunDir, last: LeaseFile) -> float | None:
    """Return the last sign of life of an otherwise unknown holder, if that is long ago.

    In seconds since the epoch by the file's own time, which another machine may have set: for
    display only.
    """
    if last.lease is not None and Watch().holder_gone(run, last.lease) is not None:
        return None
    changed = os.stat(run.lease(last.attempt)).st_mtime
    return changed if time.time() - changed > STALE_SECONDS else None


# Holding ----------------------------------------------------------------------------------------


class Held:
    """A lease that this process holds."""

    def __init__(self, run: RunDir, lease: Lease) -> None:
        self.run = run
        self.lease = lease
        self._count = 0
        self._file = os.open(run.lease(lease.attempt), os.O_WRONLY)
        self._study = run.path.parent / STUDY_FILE
        self._planned = _file_exists(self._study)
        self._kept: dict[str, bytes] = {}
        self._beat_offset = msgspec.json.encode(lease).index(b'"beat":"') + len(b'"beat":"')

    def beat(self, waiting: bool = False) -> None:
        """Write a heartbeat."""
        self._count += 1
        state = HolderState.WAITING if waiting else HolderState.ALIVE
        self._write(state.encode(self._count))
        os.fsync(self._file)  # otherwise an NFS client would cache it

    def lost(self) -> bool:
        """Return whether somebody else holds the run by now, or the study was deleted."""
        return self.deleted() or self.run.lease(self.lease.attempt + 1).exists()

    def deleted(self) -> bool:
        """Return whether the study was deleted; a missing run directory alone is the backend's
        doing."""
        return self._planned and not _file_exists(self._study)

    def keep(self) -> None:
        """Remember our files in the run's directory, in case the backend empties it."""
        for name in filter(self.run.is_record, self.run.names()):
            with contextlib.suppress(OSError):  # something else has that name
                self._kept[name] = read_file(self.run.path / name)

    def displaced(self) -> bool:
        """Return whether the backend has removed the lease or made the run's directory unusable."""
        try:
            named = os.stat(self.run.lease(self.lease.attempt))
            if not (_is_directory(self.run.path) and os.access(self.run.path, os.W_OK | os.X_OK)):
                return True
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            return not self.deleted()
        held = os.fstat(self._file)
        return (named.st_dev, named.st_ino) != (held.st_dev, held.st_ino)

    def restore(self) -> bool:
        """Put back what the backend has removed; False if another process has the run meanwhile."""
        path = self.run.path
        if os.path.lexists(path) and not _is_directory(path):  # a file, or a link to elsewhere
            path.rename(path.with_name(f"{path.name}.foreign-{self.lease.attempt}"))
        path.mkdir(exist_ok=True)
        if not os.access(path, os.W_OK | os.X_OK):
            path.chmod(stat.S_IMODE(path.stat().st_mode) | stat.S_IRWXU)
        put_back = {
            name: put_once(path / name, raw, self.lease.nonce, False)
            for name, raw in self._kept.items()
        }
        own = self.run.lease(self.lease.attempt)
        if not put_back.get(own.name):
            return False
        former, self._file = self._file, os.open(own, os.O_WRONLY)
        os.close(former)
        return True

    def release(self, verdict: str = "") -> None:
        """Give the lease back: the next attempt may begin at once, on any machine.

        Parameters
        ----------
        verdict : str
            Checksum of the present verdict; a reader that does not see it yet looks again.
        """
        with contextlib.suppress(OSError):
            state = HolderState.SETTLED if verdict else HolderState.RELEASED
            self._write(state.encode(verdict))
        with contextlib.suppress(OSError):
            os.close(self._file)  # which makes it visible on NFS too

    def _write(self, beat: str) -> None:
        os.pwrite(self._file, beat.encode(), self._beat_offset)


def _is_directory(path: Path) -> bool:
    """Return whether a path is a directory itself, not a link to one."""
    return stat.S_ISDIR(os.lstat(path).st_mode)


def _file_exists(path: Path) -> bool:
    """Return whether a file exists; OSError if the disk does not say."""
    try:
        os.stat(path)
    except FileNotFoundError:
        return False
    return True


def acquire(run: RunDir, owner: Lease, watch: Watch, expired: str = "") -> Held | None:
    """Take a run's next lease; None if somebody else has it.

    Parameters
    ----------
    owner : Lease
        Who asks; its attempt number and device are filled in here.
    expired : str
        Digest of a lease that the caller has watched long enough to know that it is over.
    """
    last = last_lease(run)
    files.fault_point("lease looked up")
    known = last is not None and last.digest == expired
    if last is not None and not known and not watch.is_expired(run, last):
        return None
    number, device = last.attempt + 1 if last else 1, os.stat(run.path).st_dev
    lease = msgspec.structs.replace(owner, attempt=number, device=device)
    # Not synced: a power failure ends the process that holds the lease as well.
    if not put_once(run.lease(lease.attempt), msgspec.json.encode(lease), lease.nonce, False):
        return None
    files.fault_point("lease taken")
    return Held(run, lease)


def new_owner(job: str = "", slot: str = "", supervisor: str = "") -> Lease:
    """Describe this process as the holder of a future lease."""
    pid = os.getpid()
    return Lease(
        attempt=0,
        nonce=os.urandom(12).hex(),
        host=socket.gethostname(),
        machine=machine(),
        pid=pid,
        started=process_started(pid) or "",
        job=job,
        slot=slot,
        supervisor=supervisor,
        since=time.time(),
        ticks=time.monotonic(),
    )
