"""Analyses with an error for each stratum: R's aov and pbkrtest, and what has no error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from benchmarks.strata import sizes, split_plot
from doe.analysis.analyze import Analysis, analyze, fit_response
from doe.analysis.best import maximum_modulus
from doe.analysis.dataset import Dataset, FactorColumn, RandomGroup, Runs
from doe.analysis.estimators.equivalence import Equivalence
from doe.analysis.fit import fit
from doe.analysis.goals import observed, pareto
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
    whole, sub, both, covered, wrong = sizes(6, draw, 0.0, 200)
    assert whole < 0.12
    assert max(sub, both) < 0.12
    assert covered > 0.88
    assert wrong > 0.15  # against the error of runs


def test_a_plan_knows_its_errors_beforehand() -> None:
    data = split_plot(np.random.default_rng(3), 6, "normal", 0.0)
    errors = {error.term: error for error in planned_errors(make_model(data.runs, [1, 2, 4]))}
    assert (errors["A"].stratum, errors["A"].groups) == ("whole plot", 6)
    assert errors["A"].df_error == pytest.approx(4.0)
    assert errors["A"].inflation == pytest.approx(1.0 + 4.0)
    assert (errors["B"].stratum, errors["B"].inflation) == ("run", pytest.approx(1.0))
    assert errors["B"].df_error == pytest.approx(16.0)


def test_whole_plot_terms_are_negligible_by_the_degrees_of_freedom_of_their_stratum() -> None:
    data = split_plot(np.random.default_rng(4), 6, "normal", 0.0)
    options = AnalysisOptions(terms=("A", "B", "C"), equivalence=True, matters=3.0)
    found = analyze(data, options)
    equivalence = found.get(Equivalence)
    assert equivalence is not None
    for effect, row in zip(found.effects, equivalence.rows, strict=True):
        assert (row.term, effect.df_error) == (effect.term, 4.0 if row.term == "A" else 16.0)
        assert effect.se is not None
        reach = stats.t.isf(0.05 / 3, effect.df_error) * effect.se
        assert row.high == pytest.approx(max(effect.effect + reach, 0.0))
        p = stats.t.sf((3.0 - abs(effect.effect)) / effect.se, effect.df_error)
        assert row.p == pytest.approx(p)


def test_goals_are_weighed_by_the_fewest_degrees_of_freedom() -> None:
    rng = np.random.default_rng(5)
    responses = []
    for name in ("y", "z"):
        data = split_plot(rng, 6, "normal", 0.0)
        responses.append(fit_response(Dataset(data.runs, name, data.y, goal="min")))
    front = pareto(observed(responses), (), 0.05)
    (mean, *_), full = front[0].means, responses[0].fit
    row = full.model.cell_rows([0])
    se, df = full.errors(row)
    assert df[0] < full.df_error
    assert mean.ci_high is not None
    reach = maximum_modulus(8, float(df[0]), 0.025) * se[0] * full.unit
    assert mean.ci_high - mean.mean == pytest.approx(reach, rel=1e-6)


@pytest.mark.parametrize("lost", [0.0, 0.1])
def test_checks_take_out_what_runs_share(lost: float) -> None:
    data = split_plot(np.random.default_rng(6), 8, "normal", lost, variance=400.0)
    y = data.y.copy()
    at = int(np.flatnonzero(np.isfinite(y))[5])
    y[at] += 12.0
    found = fit_response(Dataset(data.runs, "y", y), AnalysisOptions(terms=("A", "B", "C", "BC")))
    left = found.fit.within
    assert found.fit.strata is not None
    assert (left.df, left.ss) == (found.fit.strata.df_run, pytest.approx(left.values @ left.values))
    if not lost:
        assert left.ss == pytest.approx(found.fit.strata.ss_run)
    moved = fit(
        found.fit.y + 50.0 * np.arange(8)[data.runs.groups[0].of[found.observed_runs]],
        found.fit.model,
        found.observed_runs,
    )
    assert moved.within.values * moved.unit == pytest.approx(left.values * found.fit.unit, abs=1e-8)
    (outliers,) = (
        f for f in analyze(Dataset(data.runs, "y", y)).diagnostics.findings if f.check == "outliers"
    )
    assert outliers.runs == (data.runs.run_ids[at],)


def test_a_saturated_split_plot_says_which_term_has_no_error() -> None:
    data = split_plot(np.random.default_rng(7), 2, "normal", 0.0)
    found = analyze(data)
    assert found.df_error == 0
    assert any("A varies only between whole plots, and 2 of these" in w for w in found.warnings)


def sampled(levels: int, replicates: int) -> Dataset:
    """Runs of a random condition D; choices A of three levels and B of two."""
    rng = np.random.default_rng(8)
    index = np.array(
        [
            (a, b, d)
            for _ in range(replicates)
            for d in range(levels)
            for b in range(2)
            for a in range(3)
        ]
    )
    sets = tuple(f"d{i}" for i in range(levels))
    factors = (
        FactorColumn("A", "A", ("p", "q", "r")),
        FactorColumn("B", "B", ("l", "h")),
        FactorColumn("D", "D", sets, role="condition", random=True),
    )
    y = index[:, 0] + rng.normal(size=(levels, 3))[index[:, 2], index[:, 0]]
    y = y + 5.0 * rng.normal(size=levels)[index[:, 2]] + 0.1 * rng.normal(size=len(index))
    block = np.repeat(np.arange(replicates), 6 * levels) if replicates > 1 else None
    return Dataset(Runs(factors, index, block=block), "y", y, goal="max")


def test_a_random_condition_is_no_part_of_a_configuration() -> None:
    found = analyze(sampled(5, 2), AnalysisOptions(beats=(("A2B1", "A0B1"),)))
    assert found.terms == ("A", "B", "AB")
    assert {test.stratum for test in found.tests} == {"D × A", "D × B", "D × AB"}
    assert found.best is not None
    assert [cell.n for cell in found.best.cells] == [10] * 6
    assert sorted(cell.config for cell in found.best.cells)[0] == "A0B0"
    assert not found.best.over_conditions
    assert [at.n for at in found.predictions] == [10] * 6
    (against,) = found.beats  # both replicates have the same data sets
    assert (against.basis, against.probability) == ("nothing", None)


def test_data_sets_are_the_replicates_of_a_comparison() -> None:
    data = sampled(7, 1)
    (found,) = analyze(data, AnalysisOptions(beats=(("A2B1", "A0B1"),))).beats
    assert (found.basis, found.seeds) == ("own runs", 7)
    y = data.y.reshape(7, 2, 3)[:, 1]
    t = (y[:, 2] - y[:, 0]).mean() / (y[:, 2] - y[:, 0]).std(ddof=1)
    assert found.probability == pytest.approx(stats.norm.cdf(t))
