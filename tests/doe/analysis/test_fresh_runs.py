"""Fresh runs of a winner: known answers, and intervals that cover after the choice."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.confirmation import covered, study
from doe.analysis.analyze import analyze
from doe.analysis.confirm import by_prediction, paired_gain
from doe.analysis.data import Fresh


def test_a_paired_difference_has_the_t_interval_of_the_textbook():
    best, other = np.array([1.0, 2.0, 4.0, np.nan]), np.array([2.0, 4.0, 5.0, 9.0])
    gain = paired_gain(best, other, "A0", "min", 0.05)
    # differences −1, −2, −1: mean −4/3, s = 0.57735, t(0.975, 2) = 4.302653
    assert (gain.seeds, gain.difference) == (3, pytest.approx(-4 / 3))
    assert gain.high - gain.difference == pytest.approx(4.302653 * 0.57735 / 3**0.5, rel=1e-5)
    assert gain.verdict == "open"
    assert paired_gain(best, best + 1.0 + 0.01 * best, "A0", "min", 0.05).verdict == "confirmed"
    assert paired_gain(best, best + 1.0 + 0.01 * best, "A0", "max", 0.05).verdict == "refuted"
    assert paired_gain(best[:1], other[:1], "A0", "min", 0.05) is None


def test_the_model_ranks_and_means_break_its_ties():
    rng = np.random.default_rng(0)
    y = 5.0 * (np.arange(8) & 1) + 0.3 * rng.standard_normal((4, 8))
    analysis = analyze(study(y, 3))  # the larger the better, A alone is active
    assert analysis.best.reduced.terms == ("A",)
    order = by_prediction(analysis.best, "ABC")
    means = [cell.config for cell in analysis.best.cells]
    assert order == [c for c in means if "A1" in c] + [c for c in means if "A0" in c]


def test_fresh_runs_bring_a_verdict_and_change_nothing_else():
    rng = np.random.default_rng(1)
    observed = study(5.0 * (np.arange(8) & 1) + 0.3 * rng.standard_normal((4, 8)), 3)
    before = analyze(observed)
    assert before.confirmation is None
    y = np.array([[5.1, 4.9, 5.2], [5.0, 5.0, 5.1], [0.1, -0.2, 0.3]])
    fresh = Fresh(("A1B0C0", "A1B1C0", "A0B0C0"), y)
    after = analyze(replace(observed, fresh=fresh))
    assert after.effects == before.effects
    assert after.best == before.best
    verdict = after.confirmation
    assert verdict.verdict == "confirmed"
    assert [gain.against for gain in verdict.gains] == ["A0B0C0", "A1B1C0"]
    assert verdict.predicted_low < verdict.mean < verdict.predicted_high
    nothing = Fresh(fresh.configs, np.full((3, 3), np.nan))
    assert analyze(replace(observed, fresh=nothing)).confirmation is None


@pytest.mark.parametrize("draw", ["normal", "log-normal", "A triples σ"])
def test_fresh_means_lie_where_they_were_predicted(draw):
    inside, shown, gain = covered(3, 4, draw, 60)
    assert gain > 0.86
    assert inside > 0.9
    assert shown > 0.3


def test_no_prediction_is_shown_where_a_factor_changes_the_spread():
    rng = np.random.default_rng(2)
    y = rng.standard_normal((6, 16)) * np.where(np.arange(16) & 1, 8.0, 1.0)
    observed = study(y, 4)
    fresh = Fresh(("A1B0C0D0", "A0B0C0D0"), rng.standard_normal((2, 3)))
    assert analyze(replace(observed, fresh=fresh)).confirmation.predicted_low is None
