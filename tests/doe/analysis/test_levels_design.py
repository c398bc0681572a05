"""What a design with levels can and cannot estimate, before and after runs are lost."""

from __future__ import annotations

import numpy as np
import pytest
from level_tables import factor, fitted, full, seen, words
from pyDOE2 import gsd

from doe.analysis.analyze import analyze
from doe.analysis.coding import (
    column_labels,
    contrast_labels,
    contrasts,
    contrasts_between,
)
from doe.analysis.dataset import Runs
from doe.analysis.design_report import design_report
from doe.analysis.means import level_differences, level_means
from doe.analysis.model import chosen_terms, default_terms, make_model, margin_df
from doe.analysis.options import AnalysisOptions
from doe.errors import DoeError


def layout(sizes: list[int], index: np.ndarray, block: list[int] | None = None) -> Runs:
    blocks = None if block is None else np.array(block)
    return Runs(words(sizes), np.asarray(index, np.int64), block=blocks)


# Contrasts


@pytest.mark.parametrize(
    "column",
    [
        factor("a", ["x", "y"]),
        factor("a", ["x", "y", "z", "w"]),
        factor("a", [1, 2, 3, 4, 5], "linear"),
        factor("a", [1e-5, 1e-3, 0.5], "log"),
        factor("a", [3, 1, 2], "linear"),
        factor("a", list(range(20)), "linear"),
    ],
)
def test_contrasts_sum_to_zero_and_are_orthogonal(column) -> None:
    C = contrasts(column)
    count = len(column.levels)
    assert C.shape == (count, count - 1)
    assert C.sum(axis=0) == pytest.approx(0, abs=1e-11)
    assert pytest.approx(count * np.eye(count - 1), abs=1e-10) == C.T @ C
    assert len(contrast_labels(column)) == count - 1


def test_numbers_have_orthogonal_polynomials_on_their_scale() -> None:
    evenly = contrasts(factor("a", [10, 100, 1000], "log"))
    assert evenly[:, 0] == pytest.approx(np.sqrt(1.5) * np.array([-1, 0, 1]), abs=1e-12)
    assert evenly[:, 1] == pytest.approx(np.sqrt(0.5) * np.array([1, -2, 1]))
    assert evenly == pytest.approx(contrasts(factor("a", [1, 2, 3], "linear")))
    # contr.poly(3, scores = c(1, 2, 10)) * sqrt(3) in R
    uneven = contrasts(factor("a", [1, 2, 10], "linear"))
    expected = [
        [-0.827605888602, 1.14676435816],
        [-0.579324122022, -1.29010990293],
        [1.406930010624, 0.14334554477],
    ]
    assert uneven == pytest.approx(np.array(expected), rel=1e-10)
    assert contrasts_between(factor("a", [1, 2, 3], "linear"), np.zeros(1))[0] == pytest.approx(
        evenly[1]
    )
    assert contrasts_between(factor("a", [1, 9], "linear"), np.zeros(1))[0] == pytest.approx(0)


def test_labels_say_what_a_contrast_compares() -> None:
    columns = (factor("opt", ["sgd", "adam", "lion"]), factor("lr", [1, 2, 3], "linear"))
    assert contrast_labels(columns[0]) == ("adam − sgd", "lion − mean of 2 before")
    design = Runs((*columns, factor("aug", [False, True])), full([3, 3, 2]))
    assert column_labels(design.factors, 0b110) == ["lr linear : aug", "lr quadratic : aug"]
    assert column_labels(design.factors, 0b100) == ["aug"]


# Models


def test_a_full_factorial_takes_every_term() -> None:
    design = layout([2, 3, 2], full([2, 3, 2]))
    assert len(default_terms(design)) == 7
    report = design_report(design)
    assert (report.rank, report.coefficients, report.df_residual) == (12, 12, 0)
    assert report.balanced
    assert report.empty == report.sentences == ()
    assert [plan.df for plan in report.terms] == [1, 2, 1, 2, 1, 2, 2]
    assert all(plan.vif == pytest.approx(1) for plan in report.terms)
    assert all(plan.variance == pytest.approx(1) for plan in report.terms)


def test_replicates_in_blocks_are_balanced() -> None:
    report = design_report(layout([2, 3], full([2, 3], 3), [0] * 6 + [1] * 6 + [2] * 6))
    assert report.balanced
    assert (report.df_residual, report.df_pure) == (10, 10)


def test_a_third_of_three_to_the_three_has_main_effects_alone() -> None:
    fraction = np.array(gsd([3, 3, 3], 3))
    design = layout([3, 3, 3], fraction)
    assert len(fraction) == 9
    report = design_report(design)
    assert [plan.term for plan in report.terms] == ["A", "B", "C"]
    assert report.balanced
    assert report.df_residual == 2
    confounded = {plan.term: {c.term for c in plan.confounded} for plan in report.terms}
    assert confounded == {"A": {"BC"}, "B": {"AC"}, "C": {"AB"}}  # A = (BC), as in a Latin square
    assert any(
        "A is" in sentence and "confounded with BC" in sentence for sentence in report.sentences
    )


def test_asked_terms_of_a_fraction_name_what_they_are_confounded_with() -> None:
    fraction = np.array(gsd([3, 3, 3], 3))
    design = layout([3, 3, 3], fraction)
    terms = chosen_terms(design, ["A", "B", "C", "AB", "AC"], None)
    report = design_report(design, terms=terms)
    plans = {plan.term: plan for plan in report.terms}
    assert (plans["AB"].df, plans["AB"].df_asked) == (2, 4)
    assert (plans["AC"].df, report.inestimable) == (0, ("AC",))
    assert "C" in {c.term for c in plans["AB"].confounded}
    assert "AB" in {c.term for c in plans["C"].confounded}
    assert any("AB has 2 of its 4" in s and "confounded with C" in s for s in report.sentences)


def test_a_two_level_fraction_has_a_leader_of_each_alias_chain() -> None:
    half = full([2, 2, 2])
    half = np.column_stack([half, half.sum(axis=1) % 2])
    report = design_report(layout([2, 2, 2, 2], half))
    assert [plan.term for plan in report.terms] == ["A", "B", "C", "D", "AB", "AC", "BC"]
    asked = design_report(layout([2, 2, 2, 2], half), order=2)
    plans = {plan.term: plan for plan in asked.terms}
    assert plans["AB"].confounded[0].term == "CD"
    assert plans["AB"].confounded[0].strength == pytest.approx(1)


def test_a_term_confounded_with_blocks_is_left_out_and_named() -> None:
    cells = full([2, 2, 2])
    block = (cells.sum(axis=1) % 2).tolist()
    design = layout([2, 2, 2], cells, block)
    assert make_model(design, default_terms(design)).with_blocks == (0b111,)
    report = design_report(design, order=3)
    assert report.inestimable == ("ABC",)


def test_an_excluded_combination_costs_its_interaction_alone() -> None:
    cells = full([3, 2, 3])
    cells = cells[~((cells[:, 0] == 2) & (cells[:, 1] == 1))]
    design = layout([3, 2, 3], cells)
    assert margin_df(design, 0b011) == 1
    report = design_report(design)
    plans = {plan.term: plan for plan in report.terms}
    assert {name: plan.df for name, plan in plans.items()} == {
        **{"A": 2, "B": 1, "C": 2, "AB": 1, "AC": 4, "BC": 2},
        "ABC": 2,
    }
    assert (report.cells, report.of, len(report.empty)) == (15, 18, 3)
    assert "3 of 18 combinations have no run." in report.sentences
    assert any("AB has 1 of its 2 degrees" in s and "no run has" in s for s in report.sentences)
    assert plans["AB"].confounded == plans["A"].confounded == ()
    assert plans["A"].vif is not None
    assert plans["A"].vif > 1.01


def test_an_option_of_one_optimizer_only_has_no_interaction() -> None:
    cells = np.array([[0, 0], [0, 1], [1, 0], [2, 0]])
    report = design_report(layout([3, 2], np.tile(cells, (2, 1))))
    assert report.inestimable == ("AB",)
    assert (report.rank, report.df_pure) == (4, 4)


def test_unequal_replicates_inflate_the_variance() -> None:
    cells = np.concatenate([full([2, 3], 2), [[0, 0]] * 6])
    report = design_report(layout([2, 3], cells))
    assert not report.balanced
    assert all((plan.variance or 0) > 1 for plan in report.terms)


def test_an_interaction_that_never_ran_is_taken_as_zero_and_named() -> None:
    cells = np.array([[0, 0], [1, 1], [2, 0], [2, 1]] * 2)
    y = np.random.default_rng(0).normal(size=8)
    observed = seen(words([3, 2]), cells, y)
    fit = fitted(observed, ["A", "B", "AB"])
    assert fit.model.inestimable == (0b11,)
    pairs = {(d.level, d.other): d.difference for d in level_differences(fit, 0)}
    a1, a2, low, high = (y[[i, i + 4]].mean() for i in range(4))
    assert pairs["a2", "a1"] == pytest.approx(a2 - (high - low) - a1)
    assert pairs["a3", "a1"] == pytest.approx(low - a1)
    found = analyze(observed, AnalysisOptions(terms=("A", "B", "AB")))
    assert any("assumed to be zero: AB" in warning for warning in found.warnings)


def test_differences_without_a_shared_combination_do_not_exist() -> None:
    cells = np.array([[0, 0], [1, 1], [2, 0], [2, 1], [0, 2], [1, 2]] * 2)
    y = np.random.default_rng(0).normal(size=12)
    fit = fitted(seen(words([3, 3]), cells, y), ["A", "B", "AB"])
    assert fit.model.df(0b11) == 1  # of four: some of it can be estimated, so none of it is zero
    pairs = {(d.level, d.other): d for d in level_differences(fit, 0)}
    assert pairs["a2", "a1"].cells == 1
    expected = y[[5, 11]].mean() - y[[4, 10]].mean()
    assert pairs["a2", "a1"].difference == pytest.approx(expected)
    assert [(mean.cells, mean.of) for mean in level_means(fit, 0)] == [(2, 3)] * 3


def test_a_level_without_any_run_has_no_mean() -> None:
    cells = full([3, 2], 2)
    y = np.where(cells[:, 0] == 1, np.nan, np.arange(12.0))
    found = analyze(seen(words([3, 2]), cells, y))
    levels = {mean.level: mean for mean in found.levels}
    assert levels["a2"].mean is None
    assert levels["a2"].n == 0
    assert levels["a3"].mean == pytest.approx(y[cells[:, 0] == 2].mean())
    assert "4 of 12 planned runs have no value" in found.warnings[0]


def test_chosen_terms_keep_the_hierarchy_or_say_that_they_break_it() -> None:
    design = layout([2, 3, 2], full([2, 3, 2], 2))
    terms = chosen_terms(design, ["A", "B", "AB"], None)
    assert terms == (0b001, 0b010, 0b011)
    assert design_report(design, terms=terms).sentences == ()
    said = design_report(design, terms=chosen_terms(design, ["A", "ABC"], None)).sentences
    assert said[0].startswith(
        "ABC is in the model without B, AB, C, AC, BC: the hierarchy is broken"
    )
    with pytest.raises(DoeError, match="is not a factor"):
        chosen_terms(design, ["A", "AX"], None)
    with pytest.raises(DoeError, match="order 4 does not fit 3 factors"):
        chosen_terms(design, None, 4)


def test_columns_that_are_not_kept_are_sums_of_the_others() -> None:
    cells = full([3, 3])[:-2]
    matrix = make_model(layout([3, 3], cells), [1, 2, 3])
    assert matrix.rank == 7
    assert matrix.X[:, ~matrix.fitted] == pytest.approx(matrix.fitted_columns @ matrix.null)


# Refusals


@pytest.mark.parametrize(
    ("levels", "scale", "words"),
    [
        (["a"], None, "has 1 level"),
        (["a", "b", "a"], None, "the level a twice"),
        ([0, 1, 10], "log", "log scale and the level 0"),
        ([1, "b"], "linear", "not all its levels are numbers"),
        ([1, True], "linear", "not all its levels are numbers"),
        ([1, float("nan")], "linear", "not all its levels are numbers"),
        ([1, 2], "cubic", "expected linear or log"),
    ],
)
def test_factors_that_cannot_be_analysed(levels, scale, words) -> None:
    with pytest.raises(DoeError, match=words):
        Runs((factor("a", levels, scale),), np.zeros((2, 1), np.int64))


def test_layouts_that_cannot_be_analysed() -> None:
    with pytest.raises(DoeError, match="a level that its factor does not have"):
        layout([2, 2], np.array([[0, 2]]))
    with pytest.raises(DoeError, match="expected \\(1, 2\\)"):
        layout([2, 2], np.array([[0]]))
    with pytest.raises(DoeError, match="between the levels of A, which are not numbers"):
        seen(words([2]), np.array([[0], [1], [-1]]), [1, 2, 3])


def test_the_error_of_centre_runs_is_within_the_levels_that_they_keep() -> None:
    cells = [[a, b, c] for c in (0, 1) for b in (0, 1) for a in (0, 1)]
    cells += [[-1, -1, 0], [-1, -1, 0], [-1, -1, 1], [-1, -1, 1]]
    columns = [
        factor("A", [1, 2], "linear"),
        factor("B", [1, 2], "linear"),
        factor("C", ["x", "y"]),
    ]
    y = [1, 3, 2, 4, 11, 13, 12, 14, 3, 3.5, 13, 13.5]
    found = analyze(seen(columns, cells, y))
    rows = {row.source: row for row in found.anova.rows}
    assert (rows["Error"].df, rows["Error"].ss) == (2, pytest.approx(0.25))
    assert {m.level: m.n for m in found.levels if m.factor == "C"} == {"x": 6, "y": 6}
    assert {m.level: m.n for m in found.levels if m.factor == "A"} == {"1": 4, "2": 4}
    effects = {e.term: e.effect for e in found.effects}
    assert effects["C"] == pytest.approx(10)
    assert found.curvature is not None
    assert found.curvature.difference == pytest.approx(0.75)
    pooled = analyze(seen(columns, cells, y), AnalysisOptions(error="residual"))
    assert pooled.curvature is None
    assert pooled.df_error == found.df_error + 2  # curvature, and how it differs between x and y


def test_a_point_between_falling_levels_has_the_sign_of_the_levels() -> None:
    falling = factor("lr", [0.1, 0.001], "log")
    assert contrasts(falling)[:, 0].tolist() == [-1.0, 1.0]
    between = contrasts_between(falling, falling.position_of(np.array([0.1, 0.01, 0.001])))
    assert between[:, 0] == pytest.approx([-1.0, 0.0, 1.0])
