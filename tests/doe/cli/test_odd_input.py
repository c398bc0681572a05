"""Input at the edge: a message, or the answer, and never a traceback or minutes of memory."""

import os
import resource
import socket
import struct
import subprocess
import sys
import threading
from http.client import HTTPConnection

import pytest

from doe.views import serve
from tests.command_line import called, doe

STUDY = """
name = "s"
backend = "tiny_backends:noisy"
replicates = 2
[factors.A]
low = 0
high = 1
[factors.B]
low = 0
high = 1
[responses]
metrics = ["y"]
"""


@pytest.fixture
def place(tmp_path):
    (tmp_path / "study.toml").write_text(STUDY)
    return tmp_path


def refused(*words, cwd="."):
    ended = called(*words, cwd=cwd)
    assert ended.code in (1, 2), ended.stdout
    assert "Traceback" not in ended.stderr
    return " ".join(ended.stderr.split())


def test_no_levels_on_a_logarithmic_scale(place):
    (place / "study.toml").write_text(
        STUDY.replace("low = 0\nhigh = 1", "levels = []\nscale = 'log'", 1)
    )
    assert "factors.A.levels" in refused("plan", cwd=place)


@pytest.mark.parametrize("effect", ["-inf", "inf", "nan"])
@pytest.mark.parametrize("form", [(), ("--json",)])
def test_an_effect_that_is_not_finite(effect, form):
    assert "expected a finite number" in refused("power", "-k", "3", "--effect", effect, *form)


@pytest.mark.parametrize("cell", ["1e400", "0e400"])
def test_a_number_beyond_all_floats_beside_a_limit(place, cell):
    rows = [f"0,0,{cell}", "1,0,2.1", "0,1,<3", "1,1,2.7", "0,0,2", "1,0,2.2", "0,1,4", "1,1,3"]
    (place / "t.csv").write_text("A,B,y\n" + "\n".join(rows) + "\n")
    ended = called("analyze", "--table", "t.csv", "--factors", "A,B", "-r", "y", cwd=place)
    assert "Traceback" not in ended.stderr


def test_far_too_many_replicates_are_refused_at_once(place):
    """Within a gigabyte: the seeds of so many would take several."""
    doe("plan", "--out", "p", cwd=place)
    for words in (
        ("plan", "-n", "300000000", "--out", "q"),
        ("plan", "--augment", "100000000", "--out", "p"),
        ("power", "-k", "3", "-n", "300000000"),
    ):
        ended = subprocess.run(
            [sys.executable, "-c", "from doe.cli import main; main()", *words],
            cwd=place,
            capture_output=True,
            text=True,
            timeout=60,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30)),
        )
        assert ended.returncode in (1, 2), ended.stderr
        assert "Traceback" not in ended.stderr


def test_the_next_command_can_be_pasted(place):
    doe("plan", "--out", "a b", cwd=place)
    ended = doe("run", "--study", "a b", "--cpu", "1", cwd=place)
    assert "next: doe report --study 'a b'" in ended.stdout


def test_a_directory_whose_name_is_no_text(place):
    odd = os.fsdecode(b"caf\xe9")
    for words in (
        ("plan", "--out", odd),
        ("run", "--study", odd, "--cpu", "1"),
        ("status", "--study", odd),
        ("status", "--study", odd, "--json"),
        ("analyze", "--study", odd),
        ("report", "--study", odd, "--out", os.fsdecode(b"page\xe9")),
        ("export", "--study", odd, "--out", os.fsdecode(b"all\xe9.csv")),
        ("logs", "000-r1", "--study", odd),
    ):
        ended = called(*words, cwd=place)
        assert ended.code == 0, (words, ended.stderr)
    assert len(list((place / odd).glob("*/result.json"))) == 8


# The live page ------------------------------------------------------------------------------------


class Pages:
    """Two pages that need no study."""

    def page(self):
        return b"<html></html>"

    def moment(self):
        return {"version": "1"}


@pytest.fixture
def port(monkeypatch):
    monkeypatch.setattr(serve, "IDLE_SECONDS", 0.2)
    with serve.make_server(Pages(), 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def test_a_head_has_no_body(port):
    for path, length in (("/", "13"), ("/state", "16")):
        connection = HTTPConnection("127.0.0.1", port)
        connection.request("HEAD", path)
        answer = connection.getresponse()
        assert (answer.status, answer.getheader("Content-Length")) == (200, length)
        assert answer.read() == b""


def test_a_client_that_resets_is_not_told_of(port, capfd):
    for sent in (b"", b"GET / HTTP/1.0\r\nHost: localhost:1\r\n\r\n", b"GET /"):
        client = socket.create_connection(("127.0.0.1", port))
        client.sendall(sent)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
    test_a_head_has_no_body(port)
    assert "Traceback" not in capfd.readouterr().err


def test_an_idle_connection_is_closed(port):
    with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
        assert client.recv(1) == b""
