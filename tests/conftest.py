"""For all tests: one thread for each process, a plain terminal, an order, commands built once."""

import functools
import os

import typer.main
import typer.testing

# Read when NumPy and PyTorch are loaded, so before any test is. Threads that wait for each other
# on taken cores cost more than twice the processor time of one.
for library in ("OPENBLAS", "OMP", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

# As where output is no terminal, whatever the surroundings say.
os.environ["COLUMNS"] = "80"
for name in ("FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE"):
    os.environ.pop(name, None)

# Typer makes all commands anew whenever one is called, which takes longer than most of them.
typer.main.get_command = functools.cache(typer.main.get_command)
typer.testing._get_command = typer.main.get_command

LONGEST = ("test_page.py", "views", "analysis", "test_hostile.py", "test_kills.py", "test_until.py")
"""Files that take longest, and rooms with many of them."""


def pytest_collection_modifyitems(items):
    """Long files first, so that none of them is left alone at the end of a run in parallel."""
    items.sort(key=lambda item: [name not in item.path.parts for name in LONGEST])
