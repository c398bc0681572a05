"""Covariates: agreement with ordinary least squares, what they gain, and when they are refused."""

from dataclasses import replace

import numpy as np
import pytest
import statsmodels.api as sm
from factorial_tables import by_term, two_level_runs
from level_tables import full, words

from benchmarks.looks import too_high
from doe.analysis.analyze import analyze
from doe.analysis.coding import run_columns, term_columns
from doe.analysis.contrasts import block_contrasts
from doe.analysis.dataset import Covariate, Dataset, RandomGroup, Runs
from doe.analysis.estimators.covariates import Covariates, refusal
from doe.analysis.options import AnalysisOptions
from doe.analysis.sequential import decide, looks_at
from doe.analysis.spending import Rule
from doe.analysis.within import closest
from doe.errors import DoeError
from doe.terms import terms_up_to


def blocked(rng, replicates, factors=3, slope=1.5, sigma=0.5, effect=2.0):
    """A response that follows a covariate, in replicates of a full factorial as blocks."""
    cells = np.tile(np.arange(1 << factors), replicates)
    block = np.repeat(np.arange(replicates), 1 << factors)
    z = rng.standard_normal(len(cells)) + 0.3 * block
    y = effect * (cells & 1) + slope * z + sigma * rng.standard_normal(len(cells)) + block
    return with_covariate(two_level_runs(cells, factors, block), z), y


def with_covariate(runs, z, name="z"):
    return replace(runs, covariates=(*runs.covariates, Covariate(name, np.asarray(z, float))))


def least_squares(data, terms):
    """Ordinary least squares on the mean, blocks, terms and centred covariates, in this order."""
    runs, columns = data.runs, run_columns(data.runs)
    parts = [np.ones((runs.count, 1)), block_contrasts(runs.block, runs.count)]
    parts += [term_columns(columns, term) for term in terms]
    parts += [(c.values - c.values.mean())[:, None] for c in runs.covariates]
    return sm.OLS(data.y, np.column_stack(parts)).fit(), [part.shape[1] for part in parts]


@pytest.mark.parametrize("lost", [0, 3])
def test_effects_are_those_of_ordinary_least_squares(lost):
    """Also where runs are lost, so that nothing is balanced."""
    rng = np.random.default_rng(1)
    runs, y = blocked(rng, 4)
    kept = np.sort(rng.permutation(len(y))[lost:])
    data = Dataset(runs.only(kept), "y", y[kept], goal="min")
    own, widths = least_squares(data, terms_up_to(3))
    found = analyze(data)
    assert (found.df_error, found.sigma) == (own.df_resid, pytest.approx(own.mse_resid**0.5))
    for i, term in enumerate(found.tests):
        at = 1 + widths[1] + terms_up_to(3).index(term.mask)
        effect = found.effects[i]
        assert effect.effect == pytest.approx(2 * own.params[at])
        assert effect.se == pytest.approx(2 * own.bse[at])
        assert effect.p == pytest.approx(own.pvalues[at], rel=1e-6)
    (row,) = found.get(Covariates).rows
    assert (row.slope, row.se, row.p) == pytest.approx(
        (own.params[-1], own.bse[-1], own.pvalues[-1]), rel=1e-6
    )
    line = next(row for row in found.anova.rows if row.source == "z")
    assert (line.df, line.p) == (1, pytest.approx(own.pvalues[-1], rel=1e-6))
    low = next(mean for mean in found.levels if (mean.factor, mean.level) == ("A", "0"))
    assert terms_up_to(3)[0] == 1
    at_low = np.zeros(len(own.params))
    at_low[0], at_low[1 + widths[1]] = 1.0, -1.0
    assert low.mean == pytest.approx(at_low @ own.params)
    assert low.se == pytest.approx(np.sqrt(at_low @ own.cov_params() @ at_low))


def test_a_smaller_model_is_tested_against_runs_with_the_same_levels():
    """Their error has lost a degree of freedom to the slope: that of the saturated model."""
    runs, y = blocked(np.random.default_rng(2), 4)
    data = Dataset(runs, "y", y)
    small, whole = least_squares(data, terms_up_to(3, 1))[0], least_squares(data, terms_up_to(3))[0]
    pure = analyze(data, AnalysisOptions(order=1))
    assert (pure.df_error, pure.sigma) == (20, pytest.approx(whole.mse_resid**0.5))
    at = 1 + 3
    assert by_term(pure)["A"].effect == pytest.approx(2 * small.params[at])
    ratio = (whole.mse_resid / small.mse_resid) ** 0.5
    assert by_term(pure)["A"].se == pytest.approx(2 * small.bse[at] * ratio)
    residual = analyze(data, AnalysisOptions(order=1, error="residual"))
    assert by_term(residual)["A"].se == pytest.approx(2 * small.bse[at])
    assert by_term(residual)["A"].p == pytest.approx(small.pvalues[at], rel=1e-6)


def test_factors_of_more_levels_and_two_covariates():
    rng = np.random.default_rng(3)
    index = full((3, 2), 4)
    z = rng.standard_normal((len(index), 2))
    runs = with_covariate(with_covariate(Runs(words((3, 2)), index), z[:, 0]), z[:, 1], "w")
    data = Dataset(runs, "y", index[:, 0] + z @ [2.0, -1.0] + rng.standard_normal(24))
    own, widths = least_squares(data, terms_up_to(2))
    found = analyze(data)
    at = np.cumsum([0, *widths])
    for test, term in zip(found.tests, (1, 2, 3), strict=True):
        i = terms_up_to(2).index(term) + 2
        rows = np.eye(len(own.params))[at[i] : at[i + 1]]
        assert test.p == pytest.approx(float(own.f_test(rows).pvalue), rel=1e-6)
    slopes = {row.name: row.slope for row in found.get(Covariates).rows}
    assert slopes == {"z": pytest.approx(own.params[-2]), "w": pytest.approx(own.params[-1])}


def test_a_covariate_is_analysed_as_it_is_and_that_is_said():
    runs, _ = blocked(np.random.default_rng(4), 3)
    found = analyze(Dataset(runs, "z", runs.covariates[0].values))
    assert found.get(Covariates) is None
    assert "z is a covariate itself, so nothing is adjusted for." in found.warnings


def test_means_of_configurations_are_at_the_mean_covariate():
    runs, y = blocked(np.random.default_rng(4), 3)
    data = Dataset(runs, "y", y, goal="min")
    own, _ = least_squares(data, terms_up_to(3))
    found = analyze(data)
    at = np.zeros(len(own.params))
    at[0], at[3:10] = 1.0, (-1.0) ** np.array([t.bit_count() for t in terms_up_to(3)])
    cell = next(c for c in found.best.cells if c.config == "A0B0C0")
    assert cell.mean == pytest.approx(at @ own.params)


# What it gains ------------------------------------------------------------------------------------


def test_a_covariate_that_explains_half_of_the_variance_is_worth_twice_the_runs():
    rng, worth, wrong, covered = np.random.default_rng(5), [], 0, 0
    for _ in range(200):
        runs, y = blocked(rng, 4, slope=1.0, sigma=1.0)
        with pytest.MonkeyPatch.context() as patch:  # chance imbalance is what it is for
            patch.setattr("doe.analysis.analyze.refusal", lambda runs, terms: None)
            found = analyze(Dataset(runs, "y", y))
        worth.append(found.get(Covariates).worth)
        effects = by_term(found)
        wrong += effects["B"].p < 0.05
        covered += effects["A"].ci_low < 2.0 < effects["A"].ci_high
    assert np.mean(worth) == pytest.approx(2.0, abs=0.15)
    assert not too_high(wrong / 200, 200)
    assert not too_high(1.0 - covered / 200, 200)


def test_the_gain_is_said():
    runs, y = blocked(np.random.default_rng(6), 4)
    gained = analyze(Dataset(runs, "y", y)).get(Covariates)
    before = analyze(Dataset(replace(runs, covariates=()), "y", y))
    assert gained.sigma_before == pytest.approx(before.sigma)
    assert "reduces σ from" in gained.sentence
    useless = with_covariate(
        replace(runs, covariates=()), np.random.default_rng(7).standard_normal(32)
    )
    assert "gains nothing" in analyze(Dataset(useless, "y", y)).get(Covariates).sentence
    assert before.get(Covariates) is None


def test_a_run_without_its_covariate_is_left_out():
    runs, y = blocked(np.random.default_rng(8), 4)
    values = runs.covariates[0].values.copy()
    values[[3, 20]] = np.nan, np.inf
    assert analyze(Dataset(with_covariate(replace(runs, covariates=()), values), "y", y)).n == 30


# When it is refused -------------------------------------------------------------------------------


def refused(z, factors=3, replicates=4, block=True, **changes):
    cells = np.tile(np.arange(1 << factors), replicates)
    blocks = np.repeat(np.arange(replicates), 1 << factors) if block else None
    runs = replace(two_level_runs(cells, factors, blocks), **changes)
    for i, values in enumerate(np.atleast_2d(z)):
        runs = with_covariate(runs, values, "zw"[i])
    return refusal(runs, terms_up_to(factors))


def test_a_covariate_that_a_factor_changes_is_refused():
    rng = np.random.default_rng(9)
    cells, noise = np.tile(np.arange(8), 4), rng.standard_normal(32)
    assert refused(noise) is None
    assert "z differs between levels of A (Holm-adjusted p" in refused(noise + 3 * (cells & 1))
    assert "z depends on AB" in refused(noise + 3 * ((cells & 3) == 3) - 1.5 * (cells & 1))
    assert "the factors decide it" in refused(cells % 3)
    runs = with_covariate(two_level_runs(cells, 3), noise + 3 * (cells & 1))
    with pytest.raises(DoeError, match="remove a part of the factors' effects"):
        analyze(Dataset(runs, "y", noise))


def test_a_covariate_that_says_nothing_new_is_refused():
    noise = np.random.default_rng(10).standard_normal(32)
    assert "is the same in every run" in refused(np.ones(32))
    assert "differs between blocks alone" in refused(np.repeat(np.arange(4.0), 8))
    assert "w is determined by z" in refused([noise, 2 * noise + 1])
    assert "leaves no runs to estimate the slope" in refused(noise[:16], 4, 1, block=False)
    plots = (RandomGroup("whole plot", np.arange(32) // 4),)
    assert "for runs with one error" in refused(noise, groups=plots)


def test_a_covariate_by_chance_is_seldom_refused():
    rng = np.random.default_rng(11)
    share = np.mean([refused(rng.standard_normal(32)) is not None for _ in range(400)])
    assert 0.01 < share < 0.05 + 2 * np.sqrt(0.05 * 0.95 / 400)


# Looks --------------------------------------------------------------------------------------------


def test_looks_adjust_as_the_analysis_does():
    runs, y = blocked(np.random.default_rng(12), 3)
    look = looks_at(y, runs, runs.block + 1, Rule(3), terms_up_to(3))[-1]
    effect = by_term(analyze(Dataset(runs, "y", y)))["B"]
    assert look.terms[2].effect[0] == pytest.approx(effect.effect)
    assert look.terms[2].se[0] == pytest.approx(effect.se)


def test_looks_that_must_not_adjust_decide_nothing():
    runs, y = blocked(np.random.default_rng(13), 4)
    changed = with_covariate(
        replace(runs, covariates=()), runs.covariates[0].values + 5.0 * (runs.cells & 1)
    )
    assert looks_at(y, changed, runs.block + 1, Rule(4)) == []
    data = Dataset(changed, "y", y, goal="min")
    assert not closest(data, runs.block + 1, Rule(4), 1, 9.0).is_known
    assert closest(replace(data, runs=runs), runs.block + 1, Rule(4), 1, 9.0).is_known


def test_error_rates_hold_over_adjusted_looks():
    rng, rule, wrong = np.random.default_rng(14), Rule(4), 0
    for _ in range(300):
        runs, y = blocked(rng, 4, effect=0.0)
        looks = looks_at(y, runs, runs.block + 1, rule, terms_up_to(3, 2))
        verdicts = [s.verdict for s in decide(looks, terms_up_to(3, 2), 6, rule, 0.0)]
        wrong += "effect" in verdicts
    assert not too_high(wrong / 300, 300)
