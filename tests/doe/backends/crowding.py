"""A backend one of whose runs takes every process that its user may have, for a while."""

import os
import signal
import time

from doe.store.timing import FORK_SECONDS


def run(request):
    crowd = []
    deadline = time.monotonic() + 3 * FORK_SECONDS
    while request.factors["A"] and request.seed == 1 and time.monotonic() < deadline:
        try:
            pid = os.fork()
        except BlockingIOError:  # and what a neighbour gives back is taken as well
            time.sleep(0.001)
            continue
        if pid == 0:
            time.sleep(600)
            os._exit(0)
        crowd.append(pid)
    for pid in crowd:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    time.sleep(0.3)
    return {"y": float(len(crowd))}
