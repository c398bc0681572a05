"""A study of factors with levels, from the plan to the page: examples/optimizers as it stands."""

import json
import math
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import doe
from doe.analysis.options import AnalysisOptions
from doe.cli import app
from doe.design.power import DesignSize, detectable_effect
from doe.errors import DoeError
from doe.results.report import report_of
from doe.results.sources import study_page
from doe.results.status import overview
from doe.views.charts import catalogue, response_charts
from doe.views.charts.model import filled, spec
from doe.views.profiler import profile_json

EXAMPLE = Path(__file__).parents[3] / "examples" / "optimizers"


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("optimizers")
    for name in ("study.toml", "train.py"):
        shutil.copy(EXAMPLE / name, folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("PYTHONPATH", str(folder))
        directory = folder / doe.plan("study.toml", replicates=2)
        counts = doe.run(directory, cpu=1)
    assert counts["done"] == 24
    return directory


def said(*arguments):
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == 0, done.output
    return done.output


def test_accuracy_is_ranked_upwards_and_loss_downwards_on_its_log_scale(study):
    found = json.loads(said("analyze", "--study", study, "-r", "accuracy,loss", "--json"))
    accuracy, loss = found
    assert [row["source"] for row in accuracy["anova"]][:4] == [
        *("Block", "lr", "optimizer", "lr:optimizer")
    ]
    assert {row["source"]: row["df"] for row in accuracy["anova"]}["lr:optimizer"] == 2
    levels = {row["level"]: row for row in accuracy["levels"] if row["factor"] == "optimizer"}
    assert list(levels) == ["sgd", "momentum", "adam"]
    table = doe.load(study)
    for name, row in levels.items():
        assert row["mean"] == pytest.approx(table.accuracy[table.optimizer == name].mean())
        assert row["n"] == 8
    assert (accuracy["transform"], loss["transform"]) == ("none", "log")
    best = [one["diagnostics"]["best"]["cells"][0]["mean"] for one in found]
    by_config = table.groupby("config")
    assert best[0] == pytest.approx(by_config.accuracy.mean().max())
    smallest = by_config.loss.apply(lambda values: math.exp(np.log(values).mean())).min()
    assert best[1] == pytest.approx(smallest)
    pair = next(d for d in loss["diagnostics"]["differences"] if d["factor"] == "lr")
    assert pair["ratio"] == pytest.approx(math.exp(pair["difference"]))
    assert pair["ratio_low"] < pair["ratio"] < pair["ratio_high"]


def test_a_chosen_model_has_its_terms_and_says_a_broken_hierarchy(study):
    terms = "optimizer,lr:optimizer"
    found = json.loads(
        said("analyze", "--study", study, "-r", "accuracy", "--terms", terms, "--json")
    )
    assert found["diagnostics"]["terms"] == ["optimizer", "lr:optimizer"]
    assert any("hierarchy is broken" in warning for warning in found["warnings"])


def test_blocks_as_random_are_told_to_be_too_few(study):
    text = " ".join(said("analyze", "--study", study, "-r", "accuracy", "--random-blocks").split())
    assert "2 blocks are too few to estimate it" in text


def test_the_terminal_says_levels_and_names(study):
    text = said("analyze", "--study", study, "-r", "accuracy", "--full")
    assert "Optimizer: adam is " in text
    assert "lr · optimizer · augment" in text
    assert "0.01 · adam · false" in text
    best = r"Its mean is [\d.]+ %, not yet confirmed with new seeds\."
    assert re.search(best, " ".join(text.split())), "and no interval of the one that was chosen"


def test_the_plan_says_what_the_runs_can_tell(study):
    text = said("alias", "--study", study)
    assert "13 of them estimable" in text
    rows = json.loads(said("power", "--study", study, "-n", "2", "--json"))["designs"]
    assert [row["df_error"] for row in rows] == [0, 11]
    by_term = {term["term"]: term for term in rows[1]["terms"]}
    assert [by_term[term]["df"] for term in ("lr", "optimizer", "lr:optimizer")] == [1, 2, 2]
    alone = detectable_effect(1.0, DesignSize(12, 2, 1, 11))
    assert by_term["lr"]["detectable"] == pytest.approx(alone)
    assert by_term["lr"]["detectable"] < by_term["optimizer"]["detectable"]
    assert all(term["detectable"] is None for term in rows[0]["terms"]), "there is no error"
    assert "Power of the F tests, 2 replicates" in said("power", "--study", study, "--effect", "2")


def test_the_report_has_every_table_and_chart_of_levels(study, tmp_path):
    report = report_of(study_page(overview(study)), AnalysisOptions(robust=True))
    assert set(report.analyses) == {"accuracy", "loss"}
    drawn = response_charts(report, "loss")
    assert {"half-normal", "main-effects", "level-pairs", "interactions", "residuals"} <= set(drawn)
    assert {"cell-means"} <= set(drawn)
    for chart in catalogue():
        if chart.name in drawn:
            text = json.dumps(filled(spec(chart), drawn[chart.name]))
            assert '"{' not in text.replace('"{"', ""), chart.name
    said("report", "--study", study, "--out", tmp_path)
    written = {path.name for path in (tmp_path / "tables").glob("*.tex")}
    assert {"anova-accuracy.tex", "levels-accuracy.tex", "pairs-loss.tex"} <= written
    best = (tmp_path / "tables" / "best-metrics.tex").read_text()
    table = doe.load(study).groupby("config")
    for config in (table.accuracy.mean().idxmax(), table.loss.mean().idxmin()):
        levels = " $\\cdot$ ".join(part.partition("=")[2] for part in config.split(","))
        line = next(line for line in best.splitlines() if levels in line)
        assert r"\underline" in line


def test_a_table_without_a_goal_has_effects_and_no_best(tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text(
        "opt,lr,y\n"
        + "".join(
            f"{o},{lr},{i + 3 * j + k}\n"
            for i, o in enumerate(("a", "b", "c"))
            for j, lr in enumerate((0.1, 0.2))
            for k in (0.0, 0.4)
        )
    )
    base = ("analyze", "--table", path, "--factors", "opt,lr", "-r", "y")
    found = json.loads(said(*base, "--json"))
    assert found["diagnostics"]["best"] is None
    assert found["effects"][0]["effect"] == pytest.approx(3.0)
    assert "give a goal, min or max" in " ".join(said(*base).split())
    ranked = json.loads(said(*base, "--goal", "max", "--json"))["diagnostics"]["best"]
    assert ranked["cells"][0]["config"] == "c · 0.2"


def test_middle_rows_of_a_table_are_centre_runs(tmp_path):
    path = tmp_path / "centre.csv"
    rows = [(a, b, a + b) for a in (-1, 1) for b in (-1, 1) for _ in (0, 1)]
    lines = [f"{a},{b},{y + 0.1 * (i % 2)}" for i, (a, b, y) in enumerate(rows)]
    lines += [f"0,0,{y}" for y in (5.0, 5.1, 5.2)]
    path.write_text("A,B,y\n" + "\n".join(lines) + "\n")
    found = json.loads(said("analyze", "--table", path, "--factors", "A,B", "-r", "y", "--json"))
    assert "Curvature" in [row["source"] for row in found["anova"]]
    assert found["diagnostics"]["curvature"]["n"] == 3
    assert found["diagnostics"]["curvature"]["difference"] == pytest.approx(5.05)


def test_the_report_of_a_chosen_model_has_its_terms_alone(study, tmp_path):
    said("report", "--study", study, "--out", tmp_path, "--terms", "lr,optimizer,lr:optimizer")
    rows = (tmp_path / "tables" / "anova-loss.csv").read_text().splitlines()
    sources = [row.partition(",")[0] for row in rows[1:]]
    assert sources == ["Block", "lr", "optimizer", "lr:optimizer", "Lack of fit", "Error", "Total"]
    assert "--terms lr,optimizer,lr:optimizer" in (tmp_path / "index.html").read_text()
    wrong = CliRunner().invoke(app, ["report", "--study", str(study), "--terms", "lr,optimiser"])
    assert isinstance(wrong.exception, DoeError)
    assert "did you mean 'optimizer'" in str(wrong.exception)


def test_the_profiler_has_every_combination_of_levels(study):
    report = report_of(study_page(overview(study)), AnalysisOptions())
    profile = profile_json(report, report.analyses["accuracy"], report.subject.factors)
    table = doe.load(study)
    assert len(profile["rows"]) == 12
    for row, line in enumerate(profile["rows"]):
        observed = table.accuracy[table.row == row]
        assert line[3] == pytest.approx(observed.mean(), rel=1e-5)
        assert line[7] == len(observed) == 2
    at = report.analyses["accuracy"].best.cells[0]
    assert dict(profile["places"])["best observed"] == at.levels
    assert profile["centre"] == ""
