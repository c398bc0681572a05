"""Analyses with an error for each stratum: R's aov and pbkrtest, and what has no error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from doe.analysis.analyze import Analysis, analyze
from doe.analysis.dataset import Dataset, FactorColumn, RandomGroup, Runs
from doe.analysis.options import AnalysisOptions

CASES = json.loads((Path(__file__).parent / "r" / "strata.json").read_text(encoding="utf-8"))


def analysis_of(case: dict[str, Any]) -> Analysis:
    keys = [key for key in "ABC" if any(key in term for term in case["terms"])]
    factors = tuple(
        FactorColumn(key, key, tuple(f"{key.lower()}{i}" for i in range(max(case[key]) + 1)))
        for key in keys
    )
    runs = Runs(
        factors,
        np.array([case[key] for key in keys]).T,
        groups=tuple(RandomGroup(name, np.array(of)) for name, of in case["groups"].items()),
    )
    terms = tuple(term.replace(":", "") for term in case["terms"])
    data = Dataset(runs, "y", np.array(case["y"]), goal="min")
    return analyze(data, AnalysisOptions(terms=terms))


UNBALANCED = [name for name in CASES if "aov" not in CASES[name] and name != "nothing"]


@pytest.mark.parametrize("name", UNBALANCED)
def test_unbalanced_tests_are_those_of_pbkrtest(name: str) -> None:
    found = {test.term: test for test in analysis_of(CASES[name]).tests}
    for line in CASES[name]["lmer"]["tests"]:
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
        row = rows[source, line["stratum"].removeprefix("Error: ").replace("Within", "run")]
        assert row.df == line["df"]
        assert row.ss == pytest.approx(line["ss"], rel=1e-6)
        if line["f"] is not None:
            assert row.f == pytest.approx(line["f"], rel=1e-6)


def test_plots_that_agree_to_the_last_digit_are_no_error() -> None:
    found = analysis_of(CASES["nothing"])
    tests = {test.term: test for test in found.tests}
    assert tests["A"].p is None
    assert tests["B"].p is not None
    assert any(text.startswith("A varies only between plots") for text in found.warnings)
