"""Analyses with an error for each stratum: R's aov and pbkrtest, and what has no error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.strata import sizes, split_plot
from doe.analysis.analyze import Analysis, analyze
from doe.analysis.dataset import Dataset, FactorColumn, RandomGroup, Runs
from doe.analysis.model import make_model
from doe.analysis.options import AnalysisOptions
from doe.analysis.strata import planned_errors

CASES = json.loads((Path(__file__).parent / "r" / "strata.json").read_text(encoding="utf-8"))


def analysis_of(case: dict[str, Any]) -> Analysis:
    """Analyse a case; data sets are a random condition, other groups are given."""
    keys = [key for key in "ABC" if any(key in term for term in case["terms"])]
    factors = tuple(
        FactorColumn(key, key, tuple(f"{key.lower()}{i}" for i in range(max(case[key]) + 1)))
        for key in keys
    )
    groups, index = case["groups"], [case[key] for key in keys]
    if "D" in groups:
        sets = tuple(f"d{i}" for i in range(max(groups["D"]) + 1))
        factors = (*factors, FactorColumn("D", "D", sets, role="condition", random=True))
        groups, index = {}, [*index, groups["D"]]
    runs = Runs(
        factors,
        np.array(index).T,
        block=np.array(case["rep"]) if "rep" in case else None,
        groups=tuple(RandomGroup(name, np.array(of)) for name, of in groups.items()),
    )
    terms = tuple(term.replace(":", "") for term in case["terms"] if term != "rep")
    data = Dataset(runs, "y", np.array(case["y"]), goal="min")
    return analyze(data, AnalysisOptions(terms=terms))


STRATA = {"D:A": "D × A", "D:B": "D × B", "D:A:B": "D × AB"}
"""What R calls the strata of a random condition, and what we do."""
UNBALANCED = [name for name in CASES if "aov" not in CASES[name] and name != "nothing"]


@pytest.mark.parametrize("name", UNBALANCED)
def test_unbalanced_tests_are_those_of_pbkrtest(name: str) -> None:
    found = {test.term: test for test in analysis_of(CASES[name]).tests}
    for line in (line for line in CASES[name]["lmer"]["tests"] if line["term"] != "rep"):
        test = found[line["term"].replace(":", "")]
        assert test.f == pytest.approx(line["f"], rel=1e-4)
        assert test.df_error == pytest.approx(line["df_error"], rel=1e-4)
        assert test.p == pytest.approx(line["p"], rel=1e-4)


@pytest.mark.parametrize("name", [name for name in CASES if "aov" in CASES[name]])
def test_balanced_tests_are_those_of_aov(name: str) -> None:
    case = CASES[name]
    rows = {
        (row.source, row.stratum): row
        for row in analysis_of(case).anova.rows
        if row.source != "Total"
    }
    assert len(rows) == len(case["aov"])
    for line in case["aov"]:
        source = line["source"].replace(":", "").replace("Residuals", "Error")
        source = "Block" if source == "rep" else source
        stratum = line["stratum"].removeprefix("Error: ").replace("Within", "run")
        stratum = STRATA.get(stratum, stratum) if source != "Block" else ""
        row = rows[source, stratum]
        assert row.df == line["df"]
        assert row.ss == pytest.approx(line["ss"], rel=1e-6)
        if line["f"] is not None and source != "Block":
            assert row.f == pytest.approx(line["f"], rel=1e-6)


def test_plots_that_agree_to_the_last_digit_are_no_error() -> None:
    found = analysis_of(CASES["nothing"])
    tests = {test.term: test for test in found.tests}
    assert tests["A"].p is None
    assert tests["B"].p is not None
    assert any(text.startswith("A varies only between plots") for text in found.warnings)


def test_one_whole_plot_per_level_has_no_p_value() -> None:
    data = split_plot(np.random.default_rng(1), 2, "normal", 0.0)
    found = analyze(data, AnalysisOptions(terms=("A", "B", "C", "BC")))
    tests = {test.term: test for test in found.tests}
    assert tests["A"].p is None
    assert tests["A"].stratum == "whole plot"
    assert tests["B"].p is not None
    effects = {effect.term: effect for effect in found.effects}
    assert (effects["A"].se, effects["A"].ci_low) == (None, None)
    assert effects["B"].se is not None
    assert [mean.se for mean in found.levels if mean.factor == "A"] == [None, None]
    assert any("A varies only between whole plots" in text for text in found.warnings)


def test_lost_runs_leave_no_error_either() -> None:
    data = split_plot(np.random.default_rng(2), 2, "normal", 0.2)
    tests = {t.term: t for t in analyze(data, AnalysisOptions(terms=("A", "B", "C"))).tests}
    assert tests["A"].p is None
    assert tests["B"].p is not None


@pytest.mark.slow
@pytest.mark.parametrize("draw", ["normal", "skewed"])
def test_whole_plot_and_sub_plot_tests_keep_their_size(draw: str) -> None:
    whole, sub, wrong = sizes(6, draw, 0.0, 200)
    assert whole < 0.12
    assert sub < 0.12
    assert wrong > 0.15  # against the error of runs


def test_a_plan_knows_its_errors_beforehand() -> None:
    data = split_plot(np.random.default_rng(3), 6, "normal", 0.0)
    errors = {error.term: error for error in planned_errors(make_model(data.runs, [1, 2, 4]))}
    assert (errors["A"].stratum, errors["A"].groups) == ("whole plot", 6)
    assert errors["A"].df_error == pytest.approx(4.0)
    assert errors["A"].inflation == pytest.approx(1.0 + 4.0)
    assert (errors["B"].stratum, errors["B"].inflation) == ("run", pytest.approx(1.0))
    assert errors["B"].df_error == pytest.approx(16.0)
