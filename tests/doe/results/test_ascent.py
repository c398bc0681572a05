"""From a first-order study along its path of steepest ascent, and from a surface to its optimum."""

import json

import pytest
from typer.testing import CliRunner

import doe
from doe.cli import app
from doe.errors import DoeError
from doe.store.plan import load_plan, write_plan
from doe.study.values import Factor, Responses, Study

invoke = CliRunner().invoke
RATE, DECAY = Factor("rate", (1.0, 3.0)), Factor("decay", (2.0, 4.0))


def planned(tmp_path, **changes):
    """A study of two numbers; the response rises with rate up to 6, with decay up to 3.2."""
    given = {"replicates": 2, "seeds": (1, 2), "factors": (RATE, DECAY)} | changes
    study = Study(
        name="hill",
        backend="tiny_backends:hill",
        responses=Responses(metrics=("y",), goal="max"),
        **given,
    )
    return write_plan(study, tmp_path / "hill")[0].directory


def run(directory):
    assert invoke(app, ["run", "--cpu", "1", "--study", str(directory)]).exit_code == 0


def test_a_path_is_planned_run_and_left_out_of_the_fit(tmp_path):
    directory = planned(tmp_path)
    run(directory)
    before = doe.analyze(directory, "y", optimize=True).analysis
    path = [point.levels for point in before.surface.path]
    assert path[0] == {"rate": 2.0, "decay": 3.0}
    assert path[1]["rate"] == pytest.approx(3.0)
    doe.plan(out=directory, augment="ascent", runs=3)
    added = load_plan(directory).design.runs[8:]
    assert {(r.levels["rate"], r.levels["decay"]) for r in added} == {
        (p["rate"], p["decay"]) for p in path[1:4]
    }
    assert {r.replicate for r in added} == {1, 2}
    run(directory)
    after = doe.analyze(directory, "y", optimize=True).analysis
    assert [e.effect for e in after.effects] == pytest.approx([e.effect for e in before.effects])


def test_what_cannot_be_climbed_is_refused(tmp_path):
    words = planned(tmp_path, factors=(Factor("a", ("x", "y")), Factor("b", ("u", "v"))))
    run(words)
    with pytest.raises(DoeError, match="no factor is a range of numbers"):
        doe.plan(out=words, augment="ascent")
    with pytest.raises(DoeError, match="a response belongs to confirmation"):
        doe.plan(out=words, augment="axial", response="y")


def test_the_optimum_of_a_surface_is_confirmed(tmp_path):
    directory = planned(
        tmp_path, design={"kind": "surface"}, factors=(Factor("rate", (1.0, 9.0)), DECAY)
    )
    run(directory)
    result = invoke(app, ["analyze", "--study", str(directory), "--optimize", "--json"])
    surface = json.loads(result.output)["surface"]
    assert surface["kind"] in ("maximum", "ridge", "saddle")
    assert "polynomial" not in surface
    best = surface["optimum"]["levels"]
    shown = invoke(app, ["analyze", "--study", str(directory), "--optimize"]).output
    assert "Try: doe plan" in " ".join(shown.split())
    csv = invoke(app, ["analyze", "--study", str(directory), "--optimize", "--csv"]).output
    assert "optimum y" in csv
    assert "surface y" in csv
    with pytest.raises(DoeError, match="the model has squares"):
        doe.plan(out=directory, augment="ascent")
    doe.plan(out=directory, confirm=2)
    step = load_plan(directory).study.augment[-1]
    fresh = [r for r in load_plan(directory).design.runs if r.seed in step.seeds]
    assert any(r.levels == best for r in fresh)
    assert step.confirm[0] in {r.name for r in fresh}
    run(directory)
    confirmation = doe.analyze(directory, "y").analysis.confirmation
    assert confirmation is not None
    assert confirmation.predicted == pytest.approx(surface["optimum"]["mean"])
