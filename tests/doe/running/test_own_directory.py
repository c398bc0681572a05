"""Where a run writes: what a backend does to its directory, and the directory of a command."""

import sys

import pytest

from doe.errors import DoeError, SpecError
from doe.running.command import resolved
from doe.store.files import StudyDir
from doe.store.plan import load_plan, write_plan
from doe.store.requests import request_bytes
from doe.store.verdicts import read_verdict
from doe.study.file import dump_study, parse_study


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Where `doe run` is started."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def study_of(command, more=""):
    return parse_study(
        f'name = "own"\nbackend = "command"\ncommand = {command!r}\n{more}\n'
        "[factors.A]\nlow = 1\nhigh = 2\n[responses]\nmetrics = ['y']\n".encode()
    )


def script(place, body, name="train.py"):
    (place / name).write_text(f"import json, os, shutil, sys, time\n{body}\n")
    return [sys.executable, name, "{A}", "{run_dir}"]


def metrics(plan):
    return [read_verdict(plan.files.run(run.run_id)).result.metrics for run in plan.design.runs]


def executions(plan):
    return [len(path.read_text().split()) for path in sorted(plan.directory.glob("calls-*"))]


# Backends that empty their directory --------------------------------------------------------------


TAKES = ("empties", "moves_away", "becomes_a_file", "becomes_a_link")


@pytest.mark.parametrize("deed", [*TAKES, "empties_and_kills_its_keeper"])
def test_a_backend_that_removes_its_directory_loses_no_result(planned, go, deed):
    plan = planned(f"hostile_backends:{deed}", factors="A")
    go(plan)
    assert [status.state for status in plan.scan()] == ["done"] * 2
    assert metrics(plan) == [{"y": 1.0}] * 2
    assert executions(plan) == ([2, 2] if "kills" in deed else [1, 1])


def test_a_run_whose_directory_is_gone_for_good_is_left_out(planned, go):
    plan = planned("hostile_backends:becomes_a_file_and_kills_its_keeper", factors="A")
    number, said = go(plan)
    assert number["pending"] == 2, said
    assert "000-r1 A0: cannot read 000-r1/result.json: Not a directory" in said
    assert executions(plan) == [1, 1]


def test_attempts_that_the_backend_removes_are_counted_all_the_same(planned, go):
    plan = planned("hostile_backends:empties_and_crashes", factors="A")
    number, _ = go(plan)
    assert number["failed"] == 2
    assert executions(plan) == [3, 3]


@pytest.mark.parametrize("earlier", [False, True])
def test_a_script_that_empties_its_output_directory_loses_no_result(place, go, earlier):
    words = script(
        place,
        "out = sys.argv[2]\nif os.path.exists(out): shutil.rmtree(out)\nos.makedirs(out)\n"
        "json.dump({'y': float(sys.argv[1])}, open(f'{out}/metrics.json', 'w'))",
    )
    plan, _ = write_plan(study_of(words), place / "runs")
    plan = as_earlier(plan) if earlier else plan
    number, said = go(plan)
    assert number["done"] == 2, said
    assert [row["y"] for row in metrics(plan)] == [1.0, 2.0]


# The directory of a command -----------------------------------------------------------------------


def as_earlier(plan):
    """The same plan as a version without `cwd` wrote it."""
    text = plan.files.study.read_text()
    plan.files.study.write_text(text.replace('cwd = "{run_dir}"\n', ""))
    return load_plan(plan.directory)


def test_commands_at_the_same_time_do_not_read_the_files_of_each_other(place, go):
    words = script(
        place,
        "json.dump({'y': float(sys.argv[1])}, open('results.json', 'w'))\n"
        "time.sleep(0.5)\ny = json.load(open('results.json'))\n"
        "json.dump(y, open('metrics.json', 'w'))",
    )
    plan, _ = write_plan(study_of(words), place / "runs")
    number, said = go(plan, cpu=2)
    assert number["done"] == 2, said
    assert [row["y"] for row in metrics(plan)] == [1.0, 2.0]
    assert not (place / "results.json").exists()


SEES = "json.dump({'y': 1, 'cwd': os.getcwd(), 'out': sys.argv[2]}, open('m.json', 'w'))"


@pytest.mark.parametrize("cwd", ["{run_dir}", ".", "code"])
def test_a_command_runs_where_the_study_says(place, go, cwd):
    (place / "code").mkdir()
    words = script(
        place / "code" if cwd == "code" else place,
        f"{SEES}; os.replace('m.json', f'{{sys.argv[2]}}/metrics.json')",
    )
    plan, _ = write_plan(study_of(words, f'cwd = "{cwd}"'), place / "runs")
    assert go(plan)[0]["done"] == 2
    run = plan.files.run("000-r1")
    seen = (run.out / "metrics.json").read_text()
    assert f'"out": "{run.out}"' in seen
    expected = run.out if cwd == "{run_dir}" else place / cwd
    assert f'"cwd": "{expected.resolve()}"' in seen


def test_a_plan_of_an_earlier_version_keeps_its_directories(place, go):
    words = script(place, f"{SEES}; os.replace('m.json', f'{{sys.argv[2]}}/metrics.json')")
    study = study_of(words)
    plan = as_earlier(write_plan(study, place / "runs")[0])
    assert b"cwd" not in request_bytes(plan.study, plan.design.runs[0])
    assert write_plan(study, plan.directory)[1] == "unchanged"
    assert "cwd" not in dump_study(plan.study)
    assert go(plan)[0]["done"] == 2
    run = plan.files.run("000-r1")
    seen = (run.path / "metrics.json").read_text()
    assert f'"out": "{run.path}"' in seen
    assert f'"cwd": "{place}"' in seen
    assert not run.out.exists()


def test_a_new_plan_says_where_its_command_runs(place):
    plan, _ = write_plan(study_of(["t", "{A}"]), place / "runs")
    assert 'cwd = "{run_dir}"\n' in StudyDir(place / "runs").study.read_text()
    assert load_plan(plan.directory) == plan


def test_words_that_name_something_there_are_resolved_from_there(place):
    for name in ("train.py", "c.yaml", "solve"):
        (place / name).touch()
    for name in ("data", "train"):
        (place / name).mkdir()
    words = [
        "python",
        "train.py",
        "train",
        "--c=c.yaml",
        "data.root=data/",
        "--split",
        "data",
        "--dir",
        "./data",
        "absent.csv",
        "--opt=a=b",
        "/etc",
        ".",
        "x" * 5000,
    ]
    assert resolved(words, place) == [
        *("python", f"{place}/train.py", "train", f"--c={place}/c.yaml"),
        *(f"data.root={place}/data/", "--split", "data", "--dir", f"{place}/./data"),
        *("absent.csv", "--opt=a=b", "/etc", f"{place}/.", "x" * 5000),
    ]
    assert resolved(["./solve"], place) == [f"{place}/./solve"]
    assert resolved(["solve"], place) == ["solve"]


def test_a_module_of_the_place_is_found(place, go):
    (place / "training").mkdir()
    (place / "training" / "__main__.py").write_text(
        "import json; json.dump({'y': 1}, open('metrics.json', 'w'))"
    )
    plan, _ = write_plan(study_of([sys.executable, "-m", "training", "{A}"]), place / "runs")
    assert go(plan)[0]["done"] == 2


def test_a_failed_command_says_where_it_ran_if_a_file_is_missing(place, go):
    words = script(place, "open('data.csv')")
    (place / "data.csv").touch()
    plan, _ = write_plan(study_of(words), place / "runs")
    said = r"exit code 1: FileNotFoundError: .*'data.csv'; it ran in its own .* `cwd = \".\"`"
    with pytest.raises(Exception, match=said):
        go(plan)


def test_a_failed_command_says_its_last_line_alone_otherwise(place, go):
    plan, _ = write_plan(study_of(script(place, "raise MemoryError('CUDA')")), place / "runs")
    with pytest.raises(Exception, match="exit code 1: MemoryError: CUDA") as raised:
        go(plan)
    assert "cwd" not in str(raised.value)


def test_commands_that_fail_alike_stop_the_study_whatever_they_print_last(place, go):
    words = script(place, "raise MemoryError(f'{os.getpid()} bytes of {sys.argv[1]}')")
    plan, _ = write_plan(study_of(words), place / "runs")
    with pytest.raises(DoeError, match=r"(?s)same way.*exit code 1: MemoryError: .* bytes of"):
        go(plan)


@pytest.mark.parametrize("cwd", ["/data", "~", "{A}"])
def test_a_directory_that_cannot_be_is_refused(cwd):
    with pytest.raises(SpecError, match=r'cwd = .*expected "\{run_dir\}"'):
        study_of(["t", "{A}"], f'cwd = "{cwd}"')


def test_a_function_has_no_such_key():
    text = dump_study(study_of(["t", "{A}"], 'cwd = "."')).replace('"command"', '"m:f"', 1)
    with pytest.raises(SpecError, match="cwd: only allowed with backend"):
        parse_study(text.replace('command = ["t", "{A}"]', "").encode())
