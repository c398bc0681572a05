"""The process of a command: what it is given, what becomes of its slot, what cannot be started."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from doe.errors import DoeError
from doe.running.backend import resolve
from doe.running.program import Call, Program, run
from doe.running.training import EXAMPLE, ForkedTraining, Training
from doe.store.files import RunDir


def execute(*words, program=None, listeners=(), **environment):
    call = Call(list(words), Path.cwd(), environment)
    return run(call, program, listeners, lambda: None, bool)


@pytest.mark.parametrize("ahead", [False, True])
def test_a_program_gets_its_words_place_variables_and_exit_code(tmp_path, monkeypatch, ahead):
    program = Program() if ahead else None
    monkeypatch.chdir(tmp_path)
    assert (
        execute("sh", "-c", 'echo "$1 $B" > out; exit 7', "sh", "a b", program=program, B="c") == 7
    )
    assert (tmp_path / "out").read_text() == "a b c\n"


def test_a_program_inherits_no_descriptor_and_no_ignored_signal(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    kept = os.open(os.devnull, os.O_RDONLY)
    os.set_inheritable(kept, True)
    code = "import json, os; print(json.dumps(sorted(map(int, os.listdir('/proc/self/fd')))))"
    script = 'exec "$0" -c "$1" > handles; '
    execute("sh", "-c", "grep SigIgn /proc/self/status > signals; " + script, sys.executable, code)
    os.close(kept)
    handles = json.loads((tmp_path / "handles").read_text())
    assert handles == [0, 1, 2, 3]  # the last reads the directory
    ignored = int((tmp_path / "signals").read_text().split()[1], 16)
    assert not ignored & (1 << (signal.SIGPIPE - 1))


def in_a_process(words, listeners, **options):
    """Run a program by a process of its own, which tells the exit code."""
    code = (
        "import sys; from pathlib import Path; from doe.running.program import Call, run\n"
        f"lines = []; call = Call({words!r}, Path('.'))\n"
        f"sys.exit(f'{{run(call, None, {listeners}, int, bool)}} {{lines}}')"
    )
    call = [sys.executable, "-c", code]
    done = subprocess.run(call, stderr=subprocess.PIPE, text=True, **options)
    return done.stderr.strip()


def test_a_script_that_ends_its_process_group_ends_only_that():
    """As `trap 'kill 0' EXIT` does, for what it has started."""
    words = ["sh", "-c", "trap : TERM; kill 0; exit 5"]
    assert in_a_process(words, [], start_new_session=True) == "5 []"


@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["no-such-program"], "no such program here or on the PATH"),
        (["/etc/passwd"], "it is not executable"),
        (["true", "x" * (1 << 22)], "Argument list too long"),
    ],
)
def test_a_program_that_cannot_start_is_named(words, said, ahead):
    with pytest.raises(DoeError, match=f"cannot start '{words[0]}': {said}"):
        execute(*words, program=Program() if ahead else None)


def test_a_word_that_no_program_can_get_is_an_error():
    with pytest.raises(ValueError, match="null"):
        execute("echo", "a\0b")


def test_a_process_that_was_killed_while_it_stood_by_has_crashed():
    program = Program()
    program.kill()
    assert execute("true", program=program) == -signal.SIGKILL


def test_a_log_that_cannot_be_written_stops_no_program():
    with open("/dev/full", "w") as full:
        said = in_a_process(["echo", "loss 1"], "[lines.append]", stdout=full)
    assert said == "0 ['loss 1', '']"


@pytest.mark.parametrize(
    ("script", "free"), [("true", True), ("exit 3", False), ("sleep 2 & true", False)]
)
def test_a_slot_is_free_when_its_program_has_ended_well(tmp_path, script, free):
    """Before its metrics are read; not where it leaves a process behind."""
    training = ForkedTraining(resolve("command", ("sh", "-c", script)))
    training.begin(Training(RunDir(tmp_path), tmp_path, EXAMPLE, 1, "cpu", 0.0, True, "", {}))
    left = False
    while not training.wait(1.0):
        left |= training.has_left()
    left |= training.has_left()
    os.waitpid(training.pid, 0)
    assert training.reply.written
    assert left is free
