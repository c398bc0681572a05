"""The study on disk: its names and its atomic writes. No other module knows a path.

Why every run is committed exactly once
---------------------------------------
1. A verdict is written to a temporary file beside its place, synced, then linked to `result.json`.
   A link is made whole or not at all, and never over an existing name, on NFS too: of all writers
   one wins, and whoever comes late changes nothing.
2. Leases (`leases`) are numbered files made in the same way and never removed or replaced. To
   take over lease k is to make lease k + 1, which can succeed once. There is no moment at which a
   crash leaves a lock that needs a hand, since the end of the list is the state.
3. A worker looks for a verdict again after it has taken its lease, so a run that was committed in
   between is not run again. A worker that lost its lease stops; if it commits all the same, (1).
4. A verdict is moved away only by the holder of a lease, only if its bytes are the ones that were
   judged (damaged, or failed and asked for again), and is put back if they turn out not to be.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
from pathlib import Path
from typing import BinaryIO, NamedTuple

from doe.errors import DoeError
from doe.study.command import LEASE, LOG, OUT, PROGRESS, REQUEST, RESULT
from doe.study.values import STUDY_FILE

DESIGN_FILE = "design.csv"
EPOCHS = "epochs.csv"


def fault_point(name: str) -> None:
    """Mark a point between two system calls; tests replace this to end the process there."""


class StudyDir(NamedTuple):
    """Every name below one study's directory."""

    root: Path

    @property
    def study(self) -> Path:
        """The frozen study file."""
        return self.root / STUDY_FILE

    @property
    def design(self) -> Path:
        """The planned runs."""
        return self.root / DESIGN_FILE

    def engine(self, name: str) -> Path:
        """State of an engine's jobs, if the engine keeps it on disk."""
        return self.root / name

    def run(self, run_id: str) -> RunDir:
        """Return one run's own directory."""
        return RunDir(self.root / run_id)

    def verdict(self, run_id: str) -> str:
        """Return `RunDir.result` as text: a study has tens of thousands, and Path objects are
        slow."""
        return f"{self.root}/{run_id}/{RESULT}"


class RunDir(NamedTuple):
    """Every name below one run's directory."""

    path: Path

    @property
    def request(self) -> Path:
        """The run's request: factors, settings, seed."""
        return self.path / REQUEST

    @property
    def result(self) -> Path:
        """The verdict."""
        return self.path / RESULT

    @property
    def log(self) -> Path:
        """Standard output and error of the run."""
        return self.path / LOG

    @property
    def out(self) -> Path:
        """Working and output directory of a command, separate from our files."""
        return self.path / OUT

    @property
    def epochs(self) -> Path:
        """One line per epoch, written by a function; a command writes it in `out`."""
        return self.path / EPOCHS

    @property
    def progress(self) -> Path:
        """Steps reported by the backend, a JSON line each."""
        return self.path / PROGRESS

    def lease(self, attempt: int) -> Path:
        """Return the lease of an attempt; created once, never removed."""
        return self.path / (LEASE if attempt == 1 else f"lease-{attempt}.json")

    def attempt(self, attempt: int) -> Path:
        """Return how an attempt failed; the last one becomes the verdict when no attempts are
        left."""
        return self.path / f"attempt-{attempt}.json"

    def aside(self, kind: str, attempt: int) -> Path:
        """Return where a verdict is moved when an attempt replaces it."""
        return self.path / f"{self.result.name}.{kind}-{attempt}"

    def held_open(self) -> RunDir:
        """Return this run in the study's directory by an open descriptor, which nobody closes.

        A study that is moved is followed, and a directory that its backend made anew is found.
        """
        study = self.path.parent
        handle = os.open(study, os.O_RDONLY | os.O_DIRECTORY)
        return RunDir(held_name(handle, study) / self.path.name)

    # Numbers parsed from names, 0 for a name of another kind.

    def names(self) -> list[str]:
        """List everything in the directory; empty if there is none."""
        try:
            return os.listdir(self.path)
        except FileNotFoundError:
            if self.path.is_symlink():  # a dangling link
                raise
            return []

    @staticmethod
    def lease_number(name: str) -> int:
        """Return the number of the attempt whose lease has this name."""
        match = _LEASE.fullmatch(name)
        return int(match[1] or 1) if match else 0

    @staticmethod
    def attempt_number(name: str) -> int:
        """Return the number of the attempt whose failure has this name."""
        match = _ATTEMPT.fullmatch(name)
        return int(match[1]) if match else 0

    @staticmethod
    def aside_number(name: str, kind: str = "") -> int:
        """Return the number of the attempt that moved a verdict away for this reason."""
        match = _ASIDE.fullmatch(name)
        return int(match[2]) if match and kind in ("", match[1]) else 0

    @staticmethod
    def is_leftover(name: str) -> bool:
        """Return whether a killed writer of a lease, a failure or a verdict left this file
        behind."""
        return _LEFTOVER.match(name) is not None

    def is_record(self, name: str) -> bool:
        """Return whether a name records the run or the outcome of its attempts."""
        numbered = (self.lease_number, self.attempt_number, self.aside_number)
        return name == REQUEST or any(number(name) for number in numbered)

    def is_reserved(self, name: str) -> bool:
        """Return whether a name belongs to the study rather than to the backend."""
        return name in (RESULT, LOG, PROGRESS) or self.is_record(name) or name.startswith(".")


_LEASE = re.compile(r"lease(?:-(\d+))?\.json")
_ATTEMPT = re.compile(r"attempt-(\d+)\.json")
_ASIDE = re.compile(rf"{re.escape(RESULT)}\.([a-z]+)-(\d+)")
_LEFTOVER = re.compile(rf"\.({_LEASE.pattern}|{_ATTEMPT.pattern}|{re.escape(RESULT)})\.")


def held_name(handle: int, path: Path) -> Path:
    """Name an open directory so that the name stays valid when it is moved or replaced.

    Where the system has no such names, its absolute path.
    """
    name = Path(f"/proc/{os.getpid()}/fd/{handle}")
    return name if name.exists() else path.resolve()


# Reading ----------------------------------------------------------------------------------------

MOST_BYTES = 1 << 28
"""Size limit of files we write; anything larger is not ours."""


def read_file(path: Path | str) -> bytes:
    """Read a plain file; raise OSError for anything else, without waiting for a pipe."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    try:  # system calls: a study has tens of thousands of these files
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a plain file", str(path))
        if status.st_size > MOST_BYTES:
            raise OSError(errno.EINVAL, "larger than any file of a study", str(path))
        data = os.read(handle, status.st_size + 1)
        while len(data) != status.st_size and (more := os.read(handle, 65536)):
            data += more  # the file grew, or was read in parts
        return data
    finally:
        os.close(handle)


def read_inside(path: Path, directory: Path) -> bytes:
    """Read a plain file inside a directory; raise OSError if a link leads out of it."""
    if not path.resolve().is_relative_to(directory.resolve()):
        raise OSError(errno.ELOOP, "a link to outside the directory", str(path))
    return read_file(path)


def open_regular(path: Path) -> BinaryIO:
    """Open a plain file of a run for reading; raise OSError for anything else.

    Neither waits for a pipe nor follows a link, be it the file or the run's directory.
    """
    if path.parent.is_symlink():
        raise OSError(errno.ELOOP, "its directory is a link", str(path))
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "not a plain file", str(path))
    return os.fdopen(handle, "rb")


def read_end(path: Path, most: int) -> bytes:
    """Read the last bytes of a plain file."""
    with open_regular(path) as file:
        file.seek(max(file.seek(0, os.SEEK_END) - most, 0))
        return file.read(most)


def open_to_append(path: Path) -> int:
    """Open a file for appending, with the mode that the umask leaves; do not follow a link."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK | os.O_NOFOLLOW
    return os.open(path, flags, 0o666)


def append(path: Path, data: bytes) -> None:
    """Append to a file by name, without waiting for the reader of a pipe in its place."""
    with os.fdopen(open_to_append(path), "ab", buffering=0) as file:
        file.write(data)


STRANGE = (errno.EINVAL, errno.ELOOP, errno.EISDIR, errno.ENXIO)
"""Errors of `read_file` that mean that the name is not a plain file."""


# Atomic writes ----------------------------------------------------------------------------------


def encodable(text: str) -> str:
    """Return a text that can be encoded in a file, whatever it contains."""
    return text.encode(errors="replace").decode()


def write_atomic(path: Path, text: str, durable: bool = True) -> None:
    """Write a file whole or not at all; if durable, so that it survives a power failure.

    Raises
    ------
    DoeError
        If the directory cannot be written; the old content stays.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{os.urandom(8).hex()}")
        try:
            # File names may not be valid text: possible in a page, not in a study.
            with open(temporary, "x", encoding="utf-8", errors="replace", newline="") as file:
                file.write(text)
                file.flush()
                if durable:
                    os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        if durable:
            sync(path.parent)
    except OSError as error:
        raise DoeError(f"cannot write {path}: {error.strerror}; nothing was changed") from error


def put_once(path: Path, data: bytes, nonce: str, durable: bool = True) -> bool:
    """Create a file whole unless the name exists; return whether the file there is ours.

    The answer is read from the file, not from the call: an NFS server may have made the link and
    lost its reply. A leftover of a killed process is `.name.nonce`, swept by the next attempt.
    """
    temporary = path.parent / f".{path.name}.{nonce}"
    try:
        with open(temporary, "wb") as file:
            file.write(data)
            file.flush()
            fault_point(f"{path.name} written")
            if durable:
                os.fsync(file.fileno())
        fault_point(f"{path.name} synced")
        with contextlib.suppress(FileExistsError, FileNotFoundError):
            os.link(temporary, path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    fault_point(f"{path.name} linked")
    temporary.unlink(missing_ok=True)
    fault_point(f"{path.name} cleared")
    if durable:
        sync(path.parent)
    fault_point(f"{path.name} durable")
    try:
        return read_file(path) == data
    except OSError as error:
        if error.errno in (errno.ENOENT, *STRANGE):
            return False
        raise


def sync(path: Path) -> None:
    """Make a file's content, or a directory's names, survive a power failure."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# File systems -------------------------------------------------------------------------------------


LATE = ("nfs", "cifs", "smb", "9p", "fuse", "afs", "davfs")
"""Name prefixes of file systems whose clients may cache the absence of a name."""
NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.ENOTSUP, errno.EXDEV)


def makes_links(directory: Path) -> bool:
    """Return whether hard links work here, so that a verdict appears whole or not at all."""
    mark = os.urandom(6).hex()  # two containers have the same pids
    first, second = (directory / f".link-{mark}-{i}" for i in (1, 2))
    try:
        first.touch()
        os.link(first, second)
    except OSError as error:
        return error.errno not in NO_LINKS
    finally:
        for path in (first, second):
            with contextlib.suppress(OSError):
                path.unlink()
    return True


def file_system(directory: Path) -> str:
    """Return the name of the file system of a directory; empty if the kernel does not say."""
    try:
        mounts = Path("/proc/self/mountinfo").read_text(errors="replace")
    except OSError:
        return ""
    return innermost_mount(directory, mounts)


def innermost_mount(directory: Path, mounts: str) -> str:
    """Return the name of the innermost file system among mounts, as the kernel lists them."""
    kinds: dict[str, str] = {}
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        if after and len(before.split()) > 4:
            kinds[before.split()[4].replace("\\040", " ")] = after.split()[0]
    path = directory.resolve()
    return next(
        (kinds[str(folder)] for folder in (path, *path.parents) if str(folder) in kinds), ""
    )


def file_system_notes(directory: Path) -> list[str]:
    """List what a user should know about the file system before starting runs here."""
    notes = []
    kind = file_system(directory)
    if not makes_links(directory):
        notes.append(
            f"{directory} is on {kind or 'a file system'} without hard links: `doe run` "
            "cannot commit results there. Plan on another file system"
        )
    if kind.startswith(LATE):
        notes.append(
            f"{directory} is on {kind}, which may show new files late: when several `doe run` on "
            "different machines cannot be sure of a lease, they wait for a minute"
        )
    return notes
