"""Results in Python: what they show, what they give, and a notebook from plan to chart."""

import shutil
from pathlib import Path

import altair as alt
import pandas as pd
import pytest

import doe
from doe.errors import DoeError
from doe.store.imports import import_runs

EXAMPLE = Path(__file__).parents[2] / "examples" / "digits"
EXPORT = Path(__file__).parent / "results" / "exports" / "wandb.csv"


@pytest.fixture
def study(planned):
    """Two factors, two replicates, all done."""
    plan = planned("noop", replicates=2)
    values = {
        (a, b, s): 3 * a - b + 0.01 * s * (1 + a) for a in (0, 1) for b in (0, 1) for s in (1, 2)
    }
    rows = [
        {"A": str(a), "B": str(b), "seed": str(s), "y": str(y)} for (a, b, s), y in values.items()
    ]
    import_runs(plan, rows, "past.csv")
    return plan.directory


@pytest.fixture
def result(study):
    return doe.analyze(study, "y")


def test_a_result_shows_sentences_and_tables(result):
    assert len(repr(result)) < 2000
    assert "A raises y by 3.0" in " ".join(repr(result).split())
    assert all(len(line) <= 80 for line in str(result).splitlines())
    assert "Analysis of variance" in str(result)
    html = result._repr_html_()
    assert html.count("<table") >= 2
    assert "<li>A raises y by" in html


def test_a_result_gives_data_frames(result):
    assert result.effects["term"].tolist() == ["A", "B", "AB"]
    assert result.effects.loc[0, "effect"] == pytest.approx(3.015)
    assert result.anova["source"].tolist()[-1] == "Total"
    assert result.best.loc[0, "config"] == "A0B1"
    assert result.analysis.df_error == 3


def test_every_chart_is_an_altair_object(result):
    assert {"half_normal", "pareto", "main_effects", "residuals"} <= set(result.charts)
    assert "half_normal" in dir(result)
    for name in result.charts:
        chart = getattr(result, name)()
        assert isinstance(chart, alt.TopLevelMixin)
        assert chart.to_dict()["datasets"]
    with pytest.raises(AttributeError, match="did you mean 'half_normal'"):
        result.half_norml()
    with pytest.raises(DoeError, match="has no chart 'learning_curves'"):
        result.learning_curves()


def test_charts_of_several_levels_go_by_the_same_names():
    levels = [(opt, lr) for opt in ("adam", "lion", "sgd") for lr in (0.1, 0.2)]
    rows = [(o, lr, len(o) + lr + i * lr**j) for i in range(2) for j, (o, lr) in enumerate(levels)]
    frame = pd.DataFrame(rows, columns=["opt", "lr", "y"])
    result = doe.analyze(frame, "y", factors=["opt", "lr"], goal="min")
    assert isinstance(result.half_normal(), alt.TopLevelMixin)
    assert result.best.loc[0, "config"] == "sgd · 0.1"


def test_several_responses_are_a_mapping(study):
    results = doe.analyze(study)
    assert list(results) == ["y"]
    assert results.effects["response"].tolist() == ["y"] * 3
    assert doe.analyze(study, ["y"])["y"].effects.equals(results["y"].effects)
    assert "y: 8 runs" in repr(results)
    with pytest.raises(DoeError, match="'z' was not analysed"):
        results["z"]


def test_a_file_and_a_data_frame_are_analysed_alike(capsys):
    asked = {"factors": ["lr", "augment"], "goal": "max"}
    by_file = doe.analyze(EXPORT, "val/accuracy", block="seed", **asked)
    assert "an export of W&B" in capsys.readouterr().err
    frame = pd.read_csv(EXPORT).query("State == 'finished'")
    by_frame = doe.analyze(frame, "val/accuracy", block="seed", **asked)
    assert by_file.effects["effect"].tolist() == by_frame.effects["effect"].tolist()
    assert by_file.effects["p"].tolist() == by_frame.effects["p"].tolist()


def test_a_data_frame_has_a_page(tmp_path):
    frame = pd.DataFrame(
        {"a": [0, 1, 0, 1] * 2, "b": [0, 0, 1, 1] * 2, "y": [1.0, 2, 3, 5, 1, 2.5, 3, 6]}
    )
    page = doe.report(frame, factors=["a", "b"], goal="max", out=tmp_path / "page")
    assert page == tmp_path / "page" / "index.html"
    assert "doe run" not in page.read_text()


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda study: doe.analyze(3, "y"), "got int; expected a study's directory, a CSV file"),
        (lambda study: doe.analyze("nowhere", "y"), "neither a study nor a table at nowhere"),
        (lambda study: doe.analyze(study, "z"), "response 'z' is not among the study's"),
        (lambda study: doe.analyze(study, [3]), "response 3: expected a name"),
        (lambda study: doe.analyze(study, "y", alpha=2), "alpha 2 is not a confidence level"),
        (lambda study: doe.analyze(study, "y", transform="cube"), "cube"),
        (lambda study: doe.analyze(study, "y", order=9), "order 9"),
        (lambda study: doe.analyze(study, "y", goal="max"), "belong to a table"),
        (lambda study: doe.analyze(EXPORT, "y", factors="lr"), "expected a list of columns"),
        (lambda study: doe.analyze(EXPORT, "y"), "which columns are the factors?"),
        (lambda study: doe.analyze(study, "y", terms="ab"), "expected a list of terms"),
        (lambda study: doe.report(None), "got NoneType"),
        (lambda study: doe.report(study, out=5), "got int; expected the directory to write to"),
        (lambda study: doe.report(study, terms=5), "terms=5: expected a list of terms"),
        (lambda study: doe.report(study, transform="lgo"), "boxcox, auto (did you mean 'log'?)"),
        (lambda study: doe.report(study, transform=5), "transform 5 is not one of none, log"),
        (lambda study: doe.report(study, responses=["y"]), "responses belong to a table"),
        (lambda study: doe.plan(preset="demo", out=5), "got int; expected the directory to plan"),
        (lambda study: doe.plan("absent.toml"), "cannot read the study file absent.toml"),
        (lambda study: doe.plan(3), "got int; expected a Study, a dict or the path"),
        (lambda study: doe.run(3), "got int; expected the directory"),
        (lambda study: doe.run(study, cpus=2), "cpus"),
        (lambda study: doe.run(study, engine="slrm"), "slrm"),
        (lambda study: doe.load("nowhere"), "holds no study.toml"),
    ],
)
def test_wrong_arguments_get_a_sentence(study, call, said):
    with pytest.raises(DoeError) as refused:
        call(study)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_study_without_results_says_so(planned):
    with pytest.raises(DoeError, match=r"no run of .* is done yet"):
        doe.analyze(planned("noop").directory, "y")


@pytest.mark.slow
def test_a_notebook_goes_from_plan_to_chart(tmp_path):
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    for file in EXAMPLE.iterdir():
        if file.is_file():
            shutil.copy(file, tmp_path)
    notebook = nbformat.read(tmp_path / "digits.ipynb", as_version=4)
    nbclient.NotebookClient(
        notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    shown = [
        cell.outputs[-1].get("data", {}) for cell in notebook.cells if cell.cell_type == "code"
    ]
    assert "16" in shown[1]["text/plain"]
    bars = [
        output["data"]["text/html"]
        for cell in notebook.cells
        for output in cell.get("outputs", ())
        if "<progress" in output.get("data", {}).get("text/html", "")
    ]
    assert [bar.split(" (")[0] for bar in bars] == [
        '<progress value="16" max="16"></progress> digits: 16 of 16 runs'
    ]
    assert "<table" in shown[2]["text/html"]
    assert "vega" in shown[4]["text/html"]
    assert "Half-normal quantile" in shown[4]["text/html"]
    assert (tmp_path / "reports" / "digits" / "index.html").exists()
