"""A third level takes no answer away: a 3 × 2 × 2 study through every option, and one road."""

import json

import numpy as np
import pandas as pd
import pytest

from doe import analyze
from doe.store.plan import write_plan
from doe.study.values import Factor, Responses, Study
from doe.views.tables.anova import anova_table
from doe.views.tables.effects import effects_table
from tests.command_line import doe


def planned(directory, *first, **further):
    """A study of a factor with the levels `first`, and two of two levels."""
    write_plan(
        Study(
            name="three",
            backend="tiny_backends:noisy",
            factors=tuple(
                Factor(key=key, levels=levels)
                for key, levels in (("A", first), ("B", (False, True)), ("C", (False, True)))
            ),
            responses=Responses(metrics=("y",), matters={"y": 3.0}),
            replicates=2,
            seeds=(1, 2),
            settings={"seconds": 0.0},
            **further,
        ),
        directory,
    )
    return directory


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    directory = planned(tmp_path_factory.mktemp("three") / "study", 0, 1, 2)
    words = ("--cpu", 2, "--until", "decided", "--decide", "A,B", "--max-replicates", 3)
    ended = doe("run", "--study", directory, *words)
    assert "replicates" in ended.stdout
    return directory


def analysed(study, *words):
    return json.loads(doe("analyze", "--study", study, "-r", "y", "--json", *words).stdout)


def test_looks_decide_terms_of_more_degrees_of_freedom(study):
    decided = json.loads(doe("status", "--study", study, "--json").stdout)["decision"]
    verdicts = {term["term"]: term["verdict"] for term in decided["terms"]}
    assert set(verdicts) == {"A", "B"}
    assert verdicts["A"] == "effect"


def test_checks_robust_methods_and_comparisons_are_there(study):
    found = analysed(study, "--robust", "--permutations", 99, "--beats", "best", "baseline")
    more = found["diagnostics"]
    assert {"normality", "spread by factor", "drift"} <= {f["check"] for f in more["findings"]}
    assert len(more["residuals"]) == found["n"]
    assert more["dispersion"] is not None
    rows = {row["term"]: row for row in more["robust"]["rows"]}
    assert rows["A"]["df"] == 2
    assert all(row["p_permutation"] is not None for row in rows.values())
    assert more["beats"][0]["probability"] is not None
    assert more["best"]["cells"][0]["config"].startswith("A")


def test_transformations_and_hidden_factors(study):
    assert analysed(study, "--transform", "auto")["transform"] in ("none", "log")
    hidden = analysed(study, "--drop", "C")
    assert not any("C" in test["term"] for test in hidden["diagnostics"]["tests"])


def test_the_best_is_confirmed_with_fresh_seeds(study):
    doe("plan", "--out", study, "--confirm", 2, "--response", "y")
    doe("run", "--study", study, "--cpu", 2)
    fresh = analysed(study)["diagnostics"]["confirmation"]
    assert fresh["seeds"] == 2
    assert fresh["gains"]


# One road ---------------------------------------------------------------------------------------


def table(tmp_path, sizes, replicates=3, lost=(), seed=0):
    rng = np.random.default_rng(seed)
    cells = [tuple(reversed(cell)) for cell in np.ndindex(*reversed(sizes))]
    rows = [
        {**dict(zip("ABC", cell, strict=True)), "day": day, "y": rng.normal(10, 1) + 2 * cell[0]}
        for day in range(replicates)
        for cell in cells
    ]
    frame = pd.DataFrame([row for i, row in enumerate(rows) if i not in lost])
    path = tmp_path / "runs.csv"
    frame.to_csv(path, index=False)
    return path


def of_table(path, *words):
    base = ("analyze", "--table", path, "--factors", "A,B,C", "-r", "y", "--goal", "max", "--json")
    return json.loads(doe(*base, *words).stdout)


@pytest.mark.parametrize("block", [(), ("--block", "day")])
@pytest.mark.parametrize("sizes", [(2, 2, 2), (3, 2, 2)])
def test_the_full_model_by_default_and_by_name_is_one_document(tmp_path, sizes, block):
    path = table(tmp_path, sizes)
    words = ("--robust", "--permutations", 99, *block)
    assert of_table(path, *words) == of_table(path, *words, "--terms", "A,B,C,AB,AC,BC,ABC")


@pytest.mark.parametrize("sizes", [(2, 2, 2), (3, 2, 2)])
def test_a_term_of_one_degree_of_freedom_has_one_p_everywhere(tmp_path, sizes):
    found = of_table(table(tmp_path, sizes, lost=(1, 7, 8)), "--block", "day")
    rows = {row["source"]: row["p"] for row in found["anova"]}
    tests = {test["term"]: test["p"] for test in found["diagnostics"]["tests"]}
    assert not found["diagnostics"]["balanced"]
    assert found["diagnostics"]["anova_kind"] == "III"
    for effect in found["effects"]:
        assert effect["p"] == pytest.approx(rows[effect["term"]])
        assert effect["p"] == pytest.approx(tests[effect["term"]])


def test_every_design_has_the_same_keys(tmp_path):
    two, three = (of_table(table(tmp_path, sizes)) for sizes in ((2, 2, 2), (3, 2, 2)))
    assert two.keys() == three.keys()
    assert two["diagnostics"].keys() == three["diagnostics"].keys()


def test_a_study_with_exclusions_takes_the_same_road(tmp_path):
    """As it is planned, so it is analysed; before, default and `--terms` parted company."""
    directory = planned(tmp_path / "study", 0, 1, exclude=("A=1, B=true, C=true",))
    doe("run", "--study", directory, "--cpu", 2)
    found = analysed(directory)
    assert found["n"] == 14
    assert found == analysed(directory, "--terms", "A,B,C,AB,AC,BC,ABC")
    assert found["diagnostics"]["inestimable"]
    assert found["diagnostics"].keys() == of_table(table(tmp_path, (2, 2, 2)))["diagnostics"].keys()


def test_bold_means_the_adjusted_p_in_every_table(tmp_path):
    path = table(tmp_path, (2, 2, 2), seed=6)
    analysis = analyze(path, "y", factors=("A", "B", "C"), block="day", goal="max").analysis
    tests = {test.term: test for test in analysis.tests}
    bold = {name for name, test in tests.items() if test.p_holm <= 0.05}
    assert bold < {name for name, test in tests.items() if test.p <= 0.05}
    for shown, key in ((effects_table(analysis), "term"), (anova_table(analysis), "source")):
        assert {row.values[0] for row in shown.rows if row.marks.get(key) == "strong"} == bold


def test_an_outlier_among_three_levels_raises_an_alarm(tmp_path):
    path = table(tmp_path, (3, 2, 2))
    frame = pd.read_csv(path)
    frame.loc[6, "y"] = 60.0
    frame.to_csv(path, index=False)
    findings = {f["check"]: f for f in of_table(path)["diagnostics"]["findings"]}
    assert not findings["normality"]["ok"]
    assert findings["outliers"]["runs"] == ["row 7"]


def test_a_level_that_loses_its_runs_is_named_before_anything_else(tmp_path):
    path = table(tmp_path, (3, 2, 2))
    frame = pd.read_csv(path)
    lost = frame.index[frame["A"] == 2][:-1]
    frame.loc[lost, "y"] = np.nan
    frame["state"] = np.where(frame["y"].isna(), "diverged", "done")
    frame.to_csv(path, index=False)
    found = of_table(path)
    assert found["warnings"][0].startswith("A = 2 diverges in 11 of 12 runs")
