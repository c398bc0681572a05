"""Past runs in a study: matched by levels and seed, refused where they contradict it."""

from pathlib import Path

import pytest

from doe import load
from doe.errors import DoeError
from doe.results.status import overview
from doe.store.files import StudyDir
from doe.store.imports import import_runs
from doe.store.plan import write_plan
from doe.store.verdicts import IMPORTED, read_verdict
from doe.study.file import parse_study
from tests.command_line import doe

EXPORTS = Path(__file__).parents[1] / "results" / "exports"
STUDY = """
name = "own"
backend = "command"
command = "python train.py {lr} {augment} {seed} {run_dir}"
replicates = 2
seeds = [1, 2]
[factors.lr]
low = 0.001
high = 0.01
[factors.augment]
low = false
high = true
[responses]
metrics = ["accuracy"]
further = ["loss"]
goal = "max"
[metrics]
keys = { accuracy = "val/accuracy" }
"""
SCRIPT = """
import json, sys
lr, augment, seed, out = sys.argv[1:]
json.dump({"val/accuracy": 0.5}, open(f"{out}/metrics.json", "w"))
"""
ROW = {"lr": "1e-3", "augment": "True", "seed": "1", "accuracy": "0.9", "loss": "0.1"}


@pytest.fixture
def plan(tmp_path):
    return write_plan(parse_study(STUDY.encode()), tmp_path / "runs" / "own")[0]


def test_a_row_becomes_the_verdict_of_its_run(plan):
    done = import_runs(plan, [ROW | {"seconds": "12.5"}], "past.csv")
    assert done.new == ("002-r1",)
    result = read_verdict(StudyDir(plan.directory).run("002-r1")).result
    assert result.metrics == {"accuracy": 0.9, "loss": 0.1}
    assert result.provenance[IMPORTED] == "past.csv"
    assert result.provenance["seconds"] == 12.5
    state = overview(plan.directory)
    assert state.counts["done"] == 1
    assert state.warnings == ["1 run was not made here but imported from past.csv."]
    again = import_runs(plan, [ROW], "past.csv")
    assert (again.new, again.known) == ((), ("002-r1",))


def test_rows_without_a_result_are_left_to_be_run_and_infinities_are_divergences(plan):
    rows = [
        ROW | {"accuracy": ""},
        ROW | {"seed": "2", "state": "crashed"},
        ROW | {"lr": "0.01", "accuracy": "nan", "loss": "", "state": "finished"},
    ]
    done = import_runs(plan, rows, "past.csv")
    assert (done.new, done.unfinished) == (("003-r1",), 2)
    assert read_verdict(StudyDir(plan.directory).run("003-r1")).result.state == "diverged"


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([ROW, ROW | {"lr": "0.1"}], "row 2 of past.csv: lr is '0.1', which is not planned"),
        ([ROW | {"augment": "maybe"}], "its levels are"),
        ([ROW | {"seed": "7"}], "seed '7' is not planned; the seeds are 1, 2"),
        ([ROW, ROW | {"accuracy": "0.8"}], "rows 1 and 2 of past.csv are both lr=0.001"),
        ([ROW | {"accuracy": "good"}], "row 1 of past.csv holds 'good' for accuracy"),
        ([{k: v for k, v in ROW.items() if k != "seed"}], "Name its column: seed=COLUMN"),
        ([{"learning": "1", **{k: v for k, v in ROW.items() if k != "lr"}}], "no column 'lr'"),
    ],
)
def test_a_table_that_contradicts_the_plan_changes_nothing(plan, rows, said):
    with pytest.raises(DoeError) as refused:
        import_runs(plan, rows, "past.csv")
    assert said in str(refused.value)
    assert overview(plan.directory).counts["pending"] == 8


def test_a_table_that_contradicts_a_result_is_refused(plan):
    import_runs(plan, [ROW], "past.csv")
    with pytest.raises(DoeError, match=r"002-r1 .* has other results than its row"):
        import_runs(plan, [ROW | {"accuracy": "0.8"}], "other.csv")


@pytest.mark.parametrize("kind", ["damaged", "is a directory"])
def test_a_run_that_cannot_take_a_result_is_named_and_nothing_is_written(plan, kind):
    run = StudyDir(plan.directory).run("002-r1")
    if kind == "damaged":
        run.path.mkdir()
        run.result.write_text("{")
    else:
        run.request.mkdir(parents=True)
    with pytest.raises(DoeError, match=f"002-r1 cannot take a result: its .* {kind}"):
        import_runs(plan, [ROW | {"lr": "0.01"}, ROW], "past.csv")
    assert overview(plan.directory).counts["done"] == 0


def test_rows_outside_the_plan_can_be_left_out(plan):
    done = import_runs(plan, [ROW, ROW | {"lr": "0.1"}], "past.csv", matching=True)
    assert (done.new, done.outside) == (("002-r1",), 1)


def test_columns_of_other_names_are_named(plan):
    row = {"learning_rate": "0.001", **{k: v for k, v in ROW.items() if k != "lr"}}
    assert import_runs(plan, [row], "past.csv", {"lr": "learning_rate"}).new == ("002-r1",)
    with pytest.raises(DoeError, match="no column 'learning'"):
        import_runs(plan, [row], "past.csv", {"lr": "learning"})
    with pytest.raises(DoeError, match="'rate' is neither a factor"):
        import_runs(plan, [row], "past.csv", {"rate": "learning_rate"})


def test_an_export_is_imported_and_run_does_the_missing_ones(tmp_path):
    (tmp_path / "study.toml").write_text(STUDY)
    (tmp_path / "train.py").write_text(SCRIPT)
    text = (EXPORTS / "wandb.csv").read_text().splitlines()
    (tmp_path / "wandb.csv").write_text("\n".join(text[:6]))  # five runs, the others are missing
    done = doe("import", "wandb.csv", "--study", "study.toml", cwd=tmp_path)
    assert "5 of 8 runs were imported." in done.stdout
    assert "next: doe run --study runs/own" in done.stdout
    assert "an export of W&B" in done.stderr
    assert "8 done" in doe("run", "--cpu", "1", cwd=tmp_path).stdout
    table = load(tmp_path / "runs" / "own")
    assert table["imported"].tolist().count("wandb.csv") == 5
    assert (table["accuracy"] == 0.5).sum() == 3
    doe("report", cwd=tmp_path)


def test_what_is_exported_can_be_imported(plan, tmp_path):
    import_runs(plan, [ROW, ROW | {"lr": "0.01", "accuracy": "0.7"}], "past.csv")
    doe("export", "--study", plan.directory, "--out", "all.csv", cwd=tmp_path)
    other = write_plan(parse_study(STUDY.encode()), tmp_path / "other")[0]
    doe("import", "all.csv", "--study", other.directory, cwd=tmp_path)
    assert load(other.directory)["accuracy"].tolist() == pytest.approx(
        load(plan.directory)["accuracy"].tolist(), nan_ok=True
    )


def test_a_table_is_exported_as_csv_or_parquet_alone(plan, tmp_path):
    words = ("export", "--study", plan.directory, "--out", "all.xlsx")
    assert "ends in .csv or .parquet" in doe(*words, cwd=tmp_path, code=1).stderr
