"""Intervals of configurations whose spread differs, and shares of the variation that add up."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from level_tables import factor, full, seen
from scipy import stats

from benchmarks.calibrate import complaints, measured
from benchmarks.simulated import NAMED
from doe.analysis.analyze import analyze, fit_response
from doe.analysis.best import cell_estimates, margins, pair_reach
from doe.analysis.dataset import Dataset
from doe.analysis.options import AnalysisOptions
from doe.analysis.unequal_spread import doubted_terms
from doe.views.first_screen import lead
from doe.views.headlines import headlines

COUNT = 60


def spread_by_a(ratio: float, replicates: int = 4) -> Dataset:
    """A 2³ in which A at low multiplies the spread."""
    index = full((2, 2, 2), replicates)
    y = 20.0 + np.random.default_rng(4).normal(size=len(index)) * ratio ** (1.0 - index[:, 0])
    return seen([factor(key, [0, 1]) for key in "ABC"], index, y)


def test_an_interval_goes_by_the_spread_of_its_level_where_that_is_larger() -> None:
    data = spread_by_a(6.0)
    fit = fit_response(data).fit
    estimates = cell_estimates(fit)
    assert estimates.unequal is not None
    assert estimates.unequal.factors == ("A",)
    reach = margins(fit, estimates, 0.05)
    pooled = margins(fit, estimates._replace(unequal=None), 0.05)
    low = data.runs.index[:, 0] == 0
    within = [np.var(fit.u[data.runs.cells == cell], ddof=1) for cell in (0, 2, 4, 6)]
    assert len(fit.u[low]) == 16
    alone = 1.0 - 0.95 ** (1 / 8)
    own = stats.t.isf(alone / 2, 12) * np.sqrt(np.mean(within) / 4)
    assert reach[[0, 2, 4, 6]] == pytest.approx(own)
    assert reach[[1, 3, 5, 7]] == pytest.approx(pooled[[1, 3, 5, 7]])
    assert own > pooled[0]


def test_a_difference_of_two_configurations_has_welchs_degrees_of_freedom() -> None:
    fit = fit_response(spread_by_a(6.0)).fit
    estimates = cell_estimates(fit)
    assert estimates.unequal is not None
    within = np.array([np.var(fit.u[fit.cells == cell], ddof=1) for cell in range(8)])
    high, low = within[1::2].mean() / 4, within[::2].mean() / 4
    df = (high + low) ** 2 / (high**2 / 12 + low**2 / 12)
    reach = stats.t.isf(0.05 / 7, df) * np.sqrt(high + low)
    assert estimates.unequal.of_differences(0.05)[0, 1] == pytest.approx(reach)
    weight = np.array([0.5, 0.5, 0, 0, 0, 0, 0, 0])
    half = stats.t.isf(0.025, df) * np.sqrt(high + low) / 2
    assert estimates.unequal.of_sum(weight, 0.05) == pytest.approx(half)


def test_one_variance_stands_for_all_where_nothing_speaks_against_it() -> None:
    data = spread_by_a(1.0)
    found = analyze(data)
    assert found.best is not None
    assert found.best.spread == ""
    wide = analyze(replace(data, y=spread_by_a(6.0).y)).best
    assert wide is not None
    assert "spread of the level of A" in wide.spread


def test_equal_runs_of_a_level_take_the_spread_of_all() -> None:
    data = spread_by_a(6.0)
    y = np.where(data.runs.index[:, 0] == 1, 20.0, data.y)
    fit = fit_response(replace(data, y=y)).fit
    reach = margins(fit, cell_estimates(fit), 0.05)
    assert (reach > 0.5 * float(np.sqrt(fit.ms_error / 4))).all()
    wide = pair_reach(np.full(8, 0.25), float(np.sqrt(fit.ms_error)), fit.df_error, 0.05)[0]
    assert np.isfinite(wide).all()


@pytest.mark.slow
@pytest.mark.parametrize("plan", ["2³ × 4", "2³, 2 or 8 runs by A"])
def test_intervals_hold_where_the_spread_is_fourfold(plan: str) -> None:
    rates = measured(NAMED[plan], "normal", COUNT, "unequal", permutations=0)
    assert "intervals of all configurations at once" in rates
    assert complaints({(plan, "normal", "unequal"): rates}, COUNT) == []


def test_shares_of_the_variation_add_up_where_factors_go_together() -> None:
    """Each of two factors that work against each other explains more than all that there is."""
    index = np.repeat([[0, 0], [1, 1], [0, 1], [1, 0]], [6, 6, 1, 1], axis=0)
    y = index @ [5.0, -5.0] + np.random.default_rng(8).normal(size=len(index))
    data = seen([factor(key, [0, 1]) for key in "AB"], index, y)
    found = analyze(data, AnalysisOptions(order=1))
    shares = [test.percent for test in found.tests]
    assert shares == [effect.percent for effect in found.effects]
    assert min(shares) >= 0.0
    assert sum(shares) == pytest.approx(100.0 * (found.r2 or 0.0))
    assert sum(test.ss for test in found.tests) > found.anova.rows[-1].ss


def fourfold_where_runs_are_few(seed: int, shift: float = 0.0) -> Dataset:
    """A 2³ of 2 runs where A is low, with a fourfold spread, and 8 where it is high."""
    cells = full((2, 2, 2), 1)
    index = np.repeat(cells, np.where(cells[:, 0] == 0, 2, 8), axis=0)
    noise = np.random.default_rng(seed).normal(size=len(index))
    y = 20.0 + shift * index[:, 0] + noise * np.where(index[:, 0] == 0, 4.0, 1.0)
    return seen([factor(key, [0, 1]) for key in "ABC"], index, y)


def test_no_finding_rests_on_one_variance_where_hc3_says_otherwise() -> None:
    """Without HC3 some inert term is a finding in half of such studies."""
    usual, doubted = 0, []
    for seed in range(24):
        response = fit_response(fourfold_where_runs_are_few(seed))
        called = [test.term for test in response.tests if (test.p_holm or 1.0) < 0.05]
        usual += bool(called)
        doubted += [seed] * (set(called) <= set(doubted_terms(response))) * bool(called)
    assert usual >= 12
    assert len(doubted) > usual / 2
    found = analyze(fourfold_where_runs_are_few(doubted[0]))
    assert found.doubted
    assert not found.findings
    said = " ".join(headlines(found).effects)
    assert found.doubted[0] in said
    assert "HC3, which lets the spread differ, does not confirm" in said
    assert "clear effect" in lead(found, "y")


def test_an_effect_that_hc3_confirms_is_a_finding() -> None:
    found = analyze(fourfold_where_runs_are_few(1, shift=20.0))
    assert "A" in [test.term for test in found.findings]
    assert "A" not in found.doubted
