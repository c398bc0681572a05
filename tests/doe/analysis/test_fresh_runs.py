"""Fresh runs of a winner: known answers, and intervals that cover after the choice."""

from dataclasses import replace

import numpy as np
import pytest
from level_tables import full, words

from benchmarks.confirmation import covered, study
from doe.analysis.analyze import analyze, fit_response
from doe.analysis.best import best
from doe.analysis.confirm import by_prediction, cells_to_confirm, paired_gain
from doe.analysis.dataset import Dataset, FreshRuns, Runs


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
    response = fit_response(study(y, 3))  # the larger the better, A alone is active
    top = best(response, "max")
    assert top.reduced.terms == ("A",)
    means = [cell.cell for cell in top.cells]
    assert by_prediction(response, top) == [c for c in means if c & 1] + [
        c for c in means if not c & 1
    ]


def test_the_best_observed_is_among_those_to_confirm():
    rng = np.random.default_rng(5)
    y = 2.0 * (np.arange(8) & 1) + 0.3 * rng.standard_normal((4, 8))
    y[:, 4] += 4.0  # by an interaction that is not in the model
    response = fit_response(replace(study(y, 3), terms=(1,)))
    top = best(response, "max")
    first, second, *_ = by_prediction(response, top)
    assert top.cells[0].cell not in (first, second)
    assert cells_to_confirm(response, top) == (first, top.cells[0].cell, second)


def test_a_prediction_below_zero_does_not_win():
    """A helps where values are large, so that the sum of A and B is below zero at A1B1, which is
    not the best; of their logarithms A0B1 is.
    """
    rng = np.random.default_rng(6)
    cells = np.arange(4)
    truth = np.array([100.0, 20.0, 1.0, 8.0])[cells]
    y = truth * np.exp(0.05 * rng.standard_normal((4, 4)))
    observed = replace(study(y, 2), goal="min", terms=(1, 2))
    response = fit_response(observed)
    additive = response.reduced.shift + response.reduced.unit * (
        response.reduced.model.cell_rows(range(4))[:, response.reduced.model.fitted]
        @ response.reduced.coef
    )
    assert additive.argmin() == 3
    assert additive.min() < 0.0
    assert by_prediction(response, best(response, "min"))[0] == 2


def test_a_factor_of_three_levels_is_confirmed():
    rng = np.random.default_rng(7)
    index = full((3, 2), 4)
    runs = Runs(words((3, 2)), index, block=np.repeat(np.arange(4), 6))
    y = 5.0 * (index[:, 0] == 2) + 0.3 * rng.standard_normal(24)
    top = runs.config(2)
    fresh = FreshRuns(
        (top, runs.config(5), runs.config(0)),
        np.array([[5.1, 4.9, 5.2], [5.0, 5.0, 5.1], [0.1, -0.2, 0.3]]),
    )
    found = analyze(Dataset(runs, "y", y, goal="max", fresh=fresh)).confirmation
    assert (found.config, found.verdict) == (top, "confirmed")
    assert found.predicted == pytest.approx(5.0, abs=0.3)
    assert found.predicted_low < found.mean < found.predicted_high


def test_fresh_runs_bring_a_verdict_and_change_nothing_else():
    rng = np.random.default_rng(1)
    observed = study(5.0 * (np.arange(8) & 1) + 0.3 * rng.standard_normal((4, 8)), 3)
    before = analyze(observed)
    assert before.confirmation is None
    y = np.array([[5.1, 4.9, 5.2], [5.0, 5.0, 5.1], [0.1, -0.2, 0.3]])
    fresh = FreshRuns(("A1B0C0", "A1B1C0", "A0B0C0"), y)
    after = analyze(replace(observed, fresh=fresh))
    assert after.effects == before.effects
    assert after.best == before.best
    verdict = after.confirmation
    assert verdict.verdict == "confirmed"
    assert [gain.against for gain in verdict.gains] == ["A0B0C0", "A1B1C0"]
    assert verdict.predicted_low < verdict.mean < verdict.predicted_high
    nothing = FreshRuns(fresh.configs, np.full((3, 3), np.nan))
    assert analyze(replace(observed, fresh=nothing)).confirmation is None


def test_fresh_runs_that_share_whole_plots_confirm_nothing_between_them():
    rng = np.random.default_rng(4)
    observed = study(5.0 * (np.arange(8) & 1) + 0.3 * rng.standard_normal((4, 8)), 3)
    y = np.array([[5.1, 4.9, 5.2], [4.0, 4.1, 3.9], [0.1, -0.2, 0.3]])
    configs, every = ("A1B0C0", "A1B1C0", "A0B0C0"), np.zeros(3, dtype=np.int64)
    shared = FreshRuns(configs, y, (np.array([every, every, every + 1]),))
    gains = analyze(replace(observed, fresh=shared)).confirmation.gains
    assert [(g.against, g.verdict, g.low is None) for g in gains] == [
        ("A0B0C0", "open", True),
        ("A1B1C0", "confirmed", False),
    ]
    own = FreshRuns(configs, y, (np.arange(9).reshape(3, 3),))
    gains = analyze(replace(observed, fresh=own)).confirmation.gains
    assert {gain.verdict for gain in gains} == {"confirmed"}


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
    fresh = FreshRuns(("A1B0C0D0", "A0B0C0D0"), rng.standard_normal((2, 3)))
    assert analyze(replace(observed, fresh=fresh)).confirmation.predicted_low is None
