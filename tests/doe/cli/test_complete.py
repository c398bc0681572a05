"""A TAB in each shell, as its own completion script asks for it."""

import functools
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from doe.cli import main
from doe.cli.run import bare_cpu

PROGRAMS = Path(sys.executable).parent

# What a shell does at a TAB after `words`, the last of which is not finished.
BASH = """
source {script}
COMP_WORDS=({words}); COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 )); COMPREPLY=()
[ {blank} = yes ] && COMP_WORDS+=("") && COMP_CWORD=$(( COMP_CWORD + 1 ))
{function} {program}; printf '%s\\n' "${{COMPREPLY[@]}}"
"""
ZSH = """
compdef() {{ :; }}; _arguments() {{ print -l -- "${{@[@]}}"; }}
_describe() {{ print -l -- "${{(P)2[@]}}"; }}; _files() {{ :; }}
eval "$(sed '/^#compdef/d' {script})"
words=({line}); CURRENT=${{#words}}; {function}
"""
FISH = """
source {script}
complete --do-complete "{words}{space}"
"""
SHELLS = [name for name in ("bash", "zsh", "fish") if shutil.which(name)]


@pytest.fixture(autouse=True)
def _a_study_is_planned(planned, tmp_path, monkeypatch):
    planned()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")


@functools.cache
def script_of(program, shell):
    """What a program says that a shell should read at its start."""
    words = [PROGRAMS / program, "--show-completion", shell]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def offered(shell, words, tmp_path):
    """Words that a shell's completion function offers."""
    program = words.split()[0]
    blank = words.endswith(" ")
    script = tmp_path / "completion"
    script.write_text(script_of(program, shell))
    filled = {
        "script": script,
        "program": program,
        "words": words.strip(),
        "line": words.strip() + (' ""' if blank else ""),
        "space": " " if blank else "",
        "blank": "yes" if blank else "no",
        "function": f"_{program}_completion",
    }
    code = {"bash": BASH, "zsh": ZSH, "fish": FISH}[shell].format(**filled)
    command = {"zsh": ["zsh", "-f", "-c"]}.get(shell, [shell, "-c"])
    done = subprocess.run(
        [*command, code], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    assert "Traceback" not in done.stderr
    return done.stdout


CASES = [
    ("doe ", ["plan", "report"]),
    ("doe run --per", ["--per-gpu"]),
    ("doe status --study ", ["runs/tiny"]),
    ("doe logs 0", ["000-r1", "003-r1"]),
    ("doe analyze --study runs/tiny --response ", ["y"]),
    ("pit ", ["simulate", "train"]),
]


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(("words", "expected"), CASES)
def test_a_tab_offers_what_is_there(shell, words, expected, tmp_path):
    said = offered(shell, words, tmp_path)
    for word in expected:
        assert word in said, said


def ask(monkeypatch, capsys, words):
    """The words that bash is given, asked for in this process."""
    monkeypatch.setenv("_DOE_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", f"doe {words}")
    monkeypatch.setenv("COMP_CWORD", str(len(words.split(" "))))
    monkeypatch.setattr(sys, "argv", ["doe"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    return capsys.readouterr().out.split()


def test_configurations_engines_and_presets_are_offered(monkeypatch, capsys):
    assert ask(monkeypatch, capsys, "run --only A1") == ["A1B0", "A1B1"]
    assert ask(monkeypatch, capsys, "run --engine s") == ["slurm"]
    assert ask(monkeypatch, capsys, "plan --preset d") == ["demo"]


def test_a_study_that_cannot_be_read_offers_nothing(monkeypatch, capsys, tmp_path):
    (tmp_path / "runs" / "tiny" / "study.toml").write_text("name = 3 3")
    assert ask(monkeypatch, capsys, "analyze --response ") == []
    assert ask(monkeypatch, capsys, "logs --study absent 0") == []


def test_no_argument_shows_the_help(monkeypatch, capsys):
    monkeypatch.delenv("_DOE_COMPLETE", raising=False)
    monkeypatch.setattr(sys, "argv", ["doe"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code in (0, 2)
    said = capsys.readouterr()
    assert "Usage: doe" in said.out + said.err


def test_cpu_may_stand_alone():
    assert bare_cpu([]) == []
    assert bare_cpu(["run", "--cpu"]) == ["run", "--cpu", "0"]
    assert bare_cpu(["run", "--cpu", "2"]) == ["run", "--cpu", "2"]
    assert bare_cpu(["run", "--cpu", "--limit", "1"]) == ["run", "--cpu", "0", "--limit", "1"]
