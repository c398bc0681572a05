"""What follows from the fit of factors with levels: magnitude, parts, best, permutation, words."""

from __future__ import annotations

import time
from dataclasses import replace

import msgspec
import numpy as np
import pytest
import statsmodels.api as sm
from level_tables import case_of_r, factor, fitted, full, seen, words
from scipy import stats

from doe.analysis.analyze import Analysis, analyze
from doe.analysis.contrasts import exchanges
from doe.analysis.dataset import Dataset
from doe.analysis.estimators.robust import Robust, permutation
from doe.analysis.fit import Fit
from doe.analysis.means import on_response_scale, range_critical, range_upper, tukey_p
from doe.analysis.model import BLOCK
from doe.analysis.options import AnalysisOptions
from doe.analysis.random_blocks import random_blocks
from doe.analysis.transform import Transformation
from doe.errors import DoeError
from doe.views.headlines import headlines
from doe.views.words import curvature_text

DIGITS = (
    factor("opt", ["sgd", "adam", "lion"], name="optimizer"),
    factor("lr", [0.001, 0.01, 0.1], "log", "learning rate"),
    factor("aug", [False, True], name="augmentation"),
)


def made(seed: int = 0, replicates: int = 2) -> Dataset:
    """A 3 x 3 x 2 study in which the optimizer, the rate and both together matter."""
    rng = np.random.default_rng(seed)
    cells = full([3, 3, 2], replicates)
    y = 5.0 + cells[:, 0] + 2.0 * (cells[:, 0] == 2) * cells[:, 1] + rng.normal(size=len(cells)) / 4
    block = [i // 18 for i in range(len(cells))]
    return seen(DIGITS, cells, y, block)


# Magnitude and invariance


@pytest.mark.parametrize("size", [1e-250, 1e-12, 1e12, 1e250])
def test_answers_do_not_depend_on_the_unit(size: float) -> None:
    known = made()
    moved = replace(known, y=known.y * size)
    options = AnalysisOptions(robust=True, permutations=99, random_blocks=True)
    found, expected = analyze(moved, options), analyze(known, options)
    for row, other in zip(found.anova.rows, expected.anova.rows, strict=True):
        assert (row.f is None) == (other.f is None)
        if row.f is not None:
            assert row.f == pytest.approx(other.f, rel=1e-9)
            assert row.p == pytest.approx(other.p, rel=1e-9)
    for mean, other in zip(found.levels, expected.levels, strict=True):
        assert mean.mean == pytest.approx(other.mean * size, rel=1e-9)
        assert mean.ci_low == pytest.approx(other.ci_low * size, rel=1e-9)
    for test, other in zip(found.tests, expected.tests, strict=True):
        assert test.percent == pytest.approx(other.percent, rel=1e-9)
    for row, other in zip(found.get(Robust).rows, expected.get(Robust).rows, strict=True):
        assert (row.p_hc3 is None) == (other.p_hc3 is None)
        if row.p_hc3 is not None:
            assert row.p_hc3 == pytest.approx(other.p_hc3, rel=1e-6)
        assert row.p_permutation == other.p_permutation
    assert found.random_blocks.share == pytest.approx(expected.random_blocks.share, abs=1e-6)


def test_a_large_mean_does_not_hide_small_effects() -> None:
    known = made()
    moved = replace(known, y=known.y + 1e7)
    for row, other in zip(analyze(moved).anova.rows, analyze(known).anova.rows, strict=True):
        assert row.ss == pytest.approx(other.ss, rel=1e-6)


def test_the_order_of_runs_and_of_levels_does_not_matter() -> None:
    known = made()
    rng = np.random.default_rng(1)
    mixed = rng.permutation(known.runs.count)
    turned = (factor("opt", ["lion", "sgd", "adam"]), *DIGITS[1:])
    index = known.runs.index[mixed].copy()
    index[:, 0] = np.array([1, 2, 0])[index[:, 0]]
    moved = seen(turned, index, known.y[mixed], known.runs.block[mixed])
    found, expected = analyze(moved), analyze(known)
    for row, other in zip(found.anova.rows, expected.anova.rows, strict=True):
        assert (row.source, row.ss) == (other.source, pytest.approx(other.ss, rel=1e-9))
    means = {(mean.factor, mean.level): mean.mean for mean in found.levels}
    for mean in expected.levels:
        assert means[mean.factor, mean.level] == pytest.approx(mean.mean)


def test_values_without_spread_or_without_error() -> None:
    with pytest.raises(DoeError, match="no variation"):
        analyze(seen(words([2, 3]), full([2, 3]), [1.0] * 6))
    exact = full([2, 3], 2)
    found = analyze(seen(words([2, 3]), exact, exact[:, 0] * 2.0 - 1.0))
    rows = {row.source: row for row in found.anova.rows}
    assert rows["A"].p is None
    assert rows["Error"].ss == pytest.approx(0, abs=1e-20)
    assert found.df_error == 0
    assert "no error to test against" in found.warnings[-1]
    assert msgspec.json.decode(msgspec.json.encode(found))["n"] == 12


def test_some_thousand_runs_take_seconds() -> None:
    cells = full([4, 4, 3, 2], 40)
    y = np.random.default_rng(0).normal(size=len(cells)) + cells[:, 0]
    y[::97] = np.nan
    began = time.process_time()
    found = analyze(seen(words([4, 4, 3, 2]), cells, y))
    assert found.n == 3840 - 40
    assert len(found.tests) == 15
    assert time.process_time() - began < 10  # one here; other processes do not count


# Textbook

BATTERY = {  # Montgomery, Design and Analysis of Experiments: life of batteries, hours
    (0, 0): [130, 155, 74, 180],
    (0, 1): [34, 40, 80, 75],
    (0, 2): [20, 70, 82, 58],
    (1, 0): [150, 188, 159, 126],
    (1, 1): [136, 122, 106, 115],
    (1, 2): [25, 70, 58, 45],
    (2, 0): [138, 110, 168, 160],
    (2, 1): [174, 120, 150, 139],
    (2, 2): [96, 104, 82, 60],
}


def test_battery_life() -> None:
    columns = (factor("material", ["1", "2", "3"]), factor("temperature", [15, 70, 125], "linear"))
    cells = np.array([cell for cell, values in BATTERY.items() for _ in values])
    y = [float(value) for values in BATTERY.values() for value in values]
    found = analyze(seen(columns, cells, y, goal="max"))
    rows = {row.source: row for row in found.anova.rows}
    for source, df, ss, f in [
        ("material", 2, 10683.72, 7.91),
        ("temperature", 2, 39118.72, 28.97),
        ("material:temperature", 4, 9613.78, 3.56),
    ]:
        assert rows[source].df == df
        assert rows[source].ss == pytest.approx(ss, abs=5e-3)
        assert rows[source].f == pytest.approx(f, abs=5e-3)
    assert (rows["Error"].df, rows["Error"].ss) == (27, pytest.approx(18230.75))
    assert rows["Total"].ss == pytest.approx(77646.97, abs=5e-3)
    parts = {part.part: part.f * found.sigma**2 for part in found.parts}
    assert parts["linear"] == pytest.approx(39042.67, abs=5e-3)
    assert parts["quadratic"] == pytest.approx(76.06, abs=1e-2)
    assert range_critical(0.05, 3, 27) == pytest.approx(3.50, abs=1e-2)


# Parts and curvature


def test_parts_say_rise_and_bend() -> None:
    x = np.array([0.001, 0.01, 0.1])
    cells = full([3], 4)
    y = (2.0 * np.log10(x) - np.log10(x / 0.01) ** 2)[cells[:, 0]]
    noise = np.tile([0.1, -0.1], 6)
    found = analyze(seen((factor("lr", x.tolist(), "log"),), cells, y + noise))
    parts = {part.part: part for part in found.parts}
    means = [mean.mean for mean in found.levels]
    assert parts["linear"].estimate == pytest.approx(means[2] - means[0])
    assert parts["linear"].estimate == pytest.approx(4.0, abs=0.2)
    assert parts["quadratic"].estimate == pytest.approx(means[1] - (means[0] + means[2]) / 2)
    assert parts["quadratic"].estimate == pytest.approx(1.0, abs=0.2)
    ss = {row.source: row.ss for row in found.anova.rows}
    error = found.sigma**2
    assert sum(part.f * error for part in found.parts) == pytest.approx(ss["lr"])


def test_parts_of_levels_in_falling_order_keep_their_sign() -> None:
    cells = full([3], 2)
    y = np.array([9.0, 4.0, 1.0])[cells[:, 0]] + np.repeat([0.1, 0.0], 3)
    falling = analyze(seen((factor("x", [3, 2, 1], "linear"),), cells, y)).parts
    assert falling[0].estimate == pytest.approx(8.0)
    assert falling[1].estimate == pytest.approx(-1.0)
    two = analyze(seen((factor("x", [3, 1], "linear"),), full([2], 2), [5, 1, 5.5, 1]))
    assert two.parts[0].estimate == pytest.approx(4.25)  # from the least to the greatest
    assert two.effects[0].effect == pytest.approx(-4.25)  # from the first to the second


def test_centre_runs_of_nist_style() -> None:
    cells = np.vstack([full([2, 2]), [[-1, -1]] * 3])
    y = np.array([10.0, 14, 11, 15, 16, 17, 15.5])
    found = analyze(seen([factor("A", [1, 2], "linear"), factor("B", [1, 100], "log")], cells, y))
    rows = {row.source: row for row in found.anova.rows}
    factorial, middle = y[:4].mean(), y[4:].mean()
    assert rows["Curvature"].ss == pytest.approx(4 * 3 * (factorial - middle) ** 2 / 7)
    assert rows["Error"].df == 2
    assert rows["Error"].ss == pytest.approx(((y[4:] - middle) ** 2).sum())
    assert found.curvature.difference == pytest.approx(middle - factorial)
    assert found.curvature.n == 3
    assert "3 centre runs" in curvature_text(found)
    assert list(rows) == ["A", "B", "AB", "Curvature", "Error", "Total"]
    assert {cell.config for cell in found.best.cells} >= {"centre", "A1B1"}


def test_the_parabola_of_three_levels_reaches_the_centre() -> None:
    columns = [factor("A", [1, 2, 4], "linear"), factor("B", [0, 1], "linear")]
    cells = np.vstack([full([3, 2], 2), [[-1, -1]] * 2])
    a = np.append(np.array([1.0, 2.0, 4.0])[cells[:-2, 0]], [2.5, 2.5])
    b = np.append(cells[:-2, 1], [0.5, 0.5])
    y = a**2 - 3 * a + b + np.tile([0.01, -0.01], 7)
    bent = analyze(seen(columns, cells, y)).curvature
    assert bent.difference == pytest.approx(0.0, abs=0.05)


def test_a_single_centre_run_of_a_saturated_design_is_not_tested() -> None:
    cells = np.vstack([full([2, 2]), [[-1, -1]]])
    columns = [factor("A", [1, 2], "linear"), factor("B", [1, 2], "linear")]
    found = analyze(seen(columns, cells, [1, 2, 4, 8, 3]))
    assert found.curvature.p is None
    assert found.curvature.difference == pytest.approx(3 - 3.75)


# Means, differences, best


def test_every_cell_weighs_alike_whatever_its_runs() -> None:
    cells = np.concatenate([full([2, 2]), [[0, 0]] * 5])
    y = np.array([1.0, 2, 3, 4, 1.2, 0.9, 1.1, 1.0, 0.8])
    found = analyze(seen(words([2, 2]), cells, y))
    levels = {mean.level: mean for mean in found.levels}
    assert levels["a1"].mean == pytest.approx((y[[0, 4, 5, 6, 7, 8]].mean() + 3.0) / 2)
    assert (levels["a1"].n, levels["a1"].cells) == (7, 2)


def test_means_go_back_to_the_response_scale() -> None:
    cells = full([3], 3)
    y = np.exp(np.random.default_rng(2).normal(size=9))
    found = analyze(seen(words([3]), cells, np.log(y)))
    back = on_response_scale(found.levels, Transformation("log", 0.0, "log"), y)
    assert back[1].mean == pytest.approx(stats.gmean(y[cells[:, 0] == 1]))
    assert back[1].ci_low > 0
    assert back[1].se is None


def test_the_studentized_range() -> None:
    for groups, df, q in [(3, 12, 3.5), (5, 60, 4.0), (10, 5, 8.0), (20, 2000, 5.0), (3, 2, 1.0)]:
        expected = stats.studentized_range.sf(q, groups, df)
        assert range_upper(q, groups, df) == pytest.approx(expected, rel=1e-9)
    # the same integral over s by mpmath-free adaptive quadrature, far in the tail
    assert range_upper(20.0, 3, 12) == pytest.approx(2.137573e-8, rel=1e-6)
    assert range_upper(range_critical(0.05, 4, 9), 4, 9) == pytest.approx(0.05, rel=1e-9)
    assert range_critical(0.05, 3, 12) == pytest.approx(3.773, abs=5e-4)  # printed tables
    assert tukey_p(2.0, 2, 7) == pytest.approx(2 * stats.t.sf(2.0, 7))
    assert range_upper(0.0, 3, 5) == 1.0


def test_no_goal_no_best() -> None:
    known = made()
    found = analyze(Dataset(known.runs, "y", known.y))
    assert found.best is None
    best = analyze(known).best
    assert best.cells[0].levels[0] == 0  # the first optimizer has the least
    assert best.cells[0].mean == min(cell.mean for cell in best.cells)
    assert all(config.startswith("sgd") for config in best.among_best)


def test_cells_that_share_no_block_are_compared_after_blocks() -> None:
    cells = full([2, 2, 2], 2)
    block = cells.sum(axis=1) % 2  # ABC stands in the blocks
    y = np.random.default_rng(3).normal(size=16) / 10 + cells[:, 0] + 50.0 * block
    best = analyze(seen(words([2, 2, 2]), cells, y, block)).best
    assert best.assumed == ("ABC",)
    assert max(cell.mean for cell in best.cells) - min(cell.mean for cell in best.cells) < 2
    assert {cell.levels[0] for cell in best.cells[:4]} == {0}
    assert analyze(made()).best.assumed == ()


def test_configurations_that_are_predicted_alike_are_not_compared() -> None:
    cells = np.array([[0, 0], [1, 1], [0, 0], [1, 1], [0, 1], [0, 1]])
    block = [0, 1, 0, 1, 0, 0]  # the second configuration is alone in its block
    y = [1.0, 5.0, 1.2, 5.3, 2.0, 2.2]
    found = analyze(seen(words([2, 2]), cells, y, block))
    assert all(cell.mcb_low is None for cell in found.best.cells)
    assert found.best.critical is None


def test_hc3_of_a_term_whose_residuals_are_zero_is_not_given() -> None:
    cells = full([3], 2)
    y = np.array([1.0, 2.0, 5.0, 1.0, 2.0, 6.0])  # two levels repeat themselves
    found = analyze(seen(words([3]), cells, y), AnalysisOptions(robust=True, permutations=19))
    assert found.tests[0].p is not None
    assert found.get(Robust).rows[0].p_hc3 is None


# Permutation and random blocks


def permuted(fit: Fit, count: int, seed: int = 42) -> dict[str, float]:
    """Permutation p of each term alone."""
    names = map(fit.model.name, fit.model.sorted_terms)
    return dict(zip(names, permutation(fit, count, seed).alone.tolist(), strict=True))


def test_permutation_p_is_uniform_where_nothing_acts_and_small_where_something_does() -> None:
    p = []
    for seed in range(150):
        rng = np.random.default_rng(seed)
        cells = full([3, 2], 3)
        y = rng.exponential(size=18) + 3.0 * cells[:, 0] + np.repeat([0, 5, -5], 6)
        y[4] = np.nan
        fit = fitted(seen(words([3, 2]), cells, y, np.repeat([0, 1, 2], 6)))
        assert permutation(fit, 9, seed).method == "Freedman and Lane"
        by_term = permuted(fit, 99, seed)
        assert by_term["A"] <= 0.05
        p.append(by_term["B"])
    assert stats.kstest(np.array(p) - 0.005, "uniform").pvalue > 0.01


def test_permutation_agrees_with_f_for_normal_errors() -> None:
    tests = permuted(fitted(made(3)), 4999, 1)
    for test in analyze(made(3)).tests:
        assert tests[test.term] == pytest.approx(test.p, abs=0.03)


def test_exchanged_residuals_agree_with_freedman_and_lane(monkeypatch) -> None:
    fit = fitted(made(3, replicates=4))
    lane = permuted(fit, 1999, 1)
    monkeypatch.setattr("doe.analysis.estimators.robust.MOST_WORK", 0.0)
    assert permutation(fit, 9, 1).method == "ter Braak"
    for term, p in permuted(fit, 1999, 1).items():
        assert p == pytest.approx(lane[term], abs=0.05)


def test_permutation_stays_within_blocks_and_repeats() -> None:
    fit = fitted(made(4))
    assert permuted(fit, 200, 7) == permuted(fit, 200, 7)
    saturated = fitted(seen(words([3, 2]), full([3, 2]), [1, 2, 9, 1.5, 2.5, 8]))
    assert permutation(saturated, 500, 7).method == "responses"
    assert permuted(saturated, 500, 7)["A"] < 0.25


def test_random_blocks_against_statsmodels() -> None:
    _, observed = case_of_r("unequal")
    fit = fitted(observed)
    found = random_blocks(fit, 0.05)
    X = fit.model.fitted_columns[:, fit.model.fitted_source != BLOCK]
    known = sm.MixedLM(fit.y, X, groups=observed.runs.block).fit(reml=True)
    assert found.variance_block == pytest.approx(float(known.cov_re[0, 0]), rel=1e-3)
    assert found.variance_error == pytest.approx(float(known.scale), rel=1e-4)
    assert found.enough
    assert found.blocks == 6


def test_few_random_blocks_are_said_to_be_few() -> None:
    _, observed = case_of_r("blocks")
    found = random_blocks(fitted(observed), 0.05)
    assert not found.enough
    assert "3 blocks are too few to estimate it" in found.sentence
    rows = {row.source: row for row in analyze(observed).anova.rows}
    for term in found.terms:  # complete blocks: the same tests as with fixed ones
        assert term.f == pytest.approx(rows[term.term].f, rel=1e-6)
    block = (rows["Block"].ms - rows["Error"].ms) / 6
    assert found.variance_block == pytest.approx(block, rel=1e-6)
    single = fitted(seen(words([2, 3]), full([2, 3], 2), np.arange(12.0) ** 2))
    assert random_blocks(single, 0.05) is None
    ratio = rows["Block"].ms / rows["Error"].ms
    bounds = ratio / stats.f.ppf([0.975, 0.025], rows["Block"].df, rows["Error"].df)
    expected = np.maximum((bounds - 1) / (bounds + 5), 0)  # of an intraclass correlation
    assert (found.share_low, found.share_high) == pytest.approx(expected, abs=1e-9)
    assert found.share_low < found.share < found.share_high


@pytest.mark.slow
def test_the_share_of_incomplete_random_blocks_is_covered() -> None:
    rng = np.random.default_rng(5)
    cells = np.tile(full([2, 3]), (5, 1))
    block = rng.permutation(np.repeat(np.arange(5), 6))
    inside = 0
    for _ in range(200):
        y = rng.normal(size=5)[block] + rng.normal(size=30)
        found = random_blocks(fitted(seen(words([2, 3]), cells, y, block)), 0.05)
        inside += found.share_low <= 0.5 <= found.share_high
    assert 180 <= inside < 200


def test_blocks_that_do_not_differ_have_no_variance() -> None:
    cells = full([2, 3], 3)
    noise = np.tile([1.0, -1.0, -1.0, 1.0, 1.0, -1.0, -1.0, 1.0], 3)[:18]
    noise -= np.repeat(noise.reshape(3, 6).mean(axis=1), 6)
    found = random_blocks(
        fitted(seen(words([2, 3]), cells, noise + cells[:, 1], np.repeat([0, 1, 2], 6))), 0.05
    )
    assert found.variance_block == found.share_low == 0.0


# The scale that a response chooses for itself


def on_auto(y: np.ndarray, **options: object) -> Analysis:
    known = made()
    observed = Dataset(known.runs, "y", y, goal="min", scale="auto")
    return analyze(observed, AnalysisOptions(**options))  # type: ignore[arg-type]


def test_auto_takes_the_log_where_the_interval_of_the_exponent_holds_0_and_not_1() -> None:
    z = made().y
    multiplied = on_auto(np.exp(z))
    assert (multiplied.transform.name, multiplied.transform.asked) == ("log", "auto")
    fixed = analyze(made(), AnalysisOptions(transform="none"))
    for row, other in zip(multiplied.anova.rows, fixed.anova.rows, strict=True):
        assert row.ss == pytest.approx(other.ss, rel=1e-9)
    assert multiplied.response_scale[0].kind == "ratio"
    assert on_auto(z).transform.name == "none", "the interval holds 1"
    assert on_auto(z**3).transform.name == "none", "neither 0 nor 1 lies within: no other power"
    assert on_auto(np.exp(z), transform="none").transform.name == "none", "what is asked for counts"


def test_auto_leaves_values_as_they_are_where_logarithms_cannot_be() -> None:
    z = made().y
    assert on_auto(z - z.mean()).transform.name == "none"
    saturated = seen(words([2, 3]), full([2, 3]), np.exp(np.arange(6.0)))
    alone = analyze(replace(saturated, scale="auto"))
    assert alone.transform.name == "none", "no error is left to find an exponent by"


# Words


def test_one_sentence_for_each_significant_term() -> None:
    said = headlines(analyze(made(5))).effects
    main = next(s for s in said if s.startswith("optimizer (opt):"))
    assert "lion is " in main
    assert " above sgd" in main
    assert "the largest difference between levels" in main
    joint = next(s for s in said if "(opt:lr, " in s)
    assert joint.startswith("optimizer (opt) = lion instead of sgd raises y by ")
    assert "at learning rate (lr) = 0.001" in joint
    assert not any("augmentation" in sentence for sentence in said[:-1])


def test_a_saturated_study_says_what_stands_out() -> None:
    cells = full([3, 3, 2])
    y = np.random.default_rng(1).normal(size=18) + 20.0 * cells[:, 2]
    found = analyze(seen(DIGITS, cells, y))
    assert found.sigma is None
    assert found.half_normal.lenth.m == 17
    assert (
        "significant after Holm's adjustment by Lenth's method: aug" in headlines(found).effects[-1]
    )
    assert "The design is saturated" in found.warnings[-1]
    assert found.levels[0].se is None
    assert found.effects[0].p < 0.001


def test_an_analysis_is_plain_data() -> None:
    found = analyze(made(), AnalysisOptions(robust=True, permutations=19, random_blocks=True))
    plain = msgspec.json.decode(msgspec.json.encode(found))
    assert plain == msgspec.to_builtins(found, builtin_types=()) | plain
    assert plain["tests"][0]["p"] == found.tests[0].p


def test_options_that_do_not_fit() -> None:
    for options, message in [
        ({"alpha": 1.0}, "between 0 and 1"),
        ({"error": "guess"}, "not one of pure, residual"),
        ({"terms": ("opt:aog",)}, "did you mean 'aug'"),
        ({"drop": ("augment",)}, "cannot be left out"),
        ({"beats": (("best", "worst"),)}, "not a configuration with runs"),
    ]:
        with pytest.raises(DoeError, match=message):
            analyze(made(), AnalysisOptions(**options))


def test_empty_cells_leave_no_type_three_and_no_hc3() -> None:
    known = made()
    y = np.where((known.runs.index[:, 0] == 1) & (known.runs.index[:, 1] == 1), np.nan, known.y)
    options = AnalysisOptions(robust=True, permutations=19)
    found = analyze(Dataset(known.runs, "y", y), options)
    assert (found.anova.kind, found.anova.type2) == ("II", None)
    assert all(row.p_hc3 is None for row in found.get(Robust).rows)


def test_views_find_what_they_draw() -> None:
    known = made()
    y = known.y.copy()
    y[4] = np.nan
    found = analyze(replace(known, y=y))
    residuals = {r.run_id: r.fitted + r.residual for r in found.diagnostics.residuals}
    assert residuals == pytest.approx(
        {f"row {i + 1}": value for i, value in enumerate(y.tolist()) if i != 4}
    )
    both = [mean for mean in found.combinations if mean.factor == "opt:lr"]
    assert [mean.at for mean in both] == [(i, j) for i in range(3) for j in range(3)]
    at = (known.runs.index[:, 0] == 2) & (known.runs.index[:, 1] == 0)
    mean = next(m for m in both if m.at == (2, 0))
    assert mean.mean == pytest.approx(y[at].mean())
    assert (mean.level, mean.n) == ("lion · 0.001", 4)
    assert {mean.factor for mean in found.combinations} == {"opt:lr", "opt:aug", "lr:aug"}
    assert [mean.at for mean in found.levels[:3]] == [(0,), (1,), (2,)]


def test_a_block_that_is_lost_whole_leaves_no_block() -> None:
    known = made()
    y = np.where(known.runs.block == 1, np.inf, known.y)  # a run that diverged has no value
    found = analyze(replace(known, y=y))
    assert (found.n, found.planned, found.block) == (18, 36, None)
    assert "Block" not in {row.source for row in found.anova.rows}
    assert analyze(known).block == "day"


def test_permutation_of_a_term_does_not_see_the_others() -> None:
    known = made(6)
    index = known.runs.index
    moved = known.y + 100.0 * index[:, 0] + 50.0 * known.runs.block
    fits = [fitted(seen(DIGITS, index, y, known.runs.block)) for y in (known.y, moved)]
    before, after = (permuted(fit, 99) for fit in fits)
    assert before["opt"] == after["opt"] == 1 / 100  # never zero
    assert {k: p for k, p in before.items() if k != "opt"} == {
        k: p for k, p in after.items() if k != "opt"
    }


def test_runs_are_exchanged_within_their_block_alone() -> None:
    block = made().runs.block
    orders = exchanges(block, 36, 50, np.random.default_rng(0))
    assert (np.sort(orders, axis=1) == np.arange(36)).all()
    assert (block[orders] == block).all()
    assert len({tuple(order) for order in orders.tolist()}) == 50


def test_blocks_and_curvature_are_no_contrasts_of_the_half_normal_plot() -> None:
    found = analyze(made())
    assert {contrast.term for contrast in found.half_normal.contrasts} == set(found.terms)
    assert len(found.half_normal.points) == 17
    _, observed = case_of_r("centre")
    assert len(analyze(observed).half_normal.contrasts) == 7


def test_a_lowering_is_said_as_such() -> None:
    cells = full([2], 4)
    y = np.where(cells[:, 0] == 0, 9.0, 4.0) + np.repeat([0.1, 0.2, -0.1, 0.3], 2)
    found = analyze(seen((factor("aug", [False, True]),), cells, y))
    assert headlines(found).effects[0].startswith("aug lowers y by 5.00 (95 % CI ")


def test_hc3_is_silent_where_its_variance_rests_on_one_contrast() -> None:
    # ABC alone tells the variance of the corners: the ratio of an effect to it is Cauchy's, and
    # HC3 with its 4 degrees of freedom would call 2/π arctan(1/(2.776 √8)) = 0.081 at 0.05.
    corners = full([2, 2, 2])
    cells = np.vstack([corners, np.full((4, 3), -1)])
    columns = [factor(key, [1, 2], "linear") for key in "ABC"]
    y = np.random.default_rng(0).normal(size=12)
    options = AnalysisOptions(order=2, robust=True, permutations=19)
    found = analyze(seen(columns, cells, y), options)
    assert [row.p_hc3 for row in found.get(Robust).rows] == [None] * 6
    # Two runs of each corner leave enough.
    twice = np.vstack([corners, cells])
    y = np.random.default_rng(0).normal(size=20)
    found = analyze(seen(columns, twice, y), options)
    assert all(row.p_hc3 is not None for row in found.get(Robust).rows)


def test_a_factor_that_the_model_leaves_out_has_no_levels_to_compare() -> None:
    analysis = analyze(made(), AnalysisOptions(terms=("opt", "opt:lr")))
    assert {mean.factor for mean in analysis.levels} == {"opt"}
    assert {pair.factor for pair in analysis.differences} == {"opt"}


@pytest.mark.parametrize("unit", [1.0, 1.9e307])  # sums above 9 such units are no floats
def test_the_best_is_sought_over_choices_in_every_condition(unit: float) -> None:
    columns = (factor("opt", ["a", "b"]), factor("set", ["x", "y"]))
    columns = (columns[0], msgspec.structs.replace(columns[1], role="condition"))
    cells = full([2, 2], 3)
    means = np.array([1.0, 2.0, 9.0, 7.0])  # a is better on x, b on y and over both
    y = unit * (means[cells @ [1, 2]] + np.tile([0.01, -0.01, 0.02, 0.0], 3))
    best = analyze(seen(columns, cells, y)).best
    assert [(c.condition, c.config) for c in best.conditions] == [
        *(("set=x", "opt=a"), ("set=y", "opt=b"))
    ]
    mean, worst = best.over_conditions
    assert (mean.by, mean.config, worst.by, worst.config) == (
        *("mean", "opt=b", "worst case", "opt=b"),
    )
    assert mean.value / unit == pytest.approx(4.5, abs=0.1)
    assert worst.value / unit == pytest.approx(7.0, abs=0.1)
    assert analyze(made()).best.over_conditions == ()


def test_nothing_is_best_over_conditions_that_no_choice_has_met() -> None:
    columns = (factor("opt", ["a", "b"]), factor("set", ["x", "y"]))
    columns = (columns[0], msgspec.structs.replace(columns[1], role="condition"))
    cells = np.array([[0, 0], [1, 1]] * 3)
    best = analyze(seen(columns, cells, np.array([1.0, 2.0, 1.1, 2.1, 0.9, 1.9]))).best
    assert best.over_conditions == ()
