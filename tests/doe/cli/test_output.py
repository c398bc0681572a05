"""What is printed: escapes that a study holds, streams that cannot hold a text or are closed."""

import os
import pty
import subprocess
import sys

import pytest

from doe.errors import visible
from tests.command_line import called, doe

HOSTILE = "\x1b]0;pwned\x07\x1b[2J\x1b[31mred\x9b31m\u202e"
STUDY = r"""
name = "hostile"
backend = "hostile_backends:escaping"
[factors.A]
name = "\u001b[2Jname"
levels = ["a", "=1+1", "b"]
[responses]
metrics = ["y"]
"""


@pytest.fixture
def place(tmp_path):
    (tmp_path / "study.toml").write_text(STUDY)
    doe("plan", "--out", "st", cwd=tmp_path)
    return tmp_path


def on_terminal(*words, cwd):
    """Run `doe` on a terminal of its own; what arrived there."""
    screen, end = pty.openpty()
    call = [sys.executable, "-c", "from doe.cli import main; main()", *words]
    process = subprocess.Popen(
        call, cwd=cwd, stdin=end, stdout=end, stderr=end, env=os.environ | {"TERM": "xterm"}
    )
    os.close(end)
    arrived = b""
    try:
        while block := os.read(screen, 65536):
            arrived += block
    except OSError:  # the other end is closed
        pass
    os.close(screen)
    process.wait()
    return arrived.decode()


def test_escapes_of_a_study_do_not_reach_the_terminal(place):
    for words in (("run", "--cpu", "1"), ("status",), ("logs", "002-r1"), ("plan", "--out", "st")):
        arrived = on_terminal(*words, *(() if "--out" in words else ("--study", "st")), cwd=place)
        for escape in ("\x1b]0;", "\x1b[2J", "\x9b", "\u202e", "\x07"):
            assert escape not in arrived, (words, arrived)
        assert "pwned" in arrived or words[0] == "plan", (words, arrived)
    assert "\u241b[2J" in arrived


def test_controls_become_signs_and_colours_go():
    assert visible(HOSTILE) == "\u241b]0;pwned\u2407\u241b[2Jred\ufffd31m\ufffd"
    assert visible("a\tb\r\nc\rd") == "a\tb\r\nc\u240dd"
    assert visible("1/3\r2/3", returns=True) == "1/3\r2/3"


def test_what_is_piped_stays_as_it_is(place):
    called("run", "--study", "st", "--cpu", "1", cwd=place)
    assert HOSTILE in called("logs", "002-r1", "--study", "st", cwd=place).stdout


def test_formulas_of_an_export_are_said_and_quoted_on_request(place):
    plain = doe("export", "--study", "st", cwd=place)
    assert ",=1+1," in plain.stdout
    assert "1 cell that a spreadsheet would read as a formula" in plain.stderr
    quoted = doe("export", "--study", "st", "--spreadsheet", cwd=place)
    assert ",'=1+1," in quoted.stdout
    assert not quoted.stderr
    doe("export", "--study", "st", "--spreadsheet", "--out", "all.csv", cwd=place)
    assert (place / "all.csv").read_text() == quoted.stdout
    assert "'-1" not in quoted.stdout, "numbers stay numbers"


UNICODE = STUDY.replace("escaping", "unicode_error").replace(r"\u001b[2J", "→")


@pytest.mark.parametrize(
    "surroundings",
    [
        {"PYTHONIOENCODING": "ascii"},
        {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"PYTHONIOENCODING": "latin-1:strict"},
    ],
)
def test_a_stream_without_unicode_stops_no_study(tmp_path, surroundings):
    (tmp_path / "study.toml").write_text(UNICODE)
    doe("plan", "--out", "st", cwd=tmp_path)
    for words, code in ((("run", "--cpu", "1"), 3), (("status",), 0), (("analyze",), 1)):
        call = [sys.executable, "-c", "from doe.cli import main; main()", *words, "--study", "st"]
        ended = subprocess.run(
            call, cwd=tmp_path, env=os.environ | surroundings, capture_output=True
        )
        assert b"Traceback" not in ended.stderr, ended.stderr
        assert ended.returncode == code, ended.stderr
    assert len(list(tmp_path.glob("st/*/result.json"))) == 3


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", ">&- 2>&- <&-"])
def test_closed_streams_stop_no_study(place, closed):
    for words, code in (("run --cpu 1", 3), ("status", 0)):
        python = f"{sys.executable} -c 'from doe.cli import main; main()'"
        call = f"{python} {words} --study st {closed}"
        ended = subprocess.run(["sh", "-c", call], cwd=place, capture_output=True)
        assert b"Traceback" not in ended.stderr, ended.stderr
        assert ended.returncode == code, ended.stderr
    assert len(list(place.glob("st/*/result.json"))) == 3
    (place / "st" / "design.csv").read_text()


def test_no_line_of_the_help_is_cut_at_80_columns():
    from typer.testing import CliRunner

    from doe.cli import app

    said = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "80"}, terminal_width=80)
    assert said.exit_code == 0
    commands = said.output.partition("Commands:")[2]
    assert "  analyze " in commands
    assert "..." not in commands
