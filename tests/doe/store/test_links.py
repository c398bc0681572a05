"""Links: nothing outside of a study is read into what it shows, or written by it."""

import os

import pytest

from tests.command_line import called, doe

SECRET = "TOPSECRET"


@pytest.fixture
def study(planned, go, tmp_path):
    """A study that is done, and a file outside of it."""
    plan = planned("traced", factors="AB", replicates=2)
    go(plan)
    (tmp_path / "secret").write_text(f"epoch,y\n1,{SECRET}\n1,7777\n")
    return plan


def link(path, target):
    path.unlink(missing_ok=True)
    path.parent.mkdir(exist_ok=True)
    path.symlink_to(target)


@pytest.mark.parametrize("name", ["log.txt", "epochs.csv", "out/epochs.csv", "progress.jsonl"])
def test_a_linked_file_of_a_run_is_shown_nowhere(study, tmp_path, name):
    run = study.files.run("000-r1")
    link(run.path / name, tmp_path / "secret")
    ended = doe("report", "--study", study.directory, "--out", tmp_path / "page")
    page = (tmp_path / "page" / "index.html").read_text()
    logs = called("logs", "000-r1", "--study", study.directory)
    for text in (page, ended.stdout, ended.stderr, logs.stdout, logs.stderr):
        assert SECRET not in text
    assert "7777" not in page


def test_a_linked_directory_is_not_read(study, tmp_path):
    away = tmp_path / "away"
    run = study.files.run("000-r1").path
    run.rename(away)
    (away / "log.txt").write_text(SECRET)
    run.symlink_to(away)
    status = doe("status", "--study", study.directory)
    assert "its directory is a link" in " ".join(status.stdout.split())
    logs = called("logs", "000-r1", "--study", study.directory)
    assert SECRET not in logs.stdout + logs.stderr
    ended = called("run", "--study", study.directory, "--cpu", "1")
    assert ended.code == 3
    assert "its directory is a link" in " ".join(ended.stdout.split())


@pytest.mark.parametrize("name", ["study.toml", "design.csv"])
def test_a_linked_plan_is_refused(study, tmp_path, name):
    link(study.directory / name, tmp_path / "secret")
    ended = called("status", "--study", study.directory)
    assert ended.code == 1
    assert "not a plain file" in " ".join(ended.stderr.split())
    assert SECRET not in ended.stdout + ended.stderr


def test_nothing_is_written_through_a_link(planned, go, tmp_path):
    plan = planned("traced", factors="A")
    (tmp_path / "precious").write_text("mine\n")
    for name in ("log.txt", "progress.jsonl"):
        link(plan.files.run("000-r1").path / name, tmp_path / "precious")
    assert go(plan)[0]["done"] == 2
    assert (tmp_path / "precious").read_text() == "mine\n"


def test_a_design_that_is_far_too_large_is_not_read(study):
    os.truncate(study.files.design, 3 << 30)
    ended = called("status", "--study", study.directory)
    assert ended.code == 1
    assert "larger than any file of a study" in " ".join(ended.stderr.split())
