"""Power of the F test of each term: against R, against the two-level t, and by simulation."""

import math

import numpy as np
import pytest
from level_tables import fitted, full, seen, words

from doe.analysis.anova import sums_of_squares
from doe.analysis.dataset import Runs
from doe.analysis.design_report import term_powers
from doe.analysis.effects import half_normal_plot, term_tests
from doe.design.power import DesignSize, detectable_by_term, detectable_effect, term_power


def layout(sizes, replicates, drop=()):
    index = full(sizes, replicates)
    block = np.repeat(np.arange(replicates), math.prod(sizes))
    keep = [i for i in range(len(index)) if i not in drop]
    return Runs(words(sizes), index[keep], block=block[keep])


# pf(qf(a, u, v, lower.tail = FALSE), u, v, ncp = l, lower.tail = FALSE) of R, which is what
# pwr.f2.test(u, v, f2 = l / (u + v + 1), a) of the package pwr gives.
OF_R = [
    (2, 11, 8.0, 0.05, 0.588014755432528),
    (4, 27, 12.5, 0.05, 0.740196573629951),
    (1, 14, 3.0, 0.05, 0.364725199996532),
    (6, 40, 20.0, 0.01, 0.710327993578992),
]


@pytest.mark.parametrize(("u", "v", "noncentrality", "alpha", "expected"), OF_R)
def test_power_agrees_with_r(u, v, noncentrality, alpha, expected):
    assert term_power(2.0, 2.0, noncentrality, (u, v), alpha) == pytest.approx(expected, abs=1e-8)
    effect = detectable_by_term(3.0, noncentrality, (u, v), alpha, expected)
    assert effect == pytest.approx(3.0, rel=1e-7)


@pytest.mark.parametrize("sizes", [(2, 2), (3, 2), (3, 4, 2)])
def test_a_balanced_design_follows_the_formula(sizes):
    powers = {p.term: p for p in term_powers(layout(sizes, 2))}
    runs = 2 * math.prod(sizes)
    for term, power in powers.items():
        own = [size for key, size in zip("ABC", sizes, strict=False) if key in term]
        assert power.df == math.prod(size - 1 for size in own)
        assert power.noncentrality == pytest.approx(runs / 4 * math.prod(2 / s for s in own))


def test_two_levels_have_the_power_of_their_t_test():
    (power, *_) = term_powers(layout((2, 2, 2), 2))
    effect = detectable_by_term(1.5, power.noncentrality, (1, 7), 0.05, 0.8)
    assert effect == pytest.approx(detectable_effect(1.5, DesignSize(8, 2, 1, 7)))


@pytest.mark.slow
@pytest.mark.parametrize("drop", [(), (0, 7, 8)])
@pytest.mark.parametrize(("term", "pattern"), [("A", (2, 0)), ("AB", (0, 1))])
def test_the_rate_of_significant_f_tests_is_the_power(drop, term, pattern):
    """Where runs are missing, no pair of levels does worse than the least favourable one.

    400 data sets tell a noncentrality that is half as large again, a third smaller, or has a degree
    of freedom too many.
    """
    plan = layout((3, 2), 3, drop)
    power = next(p for p in term_powers(plan) if p.term == term)
    high, low = pattern
    sign = np.where(plan.index[:, 0] == high, 0.5, np.where(plan.index[:, 0] == low, -0.5, 0.0))
    if term == "AB":
        sign = sign * np.where(plan.index[:, 1] == 1, 1.0, -1.0)
    effect = 2.5
    rng = np.random.default_rng(11)
    count, called, df = 400, 0, 0
    for _ in range(count):
        y = effect * sign + plan.block + rng.normal(0.0, 1.0, plan.count)
        fit = fitted(seen(plan.factors, plan.index, y, plan.block))
        sums = sums_of_squares(fit, fit.kind)
        found = term_tests(fit, sums, half_normal_plot(fit, 0.05))
        tests = {test.term: test for test in found}
        called += tests[term].p < 0.05
        df = fit.df_error
    expected = term_power(effect, 1.0, power.noncentrality, (power.df, df), 0.05)
    margin = 3.0 * math.sqrt(expected * (1 - expected) / count)
    rate = called / count
    assert rate > expected - margin
    if not drop:
        assert rate < expected + margin


def test_a_term_of_which_only_a_part_can_be_estimated_has_no_power():
    index = full((3, 2), 2)
    kept = ~((index[:, 0] == 0) & (index[:, 1] == 1))
    plan = Runs(words((3, 2)), index[kept])
    assert [p.term for p in term_powers(plan)] == ["A", "B"]
