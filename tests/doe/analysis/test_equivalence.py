"""Two one-sided tests: known answers, and how often they err."""

import numpy as np
import pytest
from factorial_tables import two_level_runs
from scipy import stats
from statsmodels.stats.weightstats import ttost_ind

from doe.analysis.analyze import analyze, fit_response
from doe.analysis.dataset import Dataset
from doe.analysis.estimators.equivalence import Equivalence, estimate
from doe.analysis.options import AnalysisOptions
from doe.errors import DoeError


def data(y, factors=1, matters=None):
    cells = np.arange(len(y)) % (1 << factors)
    return Dataset(two_level_runs(cells, factors, None), "y", np.asarray(y), matters=matters)


def test_one_factor_is_the_test_of_two_samples():
    y = np.random.default_rng(1).standard_normal(20)
    tested = analyze(data(y), AnalysisOptions(equivalence=True, matters=0.9)).get(Equivalence)
    p, *_ = ttost_ind(y[1::2], y[::2], -0.9, 0.9)
    (row,) = tested.rows
    assert row.p == pytest.approx(p)
    reach = stats.t.isf(0.05, 18) * row_se(y)
    assert (row.low, row.high) == pytest.approx(
        (min(row.effect - reach, 0), max(row.effect + reach, 0))
    )


def row_se(y):
    return np.sqrt((y[::2].var(ddof=1) + y[1::2].var(ddof=1)) / 10)


def test_effects_that_just_matter_are_rarely_called_negligible():
    rng, wrong = np.random.default_rng(2), 0
    cells = np.tile(np.arange(8), 6)
    signs = [np.where(cells >> i & 1, 0.5, -0.5) for i in range(3)]
    for _ in range(300):
        y = rng.choice([-1, 1], 3) @ signs + 0.5 * rng.standard_normal(48)
        options = AnalysisOptions(equivalence=True, terms=("A", "B", "C"))
        wrong += any(row.within for row in estimate(fit_response(data(y, 3, 1.0), options)).rows)
    assert 0 < wrong < 300 * 0.05 + 2 * np.sqrt(300 * 0.05 * 0.95)


def test_it_is_asked_for_and_needs_a_size():
    y = np.random.default_rng(3).standard_normal(16)
    assert analyze(data(y, 2, 1.0)).get(Equivalence) is None
    with pytest.raises(DoeError, match="smallest effect on y that matters"):
        analyze(data(y, 2), AnalysisOptions(equivalence=True))
    with pytest.raises(DoeError, match="another scale"):
        analyze(data(np.exp(y), 2, 1.0), AnalysisOptions(equivalence=True, transform="boxcox"))


def test_of_logarithms_what_matters_is_a_difference_around_the_geometric_mean():
    z = 0.5 * np.random.default_rng(4).standard_normal(24)
    matters = 2.0 * np.exp(z.mean()) * np.sinh(0.5)  # an effect of 1 on the logarithm
    by_hand = analyze(data(z, 2, 1.0), AnalysisOptions(equivalence=True)).get(Equivalence)
    options = AnalysisOptions(equivalence=True, transform="log")
    tested = analyze(data(np.exp(z), 2, matters), options).get(Equivalence)
    for row, other in zip(tested.rows, by_hand.rows, strict=True):
        assert (row.p, row.within) == (pytest.approx(other.p), other.within)
        assert row.high == pytest.approx(2.0 * np.exp(z.mean()) * np.sinh(other.high / 2.0))
    assert any(row.within for row in tested.rows)
