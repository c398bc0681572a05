"""Verdicts on disk: whole, checked, set aside when damaged."""

import errno
import json
import os
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from doe import load
from doe.errors import DoeError
from doe.running.execute import check_writable
from doe.running.scheduler import RunOptions
from doe.store.files import RunDir, StudyDir, put_once, write_atomic
from doe.store.progress import log_tail
from doe.store.verdicts import (
    Failure,
    Result,
    checksum,
    commit,
    decode_result,
    encode_result,
    read_verdict,
    set_aside,
)

GOOD = Result("done", {"y": 0.1 + 0.2, "z": None}, None, {"seed": 1})


@settings(deadline=None)
@given(
    st.dictionaries(st.text(), st.floats(allow_nan=False, allow_infinity=False) | st.none()),
    st.text(),
    st.sampled_from(["done", "diverged", "failed"]),
)
def test_a_verdict_is_read_as_it_was_written(metrics, message, state):
    result = Result(state, metrics, Failure("crash", message), {"host": message})
    assert decode_result(encode_result(result)) == result


@settings(deadline=None)
@given(st.data())
def test_a_verdict_with_any_byte_altered_or_missing_is_damaged(data):
    raw = encode_result(GOOD)
    place = data.draw(st.integers(0, len(raw) - 1))
    other = data.draw(st.integers(1, 255))
    altered = raw[:place] + bytes([raw[place] ^ other]) + raw[place + 1 :]
    assert decode_result(altered) is None
    assert decode_result(raw[:place]) is None
    assert decode_result(raw + b"x") is None


def test_a_verdict_is_plain_json_with_its_checksum_last(tmp_path):
    run = RunDir(tmp_path)
    commit(run, GOOD, "n")
    text = json.loads(run.result.read_text())
    assert list(text) == ["state", "metrics", "error", "provenance", "format", "checksum"]
    assert text["checksum"] == checksum(run.result.read_bytes())


def test_of_two_writers_the_first_wins_and_the_second_is_told(tmp_path):
    path = tmp_path / "result.json"
    assert put_once(path, b"first", "a")
    assert not put_once(path, b"second", "b")
    assert put_once(path, b"first", "c"), "an answer that was lost on the way is found in the file"
    assert path.read_bytes() == b"first"
    assert os.listdir(tmp_path) == ["result.json"]


def test_only_the_verdict_that_was_judged_is_set_aside(tmp_path):
    run = RunDir(tmp_path)
    commit(run, GOOD, "n")
    before = run.result.read_bytes()
    set_aside(run, "damaged", 1, b"what was judged is gone")
    assert run.result.read_bytes() == before
    set_aside(run, "damaged", 2, before)
    assert not run.result.exists()


@pytest.mark.parametrize("how", ["truncated", "altered", "empty"])
def test_a_damaged_result_is_set_aside_and_its_run_done_again(how, planned, go):
    plan = planned("traced")
    go(plan)
    path = plan.directory / "001-r1" / "result.json"
    raw = path.read_bytes()
    broken = {"truncated": raw[: len(raw) // 2], "altered": raw.replace(b'"y": ', b'"y": 1')}
    path.write_bytes(broken.get(how, b""))
    others = {p: p.read_bytes() for p in plan.directory.glob("*/result.json") if p != path}
    table = load(plan.directory).set_index("run_id")
    assert table.loc["001-r1", "state"] == "pending"
    assert "damaged" in table.loc["001-r1", "reason"]
    number, _ = go(plan)
    assert number["done"] == 4
    assert read_verdict(RunDir(path.parent)).result.metrics == decode_result(raw).metrics
    assert (path.parent / "result.json.damaged-2").read_bytes() == broken.get(how, b"")
    assert all(p.read_bytes() == before for p, before in others.items())
    calls = {p.parent.name: p.read_text().split() for p in plan.directory.glob("*/calls.txt")}
    assert {name: len(one) for name, one in calls.items()} == {
        "000-r1": 1,
        "001-r1": 2,
        "002-r1": 1,
        "003-r1": 1,
    }


def test_a_study_that_was_changed_half_way_is_refused(planned, go):
    plan = planned("traced")
    go(plan, options=RunOptions(limit=1))
    changed = msgspec.structs.replace(plan.study, settings={"seconds": 0.001})
    with pytest.raises(DoeError, match=r"changed after 1 of its runs were done"):
        go(plan._replace(study=changed))
    number, _ = go(plan)
    assert number["done"] == 4


def test_a_moved_study_goes_on_elsewhere(planned, go, tmp_path):
    plan = planned("traced")
    go(plan, options=RunOptions(limit=2))
    elsewhere = tmp_path / "another place"
    os.rename(plan.directory, elsewhere)
    number, _ = go(plan._replace(directory=elsewhere))
    assert number["done"] == 4
    for path in elsewhere.rglob("*"):
        if path.is_file():
            assert str(tmp_path) not in path.read_text()


def test_a_directory_that_cannot_be_written_is_named(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr("pathlib.Path.write_bytes", refuse)
    with pytest.raises(DoeError, match="Read-only file system; results could not be saved"):
        check_writable(StudyDir(tmp_path))


def test_a_scheduler_with_the_same_pid_in_another_container_is_not_in_the_way(
    tmp_path, monkeypatch
):
    """Both look at once whether they can write: neither meets the other's files."""
    made = set()
    write = Path.write_bytes

    def write_noted(path, data):
        made.add(path.name)
        return write(path, data)

    monkeypatch.setattr("pathlib.Path.write_bytes", write_noted)
    monkeypatch.setattr("os.getpid", lambda: 1)
    for _ in range(2):
        check_writable(StudyDir(tmp_path))
    assert len(made) == 2


def test_a_full_disk_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "study.toml"
    write_atomic(path, "old")

    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DoeError, match="No space left on device; nothing was changed"):
        write_atomic(path, "new")
    with pytest.raises(OSError, match="No space"):
        put_once(tmp_path / "result.json", b"x", "n")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["study.toml"]


def test_names_of_a_run_are_told_from_files_of_the_backend(tmp_path):
    run = RunDir(tmp_path)
    records = (run.request, run.lease(1), run.lease(7), run.attempt(2), run.aside("failed", 3))
    others = (run.result.name, run.log.name, run.progress.name, ".result.json.x")
    assert all(run.is_reserved(path.name) and run.is_record(path.name) for path in records)
    assert all(map(run.is_reserved, others))
    assert not any(map(run.is_record, others))
    assert not any(
        map(run.is_reserved, ("metrics.json", "epochs.csv", "lease-a.json", "log.txt.1"))
    )


def test_the_log_of_a_later_attempt_begins_below_its_heading(tmp_path):
    run = RunDir(tmp_path)
    run.log.write_text("first\n\n== attempt 2 ==\nsecond\n")
    assert log_tail(run) == ("second",)
