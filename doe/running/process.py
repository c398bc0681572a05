"""What a run's process needs before it begins and when it ends."""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from collections.abc import Callable
from typing import NoReturn

from doe.errors import DoeError


def thread_environment(threads: int) -> dict[str, str]:
    """Variables by which numerical libraries learn how many threads they may use."""
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")
    return dict.fromkeys(names, str(threads))


def end_process(task: Callable[[], int]) -> NoReturn:
    """Run a task and leave without the clean-up of libraries, which a crash would skip as well."""
    code = 1
    try:
        code = task()
    except DoeError as error:
        print(f"error: {error}", file=sys.stderr)
    except SystemExit as stop:  # SIGTERM in the moment after the backend returned
        code = stop.code if isinstance(stop.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)
