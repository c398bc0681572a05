"""Tables as people hand them in: levels, blocks, and every mistake with its own message."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from factorial_tables import PLASMA, study, table

from doe.analysis.analyze import analyze
from doe.analysis.tables import observe, response_columns, table_runs
from doe.design.runs import make_design
from doe.errors import DoeError
from doe.results.observations import observations, study_runs
from doe.results.table_file import read_table
from doe.store.scan import RunStatus
from doe.store.verdicts import Result
from doe.study.values import Factor, Responses, Study


def text_table(tmp_path: Path, text: str) -> pd.DataFrame:
    path = tmp_path / "table.csv"
    path.write_text(text, encoding="utf-8")
    return read_table(path, print)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"A": 1}, r"factor 'A' has 1 level \(1\); expected two"),
        ({"A": [0, 1, 2, 1] * 4}, r"factor 'A' has 3 levels \(0, 1, 2\); expected two"),
        ({"A": ["0", ""] * 8}, "factor 'A' has no level in row 2"),
        ({"y": [*PLASMA[:4], "good", *PLASMA[5:]]}, "'good' in row 5 .*expected a number"),
        ({"run_id": ["a", "a", *"cdefghijklmnop"]}, "run a stands more than once"),
        ({"replicate": [1] * 16, "day": 1}, "row 9 repeats a configuration within replicate 1"),
        ({"y": np.nan}, "'y' has no value in any run"),
        ({"y": 1.0}, "no variation"),
    ],
)
def test_mistakes_have_messages(change: dict[str, object], message: str) -> None:
    frame = table("ABC", PLASMA).assign(**change)  # type: ignore[arg-type]
    with pytest.raises(DoeError, match=message):
        study(frame, "ABC")


def test_unknown_columns_name_the_nearest() -> None:
    frame = table("AB", [1, 2, 3, 4]).rename(columns={"A": "learning_rate", "y": "accuracy"})
    with pytest.raises(DoeError, match="did you mean 'learning_rate'"):
        table_runs(frame, ["learning_rat", "B"])
    runs = table_runs(frame, ["learning_rate", "B"])
    with pytest.raises(DoeError, match="did you mean 'accuracy'"):
        observe(frame, runs, "acuracy")
    with pytest.raises(DoeError, match=r"block 'dya' .*did you mean 'day'"):
        table_runs(frame, ["learning_rate", "B"], block="dya")
    with pytest.raises(DoeError, match="low level is named for 'C'"):
        table_runs(frame, ["learning_rate", "B"], {"C": "1"})
    with pytest.raises(DoeError, match="is no level of 'B'"):
        table_runs(frame, ["learning_rate", "B"], {"B": "7"})
    with pytest.raises(DoeError, match="named twice"):
        table_runs(frame, ["B", "B"])


def test_a_run_that_stands_twice_in_a_block_is_refused() -> None:
    frame = table("AB", [1, 2, 3, 4, 5, 6, 7, 8])
    doubled = pd.concat([frame, frame.iloc[[2]]], ignore_index=True)
    with pytest.raises(DoeError, match="rows 3, 9 are the same in every column"):
        table_runs(doubled, ["A", "B"], block="day")
    assert "make sure that no run stands twice" in table_runs(doubled, ["A", "B"]).notes[0]


def test_a_factor_may_be_left_out_of_the_analysis() -> None:
    frame = table("ABC", PLASMA).assign(replicate=[1] * 8 + [2] * 8)
    assert table_runs(frame, ["A", "B"], block="replicate").keys == ("A", "B")


def test_low_levels(tmp_path: Path) -> None:
    text = "lr,opt,aug,y\n1e-3,sgd,true,1\n0.01,sgd,false,2\n0.001,adam,false,3\n1e-2,adam,true,4\n"
    frame = text_table(tmp_path, text)
    runs = table_runs(frame, ["lr", "opt", "aug"])
    assert [(f.low, f.high) for f in runs.factors] == [
        ("0.001", "0.01"), ("adam", "sgd"), ("false", "true"),
    ]  # fmt: skip
    assert runs.coded[:, 0].tolist() == [-1, 1, -1, 1]
    assert len(runs.notes) == 1
    assert "'adam' is taken as low" in runs.notes[0]
    turned = table_runs(frame, ["lr", "opt", "aug"], {"opt": "sgd", "lr": "0.010"})
    assert (turned.coded[:, :2] == -runs.coded[:, :2]).all()
    assert turned.notes == ()
    assert runs.config(5) == "0.01 · adam · true"
    found = analyze(observe(frame, table_runs(frame, ["lr", "opt"]), "y"))
    assert [e.term for e in found.effects] == ["lr", "opt", "lr:opt"]


def test_factors_come_from_configuration_labels(tmp_path: Path) -> None:
    frame = text_table(tmp_path, "config,y\nA0B0,1\nA1B0,2\nA0B1,3\nA1B1,9\n")
    assert table_runs(frame, ()).keys == ("A", "B")
    words = text_table(
        tmp_path, 'config,y\n"lr=1,a=x",1\n"lr=2,a=x",2\n"lr=1,a=y",3\n"lr=2,a=y",4\n'
    )
    assert table_runs(words, ()).keys == ("lr", "a")
    with pytest.raises(DoeError, match="which columns are the factors"):
        table_runs(text_table(tmp_path, "A,B,y\n0,0,1\n1,1,2\n"), ())


def test_missing_values_and_limits_are_read(tmp_path: Path) -> None:
    frame = text_table(tmp_path, "A,B,y,note\n0,0,1.50,x\n1,0,>20,x\n0,1,NaN,x\n1,1,>50,x\n")
    observed = observe(frame, table_runs(frame, ["A", "B"]), "y", ceiling=80)
    assert observed.censored
    assert observed.low.tolist()[:2] == [1.495, 20.0]
    assert observed.high.tolist()[:2] == [1.505, 50.0]
    assert (observed.low[3], observed.high[3]) == (50.0, 80.0)
    assert np.isnan(observed.low[2])
    assert response_columns(frame, ["A", "B"]) == ["y"]


@pytest.mark.parametrize("text", ["Infinity", "-infinity", "1e999", "-inf", "NaN"])
def test_values_that_are_not_finite_are_missing_runs(tmp_path: Path, text: str) -> None:
    frame = text_table(tmp_path, f"A,B,y\n0,0,1\n1,0,2\n0,1,4\n1,1,{text}\n1,1,7\n")
    found = analyze(observe(frame, table_runs(frame, ["A", "B"]), "y"))
    assert found.n == 4
    assert found.missing is not None
    assert found.missing.runs == ("row 4",)


def test_underscores_make_no_number(tmp_path: Path) -> None:
    frame = text_table(tmp_path, "A,B,y\n0,0,1\n1,0,1_238\n0,1,4\n1,1,7\n")
    with pytest.raises(DoeError, match="'1_238' in row 2"):
        observe(frame, table_runs(frame, ["A", "B"]), "y")
    assert response_columns(frame, ["A", "B"]) == []


def test_nan_is_no_level(tmp_path: Path) -> None:
    frame = text_table(tmp_path, "A,B,y\n0,0,1\nnan,0,2\n0,1,4\nnan,1,7\n")
    with pytest.raises(DoeError, match="factor 'A' has no level in row 2"):
        table_runs(frame, ["A", "B"])


def test_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DoeError, match="has 2 columns named 'y'"):
        text_table(tmp_path, "A,B,y,y\n0,0,1,2\n1,0,2,3\n")


def test_a_directory_is_no_table(tmp_path: Path) -> None:
    with pytest.raises(DoeError, match="cannot be read"):
        read_table(tmp_path, print)


@pytest.mark.parametrize("ceiling", [np.nan, np.inf])
def test_a_ceiling_is_a_number(ceiling: float) -> None:
    frame = table("AB", [1, 2, 3, 4]).assign(y=["1", "2", ">3", "4"])
    with pytest.raises(DoeError, match="ceiling"):
        observe(frame, table_runs(frame, ["A", "B"]), "y", ceiling=ceiling)


def test_run_order_is_a_column_or_unknown() -> None:
    frame = table("AB", [1, 2, 3, 4])
    assert table_runs(frame, ["A", "B"]).run_order is None
    assert table_runs(frame.assign(run_order=[2, 1, 4, 3]), ["A", "B"]).run_order == (2, 1, 4, 3)
    with pytest.raises(DoeError, match="'run_order' holds no number"):
        table_runs(frame.assign(run_order=[2, None, 4, 3]), ["A", "B"])


def test_a_study_blocks_by_replicate_and_its_numbers_never_become_text() -> None:
    factors = (Factor("A", (0.1, 0.3)), Factor("B", (False, True)))
    given = Study("s", "b:run", factors, Responses(("y",)), replicates=2, seeds=(7, 8))
    exact = 0.1 + 0.2
    views = [
        RunStatus(run, "done", Result("done", {"y": exact + i}, None, {"slot": f"cpu{i % 2}"}))
        for i, run in enumerate(make_design(given).runs)
    ]
    runs = study_runs(given, views)
    assert runs.block_name == "replicate"
    assert runs.coded.tolist() == [list(seen.run.coded) for seen in views]
    assert runs.slot == ("cpu0", "cpu1") * 4
    assert runs.host is None
    assert [f.high for f in runs.factors] == ["0.3", "true"]
    (observed,) = observations(given, views, runs, ["y"])
    assert observed.y.tolist() == [exact + i for i in range(8)]
    assert analyze(observed).df_error == 3
    split = study_runs(
        given, [s._replace(run=s.run._replace(block=i % 4)) for i, s in enumerate(views)]
    )
    assert split.block_name == "block"
    with pytest.raises(DoeError, match="'z' is none of the study's"):
        observations(given, views, runs, ["z"])


def test_a_number_that_never_varies_is_a_setting_and_no_response(tmp_path: Path) -> None:
    frame = text_table(tmp_path, "A,epochs,y,z\n0,5,1,2\n1,5,2,2\n0,5,3,2\n1,5,4,>3\n")
    assert response_columns(frame, ["A"]) == ["y", "z"]
