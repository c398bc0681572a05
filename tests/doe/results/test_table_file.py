"""Tables as programs and people leave them: dialects of CSV, and exports of other tools."""

import json
from pathlib import Path

import pytest

from doe.analysis.analyze import analyze
from doe.analysis.tables import TableOptions, table_datasets
from doe.errors import DoeError
from doe.results.table_file import read_table
from tests.command_line import called, doe

EXPORTS = Path(__file__).parent / "exports"
PLAIN = "lr,größe,y\n0.1,a,1.5\n0.2,b,2.25\n"


def read(tmp_path, raw):
    path = tmp_path / "results.csv"
    path.write_bytes(raw)
    said = []
    return read_table(path, said.append), said


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (PLAIN.encode(), []),
        (PLAIN.encode("utf-8-sig"), []),
        (PLAIN.replace("\n", "\r\n").encode(), []),
        (PLAIN.replace("\n", "\r").encode(), []),
        (PLAIN.encode("latin-1"), ["Latin-1"]),
        (PLAIN.encode("utf-16"), ["UTF-16"]),
        (PLAIN.encode("utf-16-le"), ["UTF-16"]),
        (PLAIN.encode("utf-16-be"), ["UTF-16"]),
        (PLAIN.replace(",", ";").encode(), ["separated by semicolons"]),
        (PLAIN.replace(",", "\t").encode(), ["separated by tabs"]),
        (PLAIN.replace(",", "|").encode(), ["separated by bars"]),
        (
            PLAIN.replace(",", ";").replace(".", ",").encode("cp1252"),
            ["Latin-1", "separated by semicolons", "decimal commas in lr, y"],
        ),
    ],
)
def test_every_dialect_gives_the_same_table_and_is_said(tmp_path, raw, said):
    frame, told = read(tmp_path, raw)
    assert frame.to_dict("list") == {
        "lr": ["0.1", "0.2"],
        "größe": ["a", "b"],
        "y": ["1.5", "2.25"],
    }
    assert told == ([f"results.csv was read as: {', '.join(said)}"] if said else [])


def test_commas_in_text_and_limits_with_decimal_commas(tmp_path):
    frame, told = read(tmp_path, b'a;b\n"1,5 x";>0,5\n2,5;1\n')
    assert frame["a"].tolist() == ["1,5 x", "2,5"], "not all are numbers"
    assert frame["b"].tolist() == [">0.5", "1"]
    assert "decimal commas in b" in told[0]


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"a;y\n1;0,5\n2;0.5\n", "column 'y' holds both 0,5 and 0.5"),
        (b"a,y,y\n1,2,3\n", "has 2 columns named 'y'; rename all but one"),
        (b"a,y\n1,2,3\n", "line 2 has 3 cells and its header 2"),
        (b'a,y\n1,"2\n', "is not a CSV table"),
        (b"", "it is empty"),
        (b"a,y\n", "no rows below its header"),
        (b"number,state,params_lr,value\n0,FAIL,1,\n", "holds no run that finished: 1 FAIL"),
        (b"name,config,summary\nx,none,{}\n", "row 1 holds no mapping in its column 'config'"),
        (b"Step,a - y,a - y__MIN,a - y__MAX\n0,1,1,1\n", "a row for each step of 'a - y'"),
    ],
)
def test_each_mistake_is_one_sentence(tmp_path, raw, said):
    with pytest.raises(DoeError, match=r"results\.csv") as refused:
        read(tmp_path, raw)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "tool", "response", "left_out"),
    [
        ("wandb", "an export of W&B", "val/accuracy", "1 crashed"),
        ("wandb_api", "W&B's interface", "val/accuracy", "1 crashed"),
        ("mlflow", "an export of MLflow", "accuracy", "1 FAILED"),
        ("mlflow_experiments", "an export of MLflow", "accuracy", "1 FAILED"),
        ("mlflow_page", "an export of MLflow", "accuracy", "1 FAILED"),
        ("optuna", "an export of Optuna", "value", "1 PRUNED"),
        ("optuna_two", "an export of Optuna", "accuracy", "1 FAIL"),
        ("optuna_dashboard", "an export of Optuna Dashboard", "value", "1 PRUNED"),
    ],
)
def test_exports_are_read_as_they_come(name, tool, response, left_out):
    said = []
    frame = read_table(EXPORTS / f"{name}.csv", said.append)
    assert tool in said[0]
    assert left_out in said[1]
    assert frame["lr"].tolist() == ["0.001", "0.001", "0.01", "0.01"] * 2
    assert [cell.lower() for cell in frame["augment"]] == ["false", "true"] * 4
    assert frame["seed"].tolist() == ["1"] * 4 + ["2"] * 4
    if "seconds" in frame:
        assert all(0 < float(cell) < 70 for cell in frame["seconds"])
    options = TableOptions(("lr", "augment"), block="seed", goal="max")
    (data,) = table_datasets(frame, options, [response])
    effects = {effect.term: effect.effect for effect in analyze(data).effects}
    assert effects["augment"] == pytest.approx(0.05, abs=0.006)
    assert effects["lr"] == pytest.approx(-0.018, abs=0.006)


def test_a_metric_named_as_a_parameter_keeps_its_full_name(tmp_path):
    head = "run_id,experiment_id,status,params.loss,metrics.loss"
    frame, _ = read(tmp_path, f"{head}\na,1,FINISHED,huber,0.5\n".encode())
    assert list(frame.columns) == ["loss", "run_id", "state", "metrics.loss"]
    assert frame.loc[0, "metrics.loss"] == "0.5"


def test_negative_numbers_of_mlflows_page_lose_the_quote_that_guards_them():
    scores = read_table(EXPORTS / "mlflow_page.csv", print)["score"]
    assert scores.tolist()[:2] == ["-0.2116", "-0.157"]


def test_columns_of_wandb_that_were_hidden_are_not_missed(tmp_path):
    head = b"Name,Created,Runtime,End Time,ID,Username_weight,lr,acc\n"
    frame, said = read(tmp_path, head + b"x,2026-03-01T10:00:00.000Z,61,,3p0d,0.5,0.1,0.9\n")
    assert list(frame.columns) == ["seconds", "run_id", "Username_weight", "lr", "acc"]
    assert "no column State; every row is taken" in said[1]


def test_mappings_are_flat_and_keep_what_is_not_finite(tmp_path):
    config = "{'model': {'width': 64, '_wandb': 1}, 'note': 'nan, inf'}"
    frame, _ = read(
        tmp_path, f"config,summary,id\n\"{config}\",\"{{'y': nan, 'z': -inf}}\",a\n".encode()
    )
    assert frame.to_dict("records") == [
        {"run_id": "a", "model.width": "64", "note": "nan, inf", "y": "nan", "z": "-inf"}
    ]


def test_trials_without_times_and_objectives_without_names(tmp_path):
    head = "number,state,values_0,values_1,params_lr"
    frame, said = read(tmp_path, f"{head}\n0,COMPLETE,0.5,2,0.1\n".encode())
    assert "an export of Optuna" in said[0]
    assert list(frame.columns) == ["lr", "run_id", "state", "values_0", "values_1"]


# Commas between thousands -------------------------------------------------------------------------

THOUSANDS = 'A,B,y\n0,0,"1,200"\n1,0,900\n0,1,"1,350"\n1,1,870\n0,0,"1,220"\n1,0,910\n'
THOUSANDS += '0,1,"1,340"\n1,1,880\n'


@pytest.mark.parametrize("separator", [",", ";"])
def test_numbers_that_may_be_thousands_are_refused(tmp_path, separator):
    text = THOUSANDS if separator == "," else "y;z\n1,200;a\n900;b\n"
    with pytest.raises(
        DoeError, match=r"1,200 in column 'y' may be 1.200 or 1200; name the decimal sign"
    ):
        read(tmp_path, text.encode())


@pytest.mark.parametrize(
    ("raw", "y"),
    [
        ("y;z\n1,200;0,5\n2,300;1\n", ["1.200", "2.300"]),  # another column tells
        ("y;z\n0,200;a\n1,300;b\n", ["0.200", "1.300"]),
        ("y;z\n1,2003;a\n1,300;b\n", ["1.2003", "1.300"]),
        ("y;z\n1234,567;a\n1,300;b\n", ["1234.567", "1.300"]),
    ],
)
def test_decimal_commas_that_can_be_nothing_else_are_read(tmp_path, raw, y):
    assert read(tmp_path, raw.encode())[0]["y"].tolist() == y


def effect(table, *more):
    words = ("--table", table, "--factors", "A,B", "--json")
    return json.loads(doe("analyze", *words, *more).stdout)["effects"][0]["effect"]


def test_the_decimal_sign_decides_what_a_comma_is(tmp_path):
    path = tmp_path / "results.csv"
    path.write_text(THOUSANDS)
    assert effect(path, "--decimal", ".") == pytest.approx(-387.5)
    assert effect(path, "--decimal", ",") == pytest.approx(890 - 1.2775)
    path.write_text(THOUSANDS.replace("900", '"1,234,900.5"'))
    assert effect(path, "--decimal", ".") > 1e5
    for words in (("--decimal", "x"), ()):
        ended = called("analyze", "--table", path, "--factors", "A,B", *words)
        assert ended.code == 1
    assert called("analyze", "--decimal", ",", "--study", tmp_path).code == 1


def test_an_import_commits_no_thousandth(tmp_path):
    study = "name = 's'\nbackend = 'm:f'\nreplicates = 2\n"
    study += "".join(f"[factors.{key}]\nlow = 0\nhigh = 1\n" for key in "AB")
    (tmp_path / "study.toml").write_text(f"{study}[responses]\nmetrics = ['y']\n")
    rows = THOUSANDS.replace("A,B,y", "A,B,seed,y").splitlines()
    seeded = [
        row.replace(",", f",{1 + (i > 4)},", 2).replace(f",{1 + (i > 4)},", ",", 1)
        for i, row in enumerate(rows[1:], start=1)
    ]
    (tmp_path / "past.csv").write_text("\n".join([rows[0], *seeded]) + "\n")
    words = ("import", "past.csv", "--study", "study.toml")
    ended = called(*words, cwd=tmp_path)
    assert ended.code == 1
    assert "may be 1.200 or 1200" in " ".join(ended.stderr.split())
    assert not list(tmp_path.glob("runs/*/*/result.json"))
    doe(*words, "--decimal", ".", cwd=tmp_path)
    values = [
        json.loads(path.read_text())["metrics"]["y"]
        for path in tmp_path.glob("runs/*/*/result.json")
    ]
    assert max(values) == 1350.0


# Tables that no parser likes ----------------------------------------------------------------------


def test_columns_without_a_name_get_one(tmp_path):
    frame, _ = read(tmp_path, b",,y\n1,2,3\n4,5,6\n")
    assert list(frame.columns) == ["column 1", "column 2", "y"]
    frame, _ = read(tmp_path, b",y\n1,3\n4,6\n")
    assert list(frame.columns) == ["", "y"]


def test_a_header_beyond_all_measure_is_one_message(tmp_path):
    with pytest.raises(DoeError, match="field larger than field limit"):
        read(tmp_path, b"A," + b"y" * 200_000 + b"\n1,2\n")
