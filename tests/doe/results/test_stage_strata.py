"""A study with a stage, from its runs to the analysis, the comparison and the confirmation."""

from __future__ import annotations

import numpy as np
import pytest
from typer.testing import CliRunner

import doe
from doe.cli import app
from doe.store.plan import write_plan
from doe.store.verdicts import read_verdict
from doe.study.values import Factor, Responses, Stage, Study

STAGE = Stage(function="stage_backends:draw", factors=("A",))


@pytest.fixture(scope="module")
def staged(tmp_path_factory):
    """A study whose stage has an error that is ten times that of its runs, run and confirmed."""
    study = Study(
        name="staged",
        backend="stage_backends:drawn",
        factors=tuple(Factor(key=key, levels=(False, True)) for key in "ABC"),
        responses=Responses(metrics=("y",), goal="min"),
        replicates=4,
        seeds=(1, 2, 3, 4),
        stages={"data": STAGE},
    )
    plan = write_plan(study, tmp_path_factory.mktemp("staged") / "staged")[0]
    invoke("run", "--study", str(plan.directory), "--cpu", "2")
    return plan


def invoke(*words):
    shown = CliRunner().invoke(app, words)
    assert shown.exit_code == 0, (shown.output, shown.exception)
    return " ".join(shown.output.split())


def test_factors_of_a_stage_are_tested_against_its_executions(staged):
    shown = invoke("plan", "--out", str(staged.directory), str(staged.directory / "study.toml"))
    assert "A: tested against 8 data executions on 3 degrees of freedom" in shown
    found = doe.analyze(staged.directory, "y").analysis
    tests = {test.term: test for test in found.tests}
    y = np.zeros((4, 2, 4))
    for run in staged.design.runs:
        value = read_verdict(staged.files.run(run.run_id)).result.metrics["y"]
        y[run.replicate - 1, int(run.levels["A"]), 2 * run.levels["B"] + run.levels["C"]] = value
    difference = y[:, 1].mean(axis=1) - y[:, 0].mean(axis=1)
    t = difference.mean() / (difference.std(ddof=1) / 2.0)
    assert (tests["A"].stratum, tests["A"].df_error) == ("data execution", 3.0)
    assert tests["A"].f == pytest.approx(t**2, rel=1e-9)
    assert tests["A"].p > 0.05
    assert {tests[term].stratum for term in ("B", "C", "AB", "AC", "BC", "ABC")} == {"run"}
    assert tests["C"].p < 1e-12


def test_what_needs_independent_runs_is_said_to_be_left_out(staged):
    (sentence,) = (
        w for w in doe.analyze(staged.directory, "y").analysis.warnings if "Left out" in w
    )
    assert sentence == (
        "Left out, for runs that share an error are not independent: dispersion effects and Box "
        "and Meyer's probabilities."
    )


def test_one_configuration_against_another_and_fresh_executions_to_confirm_it(staged):
    against = doe.analyze(staged.directory, "y", beats=[("A0B0C0", "A1B0C0")]).analysis.beats[0]
    assert (against.basis, against.seeds) == ("own runs", 4)
    within = doe.analyze(staged.directory, "y", beats=[("A0B0C0", "A0B0C1")]).analysis.beats[0]
    assert within.low > 0.9
    assert against.high - against.low > within.high - within.low
    before = doe.analyze(staged.directory, "y").analysis
    invoke("plan", "--out", str(staged.directory), "--confirm", "3")
    invoke("run", "--study", str(staged.directory), "--cpu", "2")
    after = doe.analyze(staged.directory, "y").analysis
    assert after.effects == before.effects
    assert after.confirmation.seeds == 3
    assert after.confirmation.predicted_low is None
    assert any("the interval of the confirming runs" in w for w in after.warnings)
