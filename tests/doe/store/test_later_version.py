"""Verdicts of another version: earlier ones are read, later ones are left alone."""

import hashlib
import json

import pytest

from doe.store import verdicts
from doe.store.verdicts import FORMAT, decode_result, read_verdict
from tests.command_line import called, doe


def sign(path, **changed):
    """Write a verdict again with other contents and the right checksum."""
    fields = json.loads(path.read_text())
    del fields["checksum"]
    fields = {key: value for key, value in (fields | changed).items() if value is not None}
    body = json.dumps(fields, indent=1).removesuffix("\n}").encode()
    path.write_bytes(body + verdicts._SEAL % hashlib.sha256(body).hexdigest().encode())


@pytest.fixture
def finished(planned, go):
    plan = planned("traced", factors="A")
    go(plan)
    return plan


@pytest.mark.parametrize("changed", [{"state": "paused"}, {"format": FORMAT + 1}])
def test_a_verdict_of_a_later_version_is_left_alone(finished, changed):
    run = finished.files.run("000-r1")
    sign(run.result, **changed)
    raw = run.result.read_bytes()
    ended = called("run", "--study", finished.directory, "--cpu", "1")
    assert ended.code == 3
    assert "later version of doe" in " ".join(ended.stdout.split())
    assert run.result.read_bytes() == raw
    assert (run.path / "calls.txt").read_text().count("\n") == 1, "it was trained again"
    status = doe("status", "--study", finished.directory)
    assert "later version of doe" in " ".join(status.stdout.split())


def test_a_later_verdict_that_comes_while_a_run_is_under_way_stands(finished):
    run = finished.files.run("000-r1")
    sign(run.result, state="paused")
    verdict = read_verdict(run)
    assert verdict.later
    assert verdict.is_final()
    assert verdict.is_final(verdicts.checksum(verdict.raw))


def test_a_verdict_of_the_first_format_is_read(finished):
    run = finished.files.run("000-r1")
    result = read_verdict(run).result
    sign(run.result, format=None)
    assert "format" not in json.loads(run.result.read_text())
    assert decode_result(run.result.read_bytes()) == result


def test_a_verdict_that_is_cut_short_is_damaged_and_not_later(finished):
    run = finished.files.run("000-r1")
    run.result.write_bytes(run.result.read_bytes()[:-9])
    assert not read_verdict(run).later
    doe("run", "--study", finished.directory, "--cpu", "1")
    assert (run.path / "calls.txt").read_text().count("\n") == 2
