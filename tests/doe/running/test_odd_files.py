"""Whatever stands in the place of a run's files, no command ends in a traceback or waits for ever.

One run is odd, the others are done: every command tells of the odd one and goes on with the rest.
"""

import hashlib
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from doe.store.files import StudyDir
from doe.store.verdicts import encode_result, read_verdict
from tests.command_line import called

NAMES = ("lease.json", "attempt-1.json", "request.json", "result.json", "log.txt", "progress.jsonl")
KINDS = ("directory", "dangling link", "pipe", "/dev/zero", "link to itself", "other bytes")
READING = {
    "status": ("status",),
    "status --json": ("status", "--json"),
    "logs": ("logs", "000-r1"),
    "analyze": ("analyze", "--response", "all"),
}
SECONDS = 40


def put(path, kind):
    """Let something else stand in the place of a file."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    match kind:
        case "directory":
            path.mkdir()
            (path / "inside").touch()
        case "dangling link":
            path.symlink_to("nowhere at all")
        case "pipe":
            os.mkfifo(path)
        case "/dev/zero":
            path.symlink_to("/dev/zero")
        case "link to itself":
            path.symlink_to(path.name)
        case _:
            path.write_bytes(b"\xff\x00{[/data/x.png]")


def call(*words):
    """The exit code of a command and what it said; a traceback is raised."""

    def late(_number, _frame):
        raise AssertionError(f"doe {' '.join(words)} waits for ever")

    former = signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    try:
        ended = called(*words)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, former)
    return ended.code, ended.stderr + ended.stdout


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A study whose sixteen runs are done, to be copied."""
    from doe.store.plan import write_plan
    from doe.store.requests import prepare, request_bytes
    from doe.study.values import Factor, Responses, Study

    study = Study(
        name="tiny",
        backend="tiny_backends:noop",
        factors=tuple(Factor(key=key, levels=(False, True)) for key in "AB"),
        responses=Responses(metrics=("y",)),
        replicates=4,
        seeds=(1, 2, 3, 4),
    )
    plan, _ = write_plan(study, tmp_path_factory.mktemp("odd") / "tiny")
    for run in plan.design.runs:
        place = StudyDir(plan.directory).run(run.run_id)
        assert prepare(place, study, run) == ""
        digest = hashlib.sha256(request_bytes(study, run)).hexdigest()
        facts = {"seconds": 1.0, "request": digest, "commit": "c"}
        value = float(run.row + run.seed / 7)
        result = {"state": "done", "metrics": {"y": value}, "provenance": facts}
        place.result.write_bytes(encode_result(msgspec.convert(result, _result())))
        place.log.write_text("said\n")
    return plan.directory


def _result():
    from doe.store.verdicts import Result

    return Result


ODD_RUNS = {kind: f"00{i % 4}-r{1 + i // 4}" for i, kind in enumerate(KINDS)}
"""A run for each kind of thing that may stand in the place of one of its files."""


@pytest.mark.parametrize("settled", [True, False], ids=["settled", "open"])
@pytest.mark.parametrize("name", NAMES)
def test_reading_commands_go_on(finished, tmp_path, name, settled):
    """Whether the odd runs have their verdict or not."""
    directory = tmp_path / "tiny"
    shutil.copytree(finished, directory)
    for kind, run_id in ODD_RUNS.items():
        if not settled:
            (directory / run_id / "result.json").unlink()
        put(directory / run_id / name, kind)
    for words in READING.values():
        code, said = call(*words, "--study", str(directory))
        assert code == 0 or words[0] == "logs", said
        if words == ("status",):
            assert "16 runs: " in said
            assert f"{16 if settled and name != 'result.json' else 10} done" in said
    for run_id in ODD_RUNS.values():
        call("logs", run_id, "--study", str(directory))


@pytest.mark.parametrize("name", [name for name in NAMES if name != "attempt-1.json"])
def test_running_goes_on_with_the_rest(finished, tmp_path, name):
    directory = tmp_path / "tiny"
    shutil.copytree(finished, directory)
    (directory / "002-r2" / "result.json").unlink()
    for kind, run_id in ODD_RUNS.items():
        if (name, kind) == ("lease.json", "other bytes"):
            continue  # may be a lease whose bytes were lost with the power; it is waited out
        (directory / run_id / "result.json").unlink()
        put(directory / run_id / name, kind)
    code, said = call("run", "--cpu", "1", "--study", str(directory))
    assert (directory / "002-r2" / "result.json").exists(), said
    left_out = name == "request.json"  # a directory in its place is not written over
    assert code == (3 if left_out else 0), said
    code, said = call("status", "--study", str(directory))
    assert ("15 done, 1 pending" if left_out else "16 done") in said
    assert ("Unreadable" in said) == left_out


@pytest.mark.parametrize("begun", [False, True])
def test_a_run_whose_directory_is_somebody_elses_is_left_out(finished, tmp_path, begun):
    powers = "-dac_override,-dac_read_search"
    drop = ["setpriv", f"--bounding-set={powers}", f"--inh-caps={powers}"]
    if os.getuid() == 0 and not shutil.which("setpriv"):
        pytest.skip("needs setpriv, for root may write everywhere")
    directory = tmp_path / "tiny"
    shutil.copytree(finished, directory)
    for run_id in ("000-r1", "001-r1"):
        (directory / run_id / "result.json").unlink()
    if not begun:
        (directory / "000-r1" / "request.json").unlink()
    (directory / "000-r1").chmod(0o555)
    words = [sys.executable, "-c", "from doe.cli import main; main()", "run", "--cpu", "1"]
    done = subprocess.run(
        [*(drop if os.getuid() == 0 else []), *words, "--study", str(directory)],
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert done.returncode == 3, done.stdout + done.stderr
    assert "skipped  000-r1" in done.stdout
    assert "cannot" in done.stdout
    assert (directory / "001-r1" / "result.json").exists()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "directory"])
def test_a_run_whose_directory_is_none_is_left_out(finished, tmp_path, kind):
    directory = tmp_path / "tiny"
    shutil.copytree(finished, directory)
    (directory / "001-r1" / "result.json").unlink()
    put(directory / "000-r1", kind)
    for words in (*READING.values(), ("report", "--out", str(tmp_path / "report"))):
        code, said = call(*words, "--study", str(directory))
        assert code == 0 or words[0] == "logs", said
        assert words != ("status",) or "Unreadable" in said
    code, said = call("run", "--cpu", "1", "--study", str(directory))
    assert code == 3
    assert "skipped" in said
    assert read_verdict(StudyDir(directory).run("001-r1")).result.state == "done"
    assert call("plan", "--augment", "1", "--out", str(directory))[0] == 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["study.toml", "design.csv"])
def test_a_plan_that_cannot_be_read_is_one_message(finished, tmp_path, name, kind):
    directory = tmp_path / "tiny"
    shutil.copytree(finished, directory)
    put(directory / name, kind)
    for words in (*READING.values(), ("run", "--cpu", "1")):
        code, said = call(*words, "--study", str(directory))
        assert code == 1, said


ODD_FACTS = (
    {"seconds": "long"},
    {"seconds": -1.0},
    {"seconds": None},
    {"start": "yesterday", "end": 5},
    {"start": "2026-01-01T00:00:00", "end": "2026-01-01T00:00:01"},
    {"versions": ["numpy"]},
    {"versions": {"numpy": 2}},
    {"commit": 7, "dirty": "yes", "host": None},
    {"host": ["[/red]"], "slot": {"a": 1}},
    {"seed": True, "threads": 1.5, "attempt": "[bold]"},
    {"unread": "A"},
    {"unread": [["A"]]},
    {"[/data/x.png]": "[/data/x.png]", "hardware": "[/data/x.png]"},
)


@pytest.mark.parametrize("facts", ODD_FACTS, ids=lambda facts: ",".join(facts))
def test_odd_provenance_that_was_signed_again(finished, tmp_path, facts):
    directory = tmp_path / "tiny"
    shutil.copytree(finished, directory)
    run = StudyDir(directory).run("000-r1")
    result = read_verdict(run).result
    changed = msgspec.structs.replace(result, provenance=result.provenance | facts)
    run.result.write_bytes(encode_result(changed))
    for words in (*READING.values(), ("report", "--out", str(tmp_path / "report"))):
        code, said = call(*words, "--study", str(directory))
        assert code == 0, said


MARKUP = "[/data/x.png] [bold]no[/bold] [/] \x1b]0;title\x07"


@pytest.mark.parametrize("command", [*READING, "report", "run --retry-failed"])
def test_markup_in_errors_and_metrics_is_only_text(finished, tmp_path, monkeypatch, command):
    directory = tmp_path / "tiny"
    shutil.copytree(finished, directory)
    run = StudyDir(directory).run("000-r1")
    failure = {"kind": "exception", "message": MARKUP, "type": "[/x]", "traceback": MARKUP}
    origin = read_verdict(run).result.provenance | {"slot": MARKUP, "host": MARKUP}
    failed = {"state": "failed", "error": failure, "provenance": origin}
    run.result.write_bytes(encode_result(msgspec.convert(failed, _result())))
    words = {**READING, "report": ("report", "--out", str(tmp_path / "report"))}
    asked = words.get(command, ("run", "--cpu", "1", "--retry-failed"))
    for name, value in {"FORCE_COLOR": "1", "TTY_COMPATIBLE": "1", "COLUMNS": "100"}.items():
        monkeypatch.setenv(name, value)
    code, said = call(*asked, "--study", str(directory))
    assert code == 0, said
    if command == "status":
        assert "[/data/x.png]" in said.replace("\n", "")
        assert "\x1b[" in said, "as on a terminal"


def everything_in(directory):
    return {path: path.lstat()[:9] for path in (directory, *directory.rglob("*"))}


@pytest.mark.parametrize("name", ["design.csv", "000-r1/result.json", "000-r1/request.json"])
def test_reading_commands_write_nothing(finished, tmp_path, monkeypatch, name):
    """Even where a file is missing that they could make again."""
    directory = tmp_path / "tiny"
    shutil.copytree(finished, directory)
    (directory / name).unlink()
    monkeypatch.chdir(tmp_path)
    before = everything_in(tmp_path)
    power = ("power", "--response", "y", "--effect", "1")
    for words in (*READING.values(), ("export",), ("alias",), power):
        code, said = call(*words, "--study", str(directory))
        assert code == 0, said
        assert set(everything_in(tmp_path)) == set(before), words
    # Times of access change by reading alone.
    for path, facts in everything_in(tmp_path).items():
        assert facts[:7] + facts[8:] == before[path][:7] + before[path][8:], path


def test_a_read_only_file_system_is_one_message(finished, tmp_path):
    directory = tmp_path / "tiny"
    shutil.copytree(finished, directory)
    (directory / "000-r1" / "result.json").unlink()
    mount = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'
    commands = {
        ("status", "--study"): 0,
        ("logs", "001-r1", "--study"): 0,
        ("analyze", "--response", "y", "--study"): 0,
        ("report", "--out", str(directory / "report"), "--study"): 1,
        ("run", "--cpu", "1", "--study"): 1,
        ("plan", "--augment", "1", "--out"): 1,
    }
    code = (
        "import sys\n"
        "from tests.command_line import doe\n"
        "for words, code in eval(sys.argv[1]).items():\n"
        "    said = doe(*words, sys.argv[2], code=code)\n"
        "    assert ('Read-only file system' in said.stderr) == bool(code), said\n"
        "print('all as expected')"
    )
    call = [sys.executable, "-c", code, repr(commands), str(directory)]
    try:
        done = subprocess.run(
            ["unshare", "-m", "sh", "-c", mount, str(directory), *call],
            cwd=Path(__file__).parents[3],
            capture_output=True,
            text=True,
        )
    except OSError as error:
        pytest.skip(f"this machine does not let us: {error}")
    if "mount:" in done.stderr or "unshare:" in done.stderr:
        pytest.skip(f"this machine does not let us: {done.stderr.strip()}")
    assert done.stdout == "all as expected\n", done.stderr
