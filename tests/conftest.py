"""For all tests: one thread for each process, since several run at once on few cores."""

import os

# Read when NumPy and PyTorch are loaded, so before any test is. Threads that wait for each other
# on taken cores cost more than twice the processor time of one.
for library in ("OPENBLAS", "OMP", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")
