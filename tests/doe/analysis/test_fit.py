"""One fit, two solvers: the Walsh-Hadamard transform gives what least squares gives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from level_tables import fitted, full, seen, words

from doe.analysis.anova import anova_rows, sums_of_squares
from doe.analysis.effects import half_normal_plot, term_tests, two_level_effects
from doe.analysis.fit import Fit, fit, standardized
from doe.analysis.means import level_means, term_means


def both(k: int, blocks: bool, terms: list[str] | None = None) -> tuple[Fit, Fit]:
    """The same runs and model, solved by the transform and by decomposition."""
    y = np.random.default_rng(k).normal(3.0, 2.0, size=3 << k)
    block = np.repeat(np.arange(3), 1 << k) if blocks else None
    data = seen(words([2] * k), full([2] * k, 3), y, block)
    fast = fitted(data, terms)
    assert fast.model.solved_by_transform
    return fast, fit(y, replace(fast.model, solved_by_transform=False))


def answers(found: Fit) -> list[object]:
    """Every kind of answer of a fit."""
    kind = found.kind
    sums = sums_of_squares(found, kind)
    plot = half_normal_plot(found, 0.05)
    tests = term_tests(found, sums, plot)
    return [
        *anova_rows(found, sums),
        *tests,
        *two_level_effects(found, tests, plot, 0.05),
        *plot.contrasts,
        *level_means(found, 0),
        *term_means(found, 3),
    ]


@pytest.mark.parametrize("terms", [None, ["A", "B", "AB"], ["B"]])
@pytest.mark.parametrize("blocks", [False, True])
@pytest.mark.parametrize("k", [2, 3, 4])
def test_the_transform_is_least_squares(k: int, blocks: bool, terms: list[str] | None) -> None:
    fast, slow = both(k, blocks, terms)
    assert fast.fitted == pytest.approx(slow.fitted, abs=1e-12)
    assert fast.leverage == pytest.approx(slow.leverage, abs=1e-12)
    assert np.abs(fast.Q @ fast.R - fast.model.X).max() < 1e-12
    assert np.abs(fast.Q.T @ fast.Q - np.eye(fast.model.rank)).max() < 1e-12
    for a, b in zip(answers(fast), answers(slow), strict=True):
        for name in a.__struct_fields__:
            value, other = getattr(a, name), getattr(b, name)
            if isinstance(value, float):
                assert value == pytest.approx(other, rel=1e-9, abs=1e-10), (a, b)
            else:
                assert value == other


def test_blocks_have_the_covariance_of_least_squares() -> None:
    fast, slow = both(3, blocks=True)
    rows = np.random.default_rng(0).normal(size=(4, fast.model.rank))
    rows[:, fast.model.source == -1] = 0.0  # what the blocks do is left out
    assert fast.estimate(rows)[0] == pytest.approx(slow.estimate(rows)[0])
    assert fast.estimate(rows)[1] == pytest.approx(slow.estimate(rows)[1])
    assert fast.variance(rows) == pytest.approx(np.diag(slow.estimate(rows)[1]))


def test_a_lost_run_is_solved_by_decomposition() -> None:
    y = np.random.default_rng(4).normal(size=24)
    y[5] = np.nan
    found = fitted(seen(words([2, 2, 2]), full([2, 2, 2], 3), y))
    assert not found.model.solved_by_transform
    assert found.n == 23
    assert found.u == pytest.approx((y[~np.isnan(y)] - found.shift) / found.unit)


@pytest.mark.parametrize("y", [(0.0, 5e-324), (-1.7e308, 1.7e308), (1e-310, 3e-310)])
def test_values_at_the_ends_of_the_floats_are_standardized(y: tuple[float, float]) -> None:
    shift, unit, u = standardized(np.array(y))
    assert np.isfinite([shift, unit, *u]).all()
    assert 0.5 <= float(np.ptp(u)) <= 4.0
