"""Blocks that share no configuration: what can be compared, and what is said of it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from factorial_tables import study, table

from doe.analysis.best import critical_value, maximum_modulus, pair_reach, with_the_best
from doe.views.tables.anova import anova_table
from doe.views.tables.best import best_table


def in_two_blocks(shift: float, seed: int = 0) -> pd.DataFrame:
    """2^4 twice, each time in two blocks by ABCD that differ by `shift`; A raises y by 4."""
    frame = table("ABCD", np.zeros(32))
    signs = 2 * frame[list("ABCD")].to_numpy() - 1
    half = (signs.prod(axis=1) > 0).astype(int)
    noise = np.random.default_rng(seed).normal(size=32)
    frame["y"] = 50 + 4 * frame["A"] + shift * half + noise
    return frame.assign(day=2 * frame["day"] + half)


def test_configurations_are_ranked_by_what_blocks_cannot_hide() -> None:
    found = study(in_two_blocks(20.0), "ABCD", block="day", goal="max").best
    winners = {c.config for c in found.cells if "A1" in c.config}
    assert {c.config for c in found.cells[:8]} == winners
    assert found.assumed == ("ABCD",)
    assert "has the best mean, adjusted for blocks; " in found.sentence
    assert found.sentence.endswith(" in comparisons: ABCD is confounded with blocks.")
    moved = study(in_two_blocks(2000.0), "ABCD", block="day", goal="max").best
    gaps = [c.mean - found.cells[0].mean for c in found.cells]
    assert [c.config for c in moved.cells] == [c.config for c in found.cells]
    assert [c.mean - moved.cells[0].mean for c in moved.cells] == pytest.approx(gaps)
    assert moved.among_best == found.among_best


def test_no_winner_is_named_across_a_factor_that_blocks_hide() -> None:
    """A raises y by 3 in its own blocks: without A the mean of A1B1 would be far from its runs."""
    frame = table("AB", np.zeros(24))
    frame["day"] = 2 * (np.arange(24) // 4 // 2) + frame["A"]
    frame["y"] = 3.0 * frame["A"] + frame["B"] + np.random.default_rng(0).normal(size=24) / 10
    found = study(frame, "AB", block="day", goal="max").best
    assert found.cells[0].config == "A1B1"
    own = frame[(frame["A"] == 1) & (frame["B"] == 1)]["y"]
    assert found.cells[0].mean == pytest.approx(own.mean())
    assert found.critical is None
    assert found.cells[0].ci_low is None
    assert found.sentence == (
        "A1B1 has the best observed mean; A is confounded with blocks, so that no other can be "
        "ruled out."
    )


def test_means_do_not_change_with_the_order_of_rows() -> None:
    frame = in_two_blocks(20.0)
    mixed = frame.sample(frac=1, random_state=3).reset_index(drop=True)
    first, second = (study(f, "ABCD", block="day", goal="max").best for f in (frame, mixed))
    assert {c.config: c.mean for c in first.cells} == pytest.approx(
        {c.config: c.mean for c in second.cells}
    )


def test_a_fold_over_in_a_block_of_its_own() -> None:
    even = [r for r in range(16) if r.bit_count() % 2 == 0]
    odd = [r for r in range(16) if r.bit_count() % 2]
    rng = np.random.default_rng(5)
    frame = table("ABCD", np.zeros(32), [*even, *even, *odd, *odd])
    frame["y"] = 3 * frame["B"] + 30 * (frame["day"] == 2) + 0.5 * rng.normal(size=32)
    found = study(frame, "ABCD", block="day", goal="max").best
    assert {c.config for c in found.cells[:8]} == {
        c.config for c in found.cells if "B1" in c.config
    }
    assert found.assumed == ("ABCD",)


@pytest.mark.slow
def test_true_winners_stay_among_the_best_in_confounded_blocks() -> None:
    kept = 0
    for seed in range(60):
        found = study(in_two_blocks(20.0, seed), "ABCD", block="day", goal="max").best
        kept += sum(c.among_best for c in found.cells if "A1" in c.config)
    assert kept / (8 * 60) >= 0.94  # eight are equally good, and each stays with 95 %


def test_comparisons_of_correlated_means_hold_at_once() -> None:
    rng = np.random.default_rng(2)
    root = rng.normal(size=(4, 4)) / 2 + np.eye(4)
    covariance = root @ root.T
    truth = np.array([0.0, 0.2, 0.5, 0.4])
    gap = np.array([truth[i] - np.delete(truth, i).max() for i in range(4)])
    covered = 0
    for _ in range(400):
        means = truth + root @ rng.normal(size=4)
        sigma = float(np.sqrt(rng.chisquare(10) / 10))
        low, high = with_the_best(means, pair_reach(covariance, sigma, 10, 0.05)[0])
        covered += bool(((low <= gap + 1e-12) & (gap <= high + 1e-12)).all())
    assert covered / 400 >= 0.93


def test_quantiles_at_few_degrees_of_freedom_and_extreme_levels() -> None:
    # Studentized maximum modulus of 10 means on 10 degrees of freedom, by R's integrate and uniroot
    assert maximum_modulus(10, 10, 0.05) == pytest.approx(3.467411, abs=5e-7)
    assert maximum_modulus(1, 1, 0.01) == pytest.approx(63.657, abs=1e-3)
    # by this quadrature; 200,000 simulated draws gave 0.0499 at its value for 0.05
    assert critical_value(((0.5, 7),), 1, 0.01) == pytest.approx(80.312, abs=1e-2)
    assert critical_value(((0.5, 7),), 30, 0.99) == 0.0
    assert critical_value(((0.5, 7),), 30, 1e-300) > 1e3


def test_blocks_that_carry_confounded_terms_are_given_no_share() -> None:
    found = study(in_two_blocks(20.0), "ABCD", block="day")
    assert found.anova.blocking is not None
    assert found.anova.blocking.share is None
    assert "cannot be separated from terms confounded" in anova_table(found).notes[-1]


@pytest.mark.slow
def test_the_share_of_two_blocks_has_its_interval() -> None:
    rng = np.random.default_rng(4)
    covered = 0
    for _ in range(100):
        frame = table("ABC", rng.normal(size=16))
        frame["y"] += frame["day"].map({1: rng.normal(), 2: rng.normal()})  # half of the variance
        blocking = study(frame, "ABC", block="day").anova.blocking
        assert blocking is not None
        covered += blocking.share_low <= 0.5 <= blocking.share_high  # type: ignore[operator]
    assert covered >= 89
    assert f"({100 * blocking.share_low:.0f}% to" in blocking.sentence


def test_factors_outside_the_reduced_model_are_left_open() -> None:
    rng = np.random.default_rng(0)
    nothing = study(table("ABC", rng.normal(size=16)), "ABC")
    assert nothing.best.reduced.best.config == "any configuration"
    assert any("No term is significant" in note for note in best_table(nothing).notes)
    frame = table("ABC", rng.normal(size=32))
    frame["y"] += 6 * frame["B"]
    assert study(frame, "ABC", goal="max").best.reduced.best.config == "B1"


@pytest.mark.slow
@pytest.mark.parametrize("active", [False, True])
def test_intervals_hold_for_what_was_selected(active: bool) -> None:
    rng = np.random.default_rng(11)
    best = predicted = 0
    for _ in range(100):
        frame = table("ABCD", rng.normal(size=32))
        frame["y"] += 1.5 * frame["A"] * active
        found = study(frame, "ABCD", goal="max").best
        top, reduced = found.cells[0], found.reduced.best
        best += top.ci_low <= 1.5 * active * ("A1" in top.config) <= top.ci_high  # type: ignore[operator]
        level = 1.0 if "A1" in reduced.config else 0.0 if "A0" in reduced.config else 0.5
        predicted += reduced.ci_low <= 1.5 * active * level <= reduced.ci_high  # type: ignore[operator]
    assert best >= 90
    assert predicted >= 90
