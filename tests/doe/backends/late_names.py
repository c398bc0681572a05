"""Mount a directory by FUSE so that names which were absent stay absent for a while.

``python late_names.py DIRECTORY MOUNT SECONDS`` stays until it is unmounted. Two mounts of one
directory are two clients of a file server that remember for SECONDS that a name was not there.
"""

import errno
import os
import sys

from fuse import FUSE, FuseOSError, Operations

STATUS = ("st_mode", "st_ino", "st_nlink", "st_uid", "st_gid", "st_size", "st_mtime", "st_ctime")
ROOM = ("f_bavail", "f_bfree", "f_blocks", "f_bsize", "f_ffree", "f_files", "f_frsize", "f_namemax")


class Through(Operations):
    """Every call, made below another directory."""

    def __init__(self, root):
        self.root = root

    def __call__(self, name, path, *given):
        try:
            return super().__call__(name, self.root + path, *given)
        except OSError as error:
            raise FuseOSError(error.errno or errno.EIO) from error

    def getattr(self, path, handle=None):
        status = os.fstat(handle) if handle else os.lstat(path)
        return {name: getattr(status, name) for name in STATUS}

    def statfs(self, path):
        status = os.statvfs(path)
        return {name: getattr(status, name) for name in ROOM}

    def readdir(self, path, handle):
        return [".", "..", *os.listdir(path)]

    def create(self, path, mode, info=None):
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)

    def open(self, path, flags):
        return os.open(path, flags & ~os.O_NOFOLLOW)

    def read(self, path, size, offset, handle):
        return os.pread(handle, size, offset)

    def write(self, path, data, offset, handle):
        return os.pwrite(handle, data, offset)

    def truncate(self, path, length, handle=None):
        os.truncate(path, length)

    def release(self, path, handle):
        os.close(handle)

    def fsync(self, path, data_only, handle):
        os.fsync(handle)

    def mkdir(self, path, mode):
        os.mkdir(path, mode)

    def rmdir(self, path):
        os.rmdir(path)

    def unlink(self, path):
        os.unlink(path)

    def rename(self, old, new):
        os.rename(old, self.root + new)

    def link(self, new, old):
        os.link(self.root + old, new)

    def chmod(self, path, mode):
        os.chmod(path, mode)

    def utimens(self, path, times=None):
        os.utime(path, times)


if __name__ == "__main__":
    directory, mount, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
    FUSE(
        Through(directory),
        mount,
        foreground=True,
        entry_timeout=seconds,
        negative_timeout=seconds,
        attr_timeout=1.0,
    )
