"""Several goals of a study and of a table: terminal, JSON, CSV, LaTeX, page, Python."""

import csv
import io
import json
import math

import altair as alt
import pytest

import doe as library
from doe.analysis.options import AnalysisOptions
from doe.errors import DoeError
from doe.results.report import report_of
from doe.results.sources import page_source
from doe.store.imports import import_runs
from doe.store.plan import write_plan
from doe.study.file import parse_study
from doe.views.charts import study_charts
from doe.views.html import payload
from doe.views.tables import file_tables
from tests.command_line import doe

STUDY = """
name = "goals"
backend = "train:run"
replicates = 3
[factors.width]
levels = [8, 32, 128]
[factors.opt]
levels = ["sgd", "adam"]
[responses]
metrics = ["loss", "seconds"]
"""
DESIRABILITY = """
[desirability]
loss = { target = 0.0, high = 3.0 }
seconds = { target = 0.0, high = 200.0 }
"""


def rows():
    """Wide networks are better and slower, adam is better and faster."""
    for width in (8, 32, 128):
        for opt in ("sgd", "adam"):
            for seed in (1, 2, 3):
                wave = 0.01 * math.sin(7 * seed + width + 3 * len(opt))
                loss = 8 / math.sqrt(width) + (0.5 if opt == "sgd" else 0.0) + wave
                yield {
                    "width": str(width),
                    "opt": opt,
                    "seed": str(seed),
                    "loss": str(loss),
                    "seconds": str(width * (1.2 if opt == "sgd" else 1.0) + 10 * wave),
                }


def finished(tmp_path, text=STUDY):
    directory = tmp_path / "runs" / "goals"
    plan, _ = write_plan(parse_study(text.encode()), directory)
    import_runs(plan, list(rows()), "past.csv")
    return directory


@pytest.fixture
def study(tmp_path):
    return finished(tmp_path)


PLACES = {
    "8 · sgd": "dominated",
    "8 · adam": "front",
    "32 · sgd": "dominated",
    "32 · adam": "front",
    "128 · sgd": "dominated",
    "128 · adam": "front",
}


def test_recorded_run_time_is_analysed(study):
    result = library.analyze(study, "seconds")
    assert result.analysis.mean.mean == pytest.approx(61.6, abs=0.5)
    assert library.load(study).columns.tolist().count("seconds") == 1
    assert library.load(study)["seconds"].mean() == pytest.approx(61.6, abs=0.5)


def test_json_names_the_place_of_every_configuration(study):
    answers = json.loads(doe("analyze", "--study", study, "--json").stdout)
    assert [answer["response"] for answer in answers] == ["loss", "seconds"]
    for answer in answers:
        assert {p["config"]: p["place"] for p in answer["pareto"]} == PLACES
        assert answer["within_limits"] == []
        assert answer["desirability"] is None


def test_a_constraint_reads_the_response_that_it_names(study):
    said = doe("analyze", "--study", study, "-r", "loss", "--constraint", "seconds <= 60").stdout
    words = " ".join(said.split())
    assert "Smallest loss with seconds <= 60: 32 · adam, loss 1.4" in words
    assert "within the limits by its intervals" in words
    assert "seconds: 18 runs" not in words  # it limits and is not analysed by itself
    answer = json.loads(
        doe("analyze", "--study", study, "-r", "loss", "--constraint=seconds<=60", "--json").stdout
    )
    assert answer["within_limits"][0]["config"] == "32 · adam"


def test_a_constraint_that_nobody_keeps_is_one_sentence(study):
    said = doe("analyze", "--study", study, "--constraint", "seconds <= 1", "--brief").stdout
    assert "No configuration that ran meets seconds <= 1" in " ".join(said.split())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--constraint", "second <= 1"), "'second' is not a response (did you mean 'seconds'?)"),
        (("--constraint", "seconds"), "expected a response, <= or >=, and a number"),
        (("--desire", "loss=3..0"), "got loss alone; expected two responses"),
        (("--desire", "loss=3..0:0", "--desire", "seconds=9..1"), "expected a number above 0"),
        (("--desire", "loss=0..3", "--desire", "seconds=9..1"), "its goal is min"),
        (("--desire", "loss=3..0", "--desire", "secs=9..1"), "desirability.secs: no such response"),
    ],
)
def test_bad_wishes_are_refused_in_a_sentence(study, words, said):
    ended = doe("analyze", "--study", study, *words, code=1)
    assert said in " ".join(ended.stderr.split())


def test_desirability_by_the_study_file_and_by_options_is_the_same(tmp_path, study):
    wishes = ("--desire", "loss=3..0", "--desire", "seconds=200..0")
    asked = json.loads(doe("analyze", "--study", study, "--json", *wishes).stdout)[0]
    own = finished(tmp_path / "own", STUDY + DESIRABILITY)
    told = json.loads(doe("analyze", "--study", own, "--json").stdout)[0]
    assert asked["desirability"] == told["desirability"]
    assert told["desirability"]["configs"][0]["config"] == "32 · adam"
    words = " ".join(doe("analyze", "--study", own).stdout.split())
    assert "Overall desirability" in words
    assert "Sensitivity to the weights" in words


def test_every_form_has_the_tables(tmp_path):
    own = finished(tmp_path, STUDY + DESIRABILITY)
    text = doe("analyze", "--study", own, "--csv").stdout
    lines = list(csv.DictReader(io.StringIO(text)))
    front = {line["config"]: line["place"] for line in lines if line["table"] == "pareto"}
    assert front == PLACES
    assert sum(line["table"] == "desirability" for line in lines) == 6
    assert r"\caption{Pareto front" in doe("analyze", "--study", own, "--latex").stdout
    report = report_of(page_source(own, (), None, print), AnalysisOptions())
    assert {"pareto", "desirability", "weights"} <= {t.name for t in file_tables(report)[0]}
    page = payload(report)
    assert "trade-off" not in page["study"]["charts"], "the page has its own"
    assert page["front"]["responses"] == ("loss", "seconds")
    places = {place for place, _ in page["front"]["at"].values()}
    assert places == set(PLACES.values())
    assert len(page["front"]["at"]) == len(PLACES)


def test_the_chart_marks_front_seeds_and_limits(study):
    options = AnalysisOptions(constraints=("seconds <= 60",))
    data = study_charts(report_of(page_source(study, (), None, print), options))["trade-off"]
    assert len(data.datasets["points"]) == 6
    assert len(data.datasets["seeds"]) == 18
    assert [record["label"] for record in data.datasets["front"]] == [
        "8 · adam",
        "32 · adam",
        "128 · adam",
    ]
    assert data.datasets["limits"] == [{"x": 60.0}]
    assert (data.words["x"], data.words["y"]) == ("seconds", "loss")


def test_python_has_the_same(study):
    results = library.analyze(study, constraints=["seconds <= 60"])
    assert results.trade_off.within_limits[0].config == "32 · adam"
    assert dict(zip(results.pareto["config"], results.pareto["place"], strict=True)) == PLACES
    assert "Smallest loss with seconds <= 60: 32 · adam" in " ".join(repr(results).split())
    assert "<caption>Pareto front</caption>" in results._repr_html_()
    chart = results.trade_off_chart("loss", "seconds")
    assert isinstance(chart, alt.TopLevelMixin)
    assert chart.to_dict()["layer"]
    with pytest.raises(DoeError, match="'los' has no desirability"):
        results.trade_off_chart("los", "seconds")
    with pytest.raises(DoeError, match="no desirability"):
        results.desirability  # noqa: B018 - asked for


def test_a_table_has_goals_for_single_responses(tmp_path):
    path = tmp_path / "runs.csv"
    lines = list(rows())
    for line in lines:
        line["speed"] = str(1000 / float(line.pop("seconds")))
    text = [",".join(lines[0]), *(",".join(line.values()) for line in lines)]
    path.write_text("\n".join(text))
    words = ("--table", path, "--factors", "width,opt", "-r", "loss,speed", "--json")
    answer = json.loads(doe("analyze", *words, "--goal", "loss=min,speed=max").stdout)[0]
    place = {p["config"]: p["place"] for p in answer["pareto"]}
    assert (place["8 · adam"], place["8 · sgd"]) == ("front", "dominated")
    assert "goal of 'sped': no such response" in (
        doe("analyze", *words, "--goal", "sped=max", code=1).stderr
    )
    assert "pareto" not in json.loads(doe("analyze", *words).stdout)[0]
