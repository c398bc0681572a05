"""Covariates of a study and of a table, from their names to sentences, JSON and tables."""

import json

import pytest

import doe as package
from doe.analysis.options import AnalysisOptions
from doe.results.decision import decision
from doe.results.report import report_of
from doe.results.status import overview
from doe.results.subject import study_subject
from doe.store.plan import load_plan
from doe.views.html import payload
from tests.command_line import doe

STUDY = """
name = "lucky"
backend = "tiny_backends:lucky"
replicates = 4
seeds = [1, 2, 3, 4]
[factors.A]
low = false
high = true
[factors.B]
low = false
high = true
[factors.C]
low = false
high = true
[responses]
metrics = ["y"]
further = ["start"]
matters = {{ y = 1.0 }}
covariates = {covariates}
[settings]
{settings}
"""


def planned(directory, covariates, settings="", run=("--cpu", "2")):
    file = directory / "lucky.toml"
    file.write_text(STUDY.format(covariates=json.dumps(covariates), settings=settings))
    doe("plan", file, cwd=directory)
    doe("run", *run, cwd=directory)


@pytest.fixture(scope="module")
def adjusted(tmp_path_factory):
    """A study that has run, with the loss that was reported first as its covariate."""
    directory = tmp_path_factory.mktemp("adjusted")
    planned(directory, ["loss at 0"])
    return directory


def test_what_was_reported_first_is_adjusted_for(adjusted):
    found = json.loads(doe("analyze", "-r", "y", "--json", cwd=adjusted).stdout)
    (row,) = found["diagnostics"]["covariates"]["rows"]
    assert row["name"] == "loss at 0"
    assert row["slope"] == pytest.approx(1.0, abs=0.25)
    assert found["sigma"] == found["diagnostics"]["covariates"]["sigma"] < 0.5
    assert found["diagnostics"]["covariates"]["sigma_before"] > 2 * found["sigma"]
    shown = doe("analyze", "-r", "y", "--full", cwd=adjusted).stdout
    assert "Adjusting for loss at 0 reduces σ" in " ".join(shown.split())
    assert "mean covariate" in " ".join(shown.split())


def test_a_metric_that_was_reported_first_does_the_same(adjusted, tmp_path):
    planned(tmp_path, ["start"])
    found, other = (
        json.loads(doe("analyze", "-r", "y", "--json", cwd=at).stdout)
        for at in (tmp_path, adjusted)
    )
    assert found["effects"] == other["effects"]
    itself = json.loads(doe("analyze", "-r", "start", "--json", cwd=tmp_path).stdout)
    assert itself["diagnostics"]["covariates"] is None


def test_a_table_names_its_covariates(adjusted):
    frame = package.load(adjusted / "runs" / "lucky")
    frame.to_csv(adjusted / "runs.csv", index=False)
    words = ("--table", "runs.csv", "--factors", "A,B,C", "--block", "replicate", "-r", "y")
    of_table = json.loads(
        doe("analyze", *words, "--covariate", "start", "--json", cwd=adjusted).stdout
    )
    of_study = json.loads(doe("analyze", "-r", "y", "--json", cwd=adjusted).stdout)
    for one, other in zip(of_table["effects"], of_study["effects"], strict=True):
        assert one["effect"] == pytest.approx(other["effect"])
        assert one["p"] == pytest.approx(other["p"])
    result = package.analyze(
        frame, "y", factors=["A", "B", "C"], block="replicate", covariates=["start"]
    )
    assert result.analysis.sigma == pytest.approx(of_study["sigma"])
    assert "given both" in doe("analyze", *words, "--covariate", "A", cwd=adjusted, code=1).stderr
    wrong = doe("analyze", *words, "--covariate", "config", cwd=adjusted, code=1).stderr
    assert "holds no numbers" in wrong
    belongs = doe("analyze", "-r", "y", "--covariate", "start", cwd=adjusted, code=1).stderr
    assert "--covariate applies to --table" in belongs


def test_the_page_has_its_table_and_the_sentence(adjusted):
    state = overview(adjusted / "runs" / "lucky")
    data = payload(report_of(study_subject(state, ("y",)), AnalysisOptions()))
    assert "Adjusting for loss at 0 reduces" in json.dumps(data)
    doe("report", "--out", "page", cwd=adjusted)
    assert "loss at 0" in (adjusted / "page" / "tables" / "covariates-y.csv").read_text()


def test_a_covariate_that_a_factor_changes_is_refused(tmp_path):
    planned(tmp_path, ["start"], "shifted = true")
    refused = doe("analyze", "-r", "y", cwd=tmp_path, code=1).stderr
    assert "start differs between levels of B" in " ".join(refused.split())


def test_looks_are_adjusted_as_well(tmp_path):
    """They stop earlier than looks at the same runs without the covariate would."""
    planned(tmp_path, ["start"], run=("--cpu", "2", "--until", "decided", "--max-replicates", "8"))
    plan = load_plan(tmp_path / "runs" / "lucky")
    assert decision(plan.study, plan.scan()).reached
    assert decision(plan.study, plan.scan()).replicates < 8


@pytest.mark.parametrize(
    ("covariates", "sentence"),
    [
        ('["strat"]', "is not a metric (did you mean 'start'?)"),
        ('["start"]\n[factors.C]\nhard = true', "covariates need a single error term"),
    ],
)
def test_covariates_that_cannot_be_are_refused_when_planned(tmp_path, covariates, sentence):
    text = STUDY.format(covariates="COVARIATES", settings="")
    if "hard" in covariates:
        covariates = '["start"]'
        text = text.replace("[factors.C]", "[factors.C]\nhard = true")
    (tmp_path / "wrong.toml").write_text(text.replace("COVARIATES", covariates))
    refused = " ".join(doe("plan", "wrong.toml", cwd=tmp_path, code=1).stderr.split())
    assert sentence in refused
