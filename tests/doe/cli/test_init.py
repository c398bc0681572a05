"""The first minutes: from a script of one's own to a report, and thirty ways to go wrong."""

import sys

import pytest

from doe.study.file import load_study
from tests.command_line import called

SCRIPT = """
import argparse, json, os, random
p = argparse.ArgumentParser()
p.add_argument("--lr", type=float, default=0.01, help="learning rate")
p.add_argument("--batch-size", type=int, default=64, help="images per step")
p.add_argument("--optimizer", choices=["sgd", "adam", "lion"], default="adam")
p.add_argument("--augment", action="store_true", help="flip images")
p.add_argument("--momentum", type=float, default=0.9)
p.add_argument("--dropout", type=float)
p.add_argument("--epochs", type=int, default=3)
p.add_argument("--seed", type=int, default=0)
p.add_argument("--out-dir", default="out")
p.add_argument("--log-interval", type=int, default=10)
a = p.parse_args()
random.seed(a.seed * 1000 + round(1000 * a.lr))
for e in range(a.epochs):
    print(f"epoch {e + 1}/{a.epochs} loss {1 / (e + 1):.3f}")
acc = 0.8 + 0.05 * a.augment + 0.02 * (a.optimizer == "adam") + random.gauss(0, 0.005)
json.dump({"eval": {"accuracy": acc}, "who": "me"}, open(a.out_dir + "/results.json", "w"))
"""
CLICK = """
import typer
def main(lr: float = 0.01, augment: bool = False, depth: int = 4, seed: int = 0):
    print("test accuracy:", 0.5 + lr + 0.1 * augment + 0.01 * depth + seed / 1000)
typer.run(main)
"""


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "typed.py").write_text(CLICK)


def doe(*words):
    """The exit code of a command and what it said."""
    ended = called(*words)
    return ended.code, ended.stdout + ended.stderr


PYTHON = sys.executable
GIVEN = ["--metric", "acc=eval.accuracy", "--metrics-file", "results.json"]


def test_a_script_of_ones_own_gets_to_a_report(tmp_path):
    code, said = doe("init", *GIVEN, "--", PYTHON, "train.py")
    assert code == 0, said
    assert "Wrote study.toml: lr, batch_size, optimizer, augment; 16 configurations" in said
    study = load_study(tmp_path / "study.toml")
    assert study.settings == {"epochs": 3}
    assert study.responses.goal == "max"
    assert [f.low for f in study.factors] == [0.003, 32, "adam", False]
    code, said = doe("try")
    assert (code, "acc  0.8" in said) == (0, True), said
    assert not (tmp_path / "runs").exists()
    assert doe("plan")[0] == 0
    code, said = doe("run", "--cpu", "2", "--replicate", "1")
    assert "16 done" in said, said
    assert doe("run", "--cpu", "2")[0] == 0
    code, said = doe("analyze", "--response", "acc")
    assert code == 0
    assert "augment" in said
    assert doe("report")[0] == 0
    assert (tmp_path / "reports" / "train" / "index.html").exists()


def test_a_typer_script_with_its_metric_on_the_output(tmp_path):
    given = ["--metric", "test_accuracy", "--metrics-file", "stdout", "-n", "1"]
    code, said = doe("init", *given, "--name", "typed", "--", PYTHON, "typed.py")
    assert code == 0, said
    study = load_study(tmp_path / "study.toml")
    assert study.keys == ("lr", "augment", "depth")
    assert "--seed {seed}" in " ".join(study.command)
    code, said = doe("try")
    assert (code, "test_accuracy  0." in said) == (0, True), said


@pytest.mark.parametrize(
    ("script", "metric", "file"),
    [
        ("typed.py", "test_accuracy", "stdout"),
        ("typed.py", "loss", "metrics.json"),  # printed under no such name
        ("train.py", "loss", "metrics.json"),  # it writes JSON as well
    ],
)
def test_a_metric_that_is_only_printed_is_read_from_the_output(tmp_path, script, metric, file):
    code, said = doe("init", "--metric", metric, "--", PYTHON, script)
    assert code == 0, said
    assert load_study(tmp_path / "study.toml").metrics.file == file


def test_a_function_with_everything_given(tmp_path):
    words = ["--backend", "train:run", "--factor", "lr=0.1,1", "--factor", "aug=false,true"]
    code, said = doe("init", *words, "--metric", "loss", "--out", "mine.toml")
    assert code == 0, said
    study = load_study(tmp_path / "mine.toml")
    assert (study.backend, study.replicates, study.responses.goal) == ("train:run", 2, "min")
    assert [(f.low, f.high) for f in study.factors] == [(0.1, 1), (False, True)]


def test_a_program_without_help_is_told_where_its_factors_go(tmp_path):
    (tmp_path / "go.sh").write_text('echo "loss: $1$2 of a b"\n')
    words = ["--factor", "x=1,2", "--factor", "y=3,4", "--metric", "loss", "-n", "1"]
    placed = ["--", "sh", "go.sh", "{x}", "{y}", "a b"]
    code, said = doe("init", *words, "--metrics-file", "stdout", *placed)
    assert code == 0, said
    assert load_study(tmp_path / "study.toml").command[-1] == "a b"
    assert "sh go.sh {x} {y} 'a b'" in (tmp_path / "study.toml").read_text()
    assert "loss  " in doe("try")[1]


def test_a_program_that_is_told_no_seed_is_announced(tmp_path):
    (tmp_path / "go.sh").write_text('echo "loss: -$1"\n')
    words = ["--factor", "x=1,2", "--metric", "loss", "--metrics-file", "stdout"]
    code, said = doe("init", *words, "--", "sh", "go.sh", "{x}")
    assert (code, "Warning: the command does not use {seed}" in said) == (0, True), said
    assert "  loss  -1.0" in doe("try")[1]


@pytest.mark.parametrize("trainer", [f"{PYTHON} train.py", "train:run"])
def test_what_trains_is_asked_for(tmp_path, monkeypatch, trainer):
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    rest = ["lr=1,2", "loss", "min", "2"] if ":" in trainer else ["loss", "min", "m.json", "2"]
    answers = iter([trainer, *rest])
    monkeypatch.setattr("typer.prompt", lambda *_, **__: next(answers))
    code, said = doe("init")
    assert code == 0, said
    study = load_study(tmp_path / "study.toml")
    assert study.backend == ("train:run" if ":" in trainer else "command")


def test_what_is_not_given_is_asked_for_on_a_terminal(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    answers = iter(["accuracy, loss", "max", "stdout", "3"])
    monkeypatch.setattr("typer.prompt", lambda *_, **__: next(answers))
    code, said = doe("init", "--", PYTHON, "train.py")
    assert code == 0, said
    study = load_study(tmp_path / "study.toml")
    assert study.responses.metrics == ("accuracy", "loss")
    assert (study.replicates, study.metrics.file) == (3, "stdout")


def test_a_required_option_is_to_be_filled_in(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(
        SCRIPT.replace("a = p.parse", 'p.add_argument("--data", required=True)\na = p.parse')
    )
    code, said = doe("init", *GIVEN, "--", PYTHON, "train.py")
    assert (code, "Edit it first: --data is required" in said) == (0, True), said
    code, said = doe("plan")
    assert (code, "the study still contains EDIT-ME" in said) == (1, True), said


def test_a_file_among_the_outputs_stays_a_file_and_modes_are_no_factors(tmp_path):
    more = 'p.add_argument("--save", default="model.pt")\np.add_argument("--sample-only", action='
    more += '"store_true")\na = p.parse'
    (tmp_path / "train.py").write_text(SCRIPT.replace("a = p.parse", more))
    assert doe("init", *GIVEN, "--", PYTHON, "train.py")[0] == 0
    study = load_study(tmp_path / "study.toml")
    assert "--save {run_dir}/model.pt" in " ".join(study.command)
    assert "sample_only" not in study.keys


def test_words_that_hold_another_are_factors_all_the_same(tmp_path):
    names = ("ridge", "width", "hidden", "latest-lr", "grid-scale", "tester", "data-id")
    more = "".join(f'p.add_argument("--{n}", type=float, default=1.0)\n' for n in names)
    script = f"import argparse\np = argparse.ArgumentParser()\n{more}p.parse_args()\n"
    (tmp_path / "train.py").write_text(script)
    assert doe("init", *GIVEN, "--", PYTHON, "train.py")[0] == 0
    text = (tmp_path / "study.toml").read_text()
    assert all(f"factors.{n.replace('-', '_')}]" in text for n in names[:-1])
    assert "data_id" not in text


# Thirty mistakes --------------------------------------------------------------------------------

INIT = ["init", *GIVEN]
OWN = [PYTHON, "train.py"]
WRONG = [
    (["init", "--", *OWN], "--metric is missing"),
    (INIT, "expected one, as in doe init -- python train.py"),
    ([*INIT, "--", "no-such-program"], "cannot start 'no-such-program'"),
    ([*INIT, "--", PYTHON, "absent.py"], "can't open file"),
    ([*INIT, "--", PYTHON, "-c", "pass"], "lists no option; for a program without --help, write"),
    ([*INIT, "--", "false"], "for a program without --help, write where its factors go"),
    ([*INIT, "--factor", "a", "--", "false", "{a}"], "its levels are not known"),
    ([*INIT, "--factor", "a=1,2", "--", "false", "{a}", "{b}"], "placeholder {b} is unknown"),
    ([*INIT, "--goal", "best", "--", *OWN], "expected min or max"),
    ([*INIT, "--factor", "lrr=1,2", "--", *OWN], "did you mean 'lr'"),
    ([*INIT, "--factor", "lr=1", "--", *OWN], "expected two levels"),
    ([*INIT, "--factor", "lr=a..b", "--", *OWN], "expected a range of numbers"),
    ([*INIT, "--factor", "lr=1,1", "--", *OWN], "two distinct levels"),
    ([*INIT, "--factor", "=1,2", "--", *OWN], "expected NAME=LOW,HIGH"),
    ([*INIT, "--factor", "dropout", "--", *OWN], "does not give levels"),
    ([*INIT, "--factor", "augment=1,2", "--", *OWN], "the levels of a switch are off and on"),
    ([*INIT, "--backend", "m:f", "--", *OWN], "got both a program and --backend"),
    (["init", "--backend", "m:f", "--metric", "y"], "--factor is missing"),
    (["init", "--backend", "m:f", "--factor", "a", "--metric", "y"], "its levels are not known"),
    (["init", "--backend", "mf", "--factor", "a=1,2", "--metric", "y"], "module:function"),
    (
        ["init", *GIVEN, "--backend", "m:f", "--factor", "a=1,2"],
        "--metrics-file applies to a program",
    ),
    (["init", "--metric", "a b", "--backend", "m:f", "--factor", "a=1,2"], "is not a valid name"),
    ([*INIT, "--name", "a/b", "--", *OWN], "becomes a directory"),
    ([*INIT, "--out", "absent/study.toml", "--", *OWN], "cannot write absent/study.toml"),
    (["try"], "no study.toml in this directory"),
    (["try", "absent.toml"], "cannot read the study file absent.toml"),
    (["try", "train.py"], "not TOML"),
    (["plan"], "no study.toml in this directory"),
    (["plan", "--preset", "smal"], "did you mean 'small'"),
    (["run"], "no study in runs/"),
    (["run", "--study", "absent"], "holds no study.toml"),
    (["status"], "no study in runs/"),
    (["report"], "no study in runs/"),
    (["analyze", "--response", "acc"], "no study in runs/"),
]


@pytest.mark.parametrize(("words", "message"), WRONG)
def test_a_mistake_is_one_sentence_that_says_how_to_go_on(tmp_path, words, message):
    before = sorted(path.name for path in tmp_path.iterdir())
    code, said = doe(*words)
    assert code == 1
    assert said.startswith("error: ")
    assert "Traceback" not in said
    assert message in said
    assert said.strip().count("\n") <= 1  # one message, or one in the list of a study's mistakes
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_a_file_that_is_there_is_never_overwritten(tmp_path):
    (tmp_path / "study.toml").write_text("mine")
    code, said = doe(*INIT, "--", *OWN)
    assert (code, "is left unchanged" in said) == (1, True)
    assert (tmp_path / "study.toml").read_text() == "mine"


AFTER = [
    ('file = "results.json"', 'file = "outcome.json"', "results.json: eval.accuracy"),
    ("eval.accuracy", "eval.acc", "did you mean 'eval.accuracy'"),
    ("--lr {lr}", "--lrr {lr}", "exit code 2"),
    (PYTHON, "pyhton", "cannot start 'pyhton'"),
    (f"{PYTHON} train.py", "./train.py", "put its interpreter first"),
    ("--out-dir {run_dir} ", "", "exit code 1"),
]


@pytest.mark.parametrize(("old", "new", "message"), AFTER)
def test_a_mistake_in_the_file_is_seen_by_trying(tmp_path, old, new, message):
    doe(*INIT, "--", *OWN)
    text = (tmp_path / "study.toml").read_text()
    assert old in text
    (tmp_path / "study.toml").write_text(text.replace(old, new))
    code, said = doe("try")
    assert code == 3
    assert message in " ".join(said.split())


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (PYTHON, "pyhton", "cannot start 'pyhton': not found on the PATH"),
        (PYTHON, "./python", "cannot start './python': no such file"),
        (f"{PYTHON} train.py", "./train.py", "it is not executable; run chmod +x"),
        ("train.py", "tarin.py", "no tarin.py in"),
    ],
)
def test_a_program_that_cannot_start_is_not_planned(tmp_path, old, new, message):
    doe(*INIT, "--", *OWN)
    text = (tmp_path / "study.toml").read_text()
    (tmp_path / "study.toml").write_text(text.replace(old, new))
    code, said = doe("plan")
    assert (code, message in " ".join(said.split())) == (1, True), said
    assert not (tmp_path / "runs").exists()


LATER = [
    (["try", "--only", "lr=1"], "no configuration 'lr=1' is planned"),
    (["plan", "--augment", "2", "study.toml"], "augment and confirm add to a planned study"),
    (["plan", "--fraction", "1/3"], "1/3"),
    (["run", "--engine", "slrm"], "did you mean 'slurm'"),
    (["run", "--only", "lr=1"], "no configuration 'lr=1' is planned"),
    (["run", "--replicate", "9"], "replicate 9 is not planned"),
    (["run", "--timeout", "1e99"], "expected seconds"),
    (["logs", "nothing"], "nothing"),
    (["analyze", "--response", "acc"], "no run of runs/mine is done yet"),
    (["analyze", "--factors", "lr"], "--factors applies to --table"),
    (["analyze", "--table", "absent.csv"], "there is no table absent.csv"),
    (["report", "--table", "study.toml"], "is not a CSV table"),
    (["report", "--drop", "lrr"], "lrr"),
    (["report", "--figures", "acx"], "did you mean 'acc'"),
    (["import", "absent.csv"], "there is no table absent.csv"),
    (["import", "past.csv"], "Name its column: lr=COLUMN"),
    (["import", "past.csv", "--map", "lr"], "--map 'lr' is not a pair"),
    (["import", "past.csv", "--map", "lr=a"], "Name its column: augment=COLUMN"),
    (["export", "--out", "all.xls"], "ends in .csv or .parquet"),
    (["status", "--watch", "--json"], "cannot be combined"),
]


@pytest.mark.parametrize(("words", "message"), LATER)
def test_a_mistake_after_planning_is_one_sentence_too(tmp_path, words, message):
    chosen = ["--factor", "lr=0.01,0.1", "--factor", "augment", "--name", "mine"]
    assert doe(*INIT, *chosen, "--", *OWN)[0] == 0
    assert doe("plan")[0] == 0
    (tmp_path / "past.csv").write_text("a,b,seed\n1,2,3\n")
    code, said = doe(*words)
    assert code == 1
    assert said.startswith("error: ")
    assert message in " ".join(said.split())
    assert said.strip().count("\n") <= 1
    assert "Traceback" not in said
