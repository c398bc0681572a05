"""Tables as people hand them in: levels, blocks, and every mistake with its own message."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from factorial_tables import PLASMA, study, table

from doe.analysis.analyze import analyze
from doe.analysis.dataset import CENTRE, OFF
from doe.analysis.tables import (
    TableOptions,
    response_columns,
    runs_of_levels,
    table_dataset,
    table_datasets,
    table_runs,
)
from doe.design.runs import make_design
from doe.errors import DoeError
from doe.results.dataset import datasets, study_runs
from doe.results.table_file import read_table
from doe.store.scan import RunStatus
from doe.store.verdicts import Result
from doe.study.values import Factor, Responses, Study


def columns(*factors: str, **further: object) -> TableOptions:
    """What the columns of a table are."""
    return TableOptions(factors=factors, **further)  # type: ignore[arg-type]


def text_table(tmp_path: Path, text: str) -> pd.DataFrame:
    path = tmp_path / "table.csv"
    path.write_text(text, encoding="utf-8")
    return read_table(path, print)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"A": 1}, r"factor 'A' has 1 level \(1\); expected two"),
        ({"A": ["0", ""] * 8}, "factor 'A' has no level in row 2"),
        ({"y": [*PLASMA[:4], "good", *PLASMA[5:]]}, "'good' in row 5 .*expected a number"),
        ({"run_id": ["a", "a", *"cdefghijklmnop"]}, "run a appears more than once"),
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
        table_runs(frame, columns("learning_rat", "B"))
    runs = table_runs(frame, columns("learning_rate", "B"))
    with pytest.raises(DoeError, match="did you mean 'accuracy'"):
        table_dataset(frame, runs, "acuracy")
    with pytest.raises(DoeError, match=r"block 'dya' .*did you mean 'day'"):
        table_runs(frame, columns("learning_rate", "B", block="dya"))
    with pytest.raises(DoeError, match="low level is named for 'C'"):
        table_runs(frame, columns("learning_rate", "B", low={"C": "1"}))
    with pytest.raises(DoeError, match="response 'C' is not a column"):
        table_runs(frame, columns("learning_rate", "B", scale={"C": "log"}))
    with pytest.raises(DoeError, match="is not a level of 'B'"):
        table_runs(frame, columns("learning_rate", "B", low={"B": "7"}))
    with pytest.raises(DoeError, match="named twice"):
        table_runs(frame, columns("B", "B"))


def test_equal_rows_are_no_copies_unless_they_share_an_identifier() -> None:
    frame = table("AB", [1, 2, 3, 4, 5, 6, 7, 8])
    doubled = pd.concat([frame, frame.iloc[[2, 5]]], ignore_index=True)
    for block in (None, "day"):
        (data,) = table_datasets(doubled, columns("A", "B", block=block), ["y"])
        assert data.runs.count == 10
        assert "Rows 3 and 9, 6 and 10 are the same in every column" in data.runs.notes[-1]
    numbered = doubled.assign(run_id=range(10))
    assert table_datasets(numbered, columns("A", "B"), ["y"])[0].runs.notes == ()
    again = numbered.assign(run_id=[*range(9), 2])
    with pytest.raises(DoeError, match="run 2 appears more than once"):
        table_runs(again, columns("A", "B"))


def test_two_lost_runs_of_one_cell_are_two_runs() -> None:
    frame = table("AB", [1, 2, 3, np.nan, 5, 6, 7, np.nan]).assign(day=1, replicate=1)
    (data,) = table_datasets(frame, columns("A", "B", block="day"), ["y"])
    assert len(data.observed) == 6
    assert data.runs.notes == ()


def test_seeds_that_are_crossed_with_the_cells_are_the_block() -> None:
    frame = table("AB", range(12)).rename(columns={"day": "seed"})
    runs = table_runs(frame, columns("A", "B"))
    assert runs.block_name == "seed"
    assert runs.block is not None
    assert runs.block.tolist() == [0] * 4 + [1] * 4 + [2] * 4
    assert "'seed' is taken as the block" in runs.notes[-1]
    nested = frame.assign(seed=range(12))
    assert table_runs(nested, columns("A", "B")).block is None
    assert table_runs(frame.assign(seed=7), columns("A", "B")).block is None
    other = frame.assign(day=[1, 2] * 6)
    assert table_runs(other, columns("A", "B", block="day")).block_name == "day"
    assert table_runs(frame, columns("A", "seed")).block is None
    lost = frame.drop(index=[5])
    assert table_runs(lost.reset_index(drop=True), columns("A", "B")).block_name == "seed"


def test_a_number_with_many_values_is_a_line_and_a_curve() -> None:
    lr = [10.0 ** (-4 + i / 4) for i in range(12)]
    frame = pd.DataFrame({"lr": lr * 2, "aug": [0] * 12 + [1] * 12, "y": range(24)})
    runs = table_runs(frame, columns("lr", "aug", scale={"lr": "log"}))
    assert [(f.degree, f.scale) for f in runs.factors] == [(2, "log"), (None, "linear")]
    assert any("12 values: it is fitted as a line and a curve on its log" in n for n in runs.notes)
    linear = table_runs(frame, columns("lr", "aug"))
    assert any("spaced as on a log scale" in note for note in linear.notes)
    with pytest.raises(DoeError, match="scale of lr is 'ln'; expected linear or log"):
        columns("lr", scale={"lr": "ln"})
    with pytest.raises(DoeError, match="a scale is named for opt, whose levels are not numbers"):
        table_runs(frame.assign(opt=["a", "b"] * 12), columns("opt", scale={"opt": "log"}))


@pytest.mark.parametrize(
    ("levels", "spaced"),
    [([1e-4, 1e-3, 1e-2], True), ([16, 32, 64], True), ([1, 2, 4, 8], True), ([1, 2, 3], False),
     ([0.1, 0.3, 0.5], False), ([0, 1, 10], False), ([0.001, 0.1], False)],
)  # fmt: skip
def test_a_log_scale_is_proposed_where_levels_are_spaced_so(
    levels: list[float], spaced: bool
) -> None:
    frame = pd.DataFrame({"x": levels * 2, "y": range(2 * len(levels))})
    notes = table_runs(frame, columns("x")).notes
    assert any("x=log" in note for note in notes) == spaced


def test_centre_rows_are_points_between_levels() -> None:
    a, b = [0, 1, 0, 1, 0.5, 0.5], [10, 10, 20, 20, 15, 15]
    runs = runs_of_levels({"A": a, "B": b})
    assert [factor.levels for factor in runs.factors] == [(0, 1), (10, 20)]
    assert runs.index[4].tolist() == [OFF, OFF]
    assert runs.position is not None
    assert runs.position[4].tolist() == [0.0, 0.0]
    assert runs.config(int(runs.cells[4])) == CENTRE
    assert "2 rows with every factor at its middle" in runs.notes[0]
    opt = ["x", "x", "y", "y", "x", "y"]
    held = runs_of_levels({"A": a, "B": b, "opt": opt})
    assert held.index[4:].tolist() == [[OFF, OFF, 0], [OFF, OFF, 1]]
    assert len(set(held.cells[4:].tolist())) == 2
    assert not runs_of_levels({"A": [*a, 0.5], "B": [*b, 10]}).off.any(), "0.5 is a level"
    assert not runs_of_levels({"A": a}).off.any(), "one factor alone has three levels"
    given = runs_of_levels({"A": a, "B": b}, levels={"A": [0, 0.5, 1], "B": [10, 15, 20]})
    assert not given.off.any()
    with pytest.raises(DoeError, match="lion, which is not a level; expected one of sgd, adam"):
        runs_of_levels({"opt": ["sgd", "lion"]}, levels={"opt": ["sgd", "adam"]})


def test_a_table_keeps_all_facts_of_its_runs() -> None:
    frame = table("AB", [1, 2, 3, np.nan]).assign(
        host=["a", "a", "b", "b"], slot="", replicate=1, state=["done"] * 3 + ["failed"],
        reason=["", "", "", "OOM"], seconds=[1, 2, 3, 4],
    )  # fmt: skip
    runs = table_runs(frame, columns("A", "B", block="day"))
    assert runs.host == ("a", "a", "b", "b")
    assert runs.slot is None
    assert runs.states == ("done", "done", "done", "failed: OOM")
    assert runs.facts["seconds"] == ("1", "2", "3", "4")
    assert runs.facts["day"] == ("1",) * 4


def test_a_factor_may_be_left_out_of_the_analysis() -> None:
    frame = table("ABC", PLASMA).assign(replicate=[1] * 8 + [2] * 8)
    assert table_runs(frame, columns("A", "B", block="replicate")).keys == ("A", "B")


def test_low_levels(tmp_path: Path) -> None:
    text = "lr,opt,aug,y\n1e-3,sgd,true,1\n0.01,sgd,false,2\n0.001,adam,false,3\n1e-2,adam,true,4\n"
    frame = text_table(tmp_path, text)
    runs = table_runs(frame, columns("lr", "opt", "aug"))
    assert [f.labels for f in runs.factors] == [
        ("0.001", "0.01"), ("adam", "sgd"), ("false", "true"),
    ]  # fmt: skip
    assert runs.index[:, 0].tolist() == [0, 1, 0, 1]
    assert len(runs.notes) == 1
    assert "'adam' is taken as low" in runs.notes[0]
    turned = table_runs(frame, columns("lr", "opt", "aug", low={"opt": "sgd", "lr": "0.010"}))
    assert (turned.index[:, :2] == 1 - runs.index[:, :2]).all()
    assert turned.notes == ()
    assert runs.config(5) == "0.01 · adam · true"
    found = analyze(table_dataset(frame, table_runs(frame, columns("lr", "opt")), "y"))
    assert [e.term for e in found.effects] == ["lr", "opt", "lr:opt"]


def test_factors_come_from_configuration_labels(tmp_path: Path) -> None:
    frame = text_table(tmp_path, "config,y\nA0B0,1\nA1B0,2\nA0B1,3\nA1B1,9\n")
    assert table_runs(frame, columns()).keys == ("A", "B")
    words = text_table(
        tmp_path, 'config,y\n"lr=1,a=x",1\n"lr=2,a=x",2\n"lr=1,a=y",3\n"lr=2,a=y",4\n'
    )
    assert table_runs(words, columns()).keys == ("lr", "a")
    with pytest.raises(DoeError, match="which columns are the factors"):
        table_runs(text_table(tmp_path, "A,B,y\n0,0,1\n1,1,2\n"), columns())


def test_missing_values_and_limits_are_read(tmp_path: Path) -> None:
    frame = text_table(tmp_path, "A,B,y,note\n0,0,1.50,x\n1,0,>20,x\n0,1,NaN,x\n1,1,>50,x\n")
    options = columns("A", "B", ceiling=80)
    data = table_dataset(frame, table_runs(frame, options), "y", options)
    assert data.limits is not None
    low, high = data.limits
    assert low.tolist()[:2] == [1.495, 20.0]
    assert high.tolist()[:2] == [1.505, 50.0]
    assert (low[3], high[3]) == (50.0, 80.0)
    assert np.isnan(low[2])
    assert response_columns(frame, ["A", "B"]) == ["y"]


@pytest.mark.parametrize("text", ["Infinity", "-infinity", "1e999", "-inf", "NaN"])
def test_values_that_are_not_finite_are_missing_runs(tmp_path: Path, text: str) -> None:
    frame = text_table(tmp_path, f"A,B,y\n0,0,1\n1,0,2\n0,1,4\n1,1,{text}\n1,1,7\n")
    found = analyze(table_dataset(frame, table_runs(frame, columns("A", "B")), "y"))
    assert found.n == 4
    assert found.missing is not None
    assert found.missing.runs == ("row 4",)


def test_underscores_make_no_number(tmp_path: Path) -> None:
    frame = text_table(tmp_path, "A,B,y\n0,0,1\n1,0,1_238\n0,1,4\n1,1,7\n")
    with pytest.raises(DoeError, match="'1_238' in row 2"):
        table_dataset(frame, table_runs(frame, columns("A", "B")), "y")
    assert response_columns(frame, ["A", "B"]) == []


def test_nan_is_no_level(tmp_path: Path) -> None:
    frame = text_table(tmp_path, "A,B,y\n0,0,1\nnan,0,2\n0,1,4\nnan,1,7\n")
    with pytest.raises(DoeError, match="factor 'A' has no level in row 2"):
        table_runs(frame, columns("A", "B"))


def test_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DoeError, match="has 2 columns named 'y'"):
        text_table(tmp_path, "A,B,y,y\n0,0,1,2\n1,0,2,3\n")


def test_a_directory_is_no_table(tmp_path: Path) -> None:
    with pytest.raises(DoeError, match="cannot be read"):
        read_table(tmp_path, print)


@pytest.mark.parametrize("ceiling", [np.nan, np.inf])
def test_a_ceiling_is_a_number(ceiling: float) -> None:
    with pytest.raises(DoeError, match="ceiling"):
        columns("A", "B", ceiling=ceiling)


def test_run_order_is_a_column_or_unknown() -> None:
    frame = table("AB", [1, 2, 3, 4])
    assert table_runs(frame, columns("A", "B")).run_order is None
    assert table_runs(frame.assign(run_order=[2, 1, 4, 3]), columns("A", "B")).run_order == (
        2,
        1,
        4,
        3,
    )
    with pytest.raises(DoeError, match="'run_order' holds no number"):
        table_runs(frame.assign(run_order=[2, None, 4, 3]), columns("A", "B"))


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
    assert (2 * runs.index - 1).tolist() == [list(view.run.coded) for view in views]
    assert runs.slot == ("cpu0", "cpu1") * 4
    assert runs.host is None
    assert [f.labels[1] for f in runs.factors] == ["0.3", "true"]
    (data,) = datasets(given, views, runs, ["y"])
    assert data.y.tolist() == [exact + i for i in range(8)]
    assert analyze(data).df_error == 3
    split = study_runs(
        given, [s._replace(run=s.run._replace(block=i % 4)) for i, s in enumerate(views)]
    )
    assert split.block_name == "block"
    with pytest.raises(DoeError, match="'z' is not among the study's"):
        datasets(given, views, runs, ["z"])


def test_a_number_that_never_varies_is_a_setting_and_no_response(tmp_path: Path) -> None:
    frame = text_table(tmp_path, "A,epochs,y,z\n0,5,1,2\n1,5,2,2\n0,5,3,2\n1,5,4,>3\n")
    assert response_columns(frame, ["A"]) == ["y", "z"]
