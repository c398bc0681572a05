"""The study of examples/tokens analyses to what its README says."""

from pathlib import Path

import pytest

import doe
from tests.command_line import doe as command

RUNS = Path(__file__).parents[1] / "examples" / "tokens" / "runs" / "tokens"


def test_factors_of_the_stage_are_tested_against_its_executions():
    found = doe.analyze(RUNS, "bits").analysis
    whole, single = found.strata.strata
    assert (whole.name, whole.groups, whole.df) == ("tokens execution", 12, 6)
    assert whole.terms == ("vocab", "words", "vocab:words")
    assert (whole.ms, whole.variance) == pytest.approx((0.01688, 0.003599), rel=1e-3)
    assert (single.df, single.ms) == (24, pytest.approx(0.002483, rel=1e-3))
    tests = {test.term: test for test in found.tests}
    assert tests["words"].f == pytest.approx(3.51, abs=0.01)
    assert tests["words"].p == pytest.approx(0.11, abs=0.001)
    words = next(effect for effect in found.effects if effect.term == "words")
    assert (words.effect, words.ci_low, words.ci_high) == pytest.approx(
        (-0.070, -0.162, 0.021), abs=5e-4
    )
    assert "3 of 15 others are statistically tied with it" in found.best.sentence


def test_runs_taken_as_independent_would_find_more(tmp_path):
    command("export", "--study", RUNS, "--out", tmp_path / "tokens.csv")
    factors = ["vocab", "words", "context", "width", "lr"]
    found = doe.analyze(
        tmp_path / "tokens.csv", "bits", factors=factors, scale={"lr": "log"}, block="replicate"
    ).analysis
    words = next(effect for effect in found.effects if effect.term == "words")
    assert (words.ci_low, words.ci_high) == pytest.approx((-0.113, -0.027), abs=5e-4)
    assert words.p_holm == pytest.approx(0.021, abs=5e-4)
