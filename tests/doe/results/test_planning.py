"""Planning, trying and importing from Python, by the same requests as on the command line."""

import pandas as pd
import pytest

import doe
from doe.errors import DoeError
from doe.store.plan import load_plan

STUDY = {
    "name": "dictated",
    "backend": "tiny_backends:noisy",
    "replicates": 2,
    "seeds": [1, 2],
    "factors": {"A": {"low": False, "high": True}, "B": {"low": False, "high": True}},
    "responses": {"metrics": ["y"]},
}


def test_a_dict_is_planned_as_its_file_would_be(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    directory = doe.plan(STUDY)
    assert directory.as_posix() == "runs/dictated"
    plan = load_plan(directory)
    assert plan.study.keys == ("A", "B")
    assert len(plan.design.runs) == 8
    assert doe.plan(plan.study) == directory
    assert isinstance(plan.study, doe.Study)
    with pytest.raises(DoeError, match="name"):
        doe.plan({**STUDY, "name": ""})


def test_runs_are_added_and_chosen_from_python(tmp_path):
    directory = doe.plan(STUDY, out=tmp_path / "study")
    counts = doe.run(directory, cpu=1, only=["A1B0"], replicate=2, grace=1.0)
    assert (counts["done"], counts["pending"]) == (1, 7)
    assert doe.run(directory, cpu=2)["done"] == 8
    doe.plan(out=directory, augment=1)
    assert len(load_plan(directory).design.runs) == 12
    assert doe.run(directory, cpu=2)["done"] == 12
    doe.plan(out=directory, confirm=2, response="y")
    assert load_plan(directory).study.augment[-1].confirm


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"study": STUDY, "augment": 1}, "add to a planned study"),
        ({"augment": 1, "confirm": 2}, "add to a planned study"),
        ({"study": STUDY, "response": "y"}, "a response belongs to confirmation"),
        ({"study": 5}, "got int; expected a Study, a dict or the path"),
    ],
)
def test_what_contradicts_itself_is_refused(arguments, said):
    with pytest.raises(DoeError, match=said):
        doe.plan(**arguments)


def test_until_and_what_belongs_to_it(tmp_path):
    directory = doe.plan(STUDY, out=tmp_path / "study")
    with pytest.raises(DoeError, match="belong to a study that runs until it is decided"):
        doe.run(directory, decide=["A"])
    with pytest.raises(DoeError, match="until 'dawn' is unknown"):
        doe.run(directory, until="dawn")
    with pytest.raises(DoeError, match="only='A1B0': expected a list"):
        doe.run(directory, only="A1B0")


def test_one_run_is_tried_and_nothing_recorded(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    trial = doe.try_(STUDY, only="A1B1")
    assert trial.problem == ""
    assert list(trial.metrics) == ["y"]
    assert not (tmp_path / "runs").exists()


def test_past_runs_are_imported_from_a_frame(tmp_path):
    directory = doe.plan(STUDY, out=tmp_path / "study")
    rows = [
        {"A": a, "B": b, "seed": s, "loss": 1.5 * a + b + 0.1 * s}
        for a in (False, True)
        for b in (False, True)
        for s in (1, 2)
    ]
    done = doe.import_(pd.DataFrame(rows), directory, columns={"y": "loss"})
    assert len(done.new) == 8
    assert doe.load(directory)["y"].max() == pytest.approx(2.7)
