"""`doe run` in a process of its own."""

import subprocess
import sys

import pytest


@pytest.fixture
def doe_run():
    """Start `doe run`; all that is left of it is killed in the end."""
    began = []

    def start(directory, *words, **options):
        call = [sys.executable, "-c", "from doe.cli import main; main()", "run"]
        call += ["--study", str(directory), *words]
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True} | options
        began.append(subprocess.Popen(call, start_new_session=True, **options))
        return began[-1]

    yield start
    for process in began:
        if process.poll() is None:
            process.kill()
        process.communicate()
