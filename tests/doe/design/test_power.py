import numpy as np
import pytest
from scipy import integrate, stats

from doe.design.power import (
    DesignSize,
    PowerQuestion,
    detectable_effect,
    pooled_sigma,
    power,
    power_rows,
    replicates_needed,
)
from doe.errors import DoeError


def test_degrees_of_freedom_of_the_papers_design():
    size = DesignSize(cells=64, replicates=4, blocks_per_replicate=1, terms=63)
    assert size.df_error == 63 * 3
    assert size._replace(blocks_per_replicate=0).df_error == 64 * 3


@pytest.mark.parametrize("df", [1, 2, 3, 8, 63, 189])
@pytest.mark.parametrize("ncp", [0.0, 0.5, 2.0, 4.0, 8.0, 16.0])
def test_power_agrees_with_the_integral_over_the_estimated_sigma(df, ncp):
    """P(|Z + λ| > t·s) averaged over s, the root of a chi-square over its degrees of freedom."""
    cells = df + 1
    size = DesignSize(cells, 2, 1, df)
    assert size.df_error == df
    critical = stats.t.isf(0.025, df)

    def beyond(s):
        tails = stats.norm.sf(critical * s - ncp) + stats.norm.cdf(-critical * s - ncp)
        return tails * stats.chi.pdf(s * np.sqrt(df), df) * np.sqrt(df)

    points = [0.5, 1.0, 2.0, max(ncp / critical, 1e-3)]
    expected = integrate.quad(beyond, 0, 40, points=points, limit=500)[0]
    effect = ncp * 2 / np.sqrt(size.runs)
    assert power(effect, 1.0, size) == pytest.approx(expected, abs=1e-8)


def test_the_smallest_replicated_designs_have_a_detectable_effect():
    for size in (DesignSize(2, 2, 1, 1), DesignSize(4, 2, 1, 3), DesignSize(4, 3, 1, 3)):
        effect = detectable_effect(1.0, size)
        assert power(effect, 1.0, size) == pytest.approx(0.8, abs=1e-9)


def test_power_agrees_with_simulation():
    rng = np.random.default_rng(5)
    size, effect, n = DesignSize(8, 3, 1, 7), 1.0, 20_000
    estimate = effect + rng.standard_normal(n) * 2 / np.sqrt(size.runs)
    s2 = rng.chisquare(size.df_error, n) / size.df_error
    t = estimate / (2 * np.sqrt(s2 / size.runs))
    rate = np.mean(np.abs(t) > stats.t.isf(0.025, size.df_error))
    assert power(effect, 1.0, size) == pytest.approx(rate, abs=0.01)


def test_no_effect_has_power_alpha():
    assert power(0.0, 1.0, DesignSize(8, 2, 1, 7), alpha=0.01) == pytest.approx(0.01, rel=1e-9)


def test_detectable_effect_has_the_power_asked_for_and_scales_with_sigma():
    size = DesignSize(64, 4, 1, 63)
    effect = detectable_effect(2.0, size, target=0.9)
    assert power(effect, 2.0, size) == pytest.approx(0.9, abs=1e-9)
    assert detectable_effect(4.0, size, target=0.9) == pytest.approx(2 * effect)


def test_replicates_needed_is_the_first_number_that_suffices():
    size = DesignSize(16, 1, 1, 15)
    n = replicates_needed(0.7, 1.0, size)
    assert power(0.7, 1.0, size._replace(replicates=n)) >= 0.8
    fewer = size._replace(replicates=n - 1)
    assert fewer.df_error < 1 or power(0.7, 1.0, fewer) < 0.8


def test_almost_no_noise_needs_the_fewest_replicates_that_leave_an_error():
    size = DesignSize(16, 1, 1, 15)
    assert power(1.0, 1e-15, size._replace(replicates=2)) == 1.0
    assert replicates_needed(1.0, 1e-15, size) == 2


def test_sigma_of_montgomerys_blocked_square():
    """2² in three blocks: error mean square 24.833 / 6 with blocks taken out."""
    y = [28, 36, 18, 31, 25, 32, 19, 30, 27, 32, 23, 29]
    cells = [0, 1, 2, 3] * 3
    blocks = [b for b in range(3) for _ in range(4)]
    assert pooled_sigma(y, cells, blocks) ** 2 == pytest.approx(24.8333333333 / 6, rel=1e-9)
    assert pooled_sigma(y, cells, [0] * 12) ** 2 == pytest.approx(31.3333333333 / 8, rel=1e-9)


@pytest.mark.parametrize(
    "call",
    [
        lambda: power(1, 0, DesignSize(8, 2, 1, 7)),
        lambda: power(1, 1, DesignSize(8, 2, 1, 7), alpha=1.5),
        lambda: power(1, 1, DesignSize(8, 1, 1, 7)),
        lambda: detectable_effect(1, DesignSize(8, 2, 1, 7), target=0.01),
        lambda: replicates_needed(0, 1, DesignSize(8, 2, 1, 7)),
        lambda: replicates_needed(1e-9, 1, DesignSize(8, 2, 1, 7)),
        lambda: pooled_sigma([], [], []),
        lambda: pooled_sigma([1.0, 2.0], [0, 1], [0, 0]),
    ],
)
def test_what_cannot_be_answered_is_refused(call):
    with pytest.raises(DoeError):
        call()


def test_power_after_holm_agrees_with_simulation():
    """One active effect of seven, over 16 runs in two blocks."""
    from doe.analysis.pvalues import holm, t_two_sided

    (_, row) = power_rows(DesignSize(8, 1, 1, 7), 2, PowerQuestion(effect=2.0))
    rng = np.random.default_rng(0)
    t = rng.normal(size=(4000, 7)) + np.array([2.0, 0, 0, 0, 0, 0, 0]) / 0.5
    t /= np.sqrt(rng.chisquare(7, size=(4000, 1)) / 7)
    adjusted = np.array([holm(p) for p in t_two_sided(t, 7)])
    assert np.mean(adjusted[:, 0] < 0.05) == pytest.approx(row["power_holm"], abs=0.03)
    assert row["power_holm"] < row["power"] - 0.1
