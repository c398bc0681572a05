"""What replaces the import of scipy.stats and scipy.optimize says the same."""

import numpy as np
import pytest
from scipy import optimize, stats

from doe.analysis import distributions
from doe.analysis.distributions import minimum, root
from doe.analysis.lenth import KNOWN, _upper, reference

RNG = np.random.default_rng(7)


@pytest.mark.parametrize("n", [3, 4, 5, 6, 11, 12, 50, 256, 2000])
def test_shapiro_and_wilk(n):
    for values in (RNG.standard_normal(n), RNG.exponential(size=n), RNG.standard_t(2, size=n)):
        w, p = distributions.shapiro(values)
        assert w == pytest.approx(stats.shapiro(values)[0], rel=1e-7)
        assert p == pytest.approx(stats.shapiro(values)[1], rel=1e-5, abs=1e-7)


def test_tails_and_quantiles():
    x, p = np.array([0.1, 1.0, 3.7, 9.0]), np.array([1e-13, 0.025, 0.5, 0.9])
    for ours, theirs in [
        (distributions.norm.pdf(x), stats.norm.pdf(x)),
        (distributions.norm.sf(x), stats.norm.sf(x)),
        (distributions.norm.ppf(p), stats.norm.ppf(p)),
        (distributions.norm.cdf(-x), stats.norm.cdf(-x)),
        (distributions.t.sf(x, 5), stats.t.sf(x, 5)),
        (distributions.t.isf(p, 21 / 3), stats.t.isf(p, 21 / 3)),
        (distributions.chi2.pdf(x, 189), stats.chi2.pdf(x, 189)),
        (distributions.chi2.sf(x, 1), stats.chi2.sf(x, 1)),
        (distributions.chi2.isf(p, 1), stats.chi2.isf(p, 1)),
        (distributions.chi2.ppf(p, 7), stats.chi2.ppf(p, 7)),
        (distributions.f.sf(x, 3, 40), stats.f.sf(x, 3, 40)),
        (distributions.f.isf(p[1:], 3, 40), stats.f.isf(p[1:], 3, 40)),
    ]:
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)


def test_ranks_means_and_one_way_variance():
    values = np.array([3.0, 1.0, 3.0, 2.0, 9.0, 3.0])
    for method in ("average", "ordinal"):
        np.testing.assert_array_equal(
            distributions.rankdata(values, method), stats.rankdata(values, method)
        )
    assert distributions.trim_mean(values, 0.25) == stats.trim_mean(values, 0.25)
    groups = [RNG.standard_normal(k) + k for k in (3, 5, 9)]
    np.testing.assert_allclose(distributions.f_oneway(*groups), stats.f_oneway(*groups), rtol=1e-9)


@pytest.mark.parametrize(
    ("events", "counts"),
    [([3, 8], [12, 10]), ([0, 6], [24, 24]), ([5, 0], [6, 42]), ([1, 1], [2, 2])],
)
def test_exact_rates_of_two_groups_are_fishers(events, counts):
    table = [events, [n - k for k, n in zip(events, counts, strict=True)]]
    found = distributions.exact_rates(np.array(events), np.array(counts))
    assert found == pytest.approx(stats.fisher_exact(table)[1], rel=1e-9)


def test_exact_rates_of_more_groups_are_freeman_and_haltons():
    # fisher.test(rbind(c(0, 6, 0), c(12, 6, 12))) and (rbind(c(1, 5, 2, 0), c(7, 3, 4, 9))) of R
    few, counts = np.array([0, 6, 0]), np.array([12] * 3)
    assert distributions.exact_rates(few, counts) == pytest.approx(0.001423149905, rel=1e-8)
    events, counts = np.array([1, 5, 2, 0]), np.array([8, 8, 6, 9])
    assert distributions.exact_rates(events, counts) == pytest.approx(0.01331685412, rel=1e-8)
    drawn = distributions.exact_rates(10 * events, 10 * counts)  # too many splits to go through
    assert drawn < 1e-4


@pytest.mark.parametrize(
    ("function", "low", "high"),
    [
        (lambda x: np.cos(x) - x, 0.0, 2.0),
        (lambda x: x**9 - 1e-3, -1.0, 5.0),
        (lambda x: 1.0 - np.exp(x - 30.0), 0.0, 50.0),
        (lambda x: 0.5 - x, 5.0, -5.0),
    ],
)
def test_roots(function, low, high):
    assert root(function, low, high) == pytest.approx(
        optimize.brentq(function, low, high), rel=1e-9
    )


def test_a_root_needs_a_change_of_sign():
    with pytest.raises(ValueError, match="no sign change"):
        root(lambda x: x**2 + 1.0, -1.0, 1.0)


def test_minima():
    assert minimum(lambda x: (x - 1.234) ** 4 + 1.0, -3.0, 3.0) == pytest.approx(1.234, abs=1e-3)
    assert minimum(lambda x: np.cosh(x + 0.06), -3.0, 3.0) == pytest.approx(-0.06, abs=1e-6)


@pytest.mark.parametrize("m", [7, 63])
def test_known_margins_of_lenth_are_the_simulated_ones(m):
    simulated = reference(m)
    found = (_upper(simulated.single, 0.05), _upper(simulated.largest, 0.05))
    assert KNOWN[m] == pytest.approx(found, rel=1e-6)
