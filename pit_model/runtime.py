"""Process settings before training: arithmetic and memory."""

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
    """Allow TF32 on CUDA if the settings say so, and put things back afterwards.

    By `fp32_precision`: once anybody has used it, the older `allow_tf32` can no longer be read.
    """
    backends = torch.backends.cuda.matmul, torch.backends.cudnn.conv  # type: ignore[attr-defined]
    before = [backend.fp32_precision for backend in backends]
    for backend in backends:
        backend.fp32_precision = "tf32" if config.tf32 else "ieee"
    try:
        yield
    finally:
        for backend, precision in zip(backends, before, strict=True):
            backend.fp32_precision = precision


def peak_gpu_mb(device: torch.device) -> dict[str, float]:
    """Return the most memory that torch has held on a GPU so far; nothing on the CPU.

    It is what one run needs of the GPU, beside the 300 to 500 MB of the CUDA context.
    """
    if device.type not in ("cuda", "xpu"):
        return {}
    held = getattr(torch, device.type).max_memory_reserved(device)
    return {"peak_gpu_mb": held / 2**20}
