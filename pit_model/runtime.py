"""What a process is set to before it trains: arithmetic and memory."""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from pit_model.config import Config

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_NEVER = 2**31 - 1


def keep_freed_memory() -> None:
    """Let the C library keep freed memory for the next step instead of returning it.

    Every activation of a training step is larger than the size from which glibc asks the kernel
    for fresh pages; clearing and mapping them anew for each tensor costs more than the arithmetic
    done on it. Other C libraries have no `mallopt` and are left as they are.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _NEVER)
        mallopt(_M_TRIM_THRESHOLD, _NEVER)


@contextmanager
def arithmetic(config: Config) -> Iterator[None]:
    """Allow TF32 on CUDA if the settings say so, and put things back afterwards."""
    before = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = config.tf32
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = before
