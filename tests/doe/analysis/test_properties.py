"""What must hold for any data: orthogonality, invariance, agreement of independent routes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from factorial_tables import by_term, study, table, two_level_fit
from hypothesis import given, settings
from hypothesis import strategies as st
from level_tables import full, words
from scipy import stats
from statsmodels.stats.anova import anova_lm

from doe.analysis.contrasts import evaluate, fwht, sign_columns
from doe.analysis.dataset import FactorColumn, Runs
from doe.analysis.estimators.box_meyer import BoxMeyer
from doe.analysis.estimators.dispersion import Dispersion
from doe.analysis.estimators.robust import (
    Robust,
    hc3,
    permutation,
    residual_se,
    wild_bootstrap,
)
from doe.analysis.fit import fit
from doe.analysis.lenth import lenth, scale_estimates, simulated_p
from doe.analysis.model import BLOCK, make_model
from doe.analysis.pvalues import benjamini_hochberg, f_upper, holm, t_two_sided
from doe.terms import term_name, terms_up_to

seeds = st.integers(0, 2**32 - 1)


@given(seeds, st.integers(1, 6))
@settings(max_examples=30, deadline=None)
def test_transform_is_the_product_with_the_sign_table(seed: int, factors: int) -> None:
    size = 1 << factors
    y = np.random.default_rng(seed).normal(size=size)
    signs = sign_columns(np.arange(size), range(size))
    assert fwht(y) == pytest.approx(signs.T @ y, abs=1e-10)
    assert signs.T @ signs == pytest.approx(size * np.eye(size))
    assert evaluate(fwht(y) / size) == pytest.approx(y, abs=1e-12)


@given(seeds, st.integers(1, 5), st.integers(1, 3), st.booleans())
@settings(max_examples=40, deadline=None)
def test_transform_and_least_squares_agree(
    seed: int, factors: int, replicates: int, blocks: bool
) -> None:
    rng = np.random.default_rng(seed)
    cells = np.tile(np.arange(1 << factors), replicates)
    block = np.repeat(np.arange(replicates), 1 << factors) if blocks and replicates > 1 else None
    y = 10 * rng.normal(size=len(cells))
    fast = two_level_fit(y, cells, factors, block)
    assert fast.model.solved_by_transform
    slow = fit(y, replace(fast.model, solved_by_transform=False))
    assert fast.scale == pytest.approx(np.diag(slow.scale), rel=1e-10)
    for name in ("coef", "rotated", "fitted", "leverage", "ss_residual", "ss_pure"):
        one, other = getattr(fast, name), getattr(slow, name)
        if name == "rotated":  # the columns of the blocks are not orthogonal
            one, other = one[fast.model.df(BLOCK) + 1 :], other[fast.model.df(BLOCK) + 1 :]
        assert one == pytest.approx(other, rel=1e-10, abs=1e-10)


@given(seeds)
@settings(max_examples=20, deadline=None)
def test_sums_of_squares_add_up_in_a_balanced_design(seed: int) -> None:
    y = np.random.default_rng(seed).normal(size=24)
    found = study(table("ABC", y), "ABC", block="day")
    parts = [row.ss for row in found.anova.rows if row.source != "Total"]
    assert sum(parts) == pytest.approx(found.anova.rows[-1].ss, rel=1e-10)
    assert sum(row.df for row in found.anova.rows[:-1]) == 23


@given(seeds)
@settings(max_examples=15, deadline=None)
def test_order_of_runs_and_names_of_levels_do_not_matter(seed: int) -> None:
    rng = np.random.default_rng(seed)
    frame = table("ABC", rng.normal(size=16)).drop(index=5)
    first = by_term(study(frame, "ABC"))
    mixed = frame.sample(frac=1, random_state=seed % 1000).reset_index(drop=True)
    second = by_term(study(mixed, "ABC"))
    turned = by_term(study(frame.assign(A=1 - frame["A"]), "ABC"))
    swapped = by_term(study(frame.rename(columns={"A": "B", "B": "A"}), "BAC"))
    for term, effect in first.items():
        assert second[term].effect == pytest.approx(effect.effect, rel=1e-9, abs=1e-12)
        assert second[term].p == pytest.approx(effect.p, rel=1e-9)
        sign = -1 if "A" in term else 1
        assert turned[term].effect == pytest.approx(sign * effect.effect, rel=1e-9, abs=1e-12)
    assert swapped["B"].effect == pytest.approx(first["A"].effect, rel=1e-9)


def test_types_two_and_three_agree_with_statsmodels() -> None:
    rng = np.random.default_rng(3)
    frame = table("ABCD", rng.normal(size=48)).drop(index=[1, 7, 20, 21, 40])
    found = study(frame.reset_index(drop=True), "ABCD", block="day")
    coded = frame.assign(**{f"x{key}": 2 * frame[key] - 1 for key in "ABCD"}).drop(columns="C")
    peer = smf.ols("y ~ C(day, Sum) + xA*xB*xC*xD", coded).fit()
    assert found.anova.type2 is not None
    for kind, rows in ((2, found.anova.type2), (3, found.anova.rows)):
        theirs = anova_lm(peer, typ=kind)
        for row in rows:
            if row.source in ("Block", "Error", "Total"):
                continue
            line = theirs.loc[":".join(f"x{key}" for key in row.source)]
            assert row.ss == pytest.approx(line["sum_sq"], rel=1e-8)
            assert row.p == pytest.approx(line["PR(>F)"], rel=1e-8)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
@settings(max_examples=50, deadline=None)
def test_adjusted_p_values_agree_with_scipy_and_keep_their_order(values: list[float]) -> None:
    p = np.array(values)
    assert benjamini_hochberg(p) == pytest.approx(stats.false_discovery_control(p), abs=1e-12)
    assert (holm(p) >= np.minimum(1, p)).all()
    assert (np.diff(holm(p)[np.argsort(p, kind="stable")]) >= 0).all()


def test_permutation_p_is_uniform_under_the_null() -> None:
    cells = np.tile(np.arange(4), 3)
    block = np.repeat(np.arange(3), 4)
    rng = np.random.default_rng(11)
    alone, most = [], []
    for i in range(300):
        y = rng.normal(size=12) + 5 * block
        found = permutation(two_level_fit(y, cells, 2, block), 199, seed=i)
        alone.append(found.alone[0])
        most.append(found.largest.min())
    jitter = rng.random(300) / 200
    assert stats.kstest(np.array(alone) - jitter, "uniform").pvalue > 0.01
    assert stats.kstest(np.array(most) - jitter, "uniform").pvalue > 0.01


def test_permutation_within_blocks_does_not_see_the_blocks() -> None:
    cells = np.tile(np.arange(4), 4)
    block = np.repeat(np.arange(4), 4)
    y = np.random.default_rng(1).normal(size=16)
    plain = permutation(two_level_fit(y, cells, 2, block), 500, seed=1)
    shifted = permutation(two_level_fit(y + 100.0 * block, cells, 2, block), 500, seed=1)
    assert plain.alone == pytest.approx(shifted.alone)
    assert (plain.largest >= plain.alone).all()


def test_permutation_leaves_other_terms_where_they_are() -> None:
    """Freedman and Lane: a large effect beside it does not change the p of a term."""
    rng = np.random.default_rng(8)
    cells = np.tile(np.arange(8), 3)
    y = rng.normal(size=24)
    plain = permutation(two_level_fit(y, cells, 3), 999, seed=1)
    beside = permutation(two_level_fit(y + 50.0 * (cells >> 2), cells, 3), 999, seed=1)
    assert plain.method == "Freedman and Lane"
    assert beside.alone[:3] == pytest.approx(plain.alone[:3])
    assert beside.alone[3] == 1 / 1000


def test_permutation_p_of_terms_with_any_degrees_of_freedom_is_uniform() -> None:
    rng = np.random.default_rng(12)
    runs = Runs(words((3, 2)), full((3, 2), 3))
    model = make_model(runs, (1, 2, 3))
    alone, most = [], []
    for i in range(300):
        found = permutation(fit(rng.normal(size=18), model), 199, seed=i)
        alone.append(found.alone[0])
        most.append(found.largest.min())
    jitter = rng.random(300) / 200
    assert stats.kstest(np.array(alone) - jitter, "uniform").pvalue > 0.01
    assert stats.kstest(np.array(most) - jitter, "uniform").pvalue > 0.01


def test_a_fit_of_nothing_but_copies_has_no_robust_answer() -> None:
    y = np.tile([1.0, 2.0, 4.0, 3.0], 3)
    found = study(table("AB", y), "AB", robust=True, permutations=99)
    assert found.get(Robust) is None
    assert found.get(BoxMeyer) is None
    assert found.get(Dispersion) is None


@pytest.mark.parametrize("ratio", [1.0, 6.0])
def test_wild_bootstrap_intervals_cover_where_the_spread_differs(ratio: float) -> None:
    cells = np.tile(np.arange(8), 4)
    block = np.repeat(np.arange(4), 8)
    rng = np.random.default_rng(5)
    hits = 0
    for i in range(200):
        y = rng.normal(size=32) * np.where(cells & 2, ratio, 1.0) + (cells & 1) + block
        full_fit = two_level_fit(y, cells, 3, block)
        wild = wild_bootstrap(full_fit, 0.05, 400, seed=i)
        assert wild is not None
        effect = 2.0 * full_fit.unit * full_fit.coef_of((1,))[0][0]
        hits += abs(effect - 1.0) <= wild.critical[0] * residual_se(full_fit, 1)
    assert 0.91 <= hits / 200 <= 0.995


def test_wild_bootstrap_p_holds_over_all_terms() -> None:
    cells = np.tile(np.arange(16), 2)
    rng = np.random.default_rng(6)
    smallest = []
    for i in range(200):
        wild = wild_bootstrap(two_level_fit(rng.normal(size=32), cells, 4), 0.05, 400, seed=i)
        assert wild is not None
        smallest.append(wild.p.min())
    assert np.mean(np.array(smallest) < 0.05) <= 0.09


def test_hc3_is_silent_where_it_is_the_t_test() -> None:
    cells = np.tile(np.arange(8), 2)
    y = np.random.default_rng(3).normal(size=16)
    assert hc3(two_level_fit(y, cells, 3)) == {}
    assert hc3(two_level_fit(y, cells, 3, order=1)) == {}
    assert set(hc3(two_level_fit(y[1:], cells[1:], 3, order=1))) == {1, 2, 4}


def test_hc3_adds_to_the_test_of_a_factor_with_three_levels() -> None:
    """A level's own runs tell the variance of its mean, whatever the leverages."""
    index = full((3, 2), 4)
    y = np.random.default_rng(4).normal(size=24) * (1.0 + 3.0 * (index[:, 0] == 2))
    fitted = fit(y, make_model(Runs(words((3, 2)), index), (1, 2, 3)))
    assert np.ptp(fitted.leverage) < 1e-12
    frame = pd.DataFrame({"y": y, "a": index[:, 0], "b": index[:, 1]})
    peer = smf.ols("y ~ C(a, Sum) * C(b, Sum)", frame).fit()
    robust = peer.get_robustcov_results("HC3")
    names = peer.model.exog_names
    rows = np.eye(len(names))[[i for i, n in enumerate(names) if "C(a" in n and ":" not in n]]
    found = hc3(fitted)
    assert found[1] == pytest.approx(float(robust.f_test(rows).pvalue), rel=1e-8)
    assert set(found) == {1, 3}  # b has two levels: its variance is the pooled one


def test_lenth_p_is_uniform_for_inert_effects() -> None:
    draws = np.random.default_rng(2).normal(size=(400, 15))
    _, pse = scale_estimates(draws)
    p = simulated_p(draws[:, 0] / pse, 15)
    assert stats.kstest(p, "uniform").pvalue > 0.01


def test_trimming_is_strictly_below() -> None:
    # s0 = 3 and 2.5 s0 = 7.5, which must not count: the median of 1 and 2 is left.
    s0, pse = scale_estimates(np.array([1.0, -2.0, 7.5]))
    assert (float(s0), float(pse)) == (3.0, 2.25)


def test_half_normal_coordinates() -> None:
    found = lenth(np.array([3.0, -1.0, 2.0]), ["A", "B", "AB"], 0.05)
    assert found is not None
    assert [(p.term, p.magnitude) for p in found.points] == [("B", 1.0), ("AB", 2.0), ("A", 3.0)]
    quantiles = stats.halfnorm.ppf((np.array([1, 2, 3]) - 0.5) / 3)
    assert [p.quantile for p in found.points] == pytest.approx(quantiles)


def test_effects_do_not_change_with_an_added_factor_of_no_effect() -> None:
    rng = np.random.default_rng(9)
    y = rng.normal(size=8)
    small = by_term(study(table("ABC", y), "ABC"))
    double = pd.concat([table("ABC", y)] * 2, ignore_index=True).assign(D=[0] * 8 + [1] * 8)
    large = by_term(study(double, "ABCD"))
    assert large["AB"].effect == pytest.approx(small["AB"].effect)
    assert large["D"].effect == pytest.approx(0, abs=1e-12)


def test_names_of_many_terms_are_those_of_single_ones() -> None:
    for keys in ("ABCD", ["lr", "aug", "opt"]):
        masks = terms_up_to(len(keys))
        factors = tuple(FactorColumn(key, key, ("low", "high")) for key in keys)
        model = make_model(Runs(factors, np.array(list(np.ndindex(*[2] * len(keys))))), masks)
        assert [model.name(mask) for mask in masks] == [term_name(mask, keys) for mask in masks]


def test_tails_are_those_of_scipy() -> None:
    x = np.array([0.0, 0.3, 2.0, 11.0, 60.0])
    for df in (1, 7, 189):
        assert t_two_sided(x, df) == pytest.approx(2 * stats.t.sf(x, df), rel=1e-10)
        assert f_upper(x, 1, df) == pytest.approx(stats.f.sf(x, 1, df), rel=1e-10)
        assert f_upper(x, 9, df) == pytest.approx(stats.f.sf(x, 9, df), rel=1e-10)
