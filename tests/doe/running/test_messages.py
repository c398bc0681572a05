"""What a user is told of runs that wait, that nobody sees, and of places that cannot hold them."""

import errno
import io
import os
import subprocess
import sys
import time

import msgspec
import pytest
from test_odd_files import call
from waiting import until

from doe.errors import DoeError
from doe.results.status import overview
from doe.running.engines.slurm.job import Entry, Submission, SubmissionFiles
from doe.running.execute import check_links
from doe.running.worker import WorkerOptions
from doe.store.files import StudyDir, innermost_mount
from doe.store.leases import Watch, acquire, new_owner
from doe.store.progress import BLOCK_BYTES, LINE_BYTES, last_lines


def begun(plan, **changes):
    """The first run of a study, held by a process that may be elsewhere."""
    run = StudyDir(plan.directory).run(plan.design.runs[0].run_id)
    run.path.mkdir()
    owner = msgspec.structs.replace(new_owner("job", "cpu0"), **changes)
    return run, acquire(run, owner, Watch())


def test_a_finished_run_that_waits_for_room_is_told(planned):
    plan = planned()
    run, held = begun(plan)
    assert "waits for room" not in call("status", "--study", str(plan.directory))[1]
    held.beat(waiting=True)
    said = " ".join(call("status", "--study", str(plan.directory))[1].split())
    assert f"{run.path.name}: finished, and waits for room on the disk" in said


def test_a_run_of_which_nothing_can_be_known_is_unknown_since(planned):
    plan = planned()
    run, _ = begun(plan, machine="a container that is gone")
    assert "unknown since" not in call("status", "--study", str(plan.directory))[1]
    hour_ago = time.time() - 3600
    os.utime(run.lease(1), (hour_ago, hour_ago))
    said = " ".join(call("status", "--study", str(plan.directory))[1].split())
    moment = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(hour_ago))
    assert f"{run.path.name}: unknown since {moment}" in said


@pytest.mark.parametrize("days", [-463, 2])
def test_how_long_a_run_goes_on_does_not_hang_on_the_time_of_day(planned, days):
    plan = planned()
    _, held = begun(plan, since=time.time() + 86400 * days)
    (running,) = overview(plan.directory).running
    assert 0 <= running.seconds < 30
    held.release()


def test_a_run_of_a_living_process_here_is_never_unknown(planned):
    plan = planned()
    run, _held = begun(plan)
    os.utime(run.lease(1), (1.0, 1.0))
    assert "unknown since" not in call("status", "--study", str(plan.directory))[1]


# Slurm --------------------------------------------------------------------------------------------


@pytest.fixture
def submitted(planned, tmp_path, monkeypatch):
    """A study whose first two runs were handed to a Slurm that answers as it is told."""
    plan = planned()
    entries = [(Entry(run.run_id, WorkerOptions()),) for run in plan.design.runs[:2]]
    files = SubmissionFiles(plan.files.engine("slurm"), "doe-tiny-1")
    files.write(Submission(files.name, tuple(entries)))
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")

    def answer(*rows):
        widths = (80, 20, 20, 20, 80)
        lines = [
            "".join(f"{cell:<{n}}" for cell, n in zip(row, widths, strict=True)) for row in rows
        ]
        (programs / "squeue").write_text("#!/bin/sh\ncat <<'END'\n" + "\n".join(lines) + "\nEND\n")
        (programs / "squeue").chmod(0o755)

    return plan, files, answer


def test_why_a_job_waits_is_told(submitted):
    plan, files, answer = submitted
    answer(*((files.name, str(i), "PENDING", "0", "ReqNodeNotAvail") for i in (0, 1)))
    first = plan.design.runs[0].run_id
    said = " ".join(call("status", "--study", str(plan.directory))[1].split())
    assert f"not started: {first} and 1 more: Slurm: PENDING (ReqNodeNotAvail)" in said
    code, said = call("logs", first, "--study", str(plan.directory))
    assert code == 1
    assert "PENDING (ReqNodeNotAvail)" in said


def test_what_a_bad_line_of_setup_says_is_told(submitted):
    plan, files, answer = submitted
    answer((files.name, "0", "FAILED", str(127 << 8), "NonZeroExitCode"))
    files.output(0).write_text("slurm_script: line 4: modul: command not found\n")
    first = plan.design.runs[0].run_id
    for words in (("status",), ("logs", first)):
        said = " ".join(call(*words, "--study", str(plan.directory))[1].split())
        assert "FAILED, exit code 127: slurm_script: line 4: modul: command not found" in said


def test_a_cluster_that_is_not_there_costs_no_status(submitted, monkeypatch):
    plan, _, _ = submitted
    monkeypatch.setenv("PATH", "/nowhere")
    code, said = call("status", "--study", str(plan.directory))
    assert code == 0
    assert "there is no squeue" in " ".join(said.split())


# Places -------------------------------------------------------------------------------------------


def test_a_place_without_hard_links_is_told_at_planning_and_refused(planned, monkeypatch):
    plan = planned()
    words = ("plan", str(plan.directory / "study.toml"), "--out", str(plan.directory))
    assert "hard links" not in call(*words)[1]

    def refuse(*_):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    assert "without hard links" in " ".join(call(*words)[1].split())
    with pytest.raises(DoeError, match="without hard links"):
        check_links(StudyDir(plan.directory))
    assert not list(plan.directory.glob(".link*"))


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "ext4", "tmpfs", ""])
def test_a_place_that_may_show_names_late_is_told_at_planning(planned, monkeypatch, kind):
    plan = planned()
    words = ("plan", str(plan.directory / "study.toml"), "--out", str(plan.directory))
    monkeypatch.setattr("doe.store.files.file_system", lambda _: kind)
    said, told = " ".join(call(*words)[1].split()), f"is on {kind}, which may show new files late"
    notes = msgspec.json.decode(call(*words, "--json")[1])["warnings"]
    assert (told in said, [told in note for note in notes]) == (
        (False, []) if kind in ("ext4", "tmpfs", "") else (True, [True])
    )


def test_the_file_system_is_the_innermost_one(tmp_path):
    home = tmp_path / "a b"
    home.mkdir()
    mounts = (
        "1 0 8:1 / / rw - ext4 /dev/sda rw\n"
        f"2 1 0:9 / {tmp_path} rw shared:1 - nfs4 server:/home rw\n"
        f"3 2 0:9 / {str(home).replace(' ', chr(92) + '040')} rw - fuse.sshfs x rw\n"
    )
    assert innermost_mount(home / "runs", mounts) == "fuse.sshfs"
    assert innermost_mount(tmp_path / "x", mounts) == "nfs4"
    assert innermost_mount(tmp_path.parent, mounts) == "ext4"


def test_a_terminal_that_is_gone_stops_no_run(planned, tmp_path):
    plan = planned("traced", factors="AB", seconds=0.4)
    terminal, inside = os.openpty()
    code = "import signal; signal.signal(1, signal.SIG_IGN); from doe.cli import main; main()"
    words = ["run", "--cpu", "1", "--notify", f"touch {tmp_path / 'told'}"]
    scheduler = subprocess.Popen(
        [sys.executable, "-c", code, *words, "--study", str(plan.directory)],
        **dict.fromkeys(("stdin", "stdout", "stderr"), inside),
        start_new_session=True,
    )
    os.close(inside)
    until(lambda: list(plan.directory.glob("*/calls.txt")))
    os.close(terminal)
    assert scheduler.wait(timeout=180) == 1
    assert len(list(plan.directory.glob("*/result.json"))) == 4
    assert (tmp_path / "told").exists()


def test_a_current_directory_that_was_deleted_is_told(planned, tmp_path):
    plan = planned()
    code = (
        "import os; os.mkdir('gone'); os.chdir('gone'); os.rmdir('../gone')\n"
        "from doe.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "run", "--cpu", "1", "--study", str(plan.directory)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "the current directory, which was deleted; change to another" in done.stderr
    assert done.stderr.count("\n") == 1


# Long logs ----------------------------------------------------------------------------------------


class Counting(io.BytesIO):
    """Counts what is read."""

    bytes_read = 0

    def read(self, size=-1):
        data = super().read(size)
        self.bytes_read += len(data)
        return data


@pytest.mark.parametrize("ending", [b"", b"\n"])
@pytest.mark.parametrize("lines", [1, 2, 7, 5000, 100_000])
def test_the_last_lines_are_found_from_the_end(lines, ending):
    every = [b"line %d" % i for i in range(50_000)]
    file = Counting(b"\n".join(every) + ending)
    start = last_lines(file, lines)
    assert file.getvalue()[start:].rstrip(b"\n").split(b"\n") == every[-lines:]
    assert file.bytes_read <= 12 * lines + 2 * BLOCK_BYTES


def test_of_very_long_lines_the_end_is_told(planned):
    """A bar that is drawn again and again writes no end of a line."""
    plan = planned()
    run = StudyDir(plan.directory).run(plan.design.runs[0].run_id)
    run.path.mkdir()
    run.log.write_bytes(b"first\n" + b"\r50 %" * 2_000_000 + b"\r100 %")
    code, said = call("logs", run.path.name, "--lines", "100", "--study", str(plan.directory))
    assert code == 0
    assert said.startswith("(the end of long lines; 9.8 MB before them; --lines 0 prints all)")
    assert said.endswith("50 %\r100 %")
    assert len(said) < 100 * LINE_BYTES + 100
    assert "first" in call("logs", run.path.name, "--lines", "0", "--study", str(plan.directory))[1]


def test_a_log_of_300_mb_is_not_read_whole(planned):
    plan = planned()
    run = StudyDir(plan.directory).run(plan.design.runs[0].run_id)
    run.path.mkdir()
    with open(run.log, "wb") as file:
        file.truncate(300_000_000)
        file.seek(0, os.SEEK_END)
        file.write(b"\nsecond\nlast \xc3\xa9\n")
    began = time.process_time()
    code, said = call("logs", run.path.name, "--lines", "2", "--study", str(plan.directory))
    assert code == 0
    assert said.startswith("(the last 2 lines; 300.0 MB before them; --lines 0 prints all)")
    assert said.endswith("second\nlast é\n")
    assert time.process_time() - began < 1.0
