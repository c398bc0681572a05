"""What the file system of a study's directory can do, as far as it matters to who runs there."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path

LATE = ("nfs", "cifs", "smb", "9p", "fuse", "afs", "davfs")
"""Beginnings of the names of file systems whose clients may remember that a name was absent."""
NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.ENOTSUP, errno.EXDEV)


def makes_links(directory: Path) -> bool:
    """Whether a file can have two names here: so a verdict appears whole or not at all."""
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
    """Name of the file system that a directory is on; empty where the kernel does not say."""
    try:
        mounts = Path("/proc/self/mountinfo").read_text(errors="replace")
    except OSError:
        return ""
    return mounted_there(directory, mounts)


def mounted_there(directory: Path, mounts: str) -> str:
    """Name of the innermost file system among mounts, as the kernel lists them."""
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
    """What to know before runs are started here."""
    notes = []
    kind = file_system(directory)
    if not makes_links(directory):
        notes.append(
            f"{directory} is on {kind or 'a file system'} that makes no hard links: `doe run` "
            "cannot commit results there. Plan on another file system"
        )
    if kind.startswith(LATE):
        notes.append(
            f"{directory} is on {kind}, which may show new names late: several `doe run` on "
            "different machines wait for a minute where they cannot be sure"
        )
    return notes
