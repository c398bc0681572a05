"""For all tests: one thread for each process and an order, since several run at once."""

import os

# Read when NumPy and PyTorch are loaded, so before any test is. Threads that wait for each other
# on taken cores cost more than twice the processor time of one.
for library in ("OPENBLAS", "OMP", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

ROOMS_OF_LONG_FILES = ("running", "views")


def pytest_collection_modifyitems(items):
    """Long files first, so that none of them is left alone at the end of a run in parallel."""
    rooms = ROOMS_OF_LONG_FILES
    items.sort(key=lambda item: [room not in item.path.parts for room in rooms])
