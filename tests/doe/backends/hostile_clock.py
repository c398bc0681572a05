"""A backend in whose slot somebody sets the time of day back by two days during the run."""

import time

PLAIN, CALLS = time.time, [0]


def jumping():
    CALLS[0] += 1
    return PLAIN() - (172800 if CALLS[0] > 2 else 0)


time.time = jumping


def run(request):
    return {"y": 1.0}
